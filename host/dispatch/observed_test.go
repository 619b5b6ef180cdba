package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/registry"
	"openskill/host/runner/fakerunner"
	"openskill/sdk/skill"
)

// uploaded gives the skills of the house as the uploads of a tenant each.
type uploaded struct {
	registry.Shared
	owner string
}

func (u uploaded) Get(tenant string, id skill.ID, version string) (*registry.Skill, error) {
	s, err := u.Shared.Get(tenant, id, version)
	if err != nil {
		return nil, err
	}
	c := *s
	c.Owner, c.Descriptor.Trust = u.owner, skill.Community
	return &c, nil
}

func asUploads(o *Options, owner string) {
	if own, ok := o.Skills.(registry.Shared); ok {
		o.Skills = uploaded{own, owner}
	}
}

// notes is an observer that remembers.
type notes struct {
	mu  sync.Mutex
	got []string
}

func (n *notes) Ended(s *registry.Skill, code skill.Code, lowered bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.got = append(n.got, fmt.Sprintf("%s/%s %q %v", s.Owner, s.Descriptor.ID, code, lowered))
}

func TestHowUploadsEndIsObserved(t *testing.T) {
	lowered := ask("stats", "{}")
	lowered.Limits = skill.Limits{Fuel: 1}
	raised := ask("stats", "{}")
	raised.Limits = skill.Limits{Fuel: 1 << 40}
	for name, c := range map[string]struct {
		request skill.Request
		reply   skill.Reply
		err     error
		own     bool // the operator's skill
		want    []string
	}{
		"success":               {request: ask("stats", "{}"), reply: *fakerunner.Prints("{}"), want: []string{`acme/stats "" false`}},
		"a limit":               {request: ask("stats", "{}"), reply: skill.Reply{Code: skill.Timeout}, want: []string{`acme/stats "TIMEOUT" false`}},
		"a limit that is lower": {request: lowered, reply: skill.Reply{Code: skill.FuelExhausted}, want: []string{`acme/stats "FUEL_EXHAUSTED" true`}},
		"one that is not":       {request: raised, reply: skill.Reply{Code: skill.FuelExhausted}, want: []string{`acme/stats "FUEL_EXHAUSTED" false`}},
		"a crash":               {request: ask("stats", "{}"), reply: skill.Reply{Code: skill.WorkerCrashed}, want: []string{`acme/stats "WORKER_CRASHED" false`}},
		"a crash as an error":   {request: ask("stats", "{}"), err: &skill.Error{Code: skill.WorkerCrashed}, want: []string{`acme/stats "WORKER_CRASHED" false`}},
		"the host's failure":    {request: ask("stats", "{}"), err: errors.New("no descriptors"), want: []string{`acme/stats "INTERNAL" false`}},
		"its own word": {
			request: ask("stats", "{}"), reply: skill.Reply{ExitCode: 1, Stdout: []byte(`{"error": {"code": "TIMEOUT", "message": "m"}}`)},
			want: []string{`acme/stats "TOOL_INVOCATION_ERROR" false`},
		},
		"a wrong input":  {request: ask("stats", "[]")},
		"the operator's": {request: ask("stats", "{}"), reply: skill.Reply{Code: skill.Timeout}, own: true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &notes{}
			h := open(t, func(o *Options) {
				if o.Observer = seen; !c.own {
					asUploads(o, "acme")
				}
			})
			h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
				if c.err != nil {
					return nil, c.err
				}
				r := c.reply
				return &r, nil
			}
			h.Invoke(t.Context(), skill.Local(), c.request)
			if diff := cmp.Diff(c.want, seen.got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a caller who left", func(t *testing.T) {
		seen := &notes{}
		h := open(t, func(o *Options) { o.Observer = seen; asUploads(o, "acme") })
		ctx, leave := context.WithCancel(t.Context())
		h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
			leave()
			return &skill.Reply{Code: skill.Cancelled}, nil
		}
		h.Invoke(ctx, skill.Local(), ask("stats", "{}"))
		if len(seen.got) > 0 {
			t.Errorf("observed: %v", seen.got)
		}
	})
}

// One tenant's uploads, however many skills they are, never fill the host.
func TestUploadsOfOneTenantLeaveRoom(t *testing.T) {
	g := newGate(4, 4, 0, 0, nil)
	g.perOwner = 2
	var leave []func()
	enter := func(owner string, id skill.ID) error {
		l, err := g.enter(t.Context(), place{owner, id}, 0)
		if err == nil {
			leave = append(leave, l)
		}
		return err
	}
	for i, c := range []struct {
		owner string
		id    skill.ID
		code  skill.Code
	}{
		{"a", "x", ""},
		{"a", "y", ""},
		{"a", "z", skill.RateLimited},
		{"a", "x", skill.RateLimited},
		{"b", "x", ""},
		{"", "x", ""},
		{"", "y", skill.RateLimited}, // all four are taken
	} {
		if err := enter(c.owner, c.id); skill.CodeOf(err) != c.code {
			t.Errorf("%d: %v, want %q", i, err, c.code)
		}
	}
	for _, l := range leave {
		l()
	}
	if g.running != 0 || len(g.owners) != 0 {
		t.Errorf("left: %d, %v", g.running, g.owners)
	}

	// Half of the places are theirs where nothing else is said, also when the number changes.
	for global, half := range map[int]int{0: 16, 1: 1, 7: 3, 8: 4} {
		h := open(t, func(o *Options) { o.Global = global })
		if h.gate.perOwner != half {
			t.Errorf("of %d places a tenant's uploads get %d, want %d", global, h.gate.perOwner, half)
		}
		h.gate.resize(global+4, 4)
		if h.gate.perOwner != (global+4)/2 {
			t.Errorf("of %d places, later: %d", global+4, h.gate.perOwner)
		}
	}
	// And calls of others pass those that wait for a place of their tenant's.
	synctest.Test(t, func(t *testing.T) {
		g := newGate(4, 4, 4, 250*time.Millisecond, time.Now)
		g.perOwner = 2
		enter := func(owner string, id skill.ID) func() {
			leave, err := g.enter(t.Context(), place{owner, id}, 0)
			if err != nil {
				t.Errorf("%s of %q: %v", id, owner, err)
				return func() {}
			}
			return leave
		}
		first, second := enter("a", "x"), enter("a", "y")
		got := make(chan func(), 1)
		go func() { got <- enter("a", "z") }()
		synctest.Wait()
		if g.line.Len() != 1 {
			t.Fatalf("%d wait", g.line.Len())
		}
		begun := time.Now()
		enter("b", "z")()
		enter("", "z")()
		if time.Since(begun) != 0 || g.line.Len() != 1 {
			t.Errorf("others came after %v, %d wait", time.Since(begun), g.line.Len())
		}
		first()
		(<-got)()
		second()
	})
}

// What a disabled upload says to its caller.
func TestDisabledUploads(t *testing.T) {
	for state, want := range map[skill.State]string{
		"":                     "the skill is disabled; only the operator can enable it",
		skill.StateDisabled:    "version 1.0.0 of the skill is disabled; POST /skills/up:enable enables it",
		skill.StateQuarantined: "version 1.0.0 of the skill is quarantined (it crashed); only the operator can enable it",
	} {
		reason := "it crashed"
		if state == "" {
			reason = ""
		}
		err := disabled(&skill.Descriptor{ID: "up", Version: "1.0.0", State: state, Reason: reason})
		var e *skill.Error
		if !errors.As(err, &e) || e.Code != skill.NotFound || e.Message != want {
			t.Errorf("%q: %v", state, err)
		}
	}
	// And a definition without code.
	var e *skill.Error
	if err := disabled(&skill.Descriptor{ID: "up", Reason: "it has no code on this host"}); !errors.As(err, &e) || e.Message != "it has no code on this host" {
		t.Errorf("%v", err)
	}
}
