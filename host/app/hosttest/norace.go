//go:build !race

package hosttest

// UnderRace says that this test program watches for races: it does not.
const UnderRace = false
