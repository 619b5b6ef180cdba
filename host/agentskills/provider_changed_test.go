package agentskills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A skill that changes between two looks of the source is run and loaded as it is, and
// one that has become wrong is refused with the reason.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "First."), "demo/a.md": "1"})
	src := source(t, nil, root)
	p := musttest.Get(New(src, &Options{Log: quiet, Every: time.Hour}))(t)
	before, _, err := p.Load(t.Context(), skill.Local(), "demo")
	musttest.Do(t, err)
	settled(t, src)
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "Second."), "demo/b.md": "2"})
	after, content, err := p.Load(t.Context(), skill.Local(), "demo")
	if err != nil || after.Digest == before.Digest || after.Description != "Second." || !strings.Contains(content, "Second.") || len(after.Resources) != 2 {
		t.Errorf("%+v, %v", after, err)
	}
	if r, err := p.ReadResource(t.Context(), skill.Local(), "demo", "b.md"); err != nil || string(r.Data) != "2" || r.MediaType != "text/markdown" {
		t.Errorf("%+v, %v", r, err)
	}
	write(t, root, map[string]string{"demo/SKILL.md": "nothing"})
	if _, _, err := p.Load(t.Context(), skill.Local(), "demo"); skill.CodeOf(err) != skill.NotFound || !strings.Contains(err.Error(), "SKILL.md:1") || strings.Contains(err.Error(), root) {
		t.Errorf("%v", err)
	}
	musttest.Do(t, os.RemoveAll(filepath.Join(root, "demo")))
	if _, _, err := p.Load(t.Context(), skill.Local(), "demo"); skill.CodeOf(err) != skill.NotFound || strings.Contains(err.Error(), root) {
		t.Errorf("%v", err)
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	p := provide(t, Aggregate(quiet, source(t, nil, converter), memory(t, inline("go", "D").AddScript("s", func() {}, ""))), nil)
	target, err := p.Target(t.Context(), skill.Local(), "unit-converter", "convert.py")
	if err != nil || target.Script.Path() != "scripts/convert.py" || filepath.Base(target.Skill.Path()) != "unit-converter" || !filepath.IsAbs(target.Skill.Path()) {
		t.Fatalf("%+v, %v", target, err)
	}
	if digest, err := manifest.Digest(converter); err != nil || target.Skill.Digest() != digest {
		t.Errorf("%s, %s, %v", target.Skill.Digest(), digest, err)
	}
	for _, c := range []struct {
		who          skill.Principal
		name, script string
		code         skill.Code
	}{
		{skill.Local(), "go", "s", skill.InvalidArgument},
		{skill.Local(), "nope", "s", skill.NotFound},
		{skill.Local(), "unit-converter", "../x.py", skill.ForbiddenPath},
		{principal("x", "", skill.ScopeRead), "unit-converter", "convert.py", skill.Forbidden},
	} {
		if _, err := p.Target(t.Context(), c.who, c.name, c.script); skill.CodeOf(err) != c.code {
			t.Errorf("%s %s: %v, want %s", c.name, c.script, err, c.code)
		}
	}
}

// Binary files come as base64 with their type, and what a runner answers by itself is
// the answer.
func TestOtherAnswers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a.txt": "a\x00b", "demo/run.py": "1"})
	own := &skill.Result{Success: true, SkillID: "demo", Meta: skill.Meta{ExecutionID: "e1"}}
	var answer any = own
	var fails error
	p := provide(t, source(t, nil, root), &Options{ScriptRunner: func(context.Context, *FileSkill, *FileScript, *Call) (any, error) { return answer, fails }})
	r := call(t, p, ToolRead, `{"skill_name": "demo", "resource_name": "a.txt"}`)
	if field(t, r, "base64") != "YQBi" || field(t, r, "media_type") != "text/plain" {
		t.Errorf("%s", r.Data)
	}
	run := func() *skill.Result {
		return p.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "demo", Script: "run.py", TraceID: "t"})
	}
	if got := run(); got != own {
		t.Errorf("%+v", got)
	}
	for want, v := range map[string]any{`{"output":""}`: nil, `{"output":"x"}`: "x", `{"output":"{\"a\":1}"}`: map[string]int{"a": 1}, `{"output":"y"}`: []byte("y")} {
		answer = v
		if got := run(); string(got.Data) != want || got.TraceID != "t" {
			t.Errorf("%v: %s, want %s", v, got.Data, want)
		}
	}
	answer = strings.Repeat("x", MaxOutput+1)
	if got := run(); got.Error == nil || got.Error.Code != skill.OutputLimit {
		t.Errorf("%+v", got.Error)
	}
	answer = make(chan int)
	if got := run(); got.Error == nil || got.Error.Code != skill.InvalidOutput {
		t.Errorf("%+v", got.Error)
	}
	answer, fails = nil, errors.New("exit 3")
	if got := run(); got.Error == nil || got.Error.Code != skill.ToolInvocationError || !strings.Contains(got.Error.Message, "exit 3") {
		t.Errorf("%+v", got.Error)
	}
	fails = context.DeadlineExceeded
	if got := run(); got.Error == nil || got.Error.Code != skill.Timeout {
		t.Errorf("%+v", got.Error)
	}
	// Without a runner files are not run, and the message says so.
	if got := provide(t, source(t, nil, root), nil).RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "demo", Script: "run.py"}); got.Error == nil || !strings.Contains(got.Error.Message, "runs no scripts") {
		t.Errorf("%+v", got)
	}
}

// Many callers at once, while the folders change under them.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"demo/SKILL.md": md("demo", "D"), "demo/a.md": "0", "demo/run.py": "1"})
	p := provide(t, source(t, nil, root), &Options{ScriptRunner: printed})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := p.List(t.Context(), skill.Local()); err != nil {
					t.Error(err)
				}
				if _, err := p.ReadResource(t.Context(), skill.Local(), "demo", "a.md"); err != nil {
					t.Error(err)
				}
				if r := p.CallTool(t.Context(), skill.Local(), ToolRun, json.RawMessage(`{"skill_name": "demo", "script_file": "run.py"}`), ""); !r.Success {
					t.Error(r.Error)
				}
			}
		})
	}
	for i := range 20 {
		write(t, root, map[string]string{fmt.Sprintf("demo/new%d.md", i): "x", "other/SKILL.md": md("other", fmt.Sprint(i))})
	}
	wg.Wait()
}
