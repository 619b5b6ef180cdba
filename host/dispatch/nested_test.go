package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// nesting is a house whose code does what do says.
func nesting(t *testing.T, change func(*Options), do func(h *house, c *skill.Call)) *house {
	t.Helper()
	h := codeHouse(t, change)
	h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 2}`), Usage: skill.Usage{Fuel: 300}})
	h.python.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		do(h, c)
		return &skill.Reply{}, nil
	}
	return h
}

var oneNumber = json.RawMessage(`{"numbers": [1]}`)

// TestNested: running code calls a skill with the rights of its caller, and the record names the parent.
func TestNested(t *testing.T) {
	var mu sync.Mutex
	var started []*records.Started
	var r *skill.Result
	var parent string
	h := nesting(t, func(o *Options) {
		o.Recorder = recorder(func(s *records.Started) {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, s)
		})
	}, func(h *house, c *skill.Call) {
		parent = c.ExecutionID
		if p, only, ok := h.Caller(parent); !ok || p.ID != "local" || only != nil {
			t.Errorf("on behalf of %+v", p)
		}
		r = h.Nested(context.Background(), parent, "stats", oneNumber)
	})
	if out := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); !out.Success || !r.Success || string(r.Data) != `{"mean": 2}` {
		t.Fatalf("%+v %+v", out.Error, r)
	}
	if len(started) != 2 || started[0].Parent != "" || started[1].Parent != parent || started[1].Session != parent || started[1].TraceID != "t-1" || started[1].Principal != "local" {
		t.Errorf("on record: %+v", started)
	}
	c := h.wasm.Calls()[0]
	if c.Tenant != "local" || c.Limits.Timeout > time.Second || c.Limits.Fuel > 1000 {
		t.Errorf("%+v", c.Limits)
	}
	if late := h.Nested(context.Background(), parent, "stats", oneNumber); late.Success || late.Error.Code != skill.Forbidden {
		t.Errorf("after its end: %+v", late)
	}
	if _, _, ok := h.Caller(parent); ok {
		t.Error("it is still somebody's")
	}
}

// TestNestedRefused: a refused nested call returns an error to the code, which continues.
func TestNestedRefused(t *testing.T) {
	var got []string
	say := func(r *skill.Result) { got = append(got, string(codeOfResult(r))) }
	ctx := context.Background()
	h := nesting(t, nil, func(h *house, c *skill.Call) {
		for _, id := range []skill.ID{"stats", "plain", skill.RunCode, "NO ID"} {
			say(h.Nested(ctx, c.ExecutionID, id, oneNumber))
		}
		say(h.Nested(ctx, c.ExecutionID, "stats", json.RawMessage(`{"numbers": ["x"]}`)))
		say(h.Nested(ctx, c.ExecutionID, "stats", json.RawMessage(`no JSON`)))
		say(h.Nested(ctx, "another", "stats", oneNumber))
		for range 3 { // of 300 units, from 1000: 900 with the first, then 100 are left, then none
			say(h.Nested(ctx, c.ExecutionID, "stats", oneNumber))
		}
		say(h.Nested(ctx, c.ExecutionID, "stats", oneNumber))
	})
	who := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke:run_code", "skills:invoke:stats"}}
	if r := h.Invoke(ctx, who, run(`{"language": "python", "code": ""}`)); !r.Success {
		t.Fatal(r.Error)
	}
	want := []string{"", "FORBIDDEN", "FORBIDDEN", "FORBIDDEN", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "FORBIDDEN", "", "", "", "FUEL_EXHAUSTED"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range h.wasm.Calls() {
		if c.Limits.Fuel == 0 || c.Limits.Fuel > 1000 {
			t.Errorf("fuel of a call: %d", c.Limits.Fuel)
		}
	}
}

// TestNestedWithoutEnd: the number and the time of nested calls are limited.
func TestNestedWithoutEnd(t *testing.T) {
	var last *skill.Result
	n := 0
	h := nesting(t, nil, func(h *house, c *skill.Call) {
		h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 2}`)})
		for n = 0; n < maxNested+5; n++ {
			if last = h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber); !last.Success {
				return
			}
		}
	})
	if h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); n != maxNested || last.Error.Code != skill.RateLimited {
		t.Errorf("%d calls, %+v", n, last.Error)
	}
	now := time.Now()
	h = nesting(t, func(o *Options) { o.Now = func() time.Time { return now } }, func(h *house, c *skill.Call) {
		now = now.Add(c.Limits.Timeout)
		last = h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber)
	})
	if h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); last.Success || last.Error.Code != skill.Timeout {
		t.Errorf("%+v", last)
	}
}

// TestNestedTakesNoPlace: nested calls run when code holds all places.
func TestNestedTakesNoPlace(t *testing.T) {
	const places = 64
	all := make(chan struct{})
	var in sync.WaitGroup
	in.Add(places)
	h := nesting(t, func(o *Options) {
		o.Bounds, o.Alone, o.Most = Bounds{Global: places, PerSkill: places}, true, skill.Limits{Timeout: time.Minute} // for the last one to begin
	}, func(h *house, c *skill.Call) {
		in.Done()
		<-all
		if r := h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber); !r.Success {
			t.Error(r.Error)
		}
	})
	var wg sync.WaitGroup
	for i := range places {
		wg.Go(func() {
			if r := h.Invoke(context.Background(), skill.Local(), run(fmt.Sprintf(`{"language": "python", "code": %q, "limits": {"timeout_ms": 60000}}`, strings.Repeat("#", i)))); !r.Success {
				t.Error(r.Error)
			}
		})
	}
	in.Wait()
	if r := h.Invoke(context.Background(), skill.Local(), ask("stats", string(oneNumber))); r.Success || r.Error.Code != skill.RateLimited {
		t.Errorf("a call beside them: %+v", r)
	}
	close(all)
	wg.Wait()
}

// TestNestedOneAtATime: concurrent nested calls of one run are serialized and share its fuel.
func TestNestedOneAtATime(t *testing.T) {
	var running, most atomic.Int32
	codes := make([]skill.Code, 8)
	h := nesting(t, nil, func(h *house, c *skill.Call) {
		var all sync.WaitGroup
		for i := range codes {
			all.Go(func() { codes[i] = codeOfResult(h.Nested(context.Background(), c.ExecutionID, "stats", oneNumber)) })
		}
		all.Wait()
	})
	answer := h.wasm.Answer
	h.wasm.Answer = func(ctx context.Context, c *skill.Call) (*skill.Reply, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(time.Millisecond)
		return answer(ctx, c)
	}
	if r := h.Invoke(context.Background(), skill.Local(), run(`{"language": "python", "code": ""}`)); !r.Success {
		t.Fatal(r.Error)
	}
	slices.Sort(codes)
	want := []skill.Code{"", "", "", "", skill.FuelExhausted, skill.FuelExhausted, skill.FuelExhausted, skill.FuelExhausted} // 300 of 1000 each
	if most.Load() != 1 || !slices.Equal(codes, want) {
		t.Errorf("%d at once: %q", most.Load(), codes)
	}
}

// chain are skills that call each other: a calls b, b calls c, and so on; e calls itself.
func chain(t *testing.T, do func(h *house, c *skill.Call)) *house {
	t.Helper()
	limits := skill.LimitsJSON{TimeoutMS: 1000, MemoryMB: 64, Fuel: 1000, OutputKB: 1, ScratchMB: 1}.Limits()
	dir := t.TempDir()
	for id, next := range map[string]string{"a": "b, d", "b": "c", "c": "d", "d": "e", "e": "e", "none": ""} {
		musttest.Write(t, filepath.Join(dir, id, "skill.yaml"), "id: "+id+"\nversion: 1.0.0\ndescription: A test.\ntype: wasm\nruntime: python\nentry: x.py\npermissions: {skills: ["+next+"]}\n")
		musttest.Write(t, filepath.Join(dir, id, "x.py"), "")
	}
	reg := musttest.Get(manifest.Open(manifest.Options{Roots: []manifest.Root{{Path: dir, Trust: skill.Trusted}}, Defaults: limits, Caps: limits}))(t)
	h := open(t, func(o *Options) { o.Skills = manifest.Shared{Registry: reg} })
	h.python.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
		do(h, c)
		return &skill.Reply{Stdout: []byte(`{}`), Usage: skill.Usage{Fuel: 100}}, nil
	}
	return h
}

// TestSkillsCallSkills: a skill calls the skills of its permissions and no others, four deep, and the fuel and the number
// of calls of all of them are the first one's.
func TestSkillsCallSkills(t *testing.T) {
	next := map[skill.ID]skill.ID{"a": "b", "b": "c", "c": "d", "d": "e", "e": "e"}
	var got []string
	var fuel []uint64
	h := chain(t, func(h *house, c *skill.Call) {
		fuel = append(fuel, c.Limits.Fuel)
		r := h.Nested(context.Background(), c.ExecutionID, next[c.SkillID], json.RawMessage(`{}`))
		got = append(got, fmt.Sprint(next[c.SkillID], " ", codeOfResult(r)))
		r = h.Nested(context.Background(), c.ExecutionID, "none", json.RawMessage(`{}`))
		got = append(got, fmt.Sprint("none ", codeOfResult(r)))
	})
	if r := h.Invoke(context.Background(), skill.Local(), ask("a", `{}`)); !r.Success {
		t.Fatal(r.Error)
	}
	// The fifth is refused, and each may not call what it does not name.
	if want := "e FORBIDDEN, none FORBIDDEN, e , none FORBIDDEN, d , none FORBIDDEN, c , none FORBIDDEN, b , none FORBIDDEN"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	if fmt.Sprint(fuel) != "[1000 1000 1000 1000 1000]" {
		t.Errorf("the fuel of each: %d", fuel)
	}

	got, fuel = nil, nil
	h = chain(t, func(h *house, c *skill.Call) {
		if c.SkillID == "a" {
			for range 5 {
				r := h.Nested(context.Background(), c.ExecutionID, "b", json.RawMessage(`{}`))
				got = append(got, string(codeOfResult(r)))
			}
			return
		}
		fuel = append(fuel, c.Limits.Fuel)
		h.Nested(context.Background(), c.ExecutionID, next[c.SkillID], json.RawMessage(`{}`))
	})
	h.Invoke(context.Background(), skill.Local(), ask("a", `{}`))
	if fmt.Sprintf("%q", got) != `["" "" "" "FUEL_EXHAUSTED" "FUEL_EXHAUSTED"]` || fmt.Sprint(fuel) != "[1000 1000 1000 1000 600 600 600 600 200 200 200 200]" {
		t.Errorf("%q with fuel %d", got, fuel)
	}

	calls := 0
	h = chain(t, func(h *house, c *skill.Call) {
		h.python.Answer = func(_ context.Context, c *skill.Call) (*skill.Reply, error) {
			for range 6 {
				if r := h.Nested(context.Background(), c.ExecutionID, next[c.SkillID], json.RawMessage(`{}`)); r.Success {
					calls++
				}
			}
			return &skill.Reply{Stdout: []byte(`{}`)}, nil
		}
		_, _ = h.python.Answer(context.Background(), c)
	})
	if h.Invoke(context.Background(), skill.Local(), ask("a", `{}`)); calls != maxNested {
		t.Errorf("%d calls of one run", calls)
	}
}

// TestWhatStrangersReach: an uploaded skill calls no skill that could carry data out of the sandbox, and none of another
// tenant.
func TestWhatStrangersReach(t *testing.T) {
	of := func(change func(*manifest.Skill)) *manifest.Skill {
		s := &manifest.Skill{Primary: skill.Target{Kind: skill.WasmPython}, Owner: "acme", Descriptor: skill.Descriptor{Trust: skill.Community}}
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		change func(*manifest.Skill)
		want   bool
	}{
		"its own tenant's":   {func(*manifest.Skill) {}, true},
		"the operator's":     {func(s *manifest.Skill) { s.Owner, s.Descriptor.Trust = "", skill.Trusted }, true},
		"with data":          {func(s *manifest.Skill) { s.Permissions.Data = true }, true},
		"that calls skills":  {func(s *manifest.Skill) { s.Permissions.Skills = []skill.ID{"x"} }, true},
		"another tenant's":   {func(s *manifest.Skill) { s.Owner = "b" }, false},
		"with requests":      {func(s *manifest.Skill) { s.Permissions.HTTP = []skill.HTTPRule{{}} }, false},
		"with variables":     {func(s *manifest.Skill) { s.Permissions.Env = []string{"KEY"} }, false},
		"on another host":    {func(s *manifest.Skill) { s.Primary.Kind = skill.HTTP }, false},
		"outside":            {func(s *manifest.Skill) { s.Primary.Kind = skill.CLIPython }, false},
		"with a way outside": {func(s *manifest.Skill) { s.Fallback = &skill.Target{Kind: skill.CLIPython} }, false},
		"the operator's, which calls skills": {func(s *manifest.Skill) {
			s.Owner, s.Descriptor.Trust, s.Permissions.Skills = "", skill.Trusted, []skill.ID{"x"}
		}, false},
	} {
		p := &parent{call: &call{skill: of(func(*manifest.Skill) {})}}
		if got := p.reaches(of(tc.change)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
		p.call.skill.Descriptor.Trust = skill.Trusted
		if !p.reaches(of(tc.change)) {
			t.Errorf("%s: the operator's skill does not reach it", name)
		}
	}
}
