package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

func newSet(t *testing.T, runners ...skill.Runner) *Set {
	t.Helper()
	return musttest.Get(NewSet(runners...))(t)
}

func TestChoose(t *testing.T) {
	wasm := skill.Target{Kind: skill.WasmWASI, Entry: "m.wasm"}
	cli := skill.Target{Kind: skill.CLIPython, Entry: "m.py"}
	missing := &skill.Error{Op: "x", Code: skill.NotFound, Message: "m.wasm is not built; run: openskill skill build"}
	noPython := &skill.Error{Op: "x", Code: skill.Internal, Message: "there is no python3"}
	for name, c := range map[string]struct {
		trust           skill.Trust
		primary         skill.Target
		fallback        *skill.Target
		wasmErr, cliErr error
		noWasm          bool
		want            skill.Kind
		code            skill.Code
		message         string
	}{
		"primary":                        {trust: skill.Community, primary: wasm, want: skill.WasmWASI},
		"primary before fallback":        {trust: skill.Builtin, primary: wasm, fallback: &cli, want: skill.WasmWASI},
		"fallback of a builtin skill":    {trust: skill.Builtin, primary: wasm, fallback: &cli, wasmErr: missing, want: skill.CLIPython},
		"fallback of a trusted skill":    {trust: skill.Trusted, primary: wasm, fallback: &cli, wasmErr: missing, want: skill.CLIPython},
		"fallback for a missing runner":  {trust: skill.Trusted, primary: wasm, fallback: &cli, noWasm: true, want: skill.CLIPython},
		"native primary, trusted":        {trust: skill.Trusted, primary: cli, want: skill.CLIPython},
		"P02 native primary, community":  {trust: skill.Community, primary: cli, code: skill.Forbidden, message: "outside the sandbox"},
		"P02 native fallback, community": {trust: skill.Community, primary: wasm, fallback: &cli, wasmErr: missing, code: skill.NotFound, message: "is not built"},
		"P02 zero trust and no runner":   {primary: skill.Target{Kind: "cli:exec"}, code: skill.Forbidden, message: "outside the sandbox"},
		"not ready, no fallback":         {trust: skill.Trusted, primary: wasm, wasmErr: missing, code: skill.NotFound, message: "is not built"},
		"not ready, hidden code":         {trust: skill.Trusted, primary: cli, cliErr: noPython, code: skill.ToolInvocationError, message: "there is no python3"},
		"neither ready":                  {trust: skill.Trusted, primary: wasm, fallback: &cli, wasmErr: missing, cliErr: noPython, code: skill.ToolInvocationError, message: "fallback: cli:python: there is no python3"},
		"unknown kind":                   {trust: skill.Trusted, primary: skill.Target{Kind: "wasm:ruby"}, code: skill.ToolInvocationError, message: "available: cli:python, wasm:wasi"},
		"a foreign error stays inside":   {trust: skill.Trusted, primary: wasm, wasmErr: errors.New("open /srv/x"), code: skill.ToolInvocationError, message: "wasm:wasi is not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			runners := []skill.Runner{&runnertest.Runner{Is: skill.CLIPython, NotReady: c.cliErr}}
			if !c.noWasm {
				runners = append(runners, &runnertest.Runner{Is: skill.WasmWASI, NotReady: c.wasmErr})
			}
			r, target, _, err := newSet(t, runners...).Choose(t.Context(), &skill.Spec{Trust: c.trust, Folder: "/f"}, c.primary, c.fallback)
			if got := skill.CodeOf(err); got != c.code {
				t.Fatalf("code %q, want %q (%v)", got, c.code, err)
			}
			if err == nil {
				if r.Kind() != c.want || target.Kind != c.want {
					t.Errorf("runner %s, target %s, want %s", r.Kind(), target.Kind, c.want)
				}
				return
			}
			if e, ok := errors.AsType[*skill.Error](err); !ok || !strings.Contains(e.Message, c.message) || strings.Contains(e.Message, "/srv") {
				t.Errorf("message %q, want %q in it", e.Message, c.message)
			}
		})
	}
}

// picky is ready for nothing but numpy.
type picky struct{ runnertest.Runner }

func (p *picky) Prepare(_ context.Context, s *skill.Spec) (skill.Plan, error) {
	if len(s.Requires) == 0 || s.Requires[0] == "numpy" {
		return skill.Plan{}, nil
	}
	return skill.Plan{}, &skill.Error{Op: "picky", Code: skill.ToolInvocationError, Message: "there is numpy only"}
}

// What a skill requires decides whether its runner is ready.
func TestChooseByWhatIsRequired(t *testing.T) {
	set := newSet(t, &picky{runnertest.Runner{Is: skill.WasmPython}}, &runnertest.Runner{Is: skill.CLIPython})
	first, second := skill.Target{Kind: skill.WasmPython}, skill.Target{Kind: skill.CLIPython}
	for _, c := range []struct {
		requires []string
		want     skill.Kind
	}{{nil, skill.WasmPython}, {[]string{"numpy"}, skill.WasmPython}, {[]string{"pandas"}, skill.CLIPython}} {
		if _, target, _, err := set.Choose(t.Context(), &skill.Spec{Trust: skill.Trusted, Folder: "/f", Requires: c.requires}, first, &second); err != nil || target.Kind != c.want {
			t.Errorf("%v: %s, %v; want %s", c.requires, target.Kind, err, c.want)
		}
	}
	if _, _, _, err := set.Choose(t.Context(), &skill.Spec{Trust: skill.Trusted, Folder: "/f", Requires: []string{"pandas"}}, first, nil); err == nil || !strings.Contains(err.Error(), "numpy only") {
		t.Errorf("without a fallback: %v; want what is missing", err)
	}
}

func TestSet(t *testing.T) {
	a, b := &runnertest.Runner{Is: "b:b"}, &runnertest.Runner{Is: "a:a"}
	s := newSet(t, a, b)
	if diff := cmp.Diff([]skill.Kind{"a:a", "b:b"}, s.Kinds()); diff != "" {
		t.Error(diff)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if a.Closed() != 1 || b.Closed() != 1 {
		t.Errorf("closed %d and %d times", a.Closed(), b.Closed())
	}
	if _, err := NewSet(a, &runnertest.Runner{Is: "b:b"}); err == nil {
		t.Error("two runners of one kind are accepted")
	}
	if _, err := NewSet(nil); err == nil {
		t.Error("a nil runner is accepted")
	}
	if _, err := newSet(t).Get("x:y"); !strings.Contains(err.Error(), "available: none") {
		t.Error(err)
	}
}

// A runtime that is being compiled is waited for where nothing else can answer.
func TestChooseWaitsForCompilers(t *testing.T) {
	sandbox := &runnertest.Runner{Is: skill.WasmPython, Missing: skill.Compiling()}
	native := &runnertest.Runner{Is: skill.CLIPython}
	s := musttest.Get(NewSet(sandbox, native))(t)
	primary, fallback := skill.Target{Kind: skill.WasmPython, Entry: "a.py"}, &skill.Target{Kind: skill.CLIPython, Entry: "a.py"}
	for _, c := range []struct {
		name     string
		trust    skill.Trust
		fallback *skill.Target
		want     skill.Runner
	}{
		{"without a fallback", skill.Trusted, nil, sandbox},
		{"with one", skill.Trusted, fallback, native},
		{"with one that it may not use", skill.Community, fallback, sandbox},
	} {
		if r, _, _, err := s.Choose(t.Context(), &skill.Spec{Trust: c.trust, Folder: "/x"}, primary, c.fallback); err != nil || r != c.want {
			t.Errorf("%s: %v, %v", c.name, r, err)
		}
		if specs := sandbox.Specs(); specs[len(specs)-1].NoWait != (c.want == native) {
			t.Errorf("%s: the sandbox is to wait for nothing: %t", c.name, specs[len(specs)-1].NoWait)
		}
	}
	sandbox.NotReady = &skill.Error{Code: skill.ToolInvocationError, Message: "is not installed"}
	if _, _, _, err := s.Choose(t.Context(), &skill.Spec{Trust: skill.Trusted, Folder: "/x"}, primary, nil); err == nil {
		t.Error("what is not installed is waited for")
	}
}
