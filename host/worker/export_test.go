package worker

import (
	"testing"
	"time"
)

// LowerPatience shortens the time that a worker may take to read, for a test.
func LowerPatience(t *testing.T, d time.Duration) {
	t.Helper()
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}
