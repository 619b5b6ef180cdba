//go:build race

package hosttest

// UnderRace says that this test program watches for races, for which it takes many
// times the memory: the limits of a process that compiles are not made for it.
const UnderRace = true
