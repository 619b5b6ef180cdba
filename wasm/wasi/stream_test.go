package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tetratelabs/wazero"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

func TestStdin(t *testing.T) {
	const text = "hello, guest"
	for name, r := range map[string]io.Reader{
		"bytes.Reader":   bytes.NewReader([]byte(text)),
		"bytes.Buffer":   bytes.NewBufferString(text),
		"strings.Reader": strings.NewReader(text),
		"slow":           iotest.OneByteReader(strings.NewReader(text)),
		"data with EOF":  iotest.DataErrReader(strings.NewReader(text)),
		"half":           iotest.HalfReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuest(t, wasi.Config{Stdin: r})
			got := ""
			for {
				part := g.read(0, 5)
				if part == "" {
					break
				}
				got += part
			}
			if got != text {
				t.Errorf("read %q", got)
			}
			if again := g.read(0, 5); again != "" {
				t.Errorf("%q after the end", again)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		if got := newGuest(t, wasi.Config{}).read(0, 5); got != "" {
			t.Errorf("read %q of nothing", got)
		}
	})
	t.Run("fails", func(t *testing.T) {
		g := newGuest(t, wasi.Config{Stdin: iotest.ErrReader(errors.New("secret /host/path"))})
		ptr, n := g.iovs(atData, 5)
		g.want(guestfs.EIO, "fd_read", 0, ptr, n, atResult)
	})
	t.Run("never says anything", func(t *testing.T) {
		g := newGuest(t, wasi.Config{Stdin: readerFunc(func([]byte) (int, error) { return 0, nil })})
		ptr, n := g.iovs(atData, 5)
		g.want(guestfs.EIO, "fd_read", 0, ptr, n, atResult)
	})
	t.Run("several vectors", func(t *testing.T) {
		g := newGuest(t, wasi.Config{Stdin: strings.NewReader("abcdef")})
		ptr, n := g.iovs(atData, 2, atData+2, 0, atData+10, 10)
		g.want(0, "fd_read", 0, ptr, n, atResult)
		if g.u32(atResult) != 6 || g.text(atData, 2) != "ab" || g.text(atData+10, 4) != "cdef" {
			t.Errorf("%d bytes, %q and %q", g.u32(atResult), g.text(atData, 2), g.text(atData+10, 4))
		}
	})
}

// E13: a read of input that never comes ends with the context, with either reason.
func TestE13SilentInput(t *testing.T) {
	for _, tc := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
		want wasi.Reason
	}{
		{"deadline", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), 20*time.Millisecond)
		}, wasi.ReasonDeadline},
		{"cancelled", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, cancel
		}, wasi.ReasonCancelled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, w := io.Pipe()
			defer w.Close() // ends the reading goroutine, which goleak looks for
			ctx, cancel := tc.ctx()
			defer cancel()
			g := newGuestContext(ctx, t, wasi.Config{Stdin: r}, memoryPages)
			ptr, n := g.iovs(atData, 5)
			g.wantStop(tc.want, "fd_read", 0, ptr, n, atResult)
		})
	}
}

func TestStdinWithoutWaiting(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	g := newGuest(t, wasi.Config{Stdin: r})
	g.want(0, "fd_fdstat_set_flags", 0, 4)
	ptr, n := g.iovs(atData, 5)
	g.want(guestfs.EAGAIN, "fd_read", 0, ptr, n, atResult)
	musttest.Get(w.Write([]byte("now")))(t)
	// The bytes are on their way: poll waits for them.
	g.subscribe(subscription{kind: 1, fd: 0})
	g.want(0, "poll_oneoff", atIovs, atData, 1, atResult)
	if got := g.read(0, 5); got != "now" {
		t.Errorf("read %q", got)
	}
}

func TestOutput(t *testing.T) {
	var out, errs bytes.Buffer
	g := newGuest(t, wasi.Config{Stdout: &out, Stderr: &errs})
	g.put(atData, "onetwothree")
	ptr, n := g.iovs(atData, 3, atData, 0, atData+3, 3)
	g.want(0, "fd_write", 1, ptr, n, atResult)
	if g.u32(atResult) != 6 {
		t.Errorf("%d bytes written, want 6", g.u32(atResult))
	}
	if errno := g.write(2, "oops"); errno != 0 {
		t.Error(errno)
	}
	if out.String() != "onetwo" || errs.String() != "oops" {
		t.Errorf("stdout %q, stderr %q", &out, &errs)
	}
	if o, e := g.w.Written(); o != 6 || e != 4 {
		t.Errorf("counted %d and %d", o, e)
	}

	g = newGuest(t, wasi.Config{}) // dropped, but counted
	g.write(1, "dropped")
	if o, _ := g.w.Written(); o != 7 {
		t.Errorf("counted %d of dropped output", o)
	}
	g = newGuest(t, wasi.Config{Stdout: failingWriter{}})
	if errno := g.write(1, "x"); errno != guestfs.EIO {
		t.Errorf("a failing writer is %v, want EIO", errno)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

// E14: at its limit the output has what fits, to the byte, and the run ends.
func TestE14OutputLimit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limit  int64
		writes []int
		kept   int
	}{
		{"exactly", 10, []int{10}, 10},
		{"one more", 10, []int{11}, 10},
		{"in the second write", 10, []int{7, 7}, 10},
		{"full, then one byte", 10, []int{10, 1}, 10},
		{"none allowed", -1, []int{1}, 0},
		{"default", 0, []int{1 << 19, 1 << 19, 1}, wasi.DefaultOutputLimit},
		{"larger than a chunk", 100_000, []int{200_000}, 100_000},
	} {
		for fd := uint64(1); fd <= 2; fd++ {
			var buf bytes.Buffer
			cfg := wasi.Config{Stdout: &buf, StdoutLimit: tc.limit}
			if fd == 2 {
				cfg = wasi.Config{Stderr: &buf, StderrLimit: tc.limit}
			}
			g := newGuestContext(context.Background(), t, cfg, 16)
			total, stopped := 0, false
			for _, n := range tc.writes {
				total += n
				ptr, count := g.iovs(atData, uint32(n))
				if total > tc.kept {
					g.wantStop(wasi.ReasonOutputLimit, "fd_write", fd, ptr, count, atResult)
					stopped = true
					break
				}
				g.want(0, "fd_write", fd, ptr, count, atResult)
			}
			if buf.Len() != tc.kept {
				t.Errorf("%s: %d bytes kept, want %d", tc.name, buf.Len(), tc.kept)
			}
			if (g.w.Stopped() != nil) != stopped {
				t.Errorf("%s: stopped %v", tc.name, g.w.Stopped())
			}
		}
	}
}

// E15: more vectors than the cap are refused at once; as many as the cap, each the
// whole memory, move no more than the cap of one call.
func TestE15Vectors(t *testing.T) {
	g := newGuestContext(context.Background(), t, wasi.Config{StdoutLimit: 1 << 40}, 64)
	ptr, _ := g.iovs()
	for i := range uint32(32768) {
		g.mem.WriteUint32Le(atIovs+i*8, 0)
		g.mem.WriteUint32Le(atIovs+i*8+4, 64<<16)
	}
	g.want(guestfs.EINVAL, "fd_write", 1, ptr, 32768, atResult)
	g.want(guestfs.EINVAL, "fd_write", 1, ptr, 1025, atResult)
	g.want(0, "fd_write", 1, ptr, 1024, 60<<16)
	if got := g.u32(60 << 16); got != 16<<20 {
		t.Errorf("%d bytes in one call, want 16 MiB", got)
	}
	if o, _ := g.w.Written(); o != 16<<20 {
		t.Errorf("%d bytes written", o)
	}
}

// A vector list that lies in the data that a read overwrites is read again, and
// checked again, for each vector.
func TestVectorsThatOverwriteThemselves(t *testing.T) {
	g := newGuest(t, wasi.Config{Stdin: bytes.NewReader(bytes.Repeat([]byte{0xff}, 100))})
	ptr, n := g.iovs(atIovs, 16, atData, 4)
	g.want(guestfs.EFAULT, "fd_read", 0, ptr, n, atResult)
}

// E17: without a memory, and with pointers at its edge, every call answers, on both
// of wazero's engines.
func TestE17MemoryEdges(t *testing.T) {
	root, _ := worldRoot(t, dataFolder(t))
	edges := []uint64{0, 1, memEnd - 1, memEnd, memEnd + 1, 1<<31 - 1, 1 << 31, 1<<32 - 8, 1<<32 - 1}
	for engine, cfg := range map[string]wazero.RuntimeConfig{
		"interpreter": wazero.NewRuntimeConfigInterpreter(), "compiler": wazero.NewRuntimeConfig(),
	} {
		for _, pages := range []int{-1, 0, memoryPages} {
			g := newGuestRuntime(context.Background(), t, newRuntimeConfig(context.Background(), t, cfg), wasi.Config{}, pages)
			for _, f := range wasi.Functions() {
				if f.Name == "proc_exit" || f.Module == wasi.PluginModule {
					continue
				}
				w := wasi.NewWorld(wasi.Config{Root: root, Args: []string{"a"}, Env: []string{"b"}})
				g.w, g.ctx = w, wasi.WithWorld(context.Background(), w)
				for _, edge := range edges {
					for fd := range uint64(4) {
						args := make([]uint64, len(f.Params))
						for i := range args {
							args[i] = edge
						}
						if strings.HasPrefix(f.Name, "fd_") || strings.HasPrefix(f.Name, "path_") {
							args[0] = fd
						}
						errno := g.call(f.Name, args...)
						if pages < 0 && errno == 0 && !needsNoMemory[f.Name] {
							t.Errorf("%s: %s%v without a memory succeeded", engine, f.Name, args)
						}
					}
				}
				w.Close()
			}
		}
	}
}

var needsNoMemory = map[string]bool{
	"fd_advise": true, "fd_close": true, "fd_datasync": true, "fd_sync": true, "fd_renumber": true, "fd_fdstat_set_flags": true,
	"sched_yield": true,
}

// E18: any descriptor can be closed and renumbered, and what is left still works.
func TestE18CloseAndRenumber(t *testing.T) {
	root, work := worldRoot(t, dataFolder(t))
	var out bytes.Buffer
	g := newGuest(t, wasi.Config{Root: root, Stdout: &out, Stdin: strings.NewReader("in")})
	file := g.mustOpen("work/out.txt", oCreate, rightRead|rightWrite)
	g.want(0, "fd_renumber", file, 1) // standard output is a file now
	if errno := g.write(1, "to a file"); errno != 0 {
		t.Fatal(errno)
	}
	if data, err := work.ReadFile("out.txt"); err != nil || string(data) != "to a file" || out.Len() != 0 {
		t.Errorf("file %q, %v; output %q", data, err, &out)
	}
	g.want(0, "fd_renumber", 0, 2) // and standard error reads the input
	if got := g.read(2, 5); got != "in" {
		t.Errorf("read %q", got)
	}
	g.want(0, "fd_renumber", 3, 1) // the preopen moves, and closes the file
	g.want(0, "fd_prestat_get", 1, atResult)
	for fd := uint64(0); fd < 200; fd++ {
		for _, to := range []uint64{0, 1, 2, 3, 1 << 31, 1<<32 - 1} {
			g.call("fd_renumber", fd, to)
		}
		g.call("fd_close", fd)
	}
	if fd, errno := g.open("data", 0, 0, 0); errno != guestfs.EBADF {
		t.Errorf("opened %d, %v with everything closed", fd, errno)
	}
	if err := g.w.Close(); err != nil {
		t.Error(err)
	}
	if err := g.w.Close(); err != nil {
		t.Error(err)
	}
}
