package hosttest

import "testing"

// NoRace leaves out a test that has a large module compiled by a process of its own, as
// those are that Go makes, while the program watches for races: see [UnderRace].
func NoRace(t testing.TB) {
	t.Helper()
	if UnderRace {
		t.Skip("a program that watches for races does not fit into the memory that a compiling process has")
	}
}
