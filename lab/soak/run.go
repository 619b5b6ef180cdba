package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"openskill/lab/load"
)

// Run is one soak. All but Log, Uploads and State must be set.
type Run struct {
	Target   *load.Target
	PID      int           // of the host's process
	State    string        // its state folder; empty: its size is not followed
	Clients  int           // that call at once, each as soon as it is answered
	Duration time.Duration // after which it ends
	Calls    int64         // or after so many; 0: no bound
	Every    time.Duration // between two samples
	Upload   []byte        // a module that answers as the skill echo; nil: nothing is uploaded
	Kinds    []Kind
	Log      func(string) // is told now and then how it goes; may be nil
}

// Tally is what became of the calls of one kind.
type Tally struct {
	Name  string `json:"kind"`
	Calls int64  `json:"calls"`
	Wrong int64  `json:"wrong"` // that ended otherwise than they should
}

// Outcome is what a run was.
type Outcome struct {
	Took      time.Duration
	Calls     int64
	Wrong     int64
	Kinds     []Tally
	Said      []string // the first wrong answers
	Samples   []Sample
	Goroutine bool // whether the host told its goroutines
	Ended     bool // by the caller, before its time
}

// mostSaid is how many wrong answers are shown.
const mostSaid = 10

// between is how many calls there are from one upload to the next. It is not a time: a
// worker is replaced after so many calls, and what it holds of versions that are no longer
// called would follow how fast the machine is.
const between = 1000

// Do calls until the time is over, the calls are made, or ctx ends. The error is one of
// looking at the host; wrong answers are in the outcome.
func (r *Run) Do(ctx context.Context) (*Outcome, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	s := &state{Run: r, tallies: make([]tally, len(r.Kinds)+1), order: NewOrder(r.Kinds), due: make(chan struct{}, 1)}
	var wg sync.WaitGroup
	calling, done := context.WithCancel(ctx)
	defer done()
	for range r.Clients {
		wg.Go(func() { s.call(calling) })
	}
	var uploads sync.WaitGroup
	if r.Upload != nil {
		uploads.Go(func() { s.upload(calling) })
	}
	clients := make(chan struct{})
	go func() { wg.Wait(); close(clients) }()

	out := &Outcome{Goroutine: true}
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	var failed error
	spoke := began
	sample := func() {
		now := Sample{At: time.Since(began), Calls: s.ended.Load()}
		if failed = look(r.PID, &now); failed != nil {
			failed = fmt.Errorf("the host cannot be looked at: %w", failed)
			return
		}
		out.Goroutine = told(r.Target, &now) && out.Goroutine
		if now.Disk = -1; r.State != "" {
			now.Disk = sizeOf(r.State)
		}
		out.Samples = append(out.Samples, now)
		if r.Log != nil && time.Since(spoke) >= 10*time.Second {
			spoke = time.Now()
			r.Log(fmt.Sprintf("%s: %d calls, %d wrong; host %.0f MB, %.0f workers %.0f MB", now.At.Round(time.Second), now.Calls, s.wrong.Load(),
				now.HostRSS/1e6, now.Workers, now.WorkersRSS/1e6))
		}
	}
	for sample(); failed == nil; sample() {
		select {
		case <-clients:
		case <-tick.C:
			continue
		}
		break
	}
	done()
	<-clients
	uploads.Wait()
	out.Took, out.Calls, out.Wrong = time.Since(began), s.ended.Load(), s.wrong.Load()
	out.Ended = errors.Is(context.Cause(ctx), context.Canceled) && (r.Calls == 0 || out.Calls < r.Calls)
	for i := range s.tallies {
		name := "upload, enable, call, delete"
		if i < len(r.Kinds) {
			name = r.Kinds[i].Name
		} else if r.Upload == nil {
			continue
		}
		out.Kinds = append(out.Kinds, Tally{name, s.tallies[i].calls.Load(), s.tallies[i].wrong.Load()})
	}
	out.Said = s.said
	return out, failed
}

type tally struct{ calls, wrong atomic.Int64 }

// state is what clients share.
type state struct {
	*Run

	order        Order
	due          chan struct{} // an upload
	next         atomic.Int64
	ended, wrong atomic.Int64
	tallies      []tally // the last one is that of uploads

	mu   sync.Mutex
	said []string
}

// call is one client.
func (s *state) call(ctx context.Context) {
	for ctx.Err() == nil {
		n := s.next.Add(1)
		if s.Calls > 0 && n > s.Calls {
			return
		}
		if n%between == 0 {
			select {
			case s.due <- struct{}{}:
			default: // the one before is under way still
			}
		}
		i := s.order.Of(n)
		k := &s.Kinds[i]
		r, want := k.Request(n)
		a, err := s.Target.Do(r)
		s.count(i, k.Name, k.Wrong(a, err, want))
	}
}

// upload sends a version at once, and then whenever one is due.
func (s *state) upload(ctx context.Context) {
	u := uploader{s.Target, s.Upload}
	for n := 1; ; n++ {
		s.count(len(s.Kinds), "upload", u.cycle(n))
		select {
		case <-ctx.Done():
			return
		case <-s.due:
		}
	}
}

func (s *state) count(kind int, name, wrong string) {
	s.ended.Add(1)
	s.tallies[kind].calls.Add(1)
	if wrong == "" {
		return
	}
	s.wrong.Add(1)
	s.tallies[kind].wrong.Add(1)
	s.mu.Lock()
	if len(s.said) < mostSaid {
		s.said = append(s.said, name+": "+wrong)
	}
	s.mu.Unlock()
}
