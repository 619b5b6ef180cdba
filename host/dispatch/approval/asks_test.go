package approval_test

import (
	"strings"
	"testing"

	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// A caller that asks too often loses its own oldest asks, and not those of its colleagues.
func TestOwnAsksMakeRoomFirst(t *testing.T) {
	s := open(t, approval.Options{Policy: approval.PerCall, MaxPending: 3, Now: newClock().Now})
	one := func(caller, arg string) string {
		a := ask()
		a.Caller, a.Arguments = caller, []string{arg}
		return asks(t, s, a, "pending").ID
	}
	colleague := one("colleague", "")
	first := one("flood", "1")
	for i := range 10 {
		one("flood", strings.Repeat("x", i+2))
	}
	if a := get(t, s, colleague); a.State != approval.Pending {
		t.Errorf("the colleague's ask is %s", a.State)
	}
	if a := get(t, s, first); a.State != approval.Expired {
		t.Errorf("the first of the caller is %s", a.State)
	}
}

// What says not who asks, or not what for, would be approved together with everything else
// that does not.
func TestRefusesAsksThatNameNothing(t *testing.T) {
	for _, policy := range []approval.Policy{approval.PerVersion, approval.PerCall} {
		s := open(t, approval.Options{Policy: policy})
		for name, empty := range map[string]func(*approval.Ask){
			"tenant": func(a *approval.Ask) { a.Tenant = "" }, "caller": func(a *approval.Ask) { a.Caller = "" }, "skill": func(a *approval.Ask) { a.Skill = "" },
			"script": func(a *approval.Ask) { a.Script = "" }, "digest": func(a *approval.Ask) { a.Digest = "" },
		} {
			a := ask()
			empty(&a)
			if err := s.Check(t.Context(), a); skill.CodeOf(err) != skill.Internal {
				t.Errorf("%s, without a %s: %v", policy, name, err)
			}
		}
	}
}
