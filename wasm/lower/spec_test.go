package lower_test

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/lower"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
	"openskill/wasm/passtest"
	"openskill/wasm/spectest"
)

// anything accepts what scripts and generated modules use.
var anything = &check.Options{
	AnyImport: true, TailCalls: true, Exceptions: true, TableMin: 1 << 40, BranchTargets: 30_000,
	Limits: &binary.Limits{Locals: 100_000, Tables: 1000, Exports: 10_000},
}

// plain is what lowered modules may use: all but exceptions.
var plain = &check.Options{
	AnyImport: true, TailCalls: true, TableMin: 1 << 40, BranchTargets: 30_000, Depth: 10_000,
	Limits: &binary.Limits{Locals: 200_000, Tables: 1000, Exports: 10_001, Globals: 40_000, Types: 30_000, BodySize: 64 << 20},
}

const (
	base       = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst
	exceptions = base | experimental.CoreFeaturesExceptionHandling
)

// lowered lowers a module, and checks all that can be checked of any result: it
// is valid without exceptions, the bounds of the stack hold, the meter's verifier
// accepts it, and lowering again changes nothing.
func lowered(tb testing.TB, wasm []byte) (plainModule, metered []byte, st lower.Stats, err error) {
	tb.Helper()
	in, err := check.Module(wasm, anything)
	if err != nil {
		return nil, nil, st, err
	}
	low, err := lower.Exceptions(in.Module, in.MaxStack, nil)
	if err != nil {
		var verdict *check.Error
		if !errors.As(err, &verdict) || verdict.Code != check.FeatureDisabled && verdict.Code != check.ModuleTooComplex {
			tb.Fatalf("refused with another error: %v", err)
		}
		return nil, nil, st, err
	}
	plainModule = low.Module.Encode()
	out, err := check.Module(plainModule, plain)
	if err != nil {
		tb.Fatalf("the lowered module is not valid: %v", err)
	}
	for i, got := range out.MaxStack {
		if got > low.MaxStack[i] {
			tb.Fatalf("function %d holds %d operands, and %d were announced (%d before)", i, got, low.MaxStack[i], in.MaxStack[i])
		}
	}
	rw, err := meter.Rewrite(low.Module, low.MaxStack, &meter.Options{Trace: true, TableCap: 1 << 30})
	musttest.Do(tb, err)
	musttest.Do(tb, metertest.Verify(low.Module, rw))
	return plainModule, rw.Module.Encode(), low.Stats, nil
}

// deviations reads the reviewed list of commands whose outcome differs, by the
// place and with the reason.
func deviations(t *testing.T) map[string]string {
	t.Helper()
	f := musttest.Get(os.Open("testdata/deviations.txt"))(t)
	defer f.Close()
	list := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "#") {
			where, why, ok := strings.Cut(line, ": ")
			if !ok || why == "" {
				t.Fatalf("a deviation without a reason: %s", line)
			}
			list[where] = why
		}
	}
	return list
}

// TestSpecScripts plays the specification's scripts for exceptions, lowered and
// metered, against what they expect, on compiler and interpreter. What wazero's
// own interpreter gives for the same modules is held beside it.
func TestSpecScripts(t *testing.T) {
	for engine, config := range map[string]func() wazero.RuntimeConfig{
		"compiler": wazero.NewRuntimeConfigCompiler, "interpreter": wazero.NewRuntimeConfigInterpreter,
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			expected, seen := deviations(t), map[string]bool{}
			commands, asserted, agreed, refused := 0, 0, 0, 0
			for _, sc := range spectest.Load(t, spectest.Exceptions) {
				tank := &meter.Tank{Budget: 1 << 60, Slice: 100}
				var last *binary.Module
				registered := map[string]*binary.Module{}
				ours := spectest.NewStage(t.Context(), t, config().WithCoreFeatures(base), func(b []byte) ([]byte, error) {
					m, err := binary.Decode(b, nil)
					if err != nil {
						return nil, err
					}
					last = m
					if m.Imported(binary.ExternTag)+m.Imported(binary.ExternFunc) > 0 {
						b = link(m, registered).Encode()
					}
					_, metered, _, err := lowered(t, b)
					return metered, err
				}, meter.ExportStart, passtest.Provide(tank))
				ours.Exception = lower.Export
				theirs := spectest.NewStage(t.Context(), t, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(exceptions|experimental.CoreFeaturesTypedFunctionReferences), nil, "", nil)
				for i := range sc.Commands {
					c := &sc.Commands[i]
					if c.Type == "register" {
						registered[c.As] = last
					}
					a, ran := ours.Play(t, sc, i)
					b, ran2 := theirs.Play(t, sc, i)
					if !ran && !ran2 {
						continue
					}
					commands++
					bad := ""
					switch {
					case !ran:
						bad = "its module was refused"
						refused++
					case c.Type == "module" && a.Err != nil:
						bad = a.Err.Error()
						refused++
					case c.Type == "assert_return" && a.Err != nil:
						bad = "ended with " + a.Err.Error()
					case c.Type == "assert_return" && !c.Matches(t, a.Results):
						bad = "wrong results"
					case c.Type == "assert_exception" && !errors.Is(a.Err, spectest.ErrException):
						bad = "no exception"
					case c.Type == "assert_trap" && (a.Err == nil || !strings.Contains(a.Err.Error(), "wasm error")):
						bad = "no trap"
					}
					if c.Type == "assert_unlinkable" {
						continue // link takes the place of wazero's linking
					}
					if strings.HasPrefix(c.Type, "assert_") && bad == "" {
						asserted++
						if (a.Err == nil) == (b.Err == nil) {
							agreed++
						} else {
							t.Logf("%s: as expected here; wazero's interpreter ends with: %v", sc.Where(c), b.Err)
						}
					}
					where := strings.TrimSpace(sc.Where(c))
					if _, listed := expected[where]; listed != (bad != "") {
						t.Errorf("%s: %s (listed as a deviation: %t)", where, bad, listed)
					}
					seen[where] = true
				}
				ours.Close()
				theirs.Close()
			}
			for where := range expected {
				if !seen[where] {
					t.Errorf("the list names %s, which was not played", where)
				}
			}
			if asserted == 0 {
				t.Error("nothing was asserted")
			}
			t.Logf("%d commands played: %d assertions as expected (%d of them also by wazero's interpreter), %d modules or calls of refused ones",
				commands, asserted, agreed, refused)
		})
	}
}
