package app

import (
	"strings"
	"testing"
	"time"

	"openskill/host/app/hosttest"
	"openskill/sdk/skill"
)

// TestModulesOfAnUploadShareTheirTime holds that a host takes what the modules of an upload
// before have cost from the time of the next one, with workers and without.
func TestModulesOfAnUploadShareTheirTime(t *testing.T) {
	hosttest.NoRace(t)
	for _, workers := range []string{"tenant", "off"} {
		t.Run(workers, func(t *testing.T) {
			c := moduleChecker{openHost(t, settings(t, map[string]string{"workers": workers, "workers-spare": "0"}))}
			all := 10 * time.Second
			if _, err := c.Check(t.Context(), "acme", []byte(answering), &all); skill.CodeOf(err) != skill.CompileTimeout || !strings.Contains(err.Error(), "together") {
				t.Errorf("nothing is left: %v", err)
			}
			var spent time.Duration
			if report, err := c.Check(t.Context(), "acme", []byte(answering), &spent); err != nil || len(report) == 0 || spent <= 0 || spent > 10*time.Second {
				t.Fatalf("the first: %s, %v, after %s", report, err, spent)
			}
			if report, err := c.Check(t.Context(), "acme", []byte(waiting), &spent); err != nil || len(report) == 0 {
				t.Errorf("the second: %s, %v, after %s", report, err, spent)
			}
		})
	}
}
