package quota

import "testing"

// LowerBounds lowers how many limits a host knows of at once, and how many rows are deleted at
// once, for the time of a test.
func LowerBounds(t *testing.T, known, sweep int) {
	t.Helper()
	knownBefore, sweepBefore := mostKnown, mostSweep
	mostKnown, mostSweep = known, sweep
	t.Cleanup(func() { mostKnown, mostSweep = knownBefore, sweepBefore })
}
