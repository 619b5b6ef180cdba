package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/dispatch/grants"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestChange reads settings twice: what reloads is taken over, the rest waits.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "openskill.yaml")
	load := func(text string) *Settings {
		t.Helper()
		musttest.Write(t, file, text)
		return musttest.Get(Load(Sources{Dir: dir}))(t)
	}
	old := load("rate: tenant:5\nfuel: 100\n")
	c := musttest.Get(old.Change(load("rate: {tenant: 6}\nfuel: 200/50000000000\nagent_prices: m=1/2\nhttp_allow: https://api.example.com/ GET\nenv_allow: A=b\n")))(t)
	if diff := cmp.Diff([]string{"OPENSKILL_RATE", "OPENSKILL_ENV_ALLOW", "OPENSKILL_AGENT_PRICES"}, c.Taken); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"OPENSKILL_FUEL", "OPENSKILL_HTTP_ALLOW"}, c.Waiting); diff != "" {
		t.Error(diff)
	}
	s := c.Settings
	if s.RateTenant != 6 || s.Fuel != 100 || s.Origin("OPENSKILL_AGENT_PRICES") != FromFile || s.Origin("OPENSKILL_FUEL.max") != FromDefault {
		t.Errorf("rate %d, fuel %d, origins %v", s.RateTenant, s.Fuel, s.origins)
	}
	if old.RateTenant != 5 || old.Origin("OPENSKILL_AGENT_PRICES") != FromDefault {
		t.Error("the old settings changed")
	}
	_, env := s.Allowed().For(grants.Skill{ID: "a", Trust: skill.Trusted}, skill.Permissions{Env: []string{"A"}})
	if s.Allowed().HTTP() || len(env) != 1 {
		t.Errorf("requests are allowed: %v; variables: %v", s.Allowed().HTTP(), env)
	}

	// Once more: what waits still waits, and is told again.
	c = musttest.Get(s.Change(load("rate: {tenant: 6}\nfuel: 300\n")))(t)
	if diff := cmp.Diff([]string{"OPENSKILL_FUEL"}, c.Waiting); diff != "" {
		t.Error(diff)
	}
	if s := c.Settings; len(s.Prices()) != 0 {
		t.Errorf("prices that were taken away hold: %v", s.Prices())
	}
	musttest.Do(t, os.Remove(file))
	now := musttest.Get(Load(Sources{Dir: dir}))(t)
	if _, err := old.Change(now); err == nil || !strings.Contains(err.Error(), "openskill.yaml is gone") {
		t.Errorf("a file that is gone: %v", err)
	}
}

// TestChangeOfRequests: a host that makes requests takes other rules, and none.
func TestChangeOfRequests(t *testing.T) {
	dir := t.TempDir()
	load := func(allow string) *Settings {
		t.Helper()
		return musttest.Get(Load(Sources{Dir: dir, Environ: []string{"OPENSKILL_HTTP_ALLOW=" + allow}}))(t)
	}
	c := musttest.Get(load("https://a.example.com/ GET").Change(load("")))(t)
	if c.Settings.Allowed().HTTP() || len(c.Waiting) != 0 {
		t.Errorf("requests: %v, waiting: %v", c.Settings.Allowed().HTTP(), c.Waiting)
	}
}
