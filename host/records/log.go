package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"openskill/sdk/skill"
)

// Options of a [Log]. Store is required.
type Options struct {
	Store      Store
	Policy     Policy           // what is kept of inputs and outputs; "": their hashes
	MaxPayload int              // bytes that are kept of either; 0: 16 KiB
	Retention  time.Duration    // how long records are kept; 0: 400 days
	Instance   string           // of this host, unlike all others; "": [NewInstance]
	Log        *slog.Logger     // nil: slog.Default()
	Now        func() time.Time // nil: the system's clock

	// Journal is a folder for records that the database does not have yet: they outlive the
	// process there, and calls do not wait for the database. "": they wait. Direct has them wait
	// all the same, and what others left there is written. Sync waits for the disk, so that
	// they outlive a power cut too.
	Journal string
	Direct  bool
	Sync    bool

	Wait  time.Duration // how long a call waits for its record; 0: 2 s
	Queue int           // calls that may wait for their first record; 0: 4096
	Open  int           // calls on record that have not ended on record; 0: 8192
	Batch int           // entries that are written at once; 0: 256

	Segment int // bytes of a file of the journal, after which there is another one; 0: 4 MiB
}

// Bounds and intervals that nobody needs to choose.
const (
	maxWaiting = 64 << 20 // bytes of bodies that wait to be written
	maxBatch   = 4 << 20  // bytes of bodies that are written at once
	probeEvery = 250 * time.Millisecond
	aliveEvery = 5 * time.Second

	contestedWait = time.Minute
	deadAfter     = 15 * time.Second // how long after it was last seen a host counts as gone
)

// Log writes records. What waits at the same time is written in one transaction, by one
// goroutine; a record that comes alone waits for nobody. It is safe for concurrent use.
//
// While the store cannot take records no call may begin: [Log.Started] fails at once.
// What has begun ends nevertheless; its last record is kept in memory, for which each
// call reserves a place when it begins, and is written when the store works again, which
// the Log finds out by itself.
type Log struct {
	o       Options
	wake    chan struct{} // there is something to write, or to end
	nudge   chan struct{} // the store works again: look at what is in doubt
	stop    context.CancelFunc
	drained chan struct{} // closed when the writer has ended
	kept    chan struct{} // closed when the keeper has

	journal *journal // nil: every call waits for the database

	skew atomic.Int64 // how far the clock of this host is ahead of the database's, in nanoseconds

	mu      sync.Mutex
	waiting []*job            // in the order in which it came
	starts  int               // of these, records of beginnings
	bytes   int               // of their bodies
	urgent  int               // of these, what somebody waits for
	late    map[string]int    // of these, by tenant, ends of calls that could not be written in time
	since   time.Time         // when the first of these came
	writing []*job            // what the database is given now
	held    map[string][]*job // what waits for chains that another host holds, by tenant; nil: nothing does
	places  uint64            // how many ever waited

	coming     int            // what the journal is given now
	unwritable bool           // the journal did not take what it was given last
	sure       map[string]int // records of the journal that the database may not have, by tenant
	asked      []*question    // who waits for the database to have them
	pace       time.Duration  // what the database needs for a record
	heard      time.Time      // when other hosts could see last that this one is alive

	full   map[string]bool // tenants whose records take all the room that they may
	open   map[string]*run // what has begun, and what may have, by its id
	down   bool            // the store did not take what was written last
	silent bool            // the store was not told that this host is alive, when that was tried last
	closed bool
	ending bool      // the writer ends when nothing waits
	steady time.Time // since when the database hears from this host without a gap
}

// run is a call that has begun and has no end on record, or is in doubt.
type run struct {
	started *Started
	begun   bool      // its beginning is on record
	ended   bool      // its end waits to be written
	handed  bool      // another host goes on with it
	doubt   bool      // it was refused, but its beginning may be on record
	forget  time.Time // when what is in doubt and not on record will not come any more
}

// job is an entry that waits to be written.
type job struct {
	entry   *Entry
	done    chan error // of capacity 1; nil: no caller waits
	at      uint64     // its place among all that ever waited
	sure    bool       // it is in the journal, and its caller was told so
	segment *segment   // that has it; nil: that of another host
	gone    bool       // of a beginning: its caller was refused meanwhile
	late    bool       // of an end: its caller was told that it could not be written
	slim    bool       // of an end: it was stripped of all that a guest wrote
	again   bool       // of an end: somebody will ask for it again, so that it need not be kept

	foreign bool  // another record stands in its place
	unsure  error // of a beginning: why it cannot be told whether that is so
}

// Open makes a Log, says that this host is alive, and ends on record what hosts that
// are not alive any more left.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.Store == nil {
		return nil, errors.New("audit.Open: Store is required")
	}
	if o.Policy == "" {
		o.Policy = KeepHash
	}
	if !o.Policy.Known() {
		return nil, fmt.Errorf("audit.Open: there is no policy %q", o.Policy)
	}
	defaultTo(&o.MaxPayload, 16<<10)
	defaultTo(&o.Retention, 400*24*time.Hour)
	defaultTo(&o.Wait, 2*time.Second)
	defaultTo(&o.Queue, 4096)
	defaultTo(&o.Open, 8192)
	defaultTo(&o.Batch, 256)
	defaultTo(&o.Segment, 4<<20)
	if o.Instance == "" {
		o.Instance = NewInstance()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	before := o.Now()
	there, err := o.Store.Alive(ctx, o.Instance)
	if err != nil {
		return nil, unavailable("audit.Open", "cannot write records to the database", err)
	}
	own, stop := context.WithCancel(context.WithoutCancel(ctx)) // a Log outlives the call that opens it
	l := &Log{
		o: o, stop: stop, open: map[string]*run{}, late: map[string]int{}, full: map[string]bool{}, sure: map[string]int{},
		wake: make(chan struct{}, 1), nudge: make(chan struct{}, 1), drained: make(chan struct{}), kept: make(chan struct{}),
	}
	l.steady = o.Now()
	l.compareClocks(before, there, o.Now())
	go l.write(own)
	if err := l.feedLeft(ctx); err != nil {
		stop()
		<-l.drained
		return nil, unavailable("audit.Open", "cannot write the records of a host that crashed to the database", err)
	}
	if o.Journal != "" && !o.Direct {
		l.mu.Lock()
		l.journal = newJournal(o.Journal, o.Segment, o.Sync)
		l.mu.Unlock()
	}
	l.endDead(ctx)
	l.endOrphans(ctx)
	go l.keep(own)
	return l, nil
}

func defaultTo[T int | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

// Instance is the name of this host in records.
func (l *Log) Instance() string { return l.o.Instance }

// Store is where records are. What it says of executions and of the ends of chains contains all that was
// on record before a question.
func (l *Log) Store() Store { return current{l.o.Store, l} }

// Started puts on record that a call begins, with what the policy keeps of its input; it
// sets Instance and Input, and Time where it is zero. When it returns nil the record
// outlives the process. An error is a *skill.Error, AUDIT_UNAVAILABLE or, when ctx
// ended, CANCELLED: the call must not begin then, and if it came to be on record after
// all, it is ended there.
func (l *Log) Started(ctx context.Context, s *Started, input []byte) error {
	if s.Again {
		return l.resume(ctx, s)
	}
	s.Instance, s.Input = l.o.Instance, l.o.Policy.Payload(input, l.o.MaxPayload)
	s.Time = l.moment(s.Time)
	kept := *s
	e, err := startedEntry(&kept)
	if err != nil {
		return err
	}
	j := &job{entry: e, done: make(chan error, 1)}
	fast, err := l.begin(ctx, j)
	if err != nil {
		return err
	}
	if fast && l.journaled(j) {
		return nil
	}
	wait := l.o.Wait
	if s.Contested { // nobody waits for its call, and it should run
		wait = contestedWait
	}
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case err := <-j.done:
		return err
	case <-limit.C:
		err = unavailable("audit.Started", refusedMessage, errors.New("the database did not respond in time"))
	case <-ctx.Done():
		err = &skill.Error{Op: "audit.Started", Code: skill.Cancelled, Message: "the client disconnected before the call began", Err: ctx.Err()}
	}
	l.mu.Lock()
	select {
	case written := <-j.done: // at the same moment
		l.mu.Unlock()
		return written
	default:
	}
	j.gone = true
	_, held := l.held[s.Tenant]
	l.mu.Unlock()
	if skill.CodeOf(err) == skill.AuditUnavailable && !held { // which says nothing of the database
		l.fell(err)
	}
	return err
}

// unlessBegun calls do unless an execution has begun or its beginning is being written.
func (l *Log) unlessBegun(id string, do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[id] == nil {
		do()
	}
}

// steadily reports whether the database hears from this host for long enough that others, of which it does not, are gone.
func (l *Log) steadily() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.o.Now().Sub(l.steady) >= deadAfter
}

// Ready is nil while the store takes records, as far as is known: by the last record, and
// by what is written every five seconds without a call.
func (l *Log) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down || l.silent {
		return unavailable("audit.Ready", "audit log unavailable: the database rejects writes; retrying every few seconds", nil)
	}
	return nil
}

// begin reserves a place for a call. Its first record waits, or fast says that the journal
// shall have it first.
func (l *Log) begin(ctx context.Context, j *job) (fast bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := j.entry.Started
	var why string
	switch {
	case s.Contested && ctx.Err() != nil: // by unlessBegun, perhaps
		return false, &skill.Error{Op: "audit.Started", Code: skill.Cancelled, Message: "the call was taken back before it began", Err: context.Cause(ctx)}
	case l.closed:
		return false, unavailable("audit.Started", stoppingMessage, nil)
	case l.open[s.ExecutionID] != nil && !l.open[s.ExecutionID].begun:
		why = "it cannot be told yet whether an earlier start was recorded"
	case l.open[s.ExecutionID] != nil:
		return false, misused("audit.Started", s.ExecutionID, "the execution has already begun")
	case l.down:
		why = "the database rejects records"
	case l.late[s.Tenant] > 0:
		why = "records of finished calls are waiting to be written"
	case len(l.held[s.Tenant]) >= mostHeld, l.held[s.Tenant] != nil && l.heldFull(j):
		why = "another host has locked the tenant's records"
	case l.starts >= l.o.Queue, l.bytes+len(j.entry.Body) > maxWaiting:
		why = "too many records are waiting to be written"
	case len(l.open) >= l.o.Open:
		why = "too many calls are running"
	}
	if why != "" {
		return false, unavailable("audit.Started", refusedMessage, errors.New(why))
	}
	l.open[s.ExecutionID] = &run{started: s}
	if fast = l.fast(j); !fast {
		l.push(j)
	}
	return fast, nil
}

// Finished puts on record how a call ended, with what the policy keeps of its output; it
// sets ExecutionID and Output of f, and Time where it is zero. It does not end with ctx:
// a caller who left is no reason to have no record. An error, AUDIT_UNAVAILABLE, says that
// the record could not be written in time; it is kept and written later.
func (l *Log) Finished(_ context.Context, of *Started, f *Finished, output []byte) error {
	f.ExecutionID, f.Output = of.ExecutionID, l.o.Policy.Payload(output, l.o.MaxPayload)
	f.Time = l.moment(f.Time)
	kept := *f
	kept.Message = l.o.Policy.message(f.Message)
	kept.Artifacts, kept.Unlisted = l.o.Policy.artifacts(f.Artifacts)

	began := *of
	e, err := finishedEntry(&began, &kept)
	if err != nil { // it cannot be: but the call must have an end
		e = strippedEntry(&began, &kept)
	}
	j := &job{entry: e, done: make(chan error, 1)}
	fast, err := l.end(j)
	if err != nil {
		return err
	}
	if fast && l.journaled(j) {
		return nil
	}
	limit := time.NewTimer(l.o.Wait)
	defer limit.Stop()
	select {
	case err := <-j.done:
		return err
	case <-limit.C:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case err = <-j.done: // at the same moment
		return err
	default:
	}
	l.delay(j)
	return unavailable("audit.Finished", withheldMessage, errors.New("the database did not respond in time"))
}

// end does for the last record of a call what begin does for the first.
func (l *Log) end(j *job) (fast bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.open[j.entry.ExecutionID]
	switch {
	case r != nil && r.handed:
		delete(l.open, j.entry.ExecutionID)
		return false, &skill.Error{Op: "audit.Finished", Code: skill.Cancelled, Message: "the host is shutting down; another one goes on with the call"}
	case r != nil && r.begun && !r.ended:
		r.ended, j.entry.Of = true, r.started
		if fast = l.fast(j); !fast {
			l.push(j)
		}
		return fast, nil
	case l.closed:
		return false, unavailable("audit.Finished", "the host stopped before the call finished", nil)
	}
	return false, misused("audit.Finished", j.entry.ExecutionID, "the execution has not begun or has already ended")
}

// misused is a mistake of the program around it.
func misused(op, id, message string) error {
	return &skill.Error{Op: op, Code: skill.Internal, Subject: id, Message: message}
}

// Close ends on record what has begun and not ended, writes what waits, as long as ctx
// lasts, and says that this host is gone. It may be called twice.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	again := l.closed
	if !again {
		l.closed, l.ending = true, true
		l.refuseWaiting(unavailable("audit.Started", stoppingMessage, nil))
		for _, r := range l.open {
			if r.begun && !r.ended && !r.handed {
				r.ended = true
				l.push(&job{entry: strippedEntry(r.started, l.terminated(skill.Cancelled, hostEnded))})
			}
		}
	}
	l.mu.Unlock()
	l.poke()
	var err error
	select {
	case <-l.drained:
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.stop()
	select {
	case <-l.kept:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if l.journal != nil && !again {
		err = errors.Join(err, l.journal.close())
	}
	switch {
	case err != nil: // what still waits and is in no journal is lost with this process; the next one ends it
		return fmt.Errorf("audit.Close: some records could not be written: %w", err)
	case again:
		return nil
	}
	return l.o.Store.Gone(ctx, l.o.Instance)
}

// moment is a time as records have it; a zero one is now.
func (l *Log) moment(t time.Time) time.Time {
	if t.IsZero() {
		t = l.o.Now()
	}
	return t.UTC().Truncate(time.Microsecond)
}

// What callers read.
const (
	refusedMessage  = "audit log unavailable: the call cannot be recorded; nothing ran; retry"
	stoppingMessage = "the host is shutting down; nothing ran; retry when it is back"
	withheldMessage = "the call finished, but its record cannot be written; its result is withheld"
	foreignMessage  = "another host assumed this one crashed and recorded the call as ended; its result is withheld"
	hostEnded       = "the host exited before the call finished"
)

// fullError is of what would be one record more than a tenant may have.
func fullError(op string) *skill.Error {
	return &skill.Error{
		Op: op, Code: skill.RateLimited, Err: ErrFull, Details: map[string]any{"retry_after_ms": pruneEvery.Milliseconds()},
		Message: "your tenant's record storage is full; retry when old records have expired, or ask the operator to raise records of OPENSKILL_STORAGE_MB",
	}
}

func unavailable(op, message string, cause error) *skill.Error {
	return &skill.Error{Op: op, Code: skill.AuditUnavailable, Message: message, Err: cause}
}

// terminated is the end of a call that has none of its own.
func (l *Log) terminated(code skill.Code, message string) *Finished {
	return &Finished{Status: Terminated, Code: code, Message: message, Time: l.moment(time.Time{})}
}

func startedEntry(s *Started) (*Entry, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return nil, &skill.Error{Op: "audit.Started", Code: skill.Internal, Subject: s.ExecutionID, Message: "cannot create the record", Err: err}
	}
	return &Entry{
		Record:  Record{Tenant: s.Tenant, Kind: KindStarted, ExecutionID: s.ExecutionID, Time: s.Time, Body: body},
		Started: s,
	}, nil
}

func finishedEntry(of *Started, f *Finished) (*Entry, error) {
	f.ExecutionID = of.ExecutionID
	body, err := json.Marshal(f)
	if err != nil {
		return nil, &skill.Error{Op: "audit.Finished", Code: skill.Internal, Subject: of.ExecutionID, Message: "cannot create the record", Err: err}
	}
	return &Entry{
		Record:   Record{Tenant: of.Tenant, Kind: KindFinished, ExecutionID: of.ExecutionID, Time: f.Time, Body: body},
		Finished: f, Of: of,
	}, nil
}

// plainMessages are the messages that the Log itself writes.
var plainMessages = map[string]bool{hostEnded: true, notConfirmed: true}

// strippedEntry is the end of a call with nothing in it that a caller or a guest chose: it
// always fits, and a database takes it that took the beginning.
func strippedEntry(of *Started, f *Finished) *Entry {
	kept := *f
	if !plainMessages[f.Message] {
		kept.Message = ""
	}
	kept.Output.Truncated = kept.Output.Truncated || kept.Output.JSON != nil
	kept.Output.JSON, kept.Artifacts, kept.Unlisted, kept.Processes = nil, nil, nil, nil
	e, err := finishedEntry(of, &kept)
	if err != nil {
		panic(fmt.Sprintf("audit: a record of numbers and names cannot be written: %v", err))
	}
	return e
}
