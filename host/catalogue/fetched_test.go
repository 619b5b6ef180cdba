package catalogue

import (
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// While the files of the current version are on their way, no other version runs in its
// place, and the skill does not seem disabled.
func TestNoOtherVersionWhileOneIsFetched(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	k := key{"acme", "up"}
	digests := map[string]string{}
	for _, name := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		digests[name] = mustPublish(t, s, k.tenant, k.id, name, "module of "+name).Digest
		if name == "1.2.0" {
			continue // never enabled
		}
		for _, d := range []Decision{to(Enable, k.tenant, k.id, name), asOperator(to(Approve, k.tenant, k.id, name))} {
			musttest.Get(s.decide(d))(t)
		}
	}
	move := func(name string, here bool) {
		s.mark(k, s.folder(k, &version{digest: digests[name]}), here, "")
	}
	says := func(tenant, name string) string {
		found, err := s.Get(tenant, k.id, name)
		switch {
		case err == nil:
			return found.Descriptor.Version
		case skill.CodeOf(err) == skill.NotFound && strings.Contains(err.Error(), "still being fetched"):
			return "fetched: " + strings.Fields(err.Error()[strings.Index(err.Error(), "version "):])[1]
		}
		return err.Error()
	}
	for _, tenant := range []string{"acme", "beta"} {
		move("1.1.0", false)
		for name, want := range map[string]string{"": "fetched: 1.1.0", "1.1.0": "fetched: 1.1.0", "1.0.0": "1.0.0"} {
			if got := says(tenant, name); got != want {
				t.Errorf("%s asks for %q: %s, want %s", tenant, name, got, want)
			}
		}
		move("1.0.0", false)
		if got := says(tenant, ""); got != "fetched: 1.1.0" {
			t.Errorf("%s, with nothing enabled here: %s", tenant, got)
		}
		move("1.0.0", true)
		move("1.1.0", true)
		if got := says(tenant, ""); got != "1.1.0" {
			t.Errorf("%s, when it is here: %s", tenant, got)
		}
	}
}
