package runnertest

import (
	"testing"
)

// check is one subtest of the suite.
type check struct {
	name string
	run  func(*bench)
}

// checks is the whole suite, in the order in which it runs. Checks that end a
// guest by force call bench.healthy, so that each failure is followed by a call
// that must work.
var checks = []check{
	{"echo", echo},
	{"stdin-1MiB", stdinLarge},
	{"stdin-unread", stdinUnread},
	{"stderr", stderrApart},
	{"arguments", arguments},
	{"environment-empty", environmentEmpty},
	{"exit-0", exits(0)},
	{"exit-1", exits(1)},
	{"exit-255", exits(255)},
	{"exit-forged-deadline", exits(0xefffffff)},
	{"exit-forged-cancel", exits(0xffffffff)},
	{"usage", usage},
	{"output-at-limit", outputAtLimit},
	{"output-over-limit", outputOverLimit},
	{"output-endless", outputEndless},
	{"stderr-over-limit", stderrOverLimit},
	{"timeout-spin", timeoutSpin},
	{"timeout-sleep", timeoutSleep},
	{"fuel", fuel},
	{"memory", memory},
	{"recursion", recursion},
	{"cancel", cancel},
	{"cancel-before", cancelBefore},
	{"data-read", dataRead},
	{"data-in-part", dataInPart},
	{"data-not-granted", dataNotGranted},
	{"data-unchanged", dataUnchanged},
	{"skill-folder-unchanged", skillFolderUnchanged},
	{"scratch-not-granted", scratchNotGranted},
	{"scratch-fresh", scratchFresh},
	{"scratch-cap", scratchCap},
	{"artifacts", artifacts},
	{"concurrent", concurrent},
	{"ready", ready},
	{"prepare-missing", prepareMissing},
	{"ahead", ahead},
	{"close-twice", closeTwice},
	{"close-waits", closeWaits},
	{"leaks", leaks},
}

// Run runs the suite. Subtests run one after the other: the checks for leaks
// and limits want a quiet process.
func Run(t *testing.T, h Harness) {
	if h.New == nil || h.Write == nil {
		t.Fatal("runnertest: a Harness needs New and Write")
	}
	known := map[string]bool{}
	for _, c := range checks {
		known[c.name] = true
	}
	for name, reason := range h.Skip {
		if !known[name] || reason == "" {
			t.Errorf("runnertest: Skip[%q] = %q; want the name of a check and a reason", name, reason)
		}
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if reason := h.Skip[c.name]; reason != "" {
				t.Skip(reason)
			}
			if c.name == "fuel" && !h.Metered {
				t.Skip("the runner does not meter")
			}
			c.run(h.bench(t))
		})
	}
}
