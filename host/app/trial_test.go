package app

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A skill that is tried is a copy: the catalogue's own is shared.
func TestTrial(t *testing.T) {
	t.Parallel()
	made := func() *manifest.Skill {
		return &manifest.Skill{
			Primary: skill.Target{Kind: skill.WasmWASI, Entry: "a.wasm"}, Fallback: &skill.Target{Kind: skill.CLIPython, Entry: "a.py"},
			Descriptor: skill.Descriptor{Runner: skill.WasmWASI, Fallback: skill.CLIPython, Cost: &skill.Cost{RateLimitPerMinute: 7, EstimatedTokens: 3}},
		}
	}
	s := made()
	if got := (*Trial)(nil).of(s); got != s {
		t.Error("no trial, and another skill")
	}
	got := (&Trial{Fallback: true, Unlimited: true}).of(s)
	d := got.Descriptor
	if got.Primary.Kind != skill.CLIPython || got.Fallback != nil || d.Runner != skill.CLIPython || d.Fallback != "" {
		t.Errorf("%+v", got)
	}
	same := cmp.Comparer(func(a, b manifest.Skill) bool {
		return a.Primary == b.Primary && *a.Fallback == *b.Fallback && *a.Descriptor.Cost == *b.Descriptor.Cost && a.Descriptor.Runner == b.Descriptor.Runner
	})
	if !cmp.Equal(*made(), *s, same) {
		t.Errorf("what was given has changed: %+v", s)
	}
	alone := &manifest.Skill{Primary: s.Primary}
	if got := (&Trial{Fallback: true, Unlimited: true}).of(alone); got.Primary != alone.Primary {
		t.Errorf("a skill without a fallback: %+v", got)
	}
	if _, err := Open(settings(t, nil), &Options{Mode: Serving, Trial: &Trial{}}); err == nil {
		t.Error("a host that serves takes a trial")
	}
}

// Limits of calls are for those who share a host, not for whoever tries a skill.
func TestUnlimitedTrial(t *testing.T) {
	t.Parallel()
	s := settings(t, map[string]string{"rate-tenant": "1", "workers": "off"})
	for unlimited, want := range map[bool]string{false: "[ RATE_LIMITED]", true: "[ ]"} {
		h := musttest.Get(Open(s, &Options{Log: slog.New(slog.DiscardHandler), Trial: &Trial{Unlimited: unlimited}}))(t)
		var codes []skill.Code
		for range 2 {
			code := skill.Code("")
			if r := invoke(t, h, "quick"); r.Error != nil {
				code = r.Error.Code
			}
			codes = append(codes, code)
		}
		if got := fmt.Sprint(codes); got != want {
			t.Errorf("unlimited %t: %s", unlimited, got)
		}
		musttest.Do(t, h.Close())
	}
}
