package wasm

import "testing"

// LowerShareFrom has code of any size shared, for the time of a test.
func LowerShareFrom(t *testing.T, n int) {
	t.Helper()
	before := shareFrom
	shareFrom = n
	t.Cleanup(func() { shareFrom = before })
}
