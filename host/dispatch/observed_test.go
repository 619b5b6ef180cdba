package dispatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// uploaded gives the skills of the house as the uploads of a tenant each.
type uploaded struct {
	manifest.Shared
	owner string
}

func (u uploaded) Get(tenant string, id skill.ID, version string) (*manifest.Skill, error) {
	s, err := u.Shared.Get(tenant, id, version)
	if err != nil {
		return nil, err
	}
	c := *s
	c.Owner, c.Descriptor.Trust = u.owner, skill.Community
	return &c, nil
}

func asUploads(o *Options, owner string) {
	if own, ok := o.Skills.(manifest.Shared); ok {
		o.Skills = uploaded{own, owner}
	}
}

// notes is an observer that remembers.
type notes struct {
	mu  sync.Mutex
	got []string
}

func (n *notes) Ended(s *manifest.Skill, code skill.Code, lowered bool) {
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
		"success":               {request: ask("stats", "{}"), reply: *runnertest.Prints("{}"), want: []string{`acme/stats "" false`}},
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

// One tenant's uploads, however many skills they are and whoever calls them, never fill
// the host; half of the places are theirs, also when the number changes.
func TestUploadsOfOneTenantLeaveRoom(t *testing.T) {
	h := open(t, func(o *Options) { o.Global, o.PerSkill = 12, 12; asUploads(o, "acme") })
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
			<-release
			return runnertest.Prints("{}"), nil
		}
		running := func(want int) {
			t.Helper()
			synctest.Wait()
			if n, _, _, _ := h.Load(); n != want {
				t.Errorf("%d are running, want %d", n, want)
			}
		}
		calls := func(tenant string) {
			for i := range 12 {
				go h.Invoke(context.Background(), of(tenant), ask([]skill.ID{"stats", "plain"}[i%2], "{}"))
			}
		}
		calls("beta")
		running(4) // two thirds of half
		calls("acme")
		running(6)
		h.Admit(Bounds{Global: 16, PerSkill: 12})
		calls("acme")
		running(8)
		close(release)
	})
}

// What a disabled upload says to its caller.
func TestDisabledUploads(t *testing.T) {
	for state, want := range map[skill.State]string{
		"":                     "the skill is disabled; ask the operator to enable it",
		skill.StateDisabled:    "version 1.0.0 of the skill is disabled; enable it with POST /skills/up:enable",
		skill.StateQuarantined: "version 1.0.0 of the skill is quarantined (it crashed); ask the operator to enable it",
	} {
		reason := "it crashed"
		if state == "" {
			reason = ""
		}
		err := disabled(&skill.Descriptor{ID: "up", Version: "1.0.0", State: state, Reason: reason})
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.NotFound || e.Message != want {
			t.Errorf("%q: %v", state, err)
		}
	}
	// And a definition without code.
	var e *skill.Error
	if err := disabled(&skill.Descriptor{ID: "up", Reason: "it has no code on this host"}); !errors.As(err, &e) || e.Message != "it has no code on this host" {
		t.Errorf("%v", err)
	}
}
