package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestCodeWithAgentSkills: code sees the files of the Agent Skills that it names, those that its caller may read, and no
// others. What it changes in them is lost.
func TestCodeWithAgentSkills(t *testing.T) {
	var folder string
	h := codeHost(t, map[string]string{}, func(dir string) {
		folder = filepath.Join(dir, "note")
		for name, text := range map[string]string{
			"SKILL.md": "---\nname: note\ndescription: Writes notes.\n---\nRun scripts/say.py.\n", "scripts/say.py": "import sys\nfrom words import text\nopen('said.txt', 'w').write(text + sys.argv[1])\n",
			"scripts/words.py": "text = 'hello '\n", ".env": "SECRET=1\n", "data/.hidden": "x", "data/a.txt": "one",
		} {
			musttest.Write(t, filepath.Join(folder, name), text)
		}
		musttest.Do(t, os.Symlink("/etc/passwd", filepath.Join(folder, "passwd")))
		for i := range 1001 { // of which 1,000 are listed
			musttest.Write(t, filepath.Join(dir, "many", fmt.Sprintf("%d.txt", i)), "x")
			musttest.Write(t, filepath.Join(dir, "more", fmt.Sprintf("%d.txt", i)), "x")
		}
		musttest.Write(t, filepath.Join(dir, "many", "SKILL.md"), "---\nname: many\ndescription: Many.\n---\n")
		musttest.Write(t, filepath.Join(dir, "more", "SKILL.md"), "---\nname: more\ndescription: More.\n---\n")
	})
	run := func(p skill.Principal, input map[string]any) *skill.Result {
		t.Helper()
		return h.Invoke(t.Context(), p, skill.Request{SkillID: skill.RunCode, Input: musttest.Get(json.Marshal(input))(t)})
	}
	expect := func(language, code, want string, more ...string) {
		t.Helper()
		input := map[string]any{"language": language, "code": code, "agent_skills": append([]string{"note"}, more...)}
		if r := run(skill.Local(), input); r.Error != nil || !strings.Contains(string(r.Data), want) {
			t.Errorf("%s: %+v %s, want %s", code, r.Error, r.Data, want)
		}
	}
	runs(t, h, skill.Local(), "python", "1") // skips the test if Python is not installed
	expect("python", "import os\nsorted(os.path.relpath(os.path.join(at, f), '/mnt/skills') for at, _, files in os.walk('/mnt/skills') for f in files)",
		`"value":["note/SKILL.md","note/data/a.txt","note/scripts/say.py","note/scripts/words.py"]`)
	expect("python", "import sys\nsys.path.insert(0, '/mnt/skills/note/scripts')\nimport words\nopen('/mnt/skills/note/data/a.txt', 'a').write(' two')\nopen('/mnt/skills/note/data/a.txt').read() + words.text", `"value":"one twohello "`)
	expect("python", "open('/mnt/skills/note/data/a.txt').read()", `"value":"one"`)
	expect("javascript", "require('fs').readFileSync('/mnt/skills/note/data/a.txt', 'utf8')", `"value":"one"`)
	expect("shell", "python /mnt/skills/note/scripts/say.py there && cat said.txt && chmod +x said.txt && ls", `hello theremain.sh\nsaid.txt`)
	expect("shell", `echo x > a; PYTHONPATH=/mnt/skills/note/scripts python -c "import shutil, words; shutil.copy('a', 'b'); shutil.copy(words.__file__, 'c'); print(words.text)"; cat b`, `"hello \nx\n"`)
	if b := musttest.Get(os.ReadFile(filepath.Join(folder, "data/a.txt")))(t); string(b) != "one" {
		t.Errorf("the host's file: %s", b)
	}
	r := run(skill.Local(), map[string]any{"language": "python", "code": "open('/mnt/skills/note/new.txt', 'w').write('x')\nopen('out.txt', 'w').write('x')", "agent_skills": []string{"note"}})
	if r.Error != nil || len(r.Meta.Artifacts) != 1 || r.Meta.Artifacts[0].Name != "out.txt" {
		t.Errorf("artifacts: %+v %+v", r.Error, r.Meta.Artifacts)
	}
	view := musttest.Get(h.kept.executions.Get(t.Context(), skill.Local(), r.Meta.ExecutionID, 0))(t)
	of := musttest.Get(h.agents.Folder(t.Context(), skill.Local(), "note"))(t)
	if want := []records.FileInfo{{Name: "/mnt/skills/note", SHA256: strings.TrimPrefix(of.Digest(), "sha256:")}}; fmt.Sprint(view.Files) != fmt.Sprint(want) {
		t.Errorf("on record: %v, want %v", view.Files, want)
	}
	r = run(skill.Local(), map[string]any{"language": "python", "code": "import os, time\n[open('/mnt/skills/note/data/a.txt').read(), time.time(), os.stat('/mnt/skills/note/data/a.txt').st_mtime]", "agent_skills": []string{"note"}})
	if report := musttest.Get(h.Replay(t.Context(), skill.Local(), r.Meta.ExecutionID))(t); !report.Identical {
		t.Errorf("replayed: %+v", report)
	}
	defer func() {
		musttest.Write(t, filepath.Join(folder, "data/a.txt"), "changed")
		for until := time.Now().Add(20 * time.Second); musttest.Get(h.agents.Folder(t.Context(), skill.Local(), "note"))(t).Digest() == of.Digest(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatal("the host does not see the change")
			}
		}
		report := musttest.Get(h.Replay(t.Context(), skill.Local(), r.Meta.ExecutionID))(t)
		if report.Identical || report.ReplayID != "" || len(report.Differences) != 1 || !strings.HasPrefix(report.Differences[0].String(), "folder /mnt/skills/note: then sha256 ") {
			t.Errorf("replayed with another folder: %+v", report)
		}
	}()

	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke:run_code"}}
	for what, c := range map[string]struct {
		who    skill.Principal
		agents []string
		want   skill.Code
	}{
		"without the scope": {p, []string{"note"}, skill.Forbidden},
		"unknown":           {skill.Local(), []string{"note", "nobody"}, skill.NotFound},
		"a path":            {skill.Local(), []string{"../note"}, skill.NotFound},
		"twice":             {skill.Local(), []string{"note", "note"}, skill.InvalidArgument},
		"too many files":    {skill.Local(), []string{"note", "many", "more"}, skill.PayloadTooLarge},
	} {
		if r := run(c.who, map[string]any{"language": "python", "code": "1", "agent_skills": c.agents}); r.Error == nil || r.Error.Code != c.want {
			t.Errorf("%s: %+v, want %s", what, r.Error, c.want)
		}
	}
	if r := run(skill.Local(), map[string]any{"language": "python", "code": "import os\nlen(os.listdir('/mnt/skills/many'))", "agent_skills": []string{"many"}}); !strings.Contains(string(r.Data), `"value":1001`) {
		t.Errorf("many: %+v %s", r.Error, r.Data)
	}
}
