package wasm_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/wasmtest"
)

// shapesEnv makes TestShapes measure: "1" all families, or those whose names
// contain it. Files to be measured too are in shapesEnv + "_FILES".
const shapesEnv = "OPENSKILL_COMPILE_SHAPES"

// anyCost lifts the caps that stop a shape from growing.
var anyCost = &check.Options{
	AnyImport: true, Branches: 1 << 40, CompileFunction: 1 << 60, CompileModule: 1 << 60, CompileMemory: 1 << 60,
	Limits: &binary.Limits{BodySize: 8 << 20, Functions: 1_000_000, Globals: 100_000, LocalGroups: 10_000_000},
}

// TestShapes compares the estimate of package check with what compiling costs: each
// family of modules grows until it takes most of a second. It takes an hour on a busy
// machine, and its result stands in testdata/shapes.txt:
//
//	OPENSKILL_COMPILE_SHAPES=1 go test ./wasm -run TestShapes -v -timeout 2h
func TestShapes(t *testing.T) {
	filter := os.Getenv(shapesEnv)
	if filter == "" {
		t.Skip(shapesEnv + " is not set")
	}
	t.Logf("%-46s %8s %9s %10s %8s %6s %9s %6s", "shape", "n", "bytes", "est. ms", "CPU ms", "ratio", "est. MiB", "MiB")
	for _, path := range strings.Fields(os.Getenv(shapesEnv + "_FILES")) {
		measureShape(t, path, 0)
	}
	for _, s := range wasmtest.Shapes() {
		if filter != "1" && !strings.Contains(s.Name, filter) {
			continue
		}
		for n := 16; ; {
			took, ok := measureShape(t, s.Name, n)
			if !ok || took > 700*time.Millisecond {
				break
			}
			if took < 50*time.Millisecond {
				n *= 8
			} else {
				n *= 3
			}
		}
	}
}

// shape is what one compilation was estimated at and took.
type shape struct {
	Bytes, Millis, MiB, Peak int
	Refused                  string // why it could not grow so large
}

// measureShape compiles in another process, which is given a minute. What it takes
// before it compiles, a first process tells.
func measureShape(t *testing.T, name string, n int) (took time.Duration, ok bool) {
	t.Helper()
	var s shape
	for _, role := range []string{"shape", "compile"} {
		cmd := child(t, role, strconv.Itoa(n)+" "+name)
		timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		out, err := cmd.Output()
		timer.Stop()
		if err != nil || json.Unmarshal(out, &s) != nil {
			t.Logf("%-46s %8d stopped after a minute", name, n)
			return 0, false
		}
		if s.Refused != "" {
			return 0, false
		}
		took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() - took
	}
	ratio := float64(took.Milliseconds()) / float64(max(s.Millis, 1))
	mark := ""
	if ratio > 3 && took > 100*time.Millisecond {
		mark = " <"
	}
	t.Logf("%-46s %8d %9d %10d %8d %6.2f %9d %6d%s", name[max(0, len(name)-46):], n, s.Bytes, s.Millis, took.Milliseconds(), ratio, s.MiB, s.Peak, mark)
	return took, true
}

// compileShape prepares one shape, its number and name, or a file if that is 0, and
// compiles it.
func compileShape(which string, compile bool) error {
	number, name, _ := strings.Cut(which, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	var m []byte
	if n == 0 {
		if m, err = os.ReadFile(name); err != nil {
			return err
		}
	} else {
		shapes := wasmtest.Shapes()
		m = shapes[slices.IndexFunc(shapes, func(s wasmtest.Shape) bool { return s.Name == name })].Make(n)
	}
	s := shape{Bytes: len(m)}
	res, err := check.Module(m, anyCost)
	if err != nil {
		s.Refused = err.Error()
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	for _, c := range res.Report.Counts {
		switch c.Property {
		case "estimated milliseconds to compile":
			s.Millis = int(c.Value)
		case "estimated MiB to compile":
			s.MiB = int(c.Value)
		}
	}
	rw, err := meter.Rewrite(res.Module, res.MaxStack, nil)
	if err != nil {
		return err
	}
	metered := rw.Module.Encode()
	if !compile {
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	before := peakMemory()
	ctx := experimental.WithCompilationWorkers(context.Background(), 1)
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().
		WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesExtendedConst).WithDebugInfoEnabled(false))
	if _, err := r.CompileModule(ctx, metered); err != nil {
		return err
	}
	s.Peak = (peakMemory() - before) >> 10
	return json.NewEncoder(os.Stdout).Encode(s)
}
