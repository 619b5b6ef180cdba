package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

func write(t *testing.T, folder string, files ...string) {
	t.Helper()
	for _, name := range files {
		musttest.Write(t, filepath.Join(folder, filepath.FromSlash(name)), "x")
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "main.go", "sub/deep/a.go", "skill.yaml", "main.wasm", "other.wasm",
		".main.go.swp", "main.go~", "#main.go#", "main.go.swp", "x.tmp", "4913", ".git/config", "target/release/a", "node_modules/a/index.js",
		"__pycache__/a.pyc", "a.pyc", "Cargo.lock", ".build-123")
	if err := os.Symlink("main.go", filepath.Join(dir, "link.go")); err != nil {
		t.Log(err) // where there are no links there is none to leave out
	}
	before := musttest.Get(Look(dir, "main.wasm"))(t)
	if diff := cmp.Diff([]string{"main.go", "other.wasm", "skill.yaml", "sub/deep/a.go"}, before.Changed(nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write(t, dir, "main.wasm", "new.go")
	old := time.Now().Add(-time.Hour)
	musttest.Do(t, errors.Join(os.Chtimes(filepath.Join(dir, "main.go"), old, old), os.Remove(filepath.Join(dir, "sub", "deep", "a.go")), os.Truncate(filepath.Join(dir, "skill.yaml"), 0)))
	after, err := Look(dir, "main.wasm")
	if diff := cmp.Diff([]string{"main.go", "new.go", "skill.yaml", "sub/deep/a.go"}, after.Changed(before)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if files, err := Look(filepath.Join(dir, "none")); err == nil {
		t.Errorf("no folder: %v", files)
	}
}

func TestLookBounds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes ten thousand files")
	}
	dir := t.TempDir()
	for i := range MaxFiles {
		write(t, dir, fmt.Sprint("f", i))
	}
	if files, err := Look(dir); err != nil || len(files) != MaxFiles {
		t.Fatalf("%d files, %v", len(files), err)
	}
	write(t, dir, "one-more")
	if _, err := Look(dir); err == nil {
		t.Error("more files than there may be, and no error")
	}
}

// A loop whose files, ticks and work a test has in its hands.
type loop struct {
	t     *testing.T
	files Files
	looks chan Files
	tick  chan time.Time
	work  chan job
	ended chan error
	stop  context.CancelFunc
}

type job struct {
	changed []string
	ctx     context.Context
	done    chan struct{}
}

func start(t *testing.T) *loop {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &loop{t: t, files: Files{"a": {1, time.Time{}}}, looks: make(chan Files), tick: make(chan time.Time), work: make(chan job), ended: make(chan error, 1), stop: stop}
	run := &Loop{
		Look: func() (Files, error) {
			f := <-l.looks
			if f == nil {
				return nil, errors.New("gone")
			}
			return f, nil
		},
		Work: func(ctx context.Context, changed []string) bool {
			j := job{changed, ctx, make(chan struct{})}
			l.work <- j
			select {
			case <-j.done:
				return true
			case <-ctx.Done():
			}
			select {
			case <-j.done: // both
				return true
			default:
				return false
			}
		},
		Tick: l.tick,
	}
	go func() { l.ended <- run.Run(ctx) }()
	t.Cleanup(stop)
	l.looks <- l.files
	return l
}

// see lets the loop look once, and find these files.
func (l *loop) see(f Files) {
	l.t.Helper()
	l.tick <- time.Time{}
	l.looks <- f
}

// works wants that the work is begun for these files, sooner or later while all rests as
// it is in f; nil: at once.
func (l *loop) works(f Files, changed ...string) job {
	l.t.Helper()
	tick := l.tick
	if f == nil {
		tick = nil
	}
	for {
		select {
		case tick <- time.Time{}:
			l.looks <- f
		case j := <-l.work:
			if diff := cmp.Diff(changed, j.changed); diff != "" {
				l.t.Errorf("changed (-want +got):\n%s", diff)
			}
			return j
		}
	}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	at := func(sizes ...int64) Files {
		f := Files{}
		for i, s := range sizes {
			f[string(rune('a'+i))] = Stamp{Size: s}
		}
		return f
	}
	l := start(t)
	j := l.works(nil)
	l.see(at(1)) // nothing has changed
	if j.ctx.Err() != nil {
		t.Error("ended without a change")
	}
	l.see(at(2)) // and changes again,
	l.see(at(3))
	l.see(at(3, 1))
	if j.ctx.Err() != nil {
		t.Error("ended while files were still changing")
	}
	l.see(at(3, 1)) // until it rests
	<-j.ctx.Done()
	j = l.works(nil) // all that there is, since none of it was done
	l.see(at(3, 2))
	l.see(at(3, 2))
	<-j.ctx.Done()
	j = l.works(nil)
	close(j.done)
	j = l.works(at(3, 3), "b") // after the work, which is not interrupted
	l.see(at(4, 3))            // what was interrupted is still to be done
	l.see(at(4, 3))
	<-j.ctx.Done()
	j = l.works(nil, "a", "b")
	close(j.done)
	j = l.works(at(4), "b") // one that is gone
	l.stop()
	<-j.ctx.Done()
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
}

func TestLoopOfAFolderThatGoes(t *testing.T) {
	t.Parallel()
	for name, idle := range map[string]bool{"while it works": false, "while it waits": true} {
		l := start(t)
		j := l.works(nil)
		if idle {
			close(j.done)
			l.see(l.files)
		}
		l.see(nil)
		if err := <-l.ended; err == nil || j.ctx.Err() == nil {
			t.Errorf("%s: %v, %v", name, err, j.ctx.Err())
		}
	}
}

func TestLoopThatIsEnded(t *testing.T) {
	t.Parallel()
	l := start(t)
	close(l.works(nil).done)
	l.stop()
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
}
