// Package passtest is support for tests of what rewrites modules, and of what runs
// them: it makes valid modules of bytes, the same one of the same bytes, and records
// all that can be seen of a run, so that two forms of a module can be compared, or two
// ways to run it.
//
//	want := passtest.Run(t, compiler, module, nil)
//	got := passtest.Run(t, compiler, rewritten, nil)
//	passtest.Same(t, "rewritten", want, got)
//
// [Program] has control flow, calls and bulk operations, [Arithmetic] every
// instruction that computes, [Addresses] what package tune looks for, [Pressure] and
// [Calls] more values than there are registers.
package passtest

import (
	"hash/fnv"
	"math/rand/v2"
)

// chance makes decisions out of bytes, so that a fuzzer can steer them, and when they
// are used up, of what follows from them.
type chance struct {
	data []byte
	rnd  *rand.Rand
}

func newChance(data []byte) *chance {
	h := fnv.New64a()
	_, _ = h.Write(data)
	return &chance{data: data, rnd: rand.New(rand.NewPCG(h.Sum64(), 7))} //nolint:gosec // modules for tests
}

// n is a number below a bound of at most 256.
func (c *chance) n(below int) int {
	if len(c.data) > 0 {
		b := int(c.data[0])
		c.data = c.data[1:]
		return b % below
	}
	return c.rnd.IntN(below)
}

// one is true once in so many times.
func (c *chance) one(in int) bool { return c.n(in) == 0 }

// Bytes are decisions of a seed, for tests that try one seed after the other.
func Bytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // as above
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
