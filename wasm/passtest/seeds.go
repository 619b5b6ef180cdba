package passtest

import (
	"os"
	"strconv"
	"testing"
)

// SeedsEnv is how many seeds a test tries that otherwise tries few, and FirstEnv the
// first of them, 0 without it: a fuzzer that looks for new paths through the compiler
// tries two programs a second, and this a hundred.
const (
	SeedsEnv = "OPENSKILL_PASS_SEEDS"
	FirstEnv = "OPENSKILL_PASS_FIRST"
)

// Seeds gives the seeds from first on and before end that a test tries; few without
// [SeedsEnv].
func Seeds(tb testing.TB, few uint64) (first, end uint64) {
	tb.Helper()
	number := func(env string, otherwise uint64) uint64 {
		s := os.Getenv(env)
		if s == "" {
			return otherwise
		}
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			tb.Fatalf("%s is not a number: %v", env, err)
		}
		return n
	}
	first = number(FirstEnv, 0)
	return first, first + number(SeedsEnv, few)
}
