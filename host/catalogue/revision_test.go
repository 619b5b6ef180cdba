package catalogue

import "testing"

// A decision of a tenant changes what that tenant finds, and what others find only if
// something of it is approved for all.
func TestRevisionFollowsDecisions(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	own, other := s.Revision("acme"), s.Revision("beta")
	for _, tc := range []struct {
		do  string
		all bool
	}{
		{"publish 1.0.0", false},
		{"enable 1.0.0", false},
		{"publish 2.0.0", false},
		{"enable 2.0.0", false},
		{"rollback", false},
		{"approve 1.0.0", true},
		{"enable 2.0.0", true},
		{"disable 2.0.0", true},
		{"quarantine 1.0.0", true},
		{"delete 1.0.0", true},
		{"delete 2.0.0", false},
	} {
		if err := s.play(tc.do); err != nil {
			t.Fatalf("%s: %v", tc.do, err)
		}
		if now := s.Revision("acme"); now == own {
			t.Errorf("%s: its tenant has the same revision", tc.do)
		} else {
			own = now
		}
		now := s.Revision("beta")
		if (now != other) != tc.all {
			t.Errorf("%s: another tenant's revision changed: %v", tc.do, now != other)
		}
		other = now
	}
	if now := s.Revision("beta"); now != other || s.Revision("acme") != own {
		t.Error("it changes without a decision")
	}
}
