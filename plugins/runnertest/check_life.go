package runnertest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"openskill/sdk/skill"
)

func ready(b *bench) {
	c := b.call(Program{Do: Echo})
	if _, err := b.runner.Prepare(context.Background(), c.Spec()); err != nil {
		b.t.Errorf("Prepare: %v", err)
	}
	if b.runner.Kind() == "" {
		b.t.Error("Kind is empty")
	}
}

// refusal checks an error that a caller is told.
func (b *bench) refusal(what string, err error, folder string) {
	b.t.Helper()
	var e *skill.Error
	if !errors.As(err, &e) {
		b.t.Errorf("%s: %v; want a *skill.Error", what, err)
		return
	}
	if !e.Code.Known() {
		b.t.Errorf("%s: code %q is not a published one", what, e.Code)
	}
	b.message(e.Message)
	if strings.Contains(e.Message, folder) {
		b.t.Errorf("%s: message %q tells a path of the host", what, e.Message)
	}
}

// outside are entries that are not there or lead out of the folder.
func (b *bench) outside() []string {
	return []string{"none-such-entry", "../none-such-entry", "", "."}
}

func prepareMissing(b *bench) {
	dir := b.t.TempDir()
	for _, entry := range b.outside() {
		_, err := b.runner.Prepare(context.Background(), &skill.Spec{SkillID: "conformance", Folder: dir, Entry: entry, Trust: b.Trust})
		b.refusal("Prepare with the entry "+strconv.Quote(entry), err, dir)
	}
	b.healthy()
}

// ahead gets ready for a call, which is not run: it leaves nothing.
func ahead(b *bench) {
	c := b.call(Program{Do: WriteWork, N: 8, Names: []string{"a"}}, scratch(1<<20))
	c.Ahead = true
	if r := b.do(context.Background(), c); r.Code != "" || len(r.Stdout) > 0 || len(r.Artifacts) > 0 {
		b.t.Errorf("a call that was not to be run left %+v", r)
	}
	b.healthy()
}

func closeTwice(b *bench) {
	b.healthy()
	for i := range 2 {
		if err := b.runner.Close(); err != nil {
			b.t.Errorf("Close, time %d: %v", i+1, err)
		}
	}
	if r, err := Do(context.Background(), b.runner, b.call(Program{Do: Echo})); err == nil {
		b.t.Errorf("a closed runner ran: %+v", r)
	}
}

func closeWaits(b *bench) {
	c := b.call(Program{Do: Sleep, N: 300})
	done := make(chan error, 1)
	go func() {
		r, err := Do(context.Background(), b.runner, c)
		if err == nil && r == nil {
			err = errors.New("neither a reply nor an error")
		}
		done <- err
	}()
	// Whether Close comes before or after the start of the run is left open:
	// then the run is refused, or it is over when Close returns.
	time.Sleep(50 * time.Millisecond)
	if err := b.runner.Close(); err != nil {
		b.t.Errorf("Close: %v", err)
	}
	select {
	case <-done:
	case <-time.After(slack):
		b.t.Error("a run goes on after Close has returned")
	}
}

// footprint is what a process holds.
type footprint struct{ goroutines, descriptors, children int }

// measure counts; descriptors and children are -1 where the system has no /proc.
func measure() footprint {
	f := footprint{goroutines: runtime.NumGoroutine(), descriptors: -1, children: -1}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		f.descriptors = len(fds)
	}
	proc := os.DirFS("/proc")
	if stats, err := fs.Glob(proc, "[0-9]*/stat"); err == nil && f.descriptors >= 0 {
		f.children = 0
		self := strconv.Itoa(os.Getpid())
		for _, name := range stats {
			b, err := fs.ReadFile(proc, name)
			if err != nil {
				continue
			}
			// The fields after the name, which may hold anything: state, parent.
			after := string(b[strings.LastIndexByte(string(b), ')')+1:])
			if fields := strings.Fields(after); len(fields) > 1 && fields[1] == self {
				f.children++
			}
		}
	}
	return f
}

func leaks(b *bench) {
	busy := func(r *bench) {
		r.healthy()
		r.run(Program{Do: Spin}, timeout(r.start()))
		r.run(Program{Do: PrintForever}, output(1<<16))
		r.run(Program{Do: WriteWork, N: 8, Names: []string{"a"}}, scratch(1<<20))
		ctx, stop := context.WithTimeout(context.Background(), r.start())
		defer stop()
		r.do(ctx, r.call(Program{Do: Sleep, N: 600_000}))
	}
	round := func(r *bench) {
		busy(r)
		if err := r.runner.Close(); err != nil {
			r.t.Errorf("Close: %v", err)
		}
	}
	// The first round opens what lives as long as the process, some of it after the
	// last reply; the second, on a runner of its own, must leave nothing behind.
	round(b)
	before := measure()
	round(&bench{Harness: b.Harness, t: b.t, runner: b.New(b.t)})
	eventually(b.t, 5*time.Second, func() (string, bool) {
		now := measure()
		return "before " + show(before) + ", after " + show(now),
			now.goroutines <= before.goroutines && now.descriptors <= before.descriptors && now.children <= before.children
	})
}

func show(f footprint) string {
	return strconv.Itoa(f.goroutines) + " goroutines, " + strconv.Itoa(f.descriptors) + " descriptors, " + strconv.Itoa(f.children) + " child processes"
}

// eventually polls until ok or the time is over, and then says the last state.
func eventually(t testing.TB, within time.Duration, ok func() (string, bool)) {
	t.Helper()
	end := time.Now().Add(within)
	for {
		what, good := ok()
		if good {
			return
		}
		if time.Now().After(end) {
			t.Errorf("not within %v: %s", within, what)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
