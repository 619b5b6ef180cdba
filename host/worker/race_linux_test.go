//go:build race && linux

package worker_test

// underRace says that this program was built with the race detector, which needs more
// memory than compilers are given in these tests.
const underRace = true
