package workers_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"openskill/host/workers"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestWorldOfAWorker asks from inside what the kernel lets a worker do.
func TestWorldOfAWorker(t *testing.T) {
	t.Run("started for a key", func(t *testing.T) { world(t, -1, true) })
	t.Run("spare", func(t *testing.T) {
		if !workers.Narrows {
			t.Skip("with C's threads a spare worker cannot give up folders, and is not used; CGO_ENABLED=0 go test runs this")
		}
		world(t, 1, true)
	})
	t.Run("where the kernel gives no namespace", func(t *testing.T) {
		workers.RefuseNamespaces(t)
		world(t, -1, false)
	})
}

func world(t *testing.T, spares int, apart bool) {
	t.Helper()
	open, closed := t.TempDir(), t.TempDir()
	for _, dir := range []string{open, closed} {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o600))
	}
	p, r := pool(t, func(o *workers.Options) {
		o.Folders, o.Spares = []string{open, closed}, spares
		o.FoldersOf = func(string, *skill.Call) []string { return []string{open} }
	})
	run(t, r, "somebody else", "say x") // after which there are spares
	for spares > 0 && p.Stats().Spares == 0 {
		time.Sleep(time.Millisecond)
	}
	run(t, r, "a", "say x")
	on := map[string]bool{}
	for _, held := range p.Stats().Held {
		on[held.Name] = held.On
		t.Logf("%+v", held)
	}
	if on["names"] != (apart && workers.MayMount()) {
		t.Errorf("names are closed: %v", on["names"])
	}
	elsewhere, seen := "no such file", "no such file"
	if !on["names"] {
		elsewhere, seen = "permission denied", "<nil>"
	}
	sibling := elsewhere
	if spares > 0 {
		sibling = "permission denied" // spares begin with the folders of all
	}
	for _, c := range []struct{ does, needs, want string }{
		{"look " + filepath.Join(open, "f"), "", "<nil>"},
		{"look /etc/passwd", "", seen},
		{"look /proc/1/environ", "", seen},
		{"look " + filepath.Dir(os.Args[0]), "", seen},
		{"env", "", "[]"},
		{"read " + filepath.Join(open, "f"), "", "content"},
		{"read " + filepath.Join(closed, "f"), "landlock", sibling},
		{"read /etc/passwd", "landlock", elsewhere},
		{"read /proc/1/environ", "landlock", elsewhere},
		{"files", "landlock", elsewhere},
		{"write " + filepath.Join(open, "new"), "landlock", "denied"},
		{"write " + filepath.Join(open, "new"), "seccomp", "not permitted"},
		{"socket", "seccomp", "-1 operation not permitted"},
		{"fork", "seccomp", "operation not permitted"},
		{"limit", "seccomp", "operation not permitted"},
		{"signal", "seccomp", "operation not permitted"},
	} {
		if c.needs != "" && !on[c.needs] {
			t.Logf("%s: not asked, %s is not to be had here", c.does, c.needs)
			continue
		}
		got := string(run(t, r, "a", c.does).Stdout)
		ok := strings.Contains(got, c.want)
		if strings.HasPrefix(c.does, "write") {
			ok = strings.Contains(got, "denied") || strings.Contains(got, "not permitted")
		}
		if !ok {
			t.Errorf("%s: %s; want %s", c.does, got, c.want)
		}
	}
	var queues unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &queues); err != nil || queues.Max == 4321 {
		t.Errorf("a worker has set a limit of the host: %+v, %v", queues, err)
	}
	for _, does := range []string{"connect", "exec"} {
		if !on["seccomp"] {
			continue
		}
		if got := run(t, r, "a", does); got.Code != skill.WorkerCrashed {
			t.Errorf("%s: %+v, and the process lives", does, got)
		}
	}
	if got := run(t, r, "a", "say on"); string(got.Stdout) != "on" {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestInheritedDescriptors: what the host itself was started with is not handed on: a pipe of
// a supervisor's, a file that a shell has left open.
func TestInheritedDescriptors(t *testing.T) {
	in, out, err := os.Pipe()
	musttest.Do(t, err)
	defer in.Close()
	defer out.Close()
	left := musttest.Get(unix.FcntlInt(out.Fd(), unix.F_DUPFD, 100))(t) // without FD_CLOEXEC, as one that was inherited
	defer unix.Close(left)
	_, r := pool(t, nil)
	if got := string(run(t, r, "a", "tell "+strconv.Itoa(left)).Stdout); !strings.Contains(got, "bad file descriptor") {
		t.Errorf("a worker writes to descriptor %d of its host: %s", left, got)
	}
}

// TestRestless holds that a worker which works without a call is ended, and one that
// waits is not.
func TestRestless(t *testing.T) {
	p, r := pool(t, nil)
	run(t, r, "quiet", "say x")
	run(t, r, "a", "spin")
	for began := time.Now(); p.Stats().Crashes == 0; time.Sleep(200 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("it spins: %+v", p.Stats())
		}
		p.Look()
	}
	if s := p.Stats(); s.Live != 1 || s.Crashes != 1 {
		t.Errorf("%+v", s)
	}
	if got := run(t, r, "quiet", "say on"); string(got.Stdout) != "on" {
		t.Errorf("who waited: %+v", got)
	}
}
