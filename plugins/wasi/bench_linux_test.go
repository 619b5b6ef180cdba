package wasi

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
	"golang.org/x/sys/unix"

	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// rust compiles testdata/hello.rs, as an author of a skill would.
func rust(t testing.TB, dir string) string {
	t.Helper()
	out := filepath.Join(dir, "hello.wasm")
	cmd := exec.Command("rustc", "--target", "wasm32-wasip1", "-C", "opt-level=s", "-C", "panic=abort", "-C", "lto",
		"-C", "codegen-units=1", "-C", "strip=symbols", "-o", out, filepath.Join("testdata", "hello.rs"))
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("rustc for wasm32-wasip1 is needed: %v\n%s", err, b)
	}
	return "hello.wasm"
}

// BenchmarkCall compares one call of a small skill, with fuel, deadline and limits,
// with wazero alone on the same module without any of them: as its documentation
// says (us/wazero), and with memory that is mapped like ours and not cleared by Go
// (us/mapped), which is the harder one to meet. All take turns, so that a noisy
// machine is noisy for all; the numbers are medians.
func BenchmarkCall(b *testing.B) {
	b.Run("Rust", func(b *testing.B) { benchmarkCall(b, func(dir string) string { return rust(b, dir) }, nil) })
	echo := runnertest.Program{Do: runnertest.Echo}
	b.Run("Go", func(b *testing.B) {
		benchmarkCall(b, func(dir string) string { return runnertest.GoWASI(b, dir, echo) }, echo.Arguments())
	})
}

func benchmarkCall(b *testing.B, write func(dir string) string, args []string) {
	b.Helper()
	dir := b.TempDir()
	entry := write(dir)
	path := filepath.Join(dir, entry)
	aged(b, path)
	r := New(engine(b), nil)
	defer r.Close()
	call := &skill.Call{
		SkillID: "hello", Folder: dir, Entry: entry, Digest: "sha256:hello", Args: args, Stdin: []byte("world"),
		Limits: runnertest.DefaultLimits(), Grants: skill.Grants{Data: b.TempDir()},
	}
	ours := func() []byte {
		reply, err := runnertest.Do(b.Context(), r, call)
		if err != nil || reply.Code != "" || reply.ExitCode != 0 {
			b.Fatal(reply, err)
		}
		return reply.Stdout
	}
	ctx := context.Background()
	args = append([]string{entry}, args...)
	variants := []func() []byte{
		ours, bareWazero(b, ctx, path, args),
		bareWazero(b, experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(newMapped)), path, args),
	}
	want := ours()
	times := make([][]time.Duration, len(variants))
	b.ReportAllocs()
	for b.Loop() {
		for i, run := range variants {
			began := time.Now()
			got := run()
			times[i] = append(times[i], time.Since(began))
			if !bytes.Equal(got, want) || len(got) == 0 {
				b.Fatalf("variant %d prints %q, not %q", i, got, want)
			}
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return float64(times[i][len(times[i])/2].Nanoseconds()) / 1e3
	}
	b.ReportMetric(0, "ns/op") // of all three together, which says nothing
	b.ReportMetric(median(0), "us/call")
	b.ReportMetric(median(1), "us/wazero")
	b.ReportMetric(median(2), "us/mapped")
	b.ReportMetric(median(0)/median(1), "x/wazero")
	b.ReportMetric(median(0)/median(2), "x/mapped")
}

// mapped is linear memory in address space that is reserved at once.
type mapped struct{ space []byte }

func newMapped(_, _ uint64) experimental.LinearMemory { return &mapped{} }

func (m *mapped) Reallocate(size uint64) []byte {
	if m.space == nil {
		m.space, _ = unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	}
	if size > uint64(len(m.space)) {
		return nil
	}
	return m.space[:size:size]
}

func (m *mapped) Free() {
	if m.space != nil {
		_ = unix.Munmap(m.space)
		m.space = nil
	}
}

// bareWazero runs a module as wazero's own documentation says.
func bareWazero(b *testing.B, ctx context.Context, path string, args []string) func() []byte { //nolint:revive // b is what tests put first
	b.Helper()
	r := wazero.NewRuntime(ctx)
	b.Cleanup(func() { _ = r.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	module, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		b.Fatal(err)
	}
	return func() []byte {
		var out bytes.Buffer
		m, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithArgs(args...).
			WithStdin(bytes.NewReader([]byte("world"))).WithStdout(&out))
		var exit *sys.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 0) {
			b.Fatal(err)
		}
		if m != nil {
			_ = m.Close(ctx)
		}
		return out.Bytes()
	}
}
