package wasi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
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

// FuzzWhatGuestsReach makes whole programs of calls: paths out of parts that lead somewhere,
// descriptors that are open, lengths and flags that make sense, and one argument in 32
// that makes none. [FuzzEveryCall] takes any arguments, of which few get past the first check.
//
// The model of what may be reached: nothing outside of the folder that the guest is given.
// All that is there is marked, in names, contents, sizes and targets of links; no mark ever
// appears in the guest's memory.
func FuzzWhatGuestsReach(f *testing.F) {
	r := newReach(f)
	for i := range 64 {
		random := rand.New(rand.NewPCG(uint64(i), 3))
		seed := make([]byte, 1200)
		for j := range seed {
			seed[j] = byte(random.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(r.run)
}

// TestGuestsReachTheirOwn is the same with fixed programs, and looks that most of their calls
// get somewhere: a model that everything is refused would hold, too.
func TestGuestsReachTheirOwn(t *testing.T) {
	r := newReach(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		input := make([]byte, 1200)
		for i := range input {
			input[i] = byte(random.Uint32())
		}
		r.run(t, input)
	}
	for _, name := range []string{
		"path_open", "fd_read", "fd_write", "fd_readdir", "path_filestat_get", "path_readlink", "path_symlink", "path_rename",
		"path_link", "path_unlink_file", "path_create_directory", "fd_seek", "fd_pread", "fd_pwrite", "fd_renumber", "poll_oneoff",
	} {
		if r.done[name] == 0 {
			t.Errorf("%s never succeeds, of %d calls", name, r.called[name])
		}
	}
}

// The marks of what is outside of the folder. A guest's program has none of them.
const (
	outsideText = "OUTSIDE-CONTENT"
	outsideName = "outside-name"
	outsidePath = "path-of-the-host"
	outsideSize = 0x5eed5ed // bytes of each file there, more than the guest's files may have
)

// reach is a module that lives as long as the target; each program gets a World of its own.
type reach struct {
	top, before string

	fs           *guestfs.Dir
	mod          api.Module
	done, called map[string]int
}

func newReach(tb testing.TB) *reach {
	tb.Helper()
	top := filepath.Join(tb.TempDir(), outsidePath)
	r := &reach{top: top, done: map[string]int{}, called: map[string]int{}}
	data, beyond := filepath.Join(top, "data"), filepath.Join(top, "beyond")
	for _, dir := range []string{filepath.Join(data, "sub", "deep"), filepath.Join(beyond, outsideName)} {
		musttest.Do(tb, os.MkdirAll(dir, 0o755))
	}
	write := func(path, content string, size int64) {
		musttest.Do(tb, os.WriteFile(path, []byte(content), 0o644))
		musttest.Do(tb, os.Truncate(path, size))
	}
	for _, name := range []string{"a", "sub/b", "sub/deep/c"} {
		write(filepath.Join(data, name), "content", 7)
	}
	for _, path := range []string{"beyond/a", "beyond/secret", "a", "b", "secret", outsideName + "-2"} {
		write(filepath.Join(top, path), strings.Repeat(outsideText, 100), outsideSize)
	}
	for name, target := range map[string]string{
		"up": "..", "out": beyond, "away": "../beyond", "twice": "sub/../../beyond/secret",
		"in": "a", "deep": "sub/deep", "loop": "loop", "sub/up": "../..", "sub/a": "../../a", "none": "missing",
	} {
		musttest.Do(tb, os.Symlink(target, filepath.Join(data, name)))
	}
	musttest.Do(tb, os.Link(filepath.Join(beyond, "secret"), filepath.Join(data, "hard")))
	r.fs = openDir(tb, data)
	r.before = r.stamps(tb)
	mod := musttest.Get(newRuntime(tb).Instantiate(context.Background(), forwarder(wasi.Functions(), memoryPages)))(tb)
	r.mod = mod
	return r
}

// stamps is what a change of any file of the host changes.
func (r *reach) stamps(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	err := filepath.WalkDir(r.top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&b, path, info.Mode(), info.ModTime().UnixNano(), info.Size())
		}
		return err
	})
	musttest.Do(tb, err)
	return b.String()
}

// calls is an input that is read as a program.
type calls struct {
	in  []byte
	fds uint64 // the descriptors to choose from: those that may be open
	mem api.Memory
}

func (p *calls) byte() byte {
	if len(p.in) == 0 {
		return 0
	}
	b := p.in[0]
	p.in = p.in[1:]
	return b
}

func pick[T any](p *calls, list []T) T { return list[int(p.byte())%len(list)] }

// hostile gives a value, or one time in 32 one that is at an edge.
func (p *calls) hostile(v uint64) uint64 {
	if p.byte()%32 == 0 {
		return pick(p, edges)
	}
	return v
}

// path writes a path: one that a program would use, or any of up to four parts.
func (p *calls) path(at uint32) (ptr, n uint64) {
	parts := []string{pick(p, []string{
		"work/a", "work/a", "work/a", "work/new", "work/new", "work/dir/a", "work/link", "work/dir", "work/dir/new",
		"data/a", "data/in", "data/deep/c", "dev/http",
		"data/twice", "data/away/secret", "data/out", "data/up/b", "data/sub/up/secret", "data/sub/a", "data/hard", "../secret",
	})}
	if p.byte()%2 == 0 {
		parts = []string{pick(p, []string{"work", "data", "data/sub", ".", ".."})}
		for range p.byte() % 4 {
			parts = append(parts, pick(p, []string{
				"..", ".", "", "a", "b", "c", "sub", "deep", "up", "out", "away", "twice", "in", "loop", "hard", "new", "link", "dir",
				"beyond", "secret", "C:", "\\..", "a\x00b", "\xff", strings.Repeat("x", 256),
			}))
		}
	}
	path := strings.Join(parts, "/")
	if p.byte()%4 == 0 {
		path = pick(p, []string{"", "/", "//"}) + path + pick(p, []string{"", "/", "//", "/.", "/.."})
	}
	p.mem.WriteString(at, path)
	return p.hostile(uint64(at)), p.hostile(uint64(len(path)))
}

// target writes the text of a link.
func (p *calls) target(at uint32) (ptr, n uint64) {
	s := pick(p, []string{"..", "../..", "../data", "../data/up", "a", "new", "link", "dir/../..", "/etc", "../../..", "./link/.", "../work/link"})
	p.mem.WriteString(at, s)
	return p.hostile(uint64(at)), p.hostile(uint64(len(s)))
}

// iovs writes vectors over the place for data.
func (p *calls) iovs() (ptr, n uint64) {
	count := uint32(p.byte() % 4)
	for i := range count {
		p.mem.WriteUint32Le(atIovs+8*i, uint32(p.hostile(atData+uint64(p.byte())*64)))
		p.mem.WriteUint32Le(atIovs+8*i+4, uint32(p.hostile(uint64(p.byte())*8)))
	}
	return p.hostile(atIovs), p.hostile(uint64(count))
}

// arguments gives those of a call that may make sense. Which argument is what, is known by
// the function's name; the rest are numbers.
func (p *calls) arguments(name string) []uint64 {
	fd := func() uint64 { return p.hostile(uint64(p.byte()) % p.fds) }
	small := func(most uint64) uint64 { return p.hostile(uint64(p.byte()) % (most + 1)) }
	result := p.hostile(atResult)
	offset := p.hostile(uint64(p.byte()) << (p.byte() % 40))
	switch name {
	case "path_open":
		a, n := p.path(atPath)
		rights := pick(p, []uint64{rightRead, rightRead | rightWrite, 0, rightWrite})
		return []uint64{p.hostile(3), small(1), a, n, p.hostile(pick(p, []uint64{0, 0, 1, 2, 3, 5, 8, 9, 12})), p.hostile(rights), 0, small(5), result}
	case "path_filestat_get":
		a, n := p.path(atPath)
		return []uint64{fd(), small(1), a, n, result}
	case "path_filestat_set_times":
		a, n := p.path(atPath)
		return []uint64{p.hostile(3), small(1), a, n, offset, offset, small(15)}
	case "path_readlink":
		a, n := p.path(atPath)
		return []uint64{p.hostile(3), a, n, p.hostile(atData), p.hostile(512), result}
	case "path_create_directory", "path_remove_directory", "path_unlink_file":
		a, n := p.path(atPath)
		return []uint64{p.hostile(3), a, n}
	case "path_symlink":
		a, n := p.target(atPath)
		b, k := p.path(atPath2)
		return []uint64{a, n, p.hostile(3), b, k}
	case "path_rename":
		a, n := p.path(atPath)
		b, k := p.path(atPath2)
		return []uint64{p.hostile(3), a, n, p.hostile(3), b, k}
	case "path_link":
		a, n := p.path(atPath)
		b, k := p.path(atPath2)
		return []uint64{p.hostile(3), small(1), a, n, p.hostile(3), b, k}
	case "fd_read", "fd_write":
		a, n := p.iovs()
		return []uint64{fd(), a, n, result}
	case "fd_pread", "fd_pwrite":
		a, n := p.iovs()
		return []uint64{fd(), a, n, offset, result}
	case "fd_readdir":
		return []uint64{fd(), p.hostile(atData), p.hostile(4096), p.hostile(uint64(p.byte()) % 8), result}
	case "fd_renumber":
		return []uint64{fd(), fd()}
	case "fd_seek":
		return []uint64{fd(), offset, small(2), result}
	case "fd_allocate":
		return []uint64{fd(), offset, offset}
	case "fd_filestat_set_size":
		return []uint64{fd(), offset}
	case "fd_fdstat_set_flags":
		return []uint64{fd(), small(5)}
	case "random_get":
		return []uint64{p.hostile(atData), p.hostile(uint64(p.byte()))}
	case "poll_oneoff": // one subscription to what is ready
		p.mem.Write(atPath, make([]byte, 48))
		p.mem.WriteByte(atPath+8, p.byte()%3)
		p.mem.WriteUint32Le(atPath+16, uint32(fd()))
		return []uint64{p.hostile(atPath), p.hostile(atData), p.hostile(1), result}
	case "http_request":
		return []uint64{p.hostile(atData), p.hostile(uint64(p.byte())), result}
	case "http_read":
		return []uint64{p.hostile(atData), p.hostile(64), result}
	}
	return []uint64{fd(), result, p.hostile(atResult + 64), small(255), small(255), small(255), small(255), small(255), small(255)}
}

func (r *reach) run(t *testing.T, input []byte) {
	t.Helper()
	const scratch, mostHeld = 1 << 20, 1 << 20
	work := guestfs.NewMemory(guestfs.Limits{Bytes: scratch, Files: 50})
	root, err := guestfs.NewTree(guestfs.Mount{Path: "/data", FS: r.fs}, guestfs.Mount{Path: "/work", FS: work},
		guestfs.Mount{Path: "/dev/http", FS: guestfs.Exchange{}})
	musttest.Do(t, err)
	musttest.Do(t, work.WriteFile("a", []byte("content of work")))
	var out limited
	held := uint64(0)
	w := wasi.NewWorld(wasi.Config{
		Args: []string{"fuzz"}, Env: []string{"A=b"}, Stdin: strings.NewReader("some input"), Stdout: &out, Stderr: &out,
		StdoutLimit: 1 << 16, StderrLimit: 1 << 16, Root: root, MaxOpenFiles: 16, Fetch: answer("fetched"),
		Random: bytes.NewReader(make([]byte, 1<<20)), Hold: func(n uint64) uint64 { held = max(held, n); return mostHeld },
	})
	defer closeWorld(t, w)
	// A sleep may take as long as the program says: the deadline ends it.
	ctx, cancel := context.WithTimeout(wasi.WithWorld(context.Background(), w), 20*time.Millisecond)
	defer cancel()
	mem := r.mod.Memory()
	whole, _ := mem.Read(0, mem.Size())
	clear(whole)
	p := &calls{in: input, fds: 7, mem: mem}
	functions := wasi.Functions()
	var files []wasi.Function
	for _, f := range functions {
		if f.Module == wasi.ModuleName && (strings.HasPrefix(f.Name, "path_") || strings.HasPrefix(f.Name, "fd_")) && f.Name != "fd_close" {
			files = append(files, f)
		}
	}
	var made []string
	host := allocated(func() {
		for n := 0; len(p.in) > 0 && n < 60; n++ {
			f := pick(p, files)
			if p.byte()%8 == 0 {
				f = pick(p, functions)
			}
			args := p.arguments(f.Name)[:len(f.Params)]
			for i := range args {
				if f.Params[i] == api.ValueTypeI32 {
					args[i] = uint64(uint32(args[i]))
				}
			}
			// What the program wrote as paths is its own; what is left are answers.
			if ended := r.call(ctx, t, w, f, args, &made); ended {
				break
			}
			clear(whole[:atIovs])
			r.nothingOutside(t, whole, made)
		}
	})
	if host > 8<<20 {
		t.Errorf("the host allocates %d bytes for\n%s", host, strings.Join(made, "\n"))
	}
	if held > mostHeld+1 || out > 2<<16 || work.Used() > scratch || work.Used() < 0 {
		t.Errorf("%d bytes of blocks, %d of output, %d of files", held, out, work.Used())
	}
	if r.stamps(t) != r.before {
		t.Errorf("files of the host changed by\n%s", strings.Join(made, "\n"))
	}
}

// call makes one call and holds its answer to the specification; ended: the run is over.
func (r *reach) call(ctx context.Context, t *testing.T, w *wasi.World, f wasi.Function, args []uint64, made *[]string) (ended bool) {
	t.Helper()
	r.called[f.Name]++
	results, err := r.mod.ExportedFunction(exported(f)).Call(ctx, args...)
	line := fmt.Sprintf("%s %x", f.Name, args)
	var stop *wasi.Stop
	switch {
	case errors.As(err, &stop):
		if recorded := w.Stopped(); recorded == nil || *recorded != *stop {
			t.Errorf("%s: stopped with %v, recorded %v", line, stop, recorded)
		}
		return true
	case err != nil:
		t.Errorf("%s: %v", line, err)
		return true
	case f.Module != wasi.PluginModule && len(results) > 0:
		errno := guestfs.Errno(results[0])
		line += " " + errno.String()
		if results[0] > uint64(guestfs.ENOTCAPABLE) {
			t.Errorf("%s: not an error number of preview1", line)
		}
		if errno == 0 {
			r.done[f.Name]++
		}
	}
	*made = append(*made, line)
	return false
}

// nothingOutside looks for marks in the guest's memory.
func (r *reach) nothingOutside(t *testing.T, whole []byte, made []string) {
	t.Helper()
	size := binary.LittleEndian.AppendUint64(nil, outsideSize)
	for _, mark := range [][]byte{[]byte(outsideText), []byte(outsideName), []byte(outsidePath), size} {
		if bytes.Contains(whole, mark) {
			t.Fatalf("%q reaches the guest by\n%s", mark, strings.Join(made, "\n"))
		}
	}
}
