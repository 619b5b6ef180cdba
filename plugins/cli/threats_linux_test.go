package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// guarded are runners, one for the strongest guard of each kind that this
// machine has, or for each guard with CLI_TEST_ALL=1.
var guarded = sync.OnceValues(func() ([]*Runner, error) {
	if _, err := ask(context.Background(), "python3"); err != nil {
		return nil, err
	}
	var all []*Runner
	kinds := map[guard]bool{}
	for _, g := range allGuards() {
		// Those of one kind differ in Landlock and mounts only.
		kind := guard{mode: g.mode, users: g.users, userNS: g.userNS}
		if kinds[kind] && os.Getenv("CLI_TEST_ALL") == "" {
			continue
		}
		r := New(nil)
		r.guards = []*guard{g}
		if _, err := r.setup(); err == nil {
			kinds[kind] = true
			all = append(all, r)
		}
	}
	return all, nil
})

// eachGuard runs a test under every guard that this machine has, not under the
// strongest alone: others will have to do with the weaker ones. With -short it
// is the strongest alone.
func eachGuard(t *testing.T, test func(t *testing.T, r *Runner, g *guard)) {
	t.Helper()
	all := musttest.Get(guarded())(t)
	if len(all) == 0 {
		t.Fatal("no guard works here")
	}
	for _, r := range all {
		t.Run(r.guards[0].String(), func(t *testing.T) { test(t, r, r.guards[0]) })
		if testing.Short() {
			break
		}
	}
}

// alive counts the processes that have the folder of a call in their command
// line, as all that a run starts here do.
func alive(t *testing.T, folder string) (n int) {
	t.Helper()
	names := musttest.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(folder)) {
			n++
		}
	}
	return n
}

// survivor leaves the session and the process group twice over, holds on to
// standard output and ignores what can be ignored.
const survivor = `
import os, signal, sys, time
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(s, signal.SIG_IGN)
        os.write(w, b"up")
        while True:
            time.sleep(60)
    os._exit(0)
os.wait()
assert os.read(r, 2) == b"up"
print("started", flush=True)
`

func TestSurvivorIsGone(t *testing.T) {
	for name, end := range map[string]string{"exit": "", "timeout": "time.sleep(60)"} {
		t.Run(name, func(t *testing.T) {
			eachGuard(t, func(t *testing.T, r *Runner, g *guard) {
				if g.mode == modeGroup {
					t.Skip("a process group does not hold a process that leaves it, as Protections says")
				}
				c := program(t, survivor+end)
				want := skill.Code("")
				if end != "" {
					want, c.Limits.Timeout = skill.Timeout, time.Second
				}
				began := time.Now()
				reply := must(t, r, c)
				if n := alive(t, c.Folder); n != 0 {
					t.Errorf("%d processes are alive after Run", n)
				}
				if reply.Code != want || string(reply.Stdout) != "started\n" {
					t.Errorf("code %q, stdout %q, stderr %.300q", reply.Code, reply.Stdout, reply.Stderr)
				}
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestForkLoop(t *testing.T) {
	eachGuard(t, func(t *testing.T, r *Runner, g *guard) {
		c := program(t, `
import os, time
made = 0
try:
    for i in range(200):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made)
`)
		reply := must(t, r, c)
		if n := alive(t, c.Folder); n != 0 {
			t.Errorf("%d processes are alive after Run", n)
		}
		var made int
		if err := json.Unmarshal(reply.Stdout, &made); err != nil {
			t.Fatalf("stdout %q, stderr %.300q", reply.Stdout, reply.Stderr)
		}
		if g.counts && made >= 64 {
			t.Errorf("%d processes were made; the limit is 64", made)
		}
		if !g.counts && made != 200 {
			t.Errorf("%d processes were made; nothing limits them here", made)
		}
	})
}

func TestHugeAllocation(t *testing.T) {
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		reply := must(t, r, program(t, "x = bytearray(64 << 30)"))
		// Refused before it was ever resident, which the host cannot see.
		if reply.Code != "" || reply.ExitCode != 1 || !strings.Contains(string(reply.Stderr), "MemoryError") {
			t.Errorf("code %q, exit code %d, stderr %.300q", reply.Code, reply.ExitCode, reply.Stderr)
		}
		if reply.Usage.MemoryPeak > 128<<20 {
			t.Errorf("peak %d", reply.Usage.MemoryPeak)
		}
	})
}

// The limit is one of the script, whatever its language says about it: it is
// told by what was resident, also when the script hides how it failed.
func TestMemoryUsedUp(t *testing.T) {
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		for _, end := range []string{"raise", "sys.exit(7)", "os.kill(os.getpid(), 9)", "os._exit(0)"} {
			reply := must(t, r, program(t, `
import os, sys
kept = []
try:
    while True:
        kept.append(b"x" * (1 << 20))
except MemoryError:
    `+end+"\n"))
			want := skill.MemoryLimit
			if end == "os._exit(0)" {
				want = "" // it coped
			}
			if reply.Code != want {
				t.Errorf("%s: code %q (%s), exit code %d", end, reply.Code, reply.Message, reply.ExitCode)
			}
			if m := reply.Usage.MemoryPeak; m < 128<<20/10*9 || m > (128+64)<<20 {
				t.Errorf("%s: peak of %d MiB under a limit of 128", end, m>>20)
			}
		}
		// Nor does it help to say that memory was short.
		reply := must(t, r, program(t, "raise MemoryError"))
		if reply.Code != "" || reply.ExitCode != 1 {
			t.Errorf("code %q (%s), exit code %d", reply.Code, reply.Message, reply.ExitCode)
		}
	})
}

// A run that was killed tells its peak, too.
func TestPeakAfterTimeout(t *testing.T) {
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		c := program(t, "import time\nkept = b'x' * (40 << 20)\nprint('up', flush=True)\ntime.sleep(60)")
		c.Limits.Timeout = time.Second
		reply := must(t, r, c)
		if reply.Code != skill.Timeout || string(reply.Stdout) != "up\n" || reply.Usage.MemoryPeak < 40<<20 {
			t.Errorf("code %q, stdout %q, peak %d", reply.Code, reply.Stdout, reply.Usage.MemoryPeak)
		}
	})
}

func TestSigtermIgnored(t *testing.T) {
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		c := program(t, `
import signal
for s in signal.valid_signals():
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
`)
		c.Limits.Timeout = 700 * time.Millisecond
		began := time.Now()
		reply := must(t, r, c)
		if reply.Code != skill.Timeout || alive(t, c.Folder) != 0 || time.Since(began) > 8*time.Second {
			t.Errorf("code %q after %v, %d alive", reply.Code, time.Since(began), alive(t, c.Folder))
		}
	})
}

// Signals work for a script as they do for any process: it is not the init of
// its namespace. And it cannot end the supervisor with them.
func TestSignals(t *testing.T) {
	eachGuard(t, func(t *testing.T, r *Runner, g *guard) {
		reply := must(t, r, program(t, "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nprint('after')"))
		if reply.Code != skill.Trap || !strings.Contains(reply.Message, "signal 15") || len(reply.Stdout) != 0 {
			t.Errorf("code %q (%s), stdout %q", reply.Code, reply.Message, reply.Stdout)
		}
		reply = must(t, r, program(t, `
import os, signal
for s in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    os.kill(os.getppid(), s)
print("still here")
`))
		if reply.Code != "" || string(reply.Stdout) != "still here\n" {
			t.Errorf("code %q (%s), stdout %q, stderr %.300q", reply.Code, reply.Message, reply.Stdout, reply.Stderr)
		}
		reply = must(t, r, program(t, "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(0.2)\nprint('still here')"))
		if g.mode == modeInit {
			if reply.Code != "" || string(reply.Stdout) != "still here\n" {
				t.Errorf("init of a namespace was killed from within: code %q (%s)", reply.Code, reply.Message)
			}
		} else if reply.Code != skill.WorkerCrashed {
			t.Errorf("code %q (%s); want WORKER_CRASHED", reply.Code, reply.Message)
		}
	})
}

func TestManySmallFilesStopAtTheCap(t *testing.T) {
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		c := program(t, `
import os
for i in range(1000000):
    os.makedirs("work/%d" % (i // 100), exist_ok=True)
    with open("work/%d/%d" % (i // 100, i), "wb") as f:
        f.write(bytes(64 << 10))
`)
		c.Grants.Scratch = true
		reply := must(t, r, c)
		if reply.Code != skill.OutputLimit || reply.Artifacts != nil {
			t.Errorf("code %q (%s), %d artifacts, stderr %.300q", reply.Code, reply.Message, len(reply.Artifacts), reply.Stderr)
		}
	})
}

// A script that goes down folder by folder gets to where no path leads. It is ended,
// and nothing of it is left.
func TestDeepFoldersStopAtTheCap(t *testing.T) {
	long := strings.Repeat("d", 250)
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		temp := t.TempDir()
		own := New(&Options{TempDir: temp})
		own.ready = r.ready
		for _, tc := range []struct {
			name  string
			depth int
			code  skill.Code
		}{{"d", 5000, skill.OutputLimit}, {"d", maxDepth + 1, skill.OutputLimit}, {"d", maxDepth, ""}, {long, 20, skill.OutputLimit}, {long, 10, ""}} {
			c := program(t, fmt.Sprintf(`
import os
os.chdir("work")
for i in range(%d):
    os.mkdir(%[2]q)
    os.chdir(%[2]q)
with open("unseen", "w") as f:
    f.write("x" * 1000)
`, tc.depth, tc.name))
			c.Grants.Scratch = true
			if reply := must(t, own, c); reply.Code != tc.code || reply.ExitCode != 0 || reply.Artifacts != nil {
				t.Errorf("%d of %.5s: code %q (%s), exit code %d, stderr %.300q", tc.depth, tc.name, reply.Code, reply.Message, reply.ExitCode, reply.Stderr)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("%d of %.5s: left behind: %v, %v", tc.depth, tc.name, left, err)
			}
		}
	})
}

// A file of one byte takes a block: many of them are more on the disk than they say.
func TestTinyFilesCountAsBlocks(t *testing.T) {
	tiny := filepath.Join(t.TempDir(), "tiny")
	musttest.Do(t, os.WriteFile(tiny, []byte("x"), 0o600))
	info := musttest.Get(os.Stat(tiny))(t)
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Blocks*512 < 2048 {
		t.Skip("this file system keeps small files in their inodes")
	}
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		c := program(t, "for i in range(1000):\n    open('work/%d' % i, 'w').write('x')\n")
		c.Grants.Scratch, c.Limits.Scratch = true, 1<<20
		if reply := must(t, r, c); reply.Code != skill.OutputLimit || reply.Artifacts != nil {
			t.Errorf("code %q (%s), %d artifacts, stderr %.300q", reply.Code, reply.Message, len(reply.Artifacts), reply.Stderr)
		}
		c = program(t, "for i in range(100):\n    open('work/%d' % i, 'w').write('x')\n")
		c.Grants.Scratch, c.Limits.Scratch = true, 1<<20
		if reply := must(t, r, c); reply.Code != "" || len(reply.Artifacts) != 100 {
			t.Errorf("of 100: code %q (%s), %d artifacts, stderr %.300q", reply.Code, reply.Message, len(reply.Artifacts), reply.Stderr)
		}
	})
}

// Blocks count that were allocated beyond the length of a file, and a sparse file counts by
// its length; those that a file system sets aside while a file grows do not count.
func TestWhatAFileTakes(t *testing.T) {
	for _, tc := range []struct{ length, blocks, want uint64 }{
		{0, 0, 0},
		{1, 4096, 4096},
		{5000, 8192, 8192},
		{1 << 30, 0, 1 << 30},
		{0, 1 << 30, 1 << 30},
		{64<<10 - 1, 128 << 10, 128 << 10},
		{9 << 20, 16 << 20, 9 << 20},
		{9 << 20, 1 << 30, 1 << 30},
	} {
		if got := counted(tc.length, tc.blocks); got != tc.want {
			t.Errorf("%d bytes in blocks of %d count as %d, want %d", tc.length, tc.blocks, got, tc.want)
		}
	}
	f := musttest.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 3<<20); err != nil {
		t.Skipf("this file system allocates nothing ahead: %v", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 0 || taken(info) < 3<<20 {
		t.Errorf("an empty file with 3 MiB allocated counts as %d: %v", taken(info), err)
	}
}

func TestArtifactsAreTheScriptsOwnFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	musttest.Do(t, os.WriteFile(secret, []byte("of the host"), 0o600))
	eachGuard(t, func(t *testing.T, r *Runner, _ *guard) {
		c := program(t, fmt.Sprintf(`
import os
os.chdir("work")
open("own", "w").write("mine")
os.symlink(%[1]q, "absolute")
os.symlink("own", "relative")
os.symlink("loop", "loop")
os.symlink("..", "up")
os.mkfifo("pipe")
os.link("own", "again")
open("alone", "w").write("one name")
os.mkdir("closed")
open("closed/file", "w").close()
os.chmod("closed", 0)
try:
    os.link(%[1]q, "hard")
except OSError:
    pass
`, secret))
		c.Grants.Scratch = true
		reply := must(t, r, c)
		if reply.Code != "" || reply.ExitCode != 0 {
			t.Errorf("code %q (%s), exit code %d, stderr %.300q", reply.Code, reply.Message, reply.ExitCode, reply.Stderr)
		}
		for _, a := range reply.Artifacts {
			if a.Name != "alone" || string(a.Data) != "one name" {
				t.Errorf("artifact %s: %q", a.Name, a.Data)
			}
		}
		if len(reply.Artifacts) != 1 {
			t.Errorf("%d artifacts; want one", len(reply.Artifacts))
		}
	})
}

// Scripts do not find the operator's keys, the host's environment, or the
// network, wherever a guard says that they do not.
func TestSecretsAndSockets(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SECRET_TOKEN", "hush-hush")
	musttest.Do(t, os.WriteFile(filepath.Join(home, "id_key"), []byte("hush-hush"), 0o600))
	listener := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	text := fmt.Sprintf(`
import json, os, socket
found = {"environment": dict(os.environ), "descriptors": []}
for fd in range(3, 256):
    try:
        os.fstat(fd)
        found["descriptors"].append(fd)
    except OSError:
        pass
def attempt(name, what):
    try:
        found[name] = bool(what())
    except OSError:
        found[name] = False
def connect():
    socket.create_connection(("127.0.0.1", %d), 5).close()
    return True
attempt("home", lambda: os.environ.get("HOME"))
attempt("key", lambda: open(%q).read())
attempt("host", lambda: b"hush" in open("/proc/%d/environ", "rb").read())
attempt("tmp", lambda: open(%q, "w").write("x"))
attempt("self", lambda: open(__file__, "a").write("#"))
attempt("tcp", connect)
attempt("kill", lambda: os.kill(%d, 0) is None)
print(json.dumps(found))
`, listener.Addr().(*net.TCPAddr).Port, filepath.Join(home, "id_key"), os.Getpid(), filepath.Join(home, "planted"), os.Getpid())
	eachGuard(t, func(t *testing.T, r *Runner, g *guard) {
		reply := must(t, r, program(t, text))
		var found struct {
			Environment                           map[string]string
			Descriptors                           []int
			Home, Key, Host, Tmp, Self, TCP, Kill bool
		}
		if err := json.Unmarshal(reply.Stdout, &found); err != nil {
			t.Fatalf("stdout %q, stderr %.400q", reply.Stdout, reply.Stderr)
		}
		if len(found.Environment) != 0 || len(found.Descriptors) != 0 || found.Home {
			t.Errorf("environment %v, descriptors %v", found.Environment, found.Descriptors)
		}
		if locked := g.landlock > 0; locked && (found.Key || found.Host || found.Tmp || found.Self) {
			t.Errorf("Landlock let through: %+v", found)
		}
		if g.users != nil && (found.Host || found.Tmp || found.Self) || g.readonly && (found.Tmp || found.Self) {
			t.Errorf("read-only mounts or another user let through: %+v", found)
		}
		if (g.flags != 0 || g.landlock >= 4) && found.TCP {
			t.Error("the script connected to a port of the host")
		}
		if (g.flags != 0 || g.landlock >= 6) && found.Kill {
			t.Error("the script can send signals to the host")
		}
	})
}

// TestHostKilled starts this test again as a host, kills it in the middle of a
// run, and expects the script to end with it.
func TestHostKilled(t *testing.T) {
	if folder := os.Getenv("CLI_TEST_HOST"); folder != "" {
		r := New(nil)
		_, err := r.Run(context.Background(), &skill.Call{
			Folder: folder, Entry: "main.py", Trust: skill.Trusted,
			Grants: skill.Grants{Data: folder},
			Limits: skill.Limits{Timeout: time.Minute, Memory: 128 << 20, Fuel: 1, Output: 1 << 20, Scratch: 1 << 20},
		})
		t.Fatalf("the run ended: %v", err)
	}
	c := program(t, survivor+"time.sleep(60)")
	cmd := exec.Command(os.Args[0], "-test.run=^TestHostKilled$")
	cmd.Env = append(os.Environ(), "CLI_TEST_HOST="+c.Folder, "TMPDIR="+t.TempDir())
	musttest.Do(t, cmd.Start())
	// The supervisor, the script and the survivor; its parent has gone.
	within(t, 20*time.Second, "three processes", func() bool { return alive(t, c.Folder) >= 3 })
	musttest.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	s := musttest.Get(New(nil).setup())(t)
	if s.guard.mode != modeInit {
		t.Skip("without a PID namespace descendants outlive a killed host, as Protections says")
	}
	within(t, 5*time.Second, "no process", func() bool { return alive(t, c.Folder) == 0 })
}

func within(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// A script of the host's own user cannot keep the host from looking: it may close a folder
// and write below it all the same.
func TestClosedFoldersCount(t *testing.T) {
	dir := t.TempDir()
	const nobody = 65534
	root := os.Geteuid() == 0
	if root { // who may look everywhere: the folders are another's, and a thread is that one
		musttest.Do(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, nobody, nobody)))
	}
	err := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this
		if root {
			if e := unix.Setfsuid(nobody); e != nil {
				err <- e
				return
			}
		}
		var all []error
		for _, mode := range []os.FileMode{0, 0o100, 0o300, 0o400, 0o600} {
			if e := closedCounts(filepath.Join(dir, "work"), mode); e != nil {
				all = append(all, fmt.Errorf("mode %o: %w", mode, e))
			}
		}
		err <- errors.Join(all...)
	}()
	if err := <-err; err != nil {
		t.Error(err)
	}
}

func closedCounts(work string, mode os.FileMode) error {
	closed := filepath.Join(work, "a", "closed")
	err := errors.Join(os.MkdirAll(closed, 0o700), os.WriteFile(filepath.Join(closed, "f"), make([]byte, 5000), 0o600), os.Chmod(closed, mode))
	if err != nil {
		return err
	}
	if err := filled(work, 20_000); err != nil {
		return fmt.Errorf("though it is little: %w", err)
	}
	if err := errors.Join(os.Chmod(closed, mode), os.Chmod(work, mode)); err != nil {
		return err
	}
	if err := filled(work, 3000); !errors.Is(err, errScratch) {
		return errors.Join(errors.New("what is closed does not count"), err, remove(work))
	}
	return errors.Join(os.Chmod(filepath.Join(work, "a"), mode), os.Chmod(work, mode), remove(work))
}
