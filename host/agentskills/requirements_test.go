package agentskills

import (
	"context"
	"encoding/json"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The requirements of docs/requirements.md, one test each; those that need a sandbox or
// settings are in cmd/openskill.

// withPDF is a folder of skills as the acceptance criteria have it.
func withPDF(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, map[string]string{
		"pdf-processing/SKILL.md":           "---\nname: pdf-processing\ndescription: Extracts text and tables from PDF files.\n---\n\n# Steps\n\n1. Run scripts/analyze.py on the file.\n",
		"pdf-processing/scripts/analyze.py": "print(1)\n",
	})
	return root
}

func TestREQ001RootsAreScanned(t *testing.T) {
	t.Parallel()
	one, two := withPDF(t), t.TempDir()
	write(t, two, map[string]string{"other/SKILL.md": md("other", "D")})
	p := musttest.Get(NewBuilder().UseFileSkills([]string{one, two}, nil).UseLogger(quiet).Build())(t)
	list, err := p.List(t.Context(), skill.Local())
	if err != nil || len(list) != 2 || list[0].Name != "other" || list[1].Name != "pdf-processing" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestREQ002NameAndDescription(t *testing.T) {
	t.Parallel()
	f := skillsOf(t, source(t, nil, withPDF(t)))[0].Frontmatter()
	if f.Name != "pdf-processing" || f.Description != "Extracts text and tables from PDF files." {
		t.Errorf("%+v", f)
	}
}

func TestREQ003ListForTheSystemPrompt(t *testing.T) {
	t.Parallel()
	text, err := provide(t, source(t, nil, withPDF(t)), nil).Instructions(t.Context(), skill.Local())
	if err != nil || !strings.Contains(text, "<name>pdf-processing</name>") || !strings.Contains(text, "Extracts text and tables from PDF files.") || strings.Contains(text, "# Steps") {
		t.Errorf("%q, %v", text, err)
	}
}

func TestREQ004WrongOnesAreSkipped(t *testing.T) {
	t.Parallel()
	root := withPDF(t)
	write(t, root, map[string]string{
		"no-front/SKILL.md": "text", "no-end/SKILL.md": "---\ndescription: D\n", "no-description/SKILL.md": "---\nname: no-description\n---\n",
		"no-yaml/SKILL.md": "---\n{\n---\n", "no-file/README.md": "x",
	})
	var log strings.Builder
	p := musttest.Get(NewBuilder().UseFileSkill(root, nil).UseLogger(slog.New(slog.NewTextHandler(&log, nil))).Build())(t)
	list, err := p.List(t.Context(), skill.Local())
	if err != nil || len(list) != 1 || list[0].Name != "pdf-processing" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, name := range []string{"no-front", "no-end", "no-description", "no-yaml"} {
		if !strings.Contains(log.String(), filepath.Join(name, FileName)+":") {
			t.Errorf("the log does not warn of %s: %s", name, &log)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 4 {
		t.Errorf("%d warnings: %s", n, &log)
	}
}

func toolNamed(t *testing.T, p *Provider, name string) skill.Tool {
	t.Helper()
	list := musttest.Get(p.Tools(t.Context(), skill.Local()))(t)
	for _, tool := range list {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("there is no tool %s", name)
	return skill.Tool{}
}

func TestREQ005LoadSkillIsATool(t *testing.T) {
	t.Parallel()
	tool := toolNamed(t, provide(t, source(t, nil, withPDF(t)), nil), "load_skill")
	if tool.Description == "" || !strings.Contains(tool.Description, "pdf-processing") || !strings.Contains(string(tool.InputSchema), `"required":["skill_name"]`) {
		t.Errorf("%+v", tool)
	}
}

func TestREQ006LoadGivesTheBody(t *testing.T) {
	t.Parallel()
	r := call(t, provide(t, source(t, nil, withPDF(t)), nil), "load_skill", `{"skill_name": "pdf-processing"}`)
	if got := field(t, r, "content"); !strings.HasSuffix(got, "---\n\n# Steps\n\n1. Run scripts/analyze.py on the file.\n") {
		t.Errorf("%q", got)
	}
}

// What is loaded comes back as the result of the tool, which every client appends to
// its conversation; nothing of it is kept by the host.
func TestREQ007WhatIsLoadedIsAMessage(t *testing.T) {
	t.Parallel()
	p := provide(t, source(t, nil, withPDF(t)), nil)
	first := call(t, p, "load_skill", `{"skill_name": "pdf-processing"}`)
	again := call(t, p, "load_skill", `{"skill_name": "pdf-processing"}`)
	if !first.Success || string(first.Data) != string(again.Data) || !strings.Contains(string(first.Data), "Run scripts/analyze.py") {
		t.Errorf("%s, then %s", first.Data, again.Data)
	}
	var message struct{ Content string }
	if err := json.Unmarshal(first.Data, &message); err != nil || message.Content == "" {
		t.Errorf("%s, %v", first.Data, err)
	}
}

func TestREQ008NoSuchSkill(t *testing.T) {
	t.Parallel()
	r := call(t, provide(t, source(t, nil, withPDF(t)), nil), "load_skill", `{"skill_name": "pdf"}`)
	if r.Success || r.Error.Code != skill.NotFound || r.Error.Message != `skill not found: "pdf"; did you mean pdf-processing?` {
		t.Errorf("%+v", r.Error)
	}
}

func TestREQ009RunSkillScriptIsATool(t *testing.T) {
	t.Parallel()
	p := provide(t, source(t, nil, withPDF(t)), &Options{ScriptRunner: printed})
	s, problems := manifest.CompileSchema(toolNamed(t, p, "run_skill_script").InputSchema)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, args := range []string{
		`{"skill_name": "pdf-processing", "script_file": "analyze.py", "args": ["a.pdf", "1"]}`,
		`{"skill_name": "pdf-processing", "script_file": "analyze.py", "args": {"file": "a.pdf"}}`,
		`{"skill_name": "pdf-processing", "script_file": "analyze.py"}`,
	} {
		if f := s.Check(value(t, []byte(args)), manifest.MaxSteps); f != nil && f.Total > 0 {
			t.Errorf("%s: %s", args, f.Summary())
		}
		if r := call(t, p, "run_skill_script", args); !r.Success {
			t.Errorf("%s: %+v", args, r.Error)
		}
	}
}

func TestREQ010OnlyScriptsOfTheSkill(t *testing.T) {
	t.Parallel()
	root := withPDF(t)
	write(t, root, map[string]string{"secret.py": "1", "other/SKILL.md": md("other", "D"), "other/scripts/other.py": "1"})
	ran := ""
	p := provide(t, source(t, nil, root), &Options{ScriptRunner: func(_ context.Context, _ *FileSkill, script *FileScript, _ *Call) (any, error) {
		ran = script.Path()
		return nil, nil
	}})
	for name, code := range map[string]skill.Code{
		"../secret.py": skill.ForbiddenPath, "scripts/../../secret.py": skill.ForbiddenPath, "/secret.py": skill.ForbiddenPath,
		filepath.Join(root, "secret.py"): skill.ForbiddenPath, "../other/scripts/other.py": skill.ForbiddenPath,
		"other.py": skill.NotFound, "missing.py": skill.NotFound, "SKILL.md": skill.NotFound, "": skill.InvalidArgument,
	} {
		args := musttest.Get(json.Marshal(map[string]string{"skill_name": "pdf-processing", "script_file": name}))(t)
		if r := call(t, p, "run_skill_script", string(args)); r.Success || r.Error.Code != code {
			t.Errorf("%s: %+v, want %s", name, r.Error, code)
		}
	}
	if ran != "" {
		t.Errorf("%s has run", ran)
	}
}

// The package is a part of its own: no door and no engine is known to it, so that hosts
// put it together by what they hand over.
func TestREQ016APartOfItsOwn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	allowed := map[string]bool{
		"openskill/host/manifest": true, "openskill/internal/safeyaml": true,
		"openskill/internal/ordered":   true,
		"openskill/internal/firstline": true, "openskill/internal/suggest": true, "openskill/internal/strictjson": true, "openskill/sdk/skill": true,
	}
	got := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := musttest.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly))(t)
		for _, i := range f.Imports {
			path := musttest.Get(strconv.Unquote(i.Path.Value))(t)
			if strings.HasPrefix(path, "openskill/") {
				got[path] = true
			}
		}
	}
	if diff := cmp.Diff(allowed, got); diff != "" {
		t.Errorf("(-allowed +imported)\n%s", diff)
	}
}
