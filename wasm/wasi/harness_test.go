package wasi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"go.uber.org/goleak"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// section is one section of a module.
func section(id byte, body []byte) []byte {
	return append(append([]byte{id}, leb(uint64(len(body)))...), body...)
}

func leb(n uint64) (out []byte) { return binary.AppendUvarint(nil, n) }

func vec(items ...[]byte) []byte {
	return append(leb(uint64(len(items))), bytes.Join(items, nil)...)
}

func name(s string) []byte { return append(leb(uint64(len(s))), s...) }

// exported is the name of the forwarder's function for f: two modules have one of a name.
func exported(f wasi.Function) string {
	if f.Module == wasi.PluginModule {
		return "extism." + f.Name
	}
	return f.Name
}

// forwarder is a module with a function for each call of preview1 that hands its
// arguments on to the host. Pages is the size of its memory; -1: it has none.
func forwarder(functions []wasi.Function, pages int) []byte {
	var types, imports, funcs, exports, codes [][]byte
	for i, f := range functions {
		types = append(types, bytes.Join([][]byte{{0x60}, name(string(f.Params)), name(string(f.Results))}, nil))
		imports = append(imports, bytes.Join([][]byte{name(f.Module), name(f.Name), {0}, leb(uint64(i))}, nil))
		funcs = append(funcs, leb(uint64(i)))
		exports = append(exports, bytes.Join([][]byte{name(exported(f)), {0}, leb(uint64(len(functions) + i))}, nil))
		code := []byte{0}
		for p := range f.Params {
			code = append(append(code, 0x20), leb(uint64(p))...)
		}
		code = append(append(append(code, 0x10), leb(uint64(i))...), 0x0b)
		codes = append(codes, append(leb(uint64(len(code))), code...))
	}
	module := append([]byte("\x00asm\x01\x00\x00\x00"), section(1, vec(types...))...)
	module = append(module, section(2, vec(imports...))...)
	module = append(module, section(3, vec(funcs...))...)
	if pages >= 0 {
		module = append(module, section(5, vec(append([]byte{0}, leb(uint64(pages))...)))...)
		exports = append(exports, append(name("memory"), 2, 0))
	}
	module = append(module, section(7, vec(exports...))...)
	return append(module, section(10, vec(codes...))...)
}

// newRuntime is a runtime with the host module.
func newRuntime(tb testing.TB) wazero.Runtime {
	tb.Helper()
	return newRuntimeConfig(context.Background(), tb, wazero.NewRuntimeConfigInterpreter())
}

func newRuntimeConfig(ctx context.Context, tb testing.TB, cfg wazero.RuntimeConfig) wazero.Runtime {
	tb.Helper()
	r := wazero.NewRuntimeWithConfig(ctx, cfg)
	tb.Cleanup(func() { r.Close(ctx) })
	musttest.Get(wasi.Instantiate(ctx, r))(tb)
	return r
}

// guest calls preview1 as a module would.
type guest struct {
	t   testing.TB
	ctx context.Context
	mod api.Module
	mem api.Memory
	w   *wasi.World
}

const memoryPages = 4

func newGuest(tb testing.TB, cfg wasi.Config) *guest {
	tb.Helper()
	return newGuestContext(context.Background(), tb, cfg, memoryPages)
}

func newGuestContext(ctx context.Context, tb testing.TB, cfg wasi.Config, pages int) *guest {
	tb.Helper()
	r := newRuntimeConfig(context.WithoutCancel(ctx), tb, wazero.NewRuntimeConfigInterpreter())
	return newGuestRuntime(ctx, tb, r, cfg, pages)
}

func newGuestRuntime(ctx context.Context, tb testing.TB, r wazero.Runtime, cfg wasi.Config, pages int) *guest {
	tb.Helper()
	w := wasi.NewWorld(cfg)
	tb.Cleanup(func() { w.Close() })
	mod := musttest.Get(r.Instantiate(context.WithoutCancel(ctx), forwarder(wasi.Functions(), pages)))(tb)
	g := &guest{t: tb, ctx: wasi.WithWorld(ctx, w), mod: mod, w: w}
	if pages >= 0 {
		g.mem = mod.Memory()
	}
	return g
}

// try calls a function; the error is what ended the run.
func (g *guest) try(function string, args ...uint64) (guestfs.Errno, error) {
	g.t.Helper()
	f := g.mod.ExportedFunction(function)
	if f == nil {
		g.t.Fatalf("no function %s", function)
	}
	results, err := f.Call(g.ctx, args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return guestfs.Errno(results[0]), nil
}

// call calls a function that returns.
func (g *guest) call(function string, args ...uint64) guestfs.Errno {
	g.t.Helper()
	errno, err := g.try(function, args...)
	if err != nil {
		g.t.Fatalf("%s%v: %v", function, args, err)
	}
	return errno
}

// want calls a function and checks its errno.
func (g *guest) want(errno guestfs.Errno, function string, args ...uint64) {
	g.t.Helper()
	if got := g.call(function, args...); got != errno {
		g.t.Fatalf("%s%v = %v, want %v", function, args, got, errno)
	}
}

// wantStop calls a function that must end the run.
func (g *guest) wantStop(reason wasi.Reason, function string, args ...uint64) *wasi.Stop {
	g.t.Helper()
	errno, err := g.try(function, args...)
	var stop *wasi.Stop
	if !errors.As(err, &stop) {
		g.t.Fatalf("%s%v = %v, %v; want a stop", function, args, errno, err)
	}
	if recorded := g.w.Stopped(); recorded == nil || *recorded != *stop || stop.Reason != reason {
		g.t.Fatalf("%s%v: stop %v, recorded %v, want %v", function, args, stop, recorded, reason)
	}
	return stop
}

// Places in the guest's memory that the tests use.
const (
	atPath   = 0x100
	atPath2  = 0x2000
	atIovs   = 0x4000
	atResult = 0x8000
	atData   = 0x10000
	memEnd   = memoryPages << 16
)

// put writes a string and returns its pointer and length as arguments.
func (g *guest) put(at uint32, s string) (ptr, n uint64) {
	g.t.Helper()
	if !g.mem.WriteString(at, s) {
		g.t.Fatal("no room")
	}
	return uint64(at), uint64(len(s))
}

// iovs writes vectors of pointer and length and returns the arguments.
func (g *guest) iovs(pairs ...uint32) (ptr, n uint64) {
	for i, v := range pairs {
		g.mem.WriteUint32Le(atIovs+uint32(i)*4, v)
	}
	return atIovs, uint64(len(pairs) / 2)
}

func (g *guest) u32(at uint32) uint32 { v, _ := g.mem.ReadUint32Le(at); return v }
func (g *guest) u64(at uint32) uint64 { v, _ := g.mem.ReadUint64Le(at); return v }

func (g *guest) text(at, n uint32) string {
	b, ok := g.mem.Read(at, n)
	if !ok {
		g.t.Fatal("outside of memory")
	}
	return string(b)
}

const (
	rightRead  = 1 << 1
	rightWrite = 1 << 6

	oCreate, oDirectory, oExcl, oTrunc = 1, 2, 4, 8
)

// open opens a path below the preopen.
func (g *guest) open(path string, oflags, rights, fdflags uint64) (fd uint64, errno guestfs.Errno) {
	g.t.Helper()
	ptr, n := g.put(atPath, path)
	errno = g.call("path_open", 3, 1, ptr, n, oflags, rights, 0, fdflags, atResult)
	return uint64(g.u32(atResult)), errno
}

func (g *guest) mustOpen(path string, oflags, rights uint64) uint64 {
	g.t.Helper()
	fd, errno := g.open(path, oflags, rights, 0)
	if errno != 0 {
		g.t.Fatalf("open %s: %v", path, errno)
	}
	return fd
}

// write writes a string to a descriptor.
func (g *guest) write(fd uint64, s string) guestfs.Errno {
	g.t.Helper()
	g.put(atData, s)
	ptr, n := g.iovs(atData, uint32(len(s)))
	return g.call("fd_write", fd, ptr, n, atResult)
}

// read reads up to n bytes of a descriptor.
func (g *guest) read(fd uint64, n uint32) string {
	g.t.Helper()
	ptr, count := g.iovs(atData, n)
	g.want(0, "fd_read", fd, ptr, count, atResult)
	return g.text(atData, g.u32(atResult))
}

// dataFolder is a host folder with some files, seen as /data.
func dataFolder(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range map[string]string{"a.txt": "alpha", "sub/b.txt": "beta", "sub/deep/c.txt": "gamma"} {
		path := filepath.Join(dir, name)
		musttest.Do(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		musttest.Do(tb, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

func openDir(tb testing.TB, path string) *guestfs.Dir {
	tb.Helper()
	dir := musttest.Get(guestfs.OpenDir(path))(tb)
	tb.Cleanup(func() { dir.Close() })
	return dir
}

// worldRoot is the usual tree: /data from the host, /work in memory.
func worldRoot(tb testing.TB, data string) (*guestfs.Tree, *guestfs.Memory) {
	tb.Helper()
	work := guestfs.NewMemory(guestfs.Limits{})
	tree, err := guestfs.NewTree(
		guestfs.Mount{Path: "/data", FS: openDir(tb, data)},
		guestfs.Mount{Path: "/work", FS: work})
	musttest.Do(tb, err)
	return tree, work
}
