package catalogue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// quarantines keeps what it is told, and fails all the same.
type quarantines struct{ got []string }

func (r *quarantines) Quarantine(tenant string, id skill.ID, version, reason string) error {
	r.got = append(r.got, fmt.Sprintf("%s/%s %s: %s", tenant, id, version, reason))
	return errors.New("the disk is full")
}

func uploaded(owner string, id skill.ID, version string) *manifest.Skill {
	return &manifest.Skill{Owner: owner, Descriptor: skill.Descriptor{ID: id, Version: version, Digest: "sha256:1", Trust: skill.Community}}
}

func TestWhatCounts(t *testing.T) {
	const crash = skill.WorkerCrashed
	limits := func(n int, code skill.Code) (list []skill.Code) {
		for range n {
			list = append(list, code)
		}
		return list
	}
	for name, c := range map[string]struct {
		runs    []skill.Code
		lowered bool
		step    time.Duration
		want    string // in the reason; "" for none
	}{
		"one crash":                     {runs: []skill.Code{crash}},
		"two crashes":                   {runs: []skill.Code{crash, crash}, want: "crashed 2 times"},
		"two crashes of lowered runs":   {runs: []skill.Code{crash, crash}, lowered: true, want: "crashed 2 times"},
		"two crashes with a success":    {runs: []skill.Code{crash, "", crash}, want: "crashed 2 times"},
		"two crashes far apart":         {runs: []skill.Code{crash, "", crash}, step: 5 * time.Minute},
		"nineteen limits":               {runs: limits(19, skill.Timeout)},
		"twenty limits":                 {runs: append(limits(19, skill.Timeout), skill.FuelExhausted), want: "20 runs in a row hit a limit, the last one FUEL_EXHAUSTED"},
		"twenty limits with a success":  {runs: append(append(limits(10, skill.MemoryLimit), ""), limits(10, skill.MemoryLimit)...)},
		"twenty limits with a failure":  {runs: append(append(limits(10, skill.StackLimit), skill.GuestExit), limits(10, skill.OutputLimit)...), want: "OUTPUT_LIMIT"},
		"limits that the caller chose":  {runs: limits(100, skill.Timeout), lowered: true},
		"what the skill itself reports": {runs: limits(100, skill.ToolInvocationError)},
		"traps":                         {runs: limits(100, skill.Trap)},
		"the host's failures":           {runs: limits(100, skill.Internal)},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			store := &quarantines{}
			w := NewWatch(WatchOptions{Quarantine: store.Quarantine, Now: func() time.Time { return now }})
			for _, code := range c.runs {
				w.Ended(uploaded("acme", "up", "1.0.0"), code, c.lowered)
				now = now.Add(c.step)
			}
			switch {
			case c.want == "" && len(store.got) > 0:
				t.Errorf("quarantined: %v", store.got)
			case c.want != "" && (len(store.got) != 1 || !strings.HasPrefix(store.got[0], "acme/up 1.0.0: ") || !strings.Contains(store.got[0], c.want)):
				t.Errorf("got %v, want one with %q", store.got, c.want)
			}
		})
	}
}

// Versions, tenants and the operator's own skills are counted apart.
func TestCountsAreApart(t *testing.T) {
	store := &quarantines{}
	w := NewWatch(WatchOptions{Quarantine: store.Quarantine, Limits: 2})
	for _, s := range []*manifest.Skill{
		uploaded("a", "up", "1.0.0"), uploaded("a", "up", "2.0.0"), uploaded("b", "up", "1.0.0"), uploaded("a", "other", "1.0.0"),
		uploaded("", "up", "1.0.0"), uploaded("", "up", "1.0.0"), uploaded("", "up", "1.0.0"),
	} {
		w.Ended(s, skill.Timeout, false)
	}
	if len(store.got) > 0 {
		t.Fatalf("quarantined: %v", store.got)
	}
	w.Ended(uploaded("a", "up", "2.0.0"), skill.Timeout, false)
	want := []string{"a/up 2.0.0: 2 runs in a row hit a limit, the last one TIMEOUT"}
	if diff := cmp.Diff(want, store.got); diff != "" {
		t.Error(diff)
	}
}

// A skill that comes back from quarantine begins anew.
func TestReleasedBeginsAnew(t *testing.T) {
	store := &quarantines{}
	w := NewWatch(WatchOptions{Quarantine: store.Quarantine})
	for range 3 {
		w.Ended(uploaded("a", "up", "1.0.0"), skill.WorkerCrashed, false)
	}
	if len(store.got) != 1 {
		t.Errorf("%d quarantines after 3 crashes, want 1", len(store.got))
	}
}

func TestMemoryIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	w := NewWatch(WatchOptions{Quarantine: (&quarantines{}).Quarantine, Now: func() time.Time { return now }})
	for i := range 2*maxCounts + 10 {
		w.Ended(uploaded("a", "up", fmt.Sprintf("1.0.%d", i)), skill.Timeout, false)
		now = now.Add(time.Second)
	}
	if n := len(w.counts); n > maxCounts {
		t.Errorf("%d counts", n)
	}
	w.Ended(uploaded("b", "up", "1.0.0"), "", false)
	if w.counts[watched{"b", "up", "1.0.0", "sha256:1"}] != nil {
		t.Error("a success is remembered")
	}
}
