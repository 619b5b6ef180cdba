package wasi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// fuzzWorld is a module that lives as long as the fuzz target; each input gets a
// World of its own.
type fuzzWorld struct {
	mod    api.Module
	data   string
	dir    *guestfs.Dir
	before string
}

// FuzzEveryCall is E23: any sequence of calls with any arguments, on a memory that
// the input fills. No Go panic but a Stop comes out, the host's folder stays as it
// is, the caps hold, and no descriptor is left open.
//
// An input is 4 KiB of memory at most, then calls: a byte for the function, then
// for each argument a byte that picks how it is made and eight bytes of its value.
func FuzzEveryCall(f *testing.F) {
	fw := newFuzzWorld(f)
	for i, fn := range wasi.Functions() {
		seed := append([]byte{byte(len(fuzzMemory)), byte(len(fuzzMemory) >> 8)}, fuzzMemory...)
		for range 3 {
			seed = append(seed, byte(i))
			for j := range fn.Params {
				seed = append(seed, byte(j))
				seed = binary.LittleEndian.AppendUint64(seed, uint64(j*7))
			}
		}
		f.Add(seed)
	}
	f.Fuzz(fw.run)
}

// TestE23RandomArguments is the same with a thousand fixed inputs, for every test
// run.
func TestE23RandomArguments(t *testing.T) {
	fw := newFuzzWorld(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		input := append([]byte{byte(len(fuzzMemory)), byte(len(fuzzMemory) >> 8)}, fuzzMemory...)
		for range 600 {
			input = append(input, byte(random.Uint32()))
		}
		fw.run(t, input)
	}
}

// fuzzMemory has paths at its start and vectors after them.
var fuzzMemory = "work/x\x00data/a\x00dev/http\x00../../etc/passwd\x00data/etc/passwd\x00work/../data/sub/\x00" + strings.Repeat("\x10\x00\x00\x00\x20\x00\x00\x00", 20)

func newFuzzWorld(tb testing.TB) *fuzzWorld {
	tb.Helper()
	fw := &fuzzWorld{data: tb.TempDir()}
	musttest.Do(tb, os.MkdirAll(filepath.Join(fw.data, "sub"), 0o755))
	for _, name := range []string{"a", "sub/b"} {
		musttest.Do(tb, os.WriteFile(filepath.Join(fw.data, name), []byte("content of "+name), 0o644))
	}
	musttest.Do(tb, os.Symlink("/etc", filepath.Join(fw.data, "etc")))
	fw.dir = openDir(tb, fw.data)
	fw.before = listing(tb, fw.data)
	mod := musttest.Get(newRuntime(tb).Instantiate(context.Background(), forwarder(wasi.Functions(), 2)))(tb)
	fw.mod = mod
	return fw
}

// Values that arguments are likely to go wrong at.
var edges = []uint64{0, 1, 2, 3, 4, 5, 6, 24, 48, 0xffff, 1 << 16, 2<<16 - 1, 2 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1}

func (fw *fuzzWorld) run(t *testing.T, input []byte) {
	t.Helper()
	if len(input) < 2 {
		return
	}
	n := min(int(binary.LittleEndian.Uint16(input)), 4096, len(input)-2)
	mem := fw.mod.Memory()
	whole, _ := mem.Read(0, mem.Size())
	clear(whole)
	copy(whole, input[2:2+n])
	input = input[2+n:]

	work := guestfs.NewMemory(guestfs.Limits{Bytes: 1 << 20, Files: 50})
	root, err := guestfs.NewTree(guestfs.Mount{Path: "/data", FS: fw.dir}, guestfs.Mount{Path: "/work", FS: work},
		guestfs.Mount{Path: "/dev/http", FS: guestfs.Exchange{}})
	musttest.Do(t, err)
	const mostHeld = 1 << 20
	held := uint64(0)
	var out limited
	w := wasi.NewWorld(wasi.Config{
		Args: []string{"fuzz"}, Env: []string{"A=b"}, Stdin: strings.NewReader("some input"), Stdout: &out, Stderr: &out,
		StdoutLimit: 1 << 16, StderrLimit: 1 << 16, Root: root, MaxOpenFiles: 16, Fetch: answer("fetched"),
		Hold: func(bytes uint64) uint64 { held = max(held, bytes); return mostHeld },
	})
	// A sleep may take as long as the input says: the deadline ends it.
	ctx, cancel := context.WithTimeout(wasi.WithWorld(context.Background(), w), 20*time.Millisecond)
	defer cancel()
	functions := wasi.Functions()
	for calls := 0; len(input) > 0 && calls < 100; calls++ {
		f := functions[int(input[0])%len(functions)]
		input = input[1:]
		args := make([]uint64, len(f.Params))
		for i := range args {
			if len(input) < 9 {
				closeWorld(t, w)
				return
			}
			value := binary.LittleEndian.Uint64(input[1:])
			switch input[0] % 4 {
			case 0:
				args[i] = value
			case 1:
				args[i] = value % 128
			case 2:
				args[i] = edges[value%uint64(len(edges))]
			case 3:
				args[i] = value % (2 << 16)
			}
			if f.Params[i] == api.ValueTypeI32 {
				args[i] = uint64(uint32(args[i]))
			}
			input = input[9:]
		}
		results, err := fw.mod.ExportedFunction(exported(f)).Call(ctx, args...)
		var stop *wasi.Stop
		switch {
		case errors.As(err, &stop):
			if recorded := w.Stopped(); recorded == nil || *recorded != *stop {
				t.Fatalf("%s%v: stopped with %v, recorded %v", f.Name, args, stop, recorded)
			}
		case err != nil:
			t.Fatalf("%s%v: %v", f.Name, args, err)
		case f.Module == wasi.PluginModule:
		case guestfs.Errno(results[0]) > guestfs.ENOTCAPABLE:
			t.Fatalf("%s%v: errno %d", f.Name, args, results[0])
		}
		if stop != nil {
			break
		}
	}
	closeWorld(t, w)
	if held > mostHeld+1 { // one more is how a refusal is told
		t.Fatalf("%d bytes of blocks", held)
	}
	if out > 2<<16 {
		t.Fatalf("%d bytes of output", out)
	}
	if work.Used() > 1<<20 || work.Used() < 0 {
		t.Fatalf("scratch uses %d bytes", work.Used())
	}
	if after := listing(t, fw.data); after != fw.before {
		t.Fatalf("the host folder has changed:\n%s", after)
	}
}

func closeWorld(t *testing.T, w *wasi.World) {
	t.Helper()
	musttest.Do(t, w.Close())
}

type limited int64

func (l *limited) Write(p []byte) (int, error) { *l += limited(len(p)); return len(p), nil }

// listing is a cheap fingerprint of the fuzz folder.
func listing(tb testing.TB, dir string) string {
	tb.Helper()
	var b strings.Builder
	for _, name := range []string{".", "sub", "a", "sub/b"} {
		info := musttest.Get(os.Lstat(filepath.Join(dir, name)))(tb)
		b.WriteString(name + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		if info.Mode().IsRegular() {
			data := musttest.Get(os.ReadFile(filepath.Join(dir, name)))(tb)
			b.Write(data)
		}
	}
	return b.String()
}
