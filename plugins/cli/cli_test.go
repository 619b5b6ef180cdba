package cli

import (
	"testing"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

func TestRunner(t *testing.T) {
	runnertest.Run(t, runnertest.Harness{
		New:      func(testing.TB) skill.Runner { return New(nil) },
		Write:    runnertest.Python,
		Trust:    skill.Trusted,
		ExitBits: 8,
		Limits:   skill.Limits{Memory: 128 << 20},
	})
}
