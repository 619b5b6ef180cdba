package meter_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"openskill/internal/musttest"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/passtest"
)

// command runs a WASI command, and gives what it printed and the value of a
// global when it ended.
func command(t *testing.T, wasm []byte, tank *meter.Tank, counter string, args ...string) (string, uint64) {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features))
	defer func() { _ = rt.Close(ctx) }()
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	if tank != nil {
		passtest.Provide(tank)(ctx, rt)
	}
	var out bytes.Buffer
	// The module must be alive to be asked, and proc_exit closes it.
	var at api.Module
	m, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStdout(&out).WithArgs(append([]string{"guest"}, args...)...).WithStartFunctions())
	musttest.Do(t, err)
	at = m
	g := at.ExportedGlobal(counter)
	_, err = m.ExportedFunction("_start").Call(ctx)
	var exit *sys.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 0) {
		t.Fatal(err)
	}
	v := g.Get()
	if tank != nil {
		v = tank.Used(int64(v))
	}
	return out.String(), v
}

// TestOverCount counts the instructions of real programs, and holds the fuel
// against it: never less, and not so much more that limits lose their meaning.
func TestOverCount(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	args := map[string]string{"nbody": "20000", "sieve": "200000", "recursion": "22"}
	const most = 3.0
	for name, b := range guests(t) {
		if args[name] == "" { // the Go program runs for seconds
			continue
		}
		res := musttest.Get(check.Module(b, anything))(t)
		rw := musttest.Get(meter.Rewrite(res.Module, res.MaxStack, nil))(t)
		want, exact := command(t, counting(res.Module), nil, exactName, args[name])
		got, fuel := command(t, rw.Module.Encode(), &meter.Tank{Budget: 1 << 50, Slice: 100_000}, meter.ExportFuel, args[name])
		if got != want {
			t.Errorf("%s: prints %q, counted it prints %q", name, got, want)
		}
		factor := float64(fuel) / float64(exact)
		t.Logf("%s: %d instructions, %d units: %.3f", name, exact, fuel, factor)
		if factor < 1 || factor > most {
			t.Errorf("%s: %.3f units an instruction", name, factor)
		}
	}
}
