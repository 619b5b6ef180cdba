// This part is what callers get to see and do about calls that run or have run:
// their records, their results while these are kept, and an end before their own.
//
// A call that outlives its request runs in [Manager.Start]; it belongs to nobody's
// connection, only to its tenant's bound of such calls, to who cancels it, and to the
// host's end. Every call, long or not, is made known to [Manager.Track] by the door, and
// can be cancelled by who made it, from any host that shares the database: one that does
// not run it makes a note, which the one that does finds within [ManagerOptions.AskEvery].

package records

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// ExecutionRecords is where executions are looked up; [Store] is one.
type ExecutionRecords interface {
	Execution(ctx context.Context, tenant, id string) (*Execution, error)
	Executions(ctx context.Context, q Query) ([]*Execution, string, error)
}

// ErrNotKept is what Results says of what is not there, or not any more.
var ErrNotKept = errors.New("it is not kept")

// Item is one thing that is kept of an execution: a file that it left, its logs, or,
// without a name, its result.
type Item struct {
	Name string
	Data []byte
}

// rowBytes is about what a row of a database takes beside its name and its data.
const rowBytes = 200

// Size is what an item counts for: with its name and its row, so that empty ones count too.
func Size(name string, bytes int64) int64 { return rowBytes + int64(len(name)) + bytes }

// Room is how much may be kept.
type Room struct{ Bytes, Items int64 }

// Kept are things of one execution.
type Kept struct {
	Tenant      string
	ExecutionID string // UUID
	Items       []Item
	At, Until   time.Time // UTC
}

// Results keeps what runs left behind for a while. Implementations are safe for
// concurrent use, by several processes too; storetest is the suite that each one passes.
// Errors are as the database gave them; times are told by the caller.
type Results interface {
	// Put keeps all items or none; one that is there already is replaced. Where the
	// tenant has more than most then, what expires first of the tenant's goes until it has
	// not, but nothing of this execution. Bytes are counted by [Size].
	Put(ctx context.Context, k *Kept, most Room) error
	// Get gives the first most bytes of an item that has not expired by now, ErrNotKept if
	// there is none. tenant is that of the execution.
	Get(ctx context.Context, tenant, executionID, name string, most int, now time.Time) ([]byte, error)
	// Sizes gives the bytes of the items of an execution that have not expired by now, by name.
	Sizes(ctx context.Context, tenant, executionID string, now time.Time) (map[string]int, error)
	// Ask notes that an execution shall end; twice is once.
	Ask(ctx context.Context, executionID string, at time.Time) error
	// Asked gives those of ids, at most 4096, that shall end.
	Asked(ctx context.Context, ids []string) ([]string, error)
	// Sweep removes what has expired by now and what was asked a day before it, at most
	// limit of each, and says how many items went.
	Sweep(ctx context.Context, now time.Time, limit int) (int, error)
}

// Logs says of which runs the end of standard error is kept.
type Logs string

// The values of [Options.Logs].
const (
	LogsOfFailed Logs = "failed"
	LogsOfAll    Logs = "all"
)

// The default of [Options.MostOfAll].
const (
	MostBytesOfTenant = 1 << 30
	MostItemsOfTenant = 1_000_000
)

// ManagerOptions configure a [Manager]. Zero never means "unlimited".
type ManagerOptions struct {
	Records ExecutionRecords // required
	Results Results          // nil: nothing is kept, and calls end only on the host that runs them
	// Replay runs an execution again, and authorizes; nil: nothing is recorded here.
	Replay func(ctx context.Context, p skill.Principal, id string) (any, error)

	Keep      time.Duration // how long results, files and logs are kept; 0: an hour
	Logs      Logs          // of which runs logs are kept; "": of none
	Long      int           // calls under way that outlive their requests; 0: 64
	Alone     bool          // all callers are one tenant, which may have all of those
	MostOfOne int64         // bytes that are kept of one execution; 0: 64 MiB
	MostOfAll Room          // what is kept of one tenant's; 0: 1 GiB, a million items. At the limit the oldest make room

	Queue *QueueOptions // of calls that found no place; nil: they are refused

	AskEvery   time.Duration // between looks at what other hosts want ended; 0: 500 ms
	SweepEvery time.Duration // between removals of what has expired; 0: a minute
	EndWait    time.Duration // how long a cancellation waits to see the end; 0: 1 s

	Log *slog.Logger     // nil: slog.Default()
	Now func() time.Time // nil: the system's clock
}

func (o ManagerOptions) withDefaults() ManagerOptions {
	or(&o.Keep, time.Hour)
	or(&o.Long, 64)
	or(&o.MostOfOne, 64<<20)
	or(&o.MostOfAll.Bytes, MostBytesOfTenant)
	or(&o.MostOfAll.Items, MostItemsOfTenant)
	or(&o.AskEvery, 500*time.Millisecond)
	or(&o.SweepEvery, time.Minute)
	or(&o.EndWait, time.Second)
	if o.Queue != nil {
		q := *o.Queue
		or(&q.Most.Bytes, mostQueuedBytes)
		or(&q.Most.Items, mostQueuedItems)
		o.Queue = &q
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func or[T int | int64 | time.Duration](p *T, d T) {
	if *p <= 0 {
		*p = d
	}
}

// Manager is made by [New]. It is safe for concurrent use.
type Manager struct {
	o ManagerOptions

	base   context.Context //nolint:containedctx // the parent of long calls, ended by Close
	endAll context.CancelCauseFunc
	long   sync.WaitGroup
	places *gate.Gate // of long calls

	mu      sync.Mutex
	running map[string]*running // every call on this host, by execution
	behind  map[whose]time.Time // when queued calls were seen waiting
	lasting map[string]lasting  // calls on this host that stay in the queue until they have ended
	taken   map[string]bool     // queued calls that this host has taken; true of those that have not begun
	closed  bool
	working bool // queued calls run on this host

	queued atomic.Int64  // calls in the database, as they were counted last
	wake   chan struct{} // a call was queued, or a place is free
}

// NewManager makes a manager. It starts nothing; see [Manager.Tend].
func NewManager(o ManagerOptions) (*Manager, error) {
	if o.Records == nil {
		return nil, errors.New("executions.New: Records is required")
	}
	o = o.withDefaults()
	m := &Manager{o: o, running: map[string]*running{}, behind: map[whose]time.Time{}, taken: map[string]bool{}, lasting: map[string]lasting{}, wake: make(chan struct{}, 1), places: gate.New(gate.Options{Places: o.Long, Alone: o.Alone})}
	m.base, m.endAll = context.WithCancelCause(context.Background())
	return m, nil
}

// Tend does what has to be done by the clock, until ctx ends: it ends calls that were
// cancelled on another host, and removes what has expired.
func (m *Manager) Tend(ctx context.Context) {
	if m.o.Results == nil {
		return
	}
	down := false // so that a database that is gone does not fill the log
	ask, sweep := time.NewTicker(m.o.AskEvery), time.NewTicker(m.o.SweepEvery)
	defer ask.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ask.C:
			err := m.endAsked(ctx)
			if err != nil && !down {
				m.log(ctx, "cannot read cancellations from other hosts", err)
			}
			down = err != nil
		case <-sweep.C:
			m.sweep(ctx)
		}
	}
}

// sweepStep is how many items are removed at once, so that no other writer waits long.
const sweepStep = 200

func (m *Manager) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		n, err := m.o.Results.Sweep(ctx, m.o.Now().UTC(), sweepStep)
		if err != nil {
			m.log(ctx, "cannot remove expired results", err)
		}
		if err != nil || n < sweepStep {
			return
		}
	}
}

// Drain refuses long calls from now on, and waits until those under way have ended, or for ctx, whose error it
// gives then.
func (m *Manager) Drain(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.giveBack()
	done := make(chan struct{})
	go func() {
		m.long.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends long calls, and waits for their ends to be on record, or for ctx, whose
// error it gives then. What comes afterwards is refused. It may be called twice.
func (m *Manager) Close(ctx context.Context) error {
	m.handOver()
	m.endAll(errStopping)
	return m.Drain(ctx)
}

func (m *Manager) log(ctx context.Context, message string, err error) {
	if ctx.Err() == nil {
		m.o.Log.LogAttrs(ctx, slog.LevelWarn, "executions", slog.String("problem", message), slog.String("error", err.Error()))
	}
}

func notFound() error {
	return &skill.Error{Op: "executions.find", Code: skill.NotFound, Message: "execution not found"}
}

// unavailable makes an error for callers of one of a store.
func cannotKeep(op string, err error) error {
	if _, ok := errors.AsType[*skill.Error](err); ok {
		return err
	}
	return &skill.Error{Op: op, Code: skill.AuditUnavailable, Message: "the records are unavailable; retry", Err: err}
}
