package python

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// scientific is [runners] for the scientific runtime. Compiling it takes minutes and
// 2.5 GB the first time on a machine, so it needs OPENSKILL_TEST_SCIENTIFIC.
func scientific(t *testing.T, test func(t *testing.T, r *Runner)) {
	t.Helper()
	if os.Getenv("OPENSKILL_TEST_SCIENTIFIC") == "" {
		t.Skip("OPENSKILL_TEST_SCIENTIFIC is not set")
	}
	runners(t, []string{"scientific"}, test)
}

// TestChanceOfNumpy is TestChanceOfImages and TestSeedsAreKept for the generators of
// numpy.
func TestChanceOfNumpy(t *testing.T) {
	const numpy = "import numpy as np\nfrom numpy.random import *\n"
	scientific(t, func(t *testing.T, r *Runner) {
		draws(t, r, []chanceCase{
			{"the common one", numpy + "np.random.rand()", "sys.stdin.read()", "np.random.rand()"},
			{"half of a pair", numpy + "np.random.standard_normal()", "os.read(0, 9)", "np.random.standard_normal()"},
			{"seeded by nothing", numpy + "np.random.seed(7); np.random.seed()", "open(0).read()", "np.random.rand()"},
			{"put back", numpy + "state = np.random.get_state(); np.random.seed(0); np.random.set_state(state)", "sys.stdin.read()", "np.random.rand()"},
			{"put back twice", numpy + "np.random.seed(); s = np.random.get_state(False); np.random.seed(0); np.random.set_state(s); s = np.random.get_state(); np.random.seed(0); np.random.set_state(s)", "sys.stdin.read()", "np.random.rand()"},
			{"beside a proxy of what is gone", numpy + "import weakref\nclass C: pass\nproxy = weakref.proxy(C())", "sys.stdin.read()", "np.random.rand()"},
			{"a generator", numpy + "own = default_rng(); own.random()", "sys.stdin.read()", "own.random()"},
			{"of another kind", numpy + "own = Generator(Philox()); own.random()", "sys.stdin.read()", "own.random()"},
			{"an old one", numpy + "own = RandomState(); own.normal()", "sys.stdin.read()", "own.normal()"},
			{"spawned", numpy + "own = default_rng().spawn(2)", "sys.stdin.read()", "[o.random() for o in own]"},
			{"spawns", numpy + "own = default_rng()", "sys.stdin.read()", "own.spawn(1)[0].random()"},
			{"one that is two", numpy + "own = RandomState(); other = Generator(own._bit_generator)", "sys.stdin.read()", "other.random(), own.normal()"},
			{"an old one of another kind", numpy + "own = RandomState(Philox()); own.normal()", "sys.stdin.read()", "own.normal()"},
			{"a tree of seeds", numpy + "own = [Generator(PCG64(s)) for s in SeedSequence().spawn(2)]", "sys.stdin.read()", "[o.random() for o in own]"},
			{"imported after", "", "sys.stdin.read()\n" + numpy, "np.random.rand(), default_rng().random()"},
			{"a sample of pandas", "import pandas as pd\nd = pd.DataFrame({'a': range(10000)})", "sys.stdin.read()", "list(d.sample(5).a)"},
		}, func(t *testing.T, different int, seen map[string]bool) {
			if different != 3 {
				t.Errorf("of three calls %d drew different numbers: %.300v", different, seen)
			}
		})
		draws(t, r, []chanceCase{
			{"a seed", numpy + "np.random.seed(42)", "sys.stdin.read()", "np.random.rand()"},
			{"a seed, and some drawn", numpy + "np.random.seed(42); np.random.normal()", "sys.stdin.read()", "np.random.normal()"},
			{"a generator with a seed", numpy + "own = default_rng(42); own.random()", "sys.stdin.read()", "own.random()"},
			{"a generator with many seeds", numpy + "own = default_rng([1, 2, 3]); own.random()", "sys.stdin.read()", "own.random()"},
			{"a state put back", numpy + "np.random.seed(42); state = np.random.get_state(); np.random.seed(); np.random.set_state(state)", "sys.stdin.read()", "np.random.rand()"},
			{"an old one with a seed", numpy + "own = RandomState(42)", "sys.stdin.read()", "own.normal()"},
			{"seeded again", numpy + "own = RandomState(); own.seed(42)", "sys.stdin.read()", "own.normal()"},
			{"a tree of seeds", numpy + "own = [Generator(PCG64(s)) for s in SeedSequence(5).spawn(2)]", "sys.stdin.read()", "[o.random() for o in own]"},
		}, func(t *testing.T, different int, seen map[string]bool) {
			if different != 1 {
				t.Errorf("three calls with a seed drew %d different numbers: %.300v", different, seen)
			}
		})
	})
}

// arrays leaves marks in all that numpy keeps, and looks for those of others: in its
// state, in arrays of its own, and in memory that it is given without being cleared.
const arrays = `
import gc, sys, numpy as np
kept = np.zeros(1000, dtype="S16")
table = np.arange(10.0)
class Sub(np.ndarray): pass
def state():
    return [kept.tobytes().strip(b"\0").decode(), table.tolist(), getattr(np, "marked", None), getattr(np.linalg, "marked", None),
        np.get_printoptions()["precision"], np.geterr()["divide"], str(np.geterrcall()), np.getbufsize(), np.float64(1) / 3,
        getattr(Sub, "marked", None), table.flags.writeable, "np.fft" in sys.modules, np.random.get_state()[2:4]]
first = None
mark = sys.stdin.readline().strip()
seen = str(state())
found = set()
def look(buffer):
    at = buffer.find(b"MARK")
    while at >= 0:
        found.add(buffer[at:at + len(mark)].decode("latin-1"))
        at = buffer.find(b"MARK", at + len(mark))
left = [np.empty(n, dtype=np.uint8) for n in (10, 100, 1000, 8192, 100_000, 1_000_000, 4_000_000) for _ in range(8)]
for a in left: look(a.tobytes())
found.discard(mark)
print([seen, sorted(found)], flush=True)
kept[:] = mark
table += 7
table.flags.writeable = False
np.marked = np.linalg.marked = Sub.marked = mark
np.set_printoptions(precision=3)
np.seterr(divide="raise")
np.seterrcall(lambda *_: mark)
np.setbufsize(64)
np.random.seed(len(mark))
big = [np.full(n, mark, dtype="S16") for n in (1, 10, 100, 1000, 10_000, 60_000, 250_000) for _ in range(4)]
for a in left: a[:len(mark)] = np.frombuffer(mark.encode(), dtype=np.uint8)[:len(a)]
`

// TestTenantsOfNumpy has callers of two skills with the same text interleave: nobody
// finds a mark of anybody else, in uncleared memory neither.
func TestTenantsOfNumpy(t *testing.T) {
	scientific(t, func(t *testing.T, r *Runner) {
		skills := []*skill.Call{script(t, arrays), script(t, arrays)}
		var mu sync.Mutex
		first := ""
		var wg sync.WaitGroup
		for tenant := range 4 {
			wg.Go(func() {
				c := *skills[tenant%2]
				c.Limits.Fuel, c.Limits.Memory, c.Limits.Timeout = 1e11, 512<<20, 2*time.Minute
				for i := range 50 {
					mark := fmt.Sprintf("MARK%d-%04d", tenant, i)
					c.Stdin = []byte(mark + "\n" + strings.Repeat("unread "+mark, 1000))
					reply, err := runnertest.Do(t.Context(), r, &c)
					if err != nil {
						t.Error(err)
						return
					}
					got := string(reply.Stdout)
					mu.Lock()
					if first == "" {
						first = got
					}
					mu.Unlock()
					if reply.Code != "" || reply.ExitCode != 0 || got != first || strings.Contains(got, "MARK") {
						t.Errorf("tenant %d, call %d sees %.1000s\nand the first saw %.1000s\n%s %.2000s", tenant, i, got, first, reply.Code, reply.Stderr)
						return
					}
				}
			})
		}
		wg.Wait()
		t.Log(first)
	})
}
