package meter_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/passtest"
	"openskill/wasm/spectest"
)

// anything accepts what the scripts use.
var anything = &check.Options{
	AnyImport: true, TailCalls: true, TableMin: 1 << 40, BranchTargets: 30_000,
	Limits: &binary.Limits{Locals: 100_000, Tables: 1000, Exports: 10_000},
}

// alone rewrites a module that has no functions of others. Its compiled code may have the fuel in a register.
func alone(b []byte) ([]byte, error) {
	r, err := rewrite(b)
	if err != nil {
		return nil, err
	}
	return r.Encode(), nil
}

// linked rewrites a module whose functions call those of others. Since another global follows
// the fuel, no compiler takes it for fuel.
func linked(b []byte) ([]byte, error) {
	r, err := rewrite(b)
	if err != nil {
		return nil, err
	}
	r.Globals = append(r.Globals, r.Globals[len(r.Globals)-1])
	return r.Encode(), nil
}

func rewrite(b []byte) (*binary.Module, error) {
	res, err := check.Module(b, anything)
	if err != nil {
		return nil, err
	}
	r, err := meter.Rewrite(res.Module, res.MaxStack, &meter.Options{TableCap: 1 << 31})
	if err != nil {
		return nil, err
	}
	return r.Module, nil
}

// links reports whether modules of a script call functions of each other, or share tables.
func links(t *testing.T, sc *spectest.Script) bool {
	t.Helper()
	for i := range sc.Commands {
		if c := &sc.Commands[i]; c.Type == "module" {
			m, err := binary.Decode(sc.Module(t, c), anything.Limits)
			if err != nil {
				t.Fatalf("%s: %v", sc.Where(c), err)
			}
			for _, imp := range m.Imports {
				if imp.Kind == binary.ExternFunc || imp.Kind == binary.ExternTable || imp.Kind == binary.ExternGlobal && imp.Global.Type.IsRef() {
					return true
				}
			}
		}
	}
	return false
}

const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// TestSpecScripts plays every script of the specification twice, side by side,
// as it is and metered, on each engine: every result, every trap
// and every expected value must agree. Slices are small, so that the slow path
// is taken often.
func TestSpecScripts(t *testing.T) {
	for _, engine := range passtest.Engines(features) {
		for _, suite := range []spectest.Suite{spectest.V1, spectest.V2, spectest.ExtendedConst, spectest.TailCall} {
			t.Run(engine.Name+"/"+string(suite), func(t *testing.T) {
				t.Parallel()
				modules, commands := 0, 0
				for _, sc := range spectest.Load(t, suite) {
					m, c := sideBySide(t, engine, sc, suite == spectest.V1)
					modules += m
					commands += c
				}
				if modules == 0 {
					t.Error("no script was played")
				}
				t.Logf("%d modules and %d commands agree, metered against plain", modules, commands)
			})
		}
	}
}

// legacy scripts of 1.0 expect segments that do not fit to write nothing; 2.0
// changed that, so there plain wazero is the measure.
func sideBySide(t *testing.T, engine passtest.Engine, sc *spectest.Script, legacy bool) (modules, commands int) {
	t.Helper()
	tank := &meter.Tank{Budget: 1 << 60, Slice: 1000}
	ctx := engine.Context(t)
	plain := spectest.NewStage(ctx, t, engine.Config, nil, "", nil)
	defer plain.Close()
	how := alone
	if links(t, sc) {
		how = linked
	}
	metered := spectest.NewStage(ctx, t, engine.Config, how, meter.ExportStart, passtest.Provide(tank))
	defer metered.Close()
	for i := range sc.Commands {
		c := &sc.Commands[i]
		a, ran := plain.Play(t, sc, i)
		b, ran2 := metered.Play(t, sc, i)
		if !ran && !ran2 {
			continue
		}
		commands++
		if c.Type == "module" {
			modules++
		}
		if !agree(c, a.Err, b.Err) {
			t.Errorf("%s: plain: %v; metered: %v", sc.Where(c), a.Err, b.Err)
			continue
		}
		for j := range a.Results {
			if c.Type != "assert_return" && a.Results[j] != b.Results[j] {
				t.Errorf("%s: plain gives %v, metered %v", sc.Where(c), a.Results, b.Results)
			}
		}
		if c.Type == "assert_return" && b.Err == nil && !c.Matches(t, b.Results) && !(legacy && slices.Equal(a.Results, b.Results)) {
			t.Errorf("%s: metered gives %v, expected %v (plain gives %v)", sc.Where(c), b.Results, c.Expected, a.Results)
		}
	}
	return modules, commands
}

// agree compares how two runs ended.
func agree(c *spectest.Command, plain, metered error) bool {
	if errors.Is(metered, meter.ErrTable) && len(c.Expected) == 1 && c.Expected[0].Value == "4294967295" {
		return true // by design: growth beyond the host's cap ends the run, where the specification answers -1
	}
	return (plain == nil) == (metered == nil) && (plain == nil || trap(plain) == trap(metered))
}

// trap is the first line of a trap, which names its kind.
func trap(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	if i := strings.Index(s, "wasm error:"); i >= 0 {
		return s[i:]
	}
	if strings.Contains(s, "compile:") || strings.Contains(s, "transform:") {
		return "refused: " + s
	}
	return "not instantiated" // messages name indices, which metering moves
}
