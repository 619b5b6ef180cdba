package app

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// codeHost is a host with Python, whose runs are recorded.
func codeHost(t *testing.T, flags map[string]string, more ...func(dir string)) *Host {
	t.Helper()
	if testing.Short() {
		t.Skip("short: compiling runtimes takes seconds")
	}
	flags["record"] = "on"
	s := settings(t, flags)
	repo := musttest.Get(filepath.Abs("../.."))(t)
	hosttest.Runtimes(t, repo, s.StateDir)
	musttest.Write(t, filepath.Join(s.SkillsDir, "rated", "skill.yaml"), "id: rated\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: rated.wasm\ncost_metadata: {rate_limit_per_minute: 1}\n")
	musttest.Write(t, filepath.Join(s.SkillsDir, "rated", "rated.wasm"), answering)
	musttest.Write(t, filepath.Join(s.SkillsDir, "with-hyphens", "skill.yaml"), "id: with-hyphens\nversion: 0.1.0\ndescription: Aligns parcels.\ntype: wasm\nruntime: wasi\nentry: a.wasm\n")
	musttest.Write(t, filepath.Join(s.SkillsDir, "with-hyphens", "a.wasm"), answering)
	for _, add := range more {
		add(s.SkillsDir)
	}
	h := musttest.Get(Open(s, &Options{Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { musttest.Do(t, h.Close()) })
	return h
}

func runs(t *testing.T, h *Host, p skill.Principal, language, code string) *skill.Result {
	t.Helper()
	input := musttest.Get(json.Marshal(map[string]string{"language": language, "code": code}))(t)
	r := h.Invoke(t.Context(), p, skill.Request{SkillID: skill.RunCode, Input: input})
	if r.Error != nil && strings.Contains(r.Error.Message, "is not installed") {
		t.Skip(r.Error.Message)
	}
	return r
}

// TestCodeCallsSkills: code calls skills with the rights of its caller. A refused call raises an exception with code
// and message, the record contains the tree, and a replay is identical.
func TestCodeCallsSkills(t *testing.T) {
	h := codeHost(t, map[string]string{})
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke:run_code", "skills:invoke:quick", "skills:invoke:slow", "skills:invoke:rated", "executions:read"}}
	r := runs(t, h, p, "python", `
from skills import quick, slow, rated, other, SkillError
out = []
for call in (quick, slow, *2 * [rated], other):
    try:
        call()
        out.append("ok")
    except SkillError as e:
        out.append(e.code)
        assert e.message
out
`)
	var data struct{ Value []string }
	if r.Error != nil || json.Unmarshal(r.Data, &data) != nil || fmt.Sprint(data.Value) != "[ok TIMEOUT ok RATE_LIMITED FORBIDDEN]" {
		t.Fatalf("%+v %s", r.Error, r.Data)
	}
	views := musttest.Get(h.kept.executions.Session(t.Context(), p, r.Meta.ExecutionID))(t)
	var tree []string
	for _, v := range views {
		tree = append(tree, fmt.Sprint(v.Skill, " ", v.Status, " ", v.Parent == r.Meta.ExecutionID))
	}
	if got := strings.Join(tree, ", "); got != "run_code success false, quick success true, slow timeout true, rated success true" {
		t.Errorf("on record: %s", got)
	}
	for _, only := range []string{`["quick"]`, `[]`} {
		input := `{"language": "python", "skills": ` + only + `, "code": "import skills\nout = [dir(skills)]\nfor name in ('quick', 'slow'):\n    try:\n        out.append(getattr(skills, name)())\n    except skills.SkillError as e:\n        out.append(e.code)\nout"}`
		r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: skill.RunCode, Input: []byte(input)})
		want := map[string]string{`["quick"]`: `[["SkillError","quick"],{},"FORBIDDEN"]`, `[]`: `[["SkillError"],"FORBIDDEN","FORBIDDEN"]`}[only]
		if !strings.Contains(string(r.Data), `"value":`+want) {
			t.Errorf("only %s: %+v %s", only, r.Error, r.Data)
		}
	}
	report := musttest.Get(h.Replay(t.Context(), p, r.Meta.ExecutionID))(t)
	if !report.Identical {
		t.Errorf("replayed: %+v", report)
	}
	if after := musttest.Get(h.kept.executions.Session(t.Context(), p, report.ReplayID))(t); len(after) != 1 {
		t.Errorf("the replay has called %d skills", len(after)-1)
	}
}

// TestSkillsOfCode: code sees the skills visible to its caller with their descriptions. A module "skills" of the
// program takes precedence.
func TestSkillsOfCode(t *testing.T) {
	h := codeHost(t, map[string]string{})
	r := runs(t, h, skill.Local(), "python", "import skills\nfrom skills import quick\n[dir(skills), quick.__doc__, repr(quick), quick.input_schema]")
	if want := `{"stdout":"","value":[["SkillError","quick","rated","slow","with_hyphens"],"A test.\n","<skill quick>",{"type":"object"}]}`; string(r.Data) != want {
		t.Errorf("%+v %s", r.Error, r.Data)
	}
	for call, want := range map[string]string{"with_hyphens": `{}`, "with__hyphens": `"NOT_FOUND"`} {
		r = runs(t, h, skill.Local(), "python", "import skills\ntry:\n    out = skills."+call+"()\nexcept skills.SkillError as e:\n    out = e.code\nout")
		if !strings.Contains(string(r.Data), `"value":`+want) {
			t.Errorf("%s: %+v %s", call, r.Error, r.Data)
		}
	}
	r = runs(t, h, skill.Local(), "python", "open('skills.py', 'w').write('x = 7')\nimport skills\nskills.x")
	if !strings.Contains(string(r.Data), `"value":7`) {
		t.Errorf("%+v %s", r.Error, r.Data)
	}
}

// TestSkillsOfOtherLanguages: JavaScript and shell code can call skills; other scripts cannot.
func TestSkillsOfOtherLanguages(t *testing.T) {
	h := codeHost(t, map[string]string{})
	for language, code := range map[string]string{
		"javascript": `console.log(Object.keys(skills).join(' ')); console.log(JSON.stringify(await skills.quick())); try { await skills.nosuch(); } catch (e) { console.log(e.code); }`,
		"shell":      `skill | xargs; skill quick '{}'; skill nosuch 2>&1 | cut -d: -f2 | xargs`,
	} {
		r := runs(t, h, skill.Local(), language, code)
		if r.Error != nil && r.Error.Code == skill.ToolInvocationError {
			t.Logf("%s: %s", language, r.Error.Message) // it is not installed
			continue
		}
		var data struct{ Stdout string }
		if json.Unmarshal(r.Data, &data) != nil || data.Stdout != "quick rated slow with-hyphens\n{}\nNOT_FOUND\n" {
			t.Errorf("%s: %+v %s", language, r.Error, r.Data)
		}
	}
}

// TestSearch: a search finds what its caller may call, soon after a change.
func TestSearch(t *testing.T) {
	h := codeHost(t, map[string]string{})
	names := func(p skill.Principal, query string) string {
		t.Helper()
		var all []string
		for _, f := range musttest.Get(h.Search(t.Context(), p, query, 20))(t) {
			all = append(all, f.Type+" "+f.Name)
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke + ":rated"}}
	for query, want := range map[string]string{
		"aligned parcels": "skill with-hyphens", "test": "skill quick, skill rated, skill slow", "run_code": "", "sandbox": "",
	} {
		if got := names(skill.Local(), query); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	if got := names(p, "test parcels"); got != "skill rated" {
		t.Errorf("who may call one: %s", got)
	}
	musttest.Write(t, filepath.Join(h.settings.SkillsDir, "letters", "SKILL.md"), "---\nname: letters\ndescription: Writes letters.\n---\nMentions parcels, too.\n")
	for end := time.Now().Add(20 * time.Second); names(p, "parcel") != "agent_skill letters"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a new Agent Skill: %q", names(p, "parcel"))
		}
	}
	_, err := h.Search(t.Context(), skill.Principal{ID: "p", Scopes: []string{skill.ScopeInvoke}}, "test", 1)
	if skill.CodeOf(err) != skill.Forbidden {
		t.Errorf("who may not read: %v", err)
	}
	if _, err := h.Search(t.Context(), p, "", 1); skill.CodeOf(err) != skill.InvalidArgument {
		t.Errorf("no words: %v", err)
	}
}
