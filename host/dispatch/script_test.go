package dispatch

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/manifest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// found gives the same script for every name but "nobody".
type found struct{ *manifest.Skill }

func (f found) Script(_ context.Context, _ skill.Principal, name, _ string) (*manifest.Skill, error) {
	if name == "nobody" {
		return nil, &skill.Error{Op: "test", Code: skill.NotFound, Message: "there is no such skill"}
	}
	return f.Skill, nil
}

// AgentFolder finds nothing.
func (found) AgentFolder(_ context.Context, _ skill.Principal, name string) (skill.Folder, error) {
	return skill.Folder{}, &skill.Error{Op: "test", Code: skill.NotFound, Message: "there is no " + name}
}

// CodePackages finds nothing.
func (found) CodePackages(context.Context, skill.Principal, string, []string, []string) (string, []string, error) {
	return "", nil, nil
}

func withScripts(t *testing.T, change func(*Options)) *house {
	t.Helper()
	limits := skill.LimitsJSON{TimeoutMS: 1000, MemoryMB: 64, Fuel: 1000, OutputKB: 1, ScratchMB: 1}.Limits()
	return open(t, func(o *Options) {
		o.Scripts = found{&manifest.Skill{
			Descriptor: skill.Descriptor{ID: "greeter", Digest: "sha256:1", Trust: skill.Trusted, Enabled: true},
			Folder:     "/srv/skills/greeter", Limits: limits, Primary: skill.Target{Kind: skill.WasmPython, Entry: "scripts/greet.py"},
		}}
		if change != nil {
			change(o)
		}
	})
}

func greet(args ...string) skill.ScriptRequest {
	return skill.ScriptRequest{Skill: "greeter", Script: "greet.py", Args: args, Stdin: []byte("in"), TraceID: "t-1"}
}

func TestScript(t *testing.T) {
	h := withScripts(t, nil)
	h.python.Answer = runnertest.Always(skill.Reply{
		Stdout: []byte("hello é\n"), Usage: skill.Usage{Fuel: 7},
		Artifacts: []skill.Artifact{{Name: "out/x.csv"}, {Name: "bad\x1b"}},
	})
	r := h.RunScript(context.Background(), skill.Local(), greet("a", "b c"))
	if !r.Success || string(r.Data) != `{"output":"hello é\n"}` || r.SkillID != "greeter" || r.TraceID != "t-1" || r.Meta.Digest != "sha256:1" || r.Meta.Runner != skill.WasmPython {
		t.Errorf("%+v %s", r, r.Data)
	}
	if len(r.Meta.Artifacts) != 1 || r.Meta.Artifacts[0].Name != "out/x.csv" {
		t.Errorf("files %v", r.Meta.Artifacts)
	}
	c := h.python.Calls()[0]
	if !c.Script || c.Entry != "scripts/greet.py" || !slices.Equal(c.Args, []string{"a", "b c"}) || string(c.Stdin) != "in" || c.Tenant != "local" || c.Limits.Fuel != 1000 {
		t.Errorf("%+v", c)
	}
	if line := h.line(t); line["skill_id"] != "greeter" || line["success"] != true {
		t.Error(line)
	}
	h = withScripts(t, func(o *Options) { o.Most = skill.Limits{Timeout: time.Minute, Fuel: 5000} })
	h.python.Answer = runnertest.Always(skill.Reply{})
	long := greet()
	long.Asked, long.Limits = skill.LimitsJSON{TimeoutMS: 90000, MemoryMB: 512}.Limits(), skill.Limits{Fuel: 4000}
	h.RunScript(context.Background(), skill.Local(), long)
	if got, want := h.python.Calls()[0].Limits.JSON(), (skill.LimitsJSON{TimeoutMS: 60000, MemoryMB: 64, Fuel: 4000, OutputKB: 1, ScratchMB: 1}); got != want {
		t.Errorf("more than the defaults: %+v, want %+v", got, want)
	}
}

// A script that ends badly is told by its own words, within 512 bytes.
func TestScriptEnds(t *testing.T) {
	long := strings.Repeat("\"é\n", 2000) + "the last line says why"
	for name, c := range map[string]struct {
		reply   skill.Reply
		code    skill.Code
		message string // part of it
	}{
		"standard error":      {skill.Reply{ExitCode: 2, Stderr: []byte("usage: x\nx: error: no")}, skill.GuestExit, "usage: x x: error: no"},
		"its end":             {skill.Reply{ExitCode: 1, Stderr: []byte(long)}, skill.GuestExit, "the last line says why"},
		"only standard out":   {skill.Reply{ExitCode: 1, Stdout: []byte("failed: no file")}, skill.GuestExit, "failed: no file"},
		"nothing":             {skill.Reply{ExitCode: 9, Stderr: []byte(" \n")}, skill.GuestExit, "exited with code 9 and no printable"},
		"a path of the host":  {skill.Reply{ExitCode: 1, Stderr: []byte("no /srv/skills/greeter/x.txt")}, skill.GuestExit, "no …/x.txt"},
		"the host's own word": {skill.Reply{Code: skill.FuelExhausted, Message: "no fuel"}, skill.FuelExhausted, "no fuel"},
		"too much output":     {skill.Reply{Stdout: make([]byte, 1025)}, skill.OutputLimit, "1024 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := withScripts(t, nil)
			h.python.Answer = runnertest.Always(c.reply)
			r, reply := h.Script(context.Background(), skill.Local(), greet())
			if r.Success || r.Error.Code != c.code || !strings.Contains(r.Error.Message, c.message) || r.Data != nil {
				t.Errorf("%+v", r.Error)
			}
			delete(r.Error.Details, "output") // has a bound of its own
			if b, err := json.Marshal(r.Error); err != nil || len(b) > maxError {
				t.Errorf("%d bytes, %v", len(b), err)
			}
			if reply == nil || reply.ExitCode != c.reply.ExitCode {
				t.Errorf("%+v", reply)
			}
		})
	}
}

// What is refused has not run.
func TestScriptRefused(t *testing.T) {
	nobody := greet()
	nobody.Skill = "nobody"
	input := greet()
	input.Stdin = make([]byte, 1<<20+1)
	for name, c := range map[string]struct {
		who    skill.Principal
		r      skill.ScriptRequest
		change func(*Options)
		code   skill.Code
	}{
		"nobody calls":         {skill.Principal{}, greet(), nil, skill.Unauthorized},
		"without the scope":    {skill.Principal{ID: "x", Type: skill.Human, Scopes: []string{skill.ScopeRead}}, greet(), nil, skill.Forbidden},
		"no such skill":        {skill.Local(), nobody, nil, skill.NotFound},
		"no Agent Skills":      {skill.Local(), greet(), func(o *Options) { o.Scripts = nil }, skill.NotFound},
		"257 arguments":        {skill.Local(), greet(make([]string, maxArgs+1)...), nil, skill.InvalidArgument},
		"a NUL":                {skill.Local(), greet("a\x00b"), nil, skill.InvalidArgument},
		"an argument too long": {skill.Local(), greet(strings.Repeat("x", maxArg+1)), nil, skill.PayloadTooLarge},
		"all of them too long": {skill.Local(), greet(slices.Repeat([]string{strings.Repeat("x", maxArg)}, 9)...), nil, skill.PayloadTooLarge},
		"standard input":       {skill.Local(), input, nil, skill.PayloadTooLarge},
		"no room":              {skill.Local(), greet(), func(o *Options) { o.Global, o.Queue = 1, -1 }, ""},
		"not approved": {skill.Local(), greet(), func(o *Options) {
			o.Approve = func(context.Context, skill.Principal, *manifest.Skill, *skill.ScriptRequest) error {
				return &skill.Error{Code: skill.Forbidden, Message: "ask first"}
			}
		}, skill.Forbidden},
		"the approval panicked": {skill.Local(), greet(), func(o *Options) {
			o.Approve = func(context.Context, skill.Principal, *manifest.Skill, *skill.ScriptRequest) error { panic("x") }
		}, skill.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			h := withScripts(t, c.change)
			if c.code == "" { // one runs, and a second one finds no room
				begun, end := make(chan struct{}), make(chan struct{})
				h.python.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
					close(begun)
					<-end
					return &skill.Reply{}, nil
				}
				done := make(chan *skill.Result)
				go func() { done <- h.RunScript(context.Background(), c.who, c.r) }()
				<-begun
				if r := h.RunScript(context.Background(), c.who, c.r); r.Success || r.Error.Code != skill.RateLimited {
					t.Errorf("%+v", r.Error)
				}
				close(end)
				if r := <-done; !r.Success {
					t.Errorf("%+v", r.Error)
				}
				return
			}
			r, reply := h.Script(context.Background(), c.who, c.r)
			if r.Success || r.Error.Code != c.code || reply != nil || len(h.python.Calls()) != 0 {
				t.Errorf("%+v, %d calls", r.Error, len(h.python.Calls()))
			}
		})
	}
}
