package meter_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
	"openskill/wasm/spectest"
)

// traced checks and meters a module, and keeps the proof.
func traced(tb testing.TB, b []byte, opts *check.Options) (*check.Result, *meter.Rewritten) {
	tb.Helper()
	res, err := check.Module(b, opts)
	if err != nil {
		tb.Fatalf("check: %v", err)
	}
	rw, err := meter.Rewrite(res.Module, res.MaxStack, &meter.Options{Trace: true})
	if err != nil {
		tb.Fatalf("rewrite: %v", err)
	}
	return res, rw
}

// TestVerifySpecModules proves the metering of every module of the
// specification's scripts.
func TestVerifySpecModules(t *testing.T) {
	for _, suite := range []spectest.Suite{spectest.V1, spectest.V2, spectest.ExtendedConst, spectest.TailCall} {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := 0
			for _, sc := range spectest.Load(t, suite) {
				for i := range sc.Commands {
					c := &sc.Commands[i]
					if !strings.HasSuffix(c.Filename, ".wasm") || c.Type == "assert_invalid" || c.Type == "assert_malformed" {
						continue
					}
					res, rw := traced(t, sc.Module(t, c), anything)
					if err := metertest.Verify(res.Module, rw); err != nil {
						t.Errorf("%s: %v", sc.Where(c), err)
					}
					n++
				}
			}
			if n == 0 {
				t.Error("no module was read")
			}
			t.Logf("%d modules proved", n)
		})
	}
}

// repository is the root of this project.
func repository(tb testing.TB) string {
	tb.Helper()
	out := musttest.Get(exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output())(tb)
	return strings.TrimSpace(string(out))
}

// guests builds the programs that benchmarks use, as far as the tools are here.
func guests(tb testing.TB) map[string][]byte {
	tb.Helper()
	src, dir := filepath.Join(repository(tb), "examples", "bench"), tb.TempDir()
	m := map[string][]byte{}
	build := func(name string, cmd *exec.Cmd) {
		out := filepath.Join(dir, name+".wasm")
		if msg, err := cmd.CombinedOutput(); err != nil {
			tb.Logf("%s is left out: it cannot be built here: %v: %.300s", name, err, msg)
			return
		}
		b := musttest.Get(os.ReadFile(out))(tb)
		m[name] = b
	}
	for _, n := range []string{"nbody", "sieve", "recursion"} {
		build(n, exec.Command("rustc", "--target", "wasm32-wasip1", "-Copt-level=3", "-Cpanic=abort", "-Cstrip=symbols",
			"-o", filepath.Join(dir, n+".wasm"), filepath.Join(src, n+".rs")))
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "gojson.wasm"), ".")
	cmd.Dir = filepath.Join(src, "gojson")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	build("gojson", cmd)
	if m["gojson"] == nil {
		tb.Error("the Go program could not be built, and Go is here")
	}
	return m
}

// TestVerifyPrograms proves the metering of programs that compilers made.
func TestVerifyPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	t.Parallel()
	for name, b := range guests(t) {
		res, rw := traced(t, b, anything)
		if err := metertest.Verify(res.Module, rw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %+v", name, rw.Stats)
	}
}

// TestVerifyCPython proves the metering of the largest module that is at hand.
func TestVerifyCPython(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(repository(t), ".openskill", "runtimes", "python-3.12", "python.wasm"))
	if err != nil {
		t.Skipf("the Python runtime is not installed here: %v", err)
	}
	res, rw := traced(t, b, anything)
	if err := metertest.Verify(res.Module, rw); err != nil {
		t.Error(err)
	}
	t.Logf("%+v", rw.Stats)
}
