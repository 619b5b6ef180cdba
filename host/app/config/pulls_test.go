package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// Hosts to pull from need a policy beside them, and a policy is a file.
func TestPulls(t *testing.T) {
	dir := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "trust.yaml"), []byte("unsigned: refuse\n"), 0o600))
	const policy, hosts = "OPENSKILL_TRUST_POLICY=trust.yaml", "OPENSKILL_PULL_HOSTS="
	s, err := Load(Sources{Dir: dir, Environ: []string{policy, hosts + " r.example.com,localhost:5000, [::1]:5000,"}})
	musttest.Do(t, err)
	if diff := cmp.Diff([]string{"r.example.com", "localhost:5000", "[::1]:5000"}, s.PullsFrom()); diff != "" || s.TrustPolicy != filepath.Join(dir, "trust.yaml") {
		t.Errorf("%s, %s", s.TrustPolicy, diff)
	}
	if s, err = Load(Sources{Dir: dir}); err != nil || s.PullsFrom() != nil || s.TrustPolicy != "" {
		t.Errorf("without: %v", err)
	}
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{hosts + "r.example.com"}, "needs OPENSKILL_TRUST_POLICY"},
		{[]string{policy, hosts + "https://r.example.com"}, "no host with a port"},
		{[]string{policy, hosts + "r.example.com/acme"}, "no host with a port"},
		{[]string{policy, hosts + "*"}, "no host with a port"},
		{[]string{policy, hosts + "a b"}, "no host with a port"},
		{[]string{"OPENSKILL_TRUST_POLICY=none.yaml"}, "is not a file"},
		{[]string{"OPENSKILL_TRUST_POLICY=."}, "is not a file"},
	} {
		if _, err := Load(Sources{Dir: dir, Environ: c.environ}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.environ, err, c.want)
		}
	}
}
