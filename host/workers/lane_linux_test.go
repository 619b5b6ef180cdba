package workers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/workers"
	"openskill/sdk/skill"
)

// TestLanes makes many calls of one worker at once: each gets its own answer, and
// what they took is given back.
func TestLanes(t *testing.T) {
	p, r := pool(t, nil)
	run(t, r, "a", "say x")
	before := descriptors(t)
	const many = 60
	ctx, cancel := context.WithCancel(t.Context())
	var waiting, done sync.WaitGroup
	for range many / 2 {
		waiting.Go(func() {
			if got, err := r.Run(ctx, callOf("a", "wait")); err != nil || got.Code != skill.Cancelled {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	for p.Stats().Busy < many/2 {
		time.Sleep(time.Millisecond)
	}
	for i := range many {
		done.Go(func() {
			text := strings.Repeat(fmt.Sprint(i, " "), 1+i*i*30)
			for range 10 {
				if got, err := r.Run(t.Context(), callOf("a", "say "+text)); err != nil || string(got.Stdout) != text {
					t.Errorf("call %d: %d bytes of %d, %v", i, len(got.Stdout), len(text), err)
				}
			}
		})
	}
	done.Wait()
	cancel()
	waiting.Wait()
	if s := p.Stats(); s.Starts != 1 || s.Crashes != 0 || s.Busy != 0 {
		t.Errorf("%+v", s)
	}
	if after := descriptors(t); after > before+10 {
		t.Errorf("%d descriptors, and %d before", after, before)
	}
	if got := run(t, r, "a", "say on"); string(got.Stdout) != "on" {
		t.Errorf("%+v", got)
	}
}

// TestCancelledAtOnce cancels calls at every moment of their way: none is waited for
// to the end of its time, and the worker goes on.
func TestCancelledAtOnce(t *testing.T) {
	p, r := pool(t, nil)
	run(t, r, "a", "say x")
	for i := range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
		if got, err := r.Run(ctx, callOf("a", "wait")); err != nil || got.Code != skill.Cancelled {
			t.Fatalf("after %d µs: %+v, %v", i, got, err)
		}
		timer.Stop()
		cancel()
	}
	if s := p.Stats(); s.Starts != 1 || s.Crashes != 0 {
		t.Errorf("%+v: a call that was cancelled cost its worker", s)
	}
}

// asked is what a host does for guests in these tests.
type asked struct {
	t    *testing.T
	wait chan struct{} // closed when it may answer; nil: at once
}

func (a asked) For(call *skill.Call) skill.Fetch {
	return func(ctx context.Context, request []byte) []byte {
		if a.wait != nil {
			select {
			case <-a.wait:
			case <-ctx.Done():
			}
		}
		return []byte(call.Tenant + " asked " + string(request))
	}
}

// TestAsks holds that what a guest asks for comes to the call that it is in, and that
// one that gives up gets no answer that was for another question.
func TestAsks(t *testing.T) {
	_, r := pool(t, func(o *workers.Options) { o.Outgoing = asked{t: t} })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			tenant := fmt.Sprint("t", i%2)
			for n := range 20 {
				want := fmt.Sprintf("%s asked %d-%d", tenant, i, n)
				if got, err := r.Run(t.Context(), callOf(tenant, fmt.Sprintf("ask %d-%d", i, n))); err != nil || string(got.Stdout) != want {
					t.Errorf("%+v, %v; want %s", got, err, want)
				}
			}
		})
	}
	all.Wait()
	if got := run(t, r, "t0", "give up"); string(got.Stdout) != "t0 asked again" {
		t.Errorf("%s", got.Stdout)
	}
}

// TestAskedForever holds that a call ends in time, and by its own worker, though the
// host is still busy with what its guest asked for.
func TestAskedForever(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	p, r := pool(t, func(o *workers.Options) { o.Outgoing = asked{t: t, wait: never} })
	run(t, r, "a", "say x")
	c := callOf("a", "ask for ever")
	c.Limits.Timeout = 100 * time.Millisecond
	began := time.Now()
	got, err := r.Run(t.Context(), c)
	if took := time.Since(began); err != nil || took > 5*time.Second || took < 100*time.Millisecond {
		t.Errorf("%+v, %v after %s", got, err, took)
	}
	if got := run(t, r, "a", "say on"); string(got.Stdout) != "on" {
		t.Errorf("%+v", got)
	}
	if s := p.Stats(); s.Crashes > 0 {
		t.Errorf("%+v", s)
	}
}
