// Package dispatch is the one door: every call of a skill, from whatever edge,
// goes through [Dispatcher.Invoke], and nothing else runs a skill.
//
// What the door does is a stack of layers, all of them in [Dispatcher.stack]:
// log, recover, authorize, look up, check the input, admit, observe, run. A layer that
// refuses ends the call; every call ends in one [skill.Result] and one log line.
//
// # What a guest may say
//
// Exit code 0: standard output is one JSON object. It is the result's data, or a
// whole result where it has a boolean "success", one of "data" and "error", and no
// other keys than skill_id, trace_id, meta, token_usage and duration_ms. Another exit
// code: such a result with "success": false, or {"error": {…}}, gives the error;
// anything else is GUEST_EXIT with the end of standard error. token_usage goes on
// record, where it is a whole number, and counts for nothing.
//
// The error's code may be a name or a number (an HTTP status). A guest may say
// INVALID_ARGUMENT, FORBIDDEN_PATH, NETWORK_DENIED, NOT_FOUND, CONFLICT, INTERNAL and
// TOOL_INVOCATION_ERROR. What only the host can know (TIMEOUT, UNAUTHORIZED,
// RATE_LIMITED and every other published code) becomes TOOL_INVOCATION_ERROR, a
// code that is not published becomes INTERNAL; details.guest_code keeps the word.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"openskill/host/dispatch/grants"
	"openskill/host/internal/gate"
	"openskill/host/internal/tracing"
	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/host/records/replay"
	"openskill/sdk/skill"
)

// Skills is where the door looks a skill up; [manifest.Shared] is one.
type Skills interface {
	// Get finds a skill for a caller of a tenant; version "" is the enabled one. The
	// error is a *skill.Error.
	Get(tenant string, id skill.ID, version string) (*manifest.Skill, error)
}

// Observer is told how runs of strangers' skills ended.
type Observer interface {
	// Ended is called once for each run that began, before its caller is answered.
	// code is "" for a success. asked says that the caller lowered the skill's limits,
	// so that one that was reached says nothing about the skill. It must be quick.
	Ended(s *manifest.Skill, code skill.Code, asked bool)
}

// Runners chooses what executes a skill; *runner.Set is one.
type Runners interface {
	// Choose gives a runner that is ready, the target it is to start with, and its plan.
	Choose(ctx context.Context, s *skill.Spec, primary skill.Target, fallback *skill.Target) (skill.Runner, skill.Target, skill.Plan, error)
}

// Options of a Dispatcher. Skills and Runners are required.
type Options struct {
	Skills     Skills
	Runners    Runners
	DataRoot   string          // absolute path of the data folder that skills may be shown; "" grants none
	Allowed    *grants.Allowed // requests and variables that skills may be granted; nil: none
	MaxInput   int             // bytes of the input of a call; 0: 1 MiB
	Most       skill.Limits    // what calls of run_code and scripts may ask for; zero: no more than the default
	Bounds                     // calls that run at once
	Queue      int             // calls that may wait for a place; 0: as many as Global; negative: none
	MaxWait    time.Duration   // how long they wait; 0: 250 ms
	Alone      bool            // all callers are one tenant, which may have all places
	Log        *slog.Logger    // nil: slog.Default()
	Quotas     Quotas          // of principals and tenants; nil: none
	Recorder   Recorder        // nil: runs are not on record
	Executions Executions      // nil: artifacts end with the answer, and only who calls can end a run
	Observer   Observer        // of community skills; nil: none
	Recordings Recordings      // of runs that are on record, to make them again; nil: none are made
	// Watch is told of every call when it has ended, of refused ones too, before the caller
	// is answered. It must be quick, and change nothing of what it is told. nil: nobody is.
	Watch func(*Ended)

	Trace *tracing.Tracer // spans of the way of a call; nil: none

	Files      Files      // uploads and artifacts; nil: calls can only send files inline
	Workspaces Workspaces // nil: calls cannot name a workspace
	Sessions   Sessions   // nil: run_code has no sessions

	Scripts Scripts // of Agent Skills; nil: there are none
	// Approve is asked before a script runs; its error, a *skill.Error, says what is
	// missing. nil: scripts need no approval beyond what admitted their skill.
	Approve func(ctx context.Context, p skill.Principal, s *manifest.Skill, r *skill.ScriptRequest) error

	Now   func() time.Time // nil: the system's clock
	NewID func() string    // gives execution ids, unique and in the order of time; nil: UUID version 7
}

// Dispatcher is the door. It is safe for concurrent use.
type Dispatcher struct {
	o       Options
	allowed atomic.Pointer[grants.Allowed]
	bounds  atomic.Pointer[Bounds]
	gate    *gate.Gate
	checks  *gate.Gate // of inputs that are heavy to check
	handle  handler

	handleScript handler

	parents sync.Map // runs that may call skills: *parent by execution id
}

// New makes a door.
func New(o Options) (*Dispatcher, error) {
	if o.Skills == nil || o.Runners == nil {
		return nil, errors.New("dispatch.New: Skills and Runners are required")
	}
	if o.MaxInput <= 0 {
		o.MaxInput = 1 << 20
	}
	o.fill()
	if o.Queue == 0 {
		o.Queue = o.Global
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 250 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string {
			id, err := uuid.NewV7()
			if err != nil { // no randomness: a host that cannot go on safely
				panic(fmt.Sprintf("no random numbers: %v", err))
			}
			return id.String()
		}
	}
	waits := gate.Options{Places: o.Global, Queue: o.Queue, Wait: o.MaxWait, Alone: o.Alone}
	d := &Dispatcher{o: o, gate: gate.New(waits)}
	d.bounds.Store(&o.Bounds)
	d.allowed.Store(o.Allowed)
	waits.Places = max(runtime.GOMAXPROCS(0), 2) // of two places no tenant has both
	d.checks = gate.New(waits)
	d.handle, d.handleScript = d.stack(), d.scriptStack()
	return d, nil
}

// Allow has calls that begin from now on granted what a holds; nil: nothing.
func (d *Dispatcher) Allow(a *grants.Allowed) { d.allowed.Store(a) }

// Invoke runs one call to its end and answers it, whatever happens: the result is
// never nil. When ctx ends the run is ended, and the answer is CANCELLED.
func (d *Dispatcher) Invoke(ctx context.Context, p skill.Principal, req skill.Request) *skill.Result {
	return d.Start(ctx, p, req, nil)
}

// Start is Invoke for who wants to know when the run is on record and about to begin:
// began is called with the id of the execution then, once, and not at all if the call
// is refused before. nil: nobody does.
func (d *Dispatcher) Start(ctx context.Context, p skill.Principal, req skill.Request, began func(executionID string)) *skill.Result {
	return d.invoke(ctx, &call{principal: p, request: req, began: began})
}

// Try is Invoke for a version that is not enabled yet: it runs the cases of a proposed skill. It does not count for the
// quarantine of the skill.
func (d *Dispatcher) Try(ctx context.Context, p skill.Principal, req skill.Request) *skill.Result {
	return d.invoke(ctx, &call{principal: p, request: req, draft: true})
}

func (d *Dispatcher) invoke(ctx context.Context, c *call) *skill.Result {
	_ = d.handle(ctx, d.newCall(c)) // the outermost layer has put it into the result
	return c.result
}

// newCall begins a call, whose request is set.
func (d *Dispatcher) newCall(c *call) *call {
	c.begun, c.executionID = d.o.Now(), c.request.ExecutionID
	if c.executionID == "" {
		c.executionID = d.o.NewID()
	}
	if !skill.ValidTraceID(string(c.request.TraceID)) {
		c.request.TraceID = skill.TraceID(c.executionID)
	}
	return c
}

// call is what the layers learn about one call.
type call struct {
	principal    skill.Principal
	request      skill.Request
	script       *skill.ScriptRequest // of a script's run; nil of a skill's call
	code         *code                // of run_code; nil: any other skill
	fileRefs     []skill.FileRef      // files that the request names, checked
	files        []skill.File         // content of fileRefs, then of the workspace
	folders      []skill.Folder       // of Agent Skills
	fileInfos    []records.FileInfo   // of fileRefs, for the record
	workspaceRef skill.WorkspaceRef
	session      *records.HeldSession // as the call uses it; nil: it has none
	before       *records.HeldSession // session before the call; nil in a replay
	draft        bool                 // the version may be disabled
	optional     bool                 // the workspace is that of the conversation: skills that cannot use it run without
	workspace    *skill.Workspace     // before the call; nil: the call names none
	begun        time.Time
	executionID  string
	parent       string                   // execution that makes this call; "": none
	of           *parent                  // the same, while it runs; nil: none
	nested       uint64                   // fuel of the calls that this one made
	asked        skill.Limits             // of run_code and scripts: in place of the defaults
	began        func(executionID string) // told when the run is on record; may be nil
	started      *records.Started         // as it is on record; nil before, and where nothing is

	admission *tracing.Span // from the check of the input to a place to run

	ran bool // the run was about to begin

	again *replay.Again // what it is a replay of; nil: it is none

	skill   *manifest.Skill // after the look-up
	target  skill.Target    // after a runner was chosen
	work    *skill.Call     // as the runner got it
	reply   *skill.Reply    // after the run
	outcome outcome         // after the output was read

	result *skill.Result
}

// handler is one layer with everything below it.
type handler func(ctx context.Context, c *call) error

// stack is the door, from the outside in.
func (d *Dispatcher) stack() handler {
	return d.answered( // one result and one log line for every call
		d.recovered( // a panic of the host is INTERNAL
			d.authorized( // 401, 403
				d.found( // 404
					d.checked( // 400, 403 for paths, 413
						d.admitted( // 429: no place; what waits for the database below has one
							d.within( // 429: quotas of principal and tenant
								d.withFiles( // 404: unknown files
									d.withSession( // 404, 409: session in use
										d.withWorkspace( // 409: workspace in use
											d.recorded( // 503: on record before it begins, and before it is answered
												d.recovered( // so that this too is on record
													d.saveWorkspace( // 409: workspace changed by another host
														d.observed( // how strangers' skills end
															d.kept( // what it takes to make it again
																d.run)))))))))))))))
}
