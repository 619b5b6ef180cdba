package meter_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"openskill/wasm/check"
	"openskill/wasm/meter"
)

func TestScratchBench(t *testing.T) {
	if os.Getenv("SCRATCH") == "" {
		t.Skip()
	}
	files, _ := filepath.Glob(os.Getenv("SCRATCH"))
	ctx := context.Background()
	for _, f := range files {
		b, _ := os.ReadFile(f)
		t0 := time.Now()
		res, err := check.Module(b, anything)
		if err != nil {
			t.Fatal(err)
		}
		t1 := time.Now()
		r, err := meter.Rewrite(res.Module, res.MaxStack, nil)
		if err != nil {
			t.Fatal(err)
		}
		t2 := time.Now()
		mb := r.Module.Encode()
		t3 := time.Now()
		fmt.Println(filepath.Base(f), len(b), len(mb), "check", t1.Sub(t0), "meter", t2.Sub(t1), "encode", t3.Sub(t2), fmt.Sprintf("%+v", r.Stats))
		if os.Getenv("NORUN") != "" {
			continue
		}
		var fuel uint64
		mk := func(b []byte, metered bool) func() (time.Duration, string) {
			rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
			wasi_snapshot_preview1.MustInstantiate(ctx, rt)
			tank := &meter.Tank{Budget: 1 << 60, Slice: 100000}
			if metered {
				provide(tank)(ctx, rt)
			}
			c, err := rt.CompileModule(ctx, b)
			if err != nil {
				t.Fatal(err)
			}
			return func() (time.Duration, string) {
				var out, eb bytes.Buffer
				args := []string{"x"}
				mc := wazero.NewModuleConfig().WithStdout(&out).WithStderr(&eb).WithName("").WithSysWalltime().WithSysNanotime()
				if strings.Contains(f, "python") {
					src, _ := os.ReadFile("/work/main/examples/bench/loop.py")
					args = []string{"python", "-c", string(src)}
				}
				tank.Granted = 0
				t0 := time.Now()
				m, err := rt.InstantiateModule(ctx, c, mc.WithArgs(args...))
				d := time.Since(t0)
				if err != nil && !strings.Contains(err.Error(), "exit_code(0)") {
					t.Fatal(err, eb.String())
				}
				if m != nil {
					if g := m.ExportedGlobal(meter.ExportCounter); g != nil {
						fuel = tank.Used(int64(g.(api.Global).Get()))
					}
					m.Close(ctx)
				}
				return d, out.String()
			}
		}
		a, bb := mk(b, false), mk(mb, true)
		var ra, rb []float64
		for i := 0; i < 9; i++ {
			d1, o1 := a()
			d2, o2 := bb()
			if o1 != o2 {
				t.Fatal("differ", o1, o2)
			}
			ra, rb = append(ra, d1.Seconds()), append(rb, d2.Seconds())
		}
		sort.Float64s(ra)
		sort.Float64s(rb)
		fmt.Printf("%-16s raw %.3fs ratio min %.3f med %.3f fuel %d granted\n", filepath.Base(f), ra[0], rb[0]/ra[0], rb[4]/ra[4], fuel)
	}
}
