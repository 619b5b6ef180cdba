package hostile_test

import (
	"errors"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// number reads a variable of the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// allocated is how many bytes this process has ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestMutations judges mutated modules: no crash, a verdict within 10 s and 512 MiB,
// and what is accepted compiles and runs to an end that the engine knows. CI takes
// 2,000 with a seed of the day's; OPENSKILL_MUTATIONS=100000 takes more, and
// OPENSKILL_SEED the seed that a failure printed.
func TestMutations(t *testing.T) {
	const slowest, most = 10 * time.Second, 512 << 20
	many := number(t, "OPENSKILL_MUTATIONS", 2000)
	if testing.Short() {
		many = min(many, 200)
	}
	seed := number(t, "OPENSKILL_SEED", uint64(time.Now().Unix()/86400))
	t.Logf("seed %d", seed)
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	m := hostile.NewMutator(seed)
	var accepted, ran int
	var longest time.Duration
	var greatest uint64
	verdicts := map[check.Code]int{}
	for i := range many {
		module := m.Next()
		began, before := time.Now(), allocated()
		report, err := wasm.Check(module, nil)
		took, took2 := time.Since(began), allocated()-before
		longest, greatest = max(longest, took), max(greatest, took2)
		fail := func(format string, args ...any) {
			t.Helper()
			if len(module) > 4096 {
				t.Errorf("OPENSKILL_SEED=%d, module %d of %d bytes:", seed, i, len(module))
			} else {
				t.Errorf("OPENSKILL_SEED=%d, module %d: %x", seed, i, module)
			}
			t.Fatalf(format, args...)
		}
		if took > slowest || took2 > most {
			fail("judged in %v with %d MiB", took, took2>>20)
		}
		if err != nil {
			var refused *check.Error
			if !errors.As(err, &refused) || !skill.Code(refused.Code).Known() || report.Accepted {
				fail("refused with %v", err)
			}
			if text := refused.Error(); len(text) > 512 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				fail("a message that cannot be shown: %q", text)
			}
			verdicts[refused.Code]++
			continue
		}
		accepted++
		module2, err := e.Compile(t.Context(), module, nil)
		if err != nil {
			fail("accepted, and does not compile: %v", err)
		}
		out, err := module2.Run(t.Context(), &wasm.Run{Limits: wasm.Limits{Fuel: 1_000_000, Timeout: time.Second, Memory: 16 << 20, Output: 1 << 16}})
		var none *wasm.NoEntryError
		switch {
		case errors.As(err, &none):
		case err != nil:
			fail("accepted, and the host failed: %v", err)
		case out.Total > slowest:
			fail("a run of %v, %v", out.Total, out.Ended)
		default:
			ran++
		}
		if i%500 == 0 {
			runtime.GC()
		}
	}
	if many >= 1000 && (accepted < int(many)/50 || ran < int(many)/100) {
		t.Errorf("only %d accepted and %d run: the mutations are too coarse to try anything", accepted, ran)
	}
	t.Logf("%d modules: %d accepted, %d run, refused %v; at most %v and %d MiB", many, accepted, ran, verdicts, longest, greatest>>20)
}
