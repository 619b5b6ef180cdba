package dispatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// keepsFiles has one file that was uploaded, and one artifact.
type keepsFiles struct{ large int64 }

func (k keepsFiles) File(_ context.Context, p skill.Principal, r *skill.FileRef) (skill.File, int64, error) {
	switch {
	case p.Tenant == "local" && r.ID == strings.Repeat("a", 64):
		return skill.File{Path: "/srv/state/files/a"}, k.large, nil
	case p.Tenant == "local" && r.ExecutionID == "e-0" && r.Artifact == "out/x":
		return skill.File{Data: make([]byte, k.large)}, k.large, nil
	}
	return skill.File{}, 0, &skill.Error{Op: "test", Code: skill.NotFound, Message: "there is no such file"}
}

// codeHouse is a house whose skills are run_code and stats.
func codeHouse(t *testing.T, change func(*Options)) *house {
	t.Helper()
	limits := skill.LimitsJSON{TimeoutMS: 1000, MemoryMB: 64, Fuel: 1000, OutputKB: 1, ScratchMB: 1}.Limits()
	dir := t.TempDir()
	musttest.Write(t, filepath.Join(dir, "stats", "skill.yaml"), file)
	musttest.Do(t, os.Mkdir(filepath.Join(dir, "code"), 0o700))
	reg := musttest.Get(manifest.Open(manifest.Options{
		Roots: []manifest.Root{{Path: filepath.Join(dir, "stats"), Trust: skill.Trusted}}, Code: filepath.Join(dir, "code"), Defaults: limits, Caps: limits,
	}))(t)
	return open(t, func(o *Options) {
		o.Skills = manifest.Shared{Registry: reg}
		o.Files = keepsFiles{large: 5}
		if change != nil {
			change(o)
		}
	})
}

func run(input string) skill.Request { return ask(skill.RunCode, input) }

// TestCode: run_code runs the program with its files on the runner of its language and returns output, value and
// artifacts.
func TestCode(t *testing.T) {
	var started *records.Started
	h := codeHouse(t, func(o *Options) { o.Recorder = recorder(func(s *records.Started) { started = s }) })
	h.python.Answer = runnertest.Always(skill.Reply{
		Stdout: []byte("hi\n"), Stderr: []byte("warning\xff"), Value: []byte(`{"value": {"a": [1, 2.50]}, "other": 1}`),
		Artifacts: []skill.Artifact{{Name: "out/x.csv", Size: 1}},
	})
	r := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "x", "files": [{"name": "a/b", "text": "é"}, {"name": "c", "base64": "AAE="},
		{"name": "d", "id": "`+strings.Repeat("a", 64)+`"}, {"name": "e", "execution_id": "e-0", "artifact": "out/x"}]}`))
	if want := `{"stderr":"warning�","stdout":"hi\n","value":{"a":[1,2.50]}}`; string(r.Data) != want || r.Meta.Runner != skill.WasmPython || len(r.Meta.Artifacts) != 1 {
		t.Errorf("%s, want %s\n%+v", r.Data, want, r)
	}
	c := h.python.Calls()[0]
	files := []skill.File{{Name: "main.py", Data: []byte("x")}, {Name: "a/b", Data: []byte("é")}, {Name: "c", Data: []byte{0, 1}}, {Name: "d", Path: "/srv/state/files/a"}, {Name: "e", Data: make([]byte, 5)}}
	if diff := cmp.Diff(files, c.Files); diff != "" || !c.Code || !c.Script || c.Entry != "main.py" || c.Stdin != nil || c.Trust != skill.Community {
		t.Errorf("%+v\n%s", c, diff)
	}
	if specs := h.python.Specs(); string(specs[0].Code) != "x" || !specs[0].Script {
		t.Errorf("%+v", specs[0])
	}
	var names []string
	for _, f := range started.Files {
		names = append(names, fmt.Sprintf("%s %d %.4s", f.Name, f.Size, f.SHA256))
	}
	if got := strings.Join(names, ", "); got != "a/b 2 4a99, c 2 b413, d 5 aaaa, e 5 8855" {
		t.Errorf("on record: %s", got)
	}
}

// TestCodeIsForWhomItIsAllowed: the scope skills:invoke alone does not allow run_code.
func TestCodeIsForWhomItIsAllowed(t *testing.T) {
	h := codeHouse(t, nil)
	for scopes, want := range map[string]skill.Code{
		"skills:invoke": skill.Forbidden, "skills:invoke:stats": skill.Forbidden, "": skill.Forbidden, "admin": skill.Forbidden,
		"skills:invoke:run_code": "", "skills:invoke admin": "", "skills:invoke skills:invoke:run_code": "",
	} {
		r := h.Invoke(context.Background(), skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: strings.Fields(scopes)}, run(`{"language": "python", "code": ""}`))
		if code := codeOfResult(r); code != want {
			t.Errorf("%q: %q, want %q", scopes, code, want)
		}
	}
}

func codeOfResult(r *skill.Result) skill.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// TestCodeRefused: invalid code and invalid files are refused before anything runs.
func TestCodeRefused(t *testing.T) {
	h := codeHouse(t, nil)
	many := strings.Repeat(`{"name": "x", "text": ""},`, 100) + `{"name": "y", "text": ""}`
	for input, want := range map[string]struct {
		code  skill.Code
		words string
	}{
		`{"language": "python"}`:             {skill.InvalidArgument, "/code"},
		`{"language": "perl", "code": ""}`:   {skill.InvalidArgument, "/language"},
		`{"code": ""}`:                       {skill.InvalidArgument, "/language"},
		`{"language": "shell", "code": "x"}`: {skill.ToolInvocationError, "wasm:shell"}, // this house has none
		`{"language": "python", "code": "", "files": [{"name": "../x", "text": ""}]}`:                             {skill.InvalidArgument, "/files/0 has an invalid name"},
		`{"language": "python", "code": "", "files": [{"name": "/x", "text": ""}]}`:                               {skill.InvalidArgument, "invalid name"},
		`{"language": "python", "code": "", "files": [{"name": "a//b", "text": ""}]}`:                             {skill.InvalidArgument, "invalid name"},
		`{"language": "python", "code": "", "files": [{"name": ".", "text": ""}]}`:                                {skill.InvalidArgument, "invalid name"},
		`{"language": "python", "code": "", "files": [{"name": "a\\b", "text": ""}]}`:                             {skill.InvalidArgument, "invalid name"},
		`{"language": "python", "code": "", "files": [{"name": "a\u0000", "text": ""}]}`:                          {skill.InvalidArgument, "invalid name"},
		`{"language": "python", "code": "", "files": [{"name": "` + strings.Repeat("x", 256) + `", "text": ""}]}`: {skill.InvalidArgument, "/files/0/name"},
		`{"language": "python", "code": "", "files": [{"name": "main.py", "text": ""}]}`:                          {skill.InvalidArgument, "same name as another"},
		`{"language": "python", "code": "", "files": [{"name": "a", "text": ""}, {"name": "a", "text": ""}]}`:     {skill.InvalidArgument, "/files/1 has the same name as another"},
		`{"language": "python", "code": "", "files": [{"name": "a"}]}`:                                            {skill.InvalidArgument, "exactly one source"},
		`{"language": "python", "code": "", "files": [{"name": "a", "text": "", "base64": ""}]}`:                  {skill.InvalidArgument, "exactly one source"},
		`{"language": "python", "code": "", "files": [{"name": "a", "text": "", "artifact": "x"}]}`:               {skill.InvalidArgument, "exactly one source"},
		`{"language": "python", "code": "", "files": [{"name": "a", "execution_id": "e-0"}]}`:                     {skill.InvalidArgument, "exactly one source"},
		`{"language": "python", "code": "", "files": [{"name": "a", "base64": "*"}]}`:                             {skill.InvalidArgument, "base64"},
		`{"language": "python", "code": "", "files": [{"name": "a", "id": "` + strings.Repeat("b", 64) + `"}]}`:   {skill.NotFound, "no such file"},
		`{"language": "python", "code": "", "files": [{"name": "a", "execution_id": "e-1", "artifact": "x"}]}`:    {skill.NotFound, "no such file"},
		`{"language": "python", "code": "", "files": [{"name": "a", "path": "/etc/passwd"}]}`:                     {skill.InvalidArgument, "/files/0/path"},
		`{"language": "python", "code": "", "files": [` + many + `]}`:                                             {skill.InvalidArgument, "/files"},
	} {
		r := h.Invoke(context.Background(), skill.Local(), run(input))
		if r.Success || r.Error.Code != want.code || !strings.Contains(r.Error.Message, want.words) {
			t.Errorf("%.120s: %+v, want %s with %q", input, r.Error, want.code, want.words)
		}
	}
	if calls := h.python.Calls(); len(calls) > 0 {
		t.Errorf("%d calls ran", len(calls))
	}
}

// TestFilesFillNoMemory: artifacts of a call are limited in total; uploaded files take no memory.
func TestFilesFillNoMemory(t *testing.T) {
	h := codeHouse(t, func(o *Options) { o.Files = keepsFiles{large: maxInMemory/2 + 1} })
	for source, want := range map[string]skill.Code{
		`"execution_id": "e-0", "artifact": "out/x"`: skill.PayloadTooLarge,
		`"id": "` + strings.Repeat("a", 64) + `"`:    "",
	} {
		r := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "", "files": [{"name": "a", `+source+`}, {"name": "b", `+source+`}]}`))
		if code := codeOfResult(r); code != want {
			t.Errorf("%s: %q, want %q", source, code, want)
		}
	}
}

// TestCodeEnds: the error of failed code contains its output and the line of the failure.
func TestCodeEnds(t *testing.T) {
	for name, c := range map[string]struct {
		reply skill.Reply
		code  skill.Code
		words string
	}{
		"an exception":       {skill.Reply{ExitCode: 1, Stdout: []byte("before\n"), Stderr: []byte("Traceback:\n  File \"/skills/run_code/main.py\", line 3\nError: no")}, skill.GuestExit, "line 3 Error: no"},
		"a limit":            {skill.Reply{Code: skill.FuelExhausted, Message: "no fuel"}, skill.FuelExhausted, "no fuel"},
		"too much output":    {skill.Reply{Stdout: make([]byte, 1025)}, skill.OutputLimit, "1024 bytes"},
		"a value of no JSON": {skill.Reply{Value: []byte(`{"value": nan}`)}, skill.InvalidOutput, "value of the last expression"},
		"a value too deep":   {skill.Reply{Value: []byte(`{"value": ` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`)}, skill.InvalidOutput, "value of the last expression"},
		"no object":          {skill.Reply{Value: []byte(`7`)}, skill.InvalidOutput, "value of the last expression"},
	} {
		h := codeHouse(t, nil)
		h.python.Answer = runnertest.Always(c.reply)
		r := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "x"}`))
		if r.Success || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.words) {
			t.Errorf("%s: %+v", name, r.Error)
		}
		if name == "an exception" && (r.Error.Details["output"] != "before\n" || r.Error.Details["stderr"] != "Traceback:\n  File \"…/main.py\", line 3\nError: no") {
			t.Errorf("%s: %q", name, r.Error.Details)
		}
	}
}

// TestFilesOfSkills: only skills with a working folder accept files.
func TestFilesOfSkills(t *testing.T) {
	h := open(t, nil)
	text := "x"
	req := ask("stats", `{"numbers": [1]}`)
	req.Files = []skill.FileRef{{Name: "in.csv", Text: &text}}
	h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 1}`)})
	if r := h.Invoke(context.Background(), skill.Local(), req); !r.Success || len(h.wasm.Calls()[0].Files) != 1 || h.wasm.Calls()[0].Script {
		t.Errorf("%+v", r.Error)
	}
	req.SkillID, req.Input = "plain", []byte("{}")
	if r := h.Invoke(context.Background(), skill.Local(), req); r.Success || r.Error.Code != skill.InvalidArgument || !strings.Contains(r.Error.Message, "permissions.scratch") {
		t.Errorf("%+v", r.Error)
	}
	g := withScripts(t, nil)
	script := greet()
	script.Files = req.Files
	if r := g.RunScript(context.Background(), skill.Local(), script); !r.Success || g.python.Calls()[0].Files[0].Name != "in.csv" {
		t.Errorf("%+v", r.Error)
	}
	script.Files = []skill.FileRef{{Name: "../x", Text: &text}}
	if r := g.RunScript(context.Background(), skill.Local(), script); r.Success || r.Error.Code != skill.InvalidArgument {
		t.Errorf("%+v", r)
	}
}

// recorder is told of starts.
type recorder func(*records.Started)

func (r recorder) Started(_ context.Context, s *records.Started, _ []byte) error { r(s); return nil }

func (r recorder) Finished(context.Context, *records.Started, *records.Finished, []byte) error {
	return nil
}

// TestLimitsOfCode: code gets what its input asks for, up to Options.Most, and no more than the request of an agent says.
// A skill gets no more than its manifest says.
func TestLimitsOfCode(t *testing.T) {
	most := skill.LimitsJSON{TimeoutMS: 60000, MemoryMB: 128, Fuel: 100000, OutputKB: 2, ScratchMB: 2}.Limits()
	for what, c := range map[string]struct {
		input  string
		within skill.LimitsJSON
		want   skill.LimitsJSON
	}{
		"nothing asked":          {``, skill.LimitsJSON{}, skill.LimitsJSON{TimeoutMS: 1000, MemoryMB: 64, Fuel: 1000, OutputKB: 1, ScratchMB: 1}},
		"more of all":            {`"timeout_ms": 60000, "memory_mb": 128, "fuel": 4000, "output_kb": 2, "scratch_mb": 2`, skill.LimitsJSON{}, skill.LimitsJSON{TimeoutMS: 60000, MemoryMB: 128, Fuel: 4000, OutputKB: 2, ScratchMB: 2}},
		"less":                   {`"timeout_ms": 10, "fuel": 10`, skill.LimitsJSON{}, skill.LimitsJSON{TimeoutMS: 10, MemoryMB: 64, Fuel: 10, OutputKB: 1, ScratchMB: 1}},
		"zero":                   {`"timeout_ms": 0`, skill.LimitsJSON{}, skill.LimitsJSON{TimeoutMS: 1000, MemoryMB: 64, Fuel: 1000, OutputKB: 1, ScratchMB: 1}},
		"time alone brings fuel": {`"timeout_ms": 3000`, skill.LimitsJSON{}, skill.LimitsJSON{TimeoutMS: 3000, MemoryMB: 64, Fuel: 3000, OutputKB: 1, ScratchMB: 1}},
		"more than the host has": {`"timeout_ms": 9000000000000000, "memory_mb": 9000000, "output_kb": 900, "scratch_mb": 9000`, skill.LimitsJSON{}, skill.LimitsJSON{TimeoutMS: 60000, MemoryMB: 128, Fuel: 60000, OutputKB: 2, ScratchMB: 2}},
		"more fuel than it has":  {`"fuel": 900000000`, skill.LimitsJSON{}, skill.LimitsJSON{TimeoutMS: 1000, MemoryMB: 64, Fuel: 100000, OutputKB: 1, ScratchMB: 1}},
		"an agent's share":       {`"timeout_ms": 60000, "fuel": 4000`, skill.LimitsJSON{TimeoutMS: 2000, Fuel: 100}, skill.LimitsJSON{TimeoutMS: 2000, MemoryMB: 64, Fuel: 100, OutputKB: 1, ScratchMB: 1}},
		"an agent's large share": {``, skill.LimitsJSON{TimeoutMS: 60000, Fuel: 5000}, skill.LimitsJSON{TimeoutMS: 1000, MemoryMB: 64, Fuel: 1000, OutputKB: 1, ScratchMB: 1}},
	} {
		var started *records.Started
		h := codeHouse(t, func(o *Options) {
			o.Most = most
			o.Recorder = recorder(func(s *records.Started) { started = s })
		})
		h.python.Answer = runnertest.Always(skill.Reply{})
		r := run(`{"language": "python", "code": "x", "limits": {` + c.input + `}}`)
		r.Limits = c.within.Limits()
		if got := h.Invoke(context.Background(), skill.Local(), r); got.Error != nil {
			t.Errorf("%s: %v", what, got.Error)
			continue
		}
		if got := h.python.Calls()[0].Limits.JSON(); got != c.want || started.Limits != c.want {
			t.Errorf("%s: %+v, on record %+v, want %+v", what, got, started.Limits, c.want)
		}
	}
	h := codeHouse(t, func(o *Options) { o.Most = most })
	h.python.Answer, h.wasm.Answer = runnertest.Always(skill.Reply{}), runnertest.Always(skill.Reply{Stdout: []byte("{}")})
	r := ask("stats", `{"numbers": [1], "ops": ["mean"]}`)
	r.Limits = most
	if got := h.Invoke(context.Background(), skill.Local(), r); got.Error != nil {
		t.Fatal(got.Error)
	}
	if got := h.wasm.Calls()[0].Limits; got.Timeout > time.Second {
		t.Errorf("a skill: %+v", got)
	}
	for _, limits := range []string{`{"timeout_ms": -1}`, `{"timeout_ms": 1.5}`, `{"time": 1}`, `[]`} {
		got := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": "x", "limits": `+limits+`}`))
		if got.Error == nil || got.Error.Code != skill.InvalidArgument {
			t.Errorf("%s: %+v", limits, got.Error)
		}
	}
}
