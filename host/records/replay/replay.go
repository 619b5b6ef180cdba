package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"openskill/host/internal/gate"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// Ran is a run that has ended.
type Ran struct {
	Started *records.Started
	Input   []byte               // of a call
	Files   []skill.FileRef      // of a call, beside those that its input names
	Script  *skill.ScriptRequest // of a script's run; nil of a call
	Session *records.HeldSession // before the run; nil: it has none
	Call    *skill.Call          // as a runner got it
	Runner  skill.Kind
	Reply   *skill.Reply // nil: it left none
	Result  *skill.Result
}

// Plan is what a call would run as now.
type Plan struct {
	Digest string
	Target skill.Target
	Limits skill.Limits
	Grants skill.Grants

	Folders []skill.Folder // of Agent Skills that the code of a call sees
}

// Again is a run that is to be made once more.
type Again struct {
	Request skill.Request
	Script  *skill.ScriptRequest // of a script's run; nil of a call, which Request is
	Session *records.HeldSession // which the run goes on with; nil: it has none
	Of      string               // the execution
	Digest  string               // of the skill; of another one nothing runs
	Files   []records.FileInfo   // on record, with the folders of Agent Skills
	Target  skill.Target         // the same holds
	Draws   []byte
}

// Door is where runs are made; *dispatch.Dispatcher is one.
type Door interface {
	// Plan says how a run would be made, and makes none. The error is a *skill.Error.
	Plan(ctx context.Context, p skill.Principal, a *Again) (*Plan, error)
	// Replay makes it. There is no reply where it was refused.
	Replay(ctx context.Context, p skill.Principal, a *Again) (*skill.Result, *skill.Reply)
}

// Executions gives an execution to who may see it, or a *skill.Error: NOT_FOUND for those
// of others as for those that are not there.
type Executions interface {
	Execution(ctx context.Context, p skill.Principal, id string) (*records.Execution, error)
}

// Options of Recordings. Store is required, Executions for replays alone.
type Options struct {
	Store      Store
	Executions Executions
	Most       uint64 // bytes that are kept of one run, before they are compressed; 0: 16 MiB
	Key        []byte // a secret of this host, for hashes of variables; nil: their names alone are compared
	Version    string // of openSkill, which a replay by another one is told; "": nobody is
	// Request is called for each recording of an earlier run of a session that is read; nil: not. Its
	// error ends the replay.
	Request func(ctx context.Context, p skill.Principal) error
	// Now is the clock by which recordings age; nil: the system's.
	Now func() time.Time
}

// Recordings keeps runs and makes them again. It is safe for concurrent use.
type Recordings struct {
	o Options
	// turns bounds how many recordings are unpacked and compared at once, which takes a
	// processor for a while: one for each processor, shared by tenants.
	turns *gate.Gate
	// chains bounds how many replays have the memory of a session at once.
	chains *gate.Gate
}

// mostWaiting is how many replays may wait for their turn.
const mostWaiting = 256

// New makes Recordings.
func New(o Options) (*Recordings, error) {
	if o.Store == nil {
		return nil, errors.New("replay.New: Store is required")
	}
	if o.Most == 0 {
		o.Most = 16 << 20
	}
	o.Most = min(o.Most, ceiling)
	if o.Now == nil {
		o.Now = time.Now
	}
	each := gate.Options{Places: max(runtime.NumCPU(), 2), Queue: mostWaiting, Retry: time.Second}
	return &Recordings{o, gate.New(each), gate.New(each)}, nil
}

// Most is how many bytes the draws of one run may have.
func (r *Recordings) Most() uint64 { return r.o.Most }

// Keep keeps a run that has ended, or why it cannot be made again.
func (r *Recordings) Keep(ctx context.Context, ran *Ran) error {
	row := &Row{ExecutionID: ran.Started.ExecutionID, Tenant: ran.Started.Tenant, Created: r.o.Now().UTC().Truncate(time.Microsecond)}
	row.Missing = missing(ran)
	if row.Missing == "" {
		body, size, err := r.recording(ran).encode(r.o.Most)
		switch {
		case errors.Is(err, errTooLarge):
			row.Missing = fmt.Sprintf("the recording has %d bytes; at most %d are stored", size, r.o.Most)
		case err != nil:
			return err
		default:
			row.Body, row.Size = body, int64(size)
		}
	}
	if err := r.o.Store.Keep(ctx, row); err != nil {
		return fmt.Errorf("replay: keep a recording: %w", err)
	}
	return nil
}

// missing says why a run cannot be made again; "" if it can.
func missing(ran *Ran) string {
	switch {
	case ran.Reply == nil:
		return "the run left no recording"
	case ran.Reply.Code == skill.WorkerCrashed:
		return "the worker process exited during the run"
	case ran.Reply.Code == skill.Timeout || ran.Reply.Code == skill.Cancelled:
		return "the run was ended by a timeout or its caller, so it cannot be reproduced"
	case ran.Reply.Recording == nil:
		return "runs of " + string(ran.Runner) + " are outside the sandbox, where time and randomness cannot be recorded"
	case ran.Reply.Recording.Draws == nil:
		return skill.CleanText(ran.Reply.Recording.Missing, skill.MaxMessage)
	}
	return ""
}

func (r *Recordings) recording(ran *Ran) *Recording {
	c := ran.Call
	rec := &Recording{
		Host: r.o.Version, Started: *ran.Started, Runner: ran.Runner, Entry: c.Entry, Limits: Limits(c.Limits), Granted: grantedOf(&c.Grants, r.o.Key),
		Seen: ran.Reply.Recording.Seen, More: ran.Reply.Recording.More, End: endOf(ran.Result), Draws: ran.Reply.Recording.Draws,
	}
	if ran.Script != nil {
		rec.Script, rec.Files = &Line{Args: ran.Script.Args, Stdin: ran.Script.Stdin}, ran.Files
	} else {
		rec.Input, rec.Files = ran.Input, ran.Files
	}
	rec.Session = beforeOf(ran.Session)
	return rec
}

// Prune removes recordings from before a time, a few at a time, and gives their number.
func (r *Recordings) Prune(ctx context.Context, before time.Time) (int, error) {
	const few = 200
	all := 0
	for {
		n, err := r.o.Store.Prune(ctx, before, few)
		all += n
		if err != nil {
			return all, fmt.Errorf("replay: remove old recordings: %w", err)
		}
		if n < few {
			return all, nil
		}
	}
}

// Tend removes recordings that are older than keep, now and every hour, until ctx ends.
func (r *Recordings) Tend(ctx context.Context, keep time.Duration, log *slog.Logger) {
	every := time.NewTicker(time.Hour)
	defer every.Stop()
	for {
		if _, err := r.Prune(ctx, r.o.Now().Add(-keep)); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "cannot remove old recordings", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// Replayer makes runs again. It is safe for concurrent use.
type Replayer struct {
	*Recordings

	door Door
}

// Replayer gives what makes the runs again that r keeps: by a door, which may itself
// have r to keep runs with.
func (r *Recordings) Replayer(door Door) *Replayer { return &Replayer{r, door} }

// Replay makes the run of an execution again, as a new execution of p's, who must be let
// see the one and call the skill. The runs before it in its session are made again first.
// The error is a *skill.Error; that the two differ is none.
func (r *Replayer) Replay(ctx context.Context, p skill.Principal, id string) (*Report, error) {
	runs, report, err := r.chain(ctx, p, id)
	if err != nil {
		return nil, err
	}
	if len(runs) > 1 {
		leave, err := r.chains.Enter(ctx, p.Tenant)
		if err != nil {
			return nil, gate.Refusal(err, "replay.Replay", "too many replays are queued")
		}
		defer leave()
	}
	var memory []byte
	for _, run := range runs {
		var one *Report
		if one, memory, err = r.run(ctx, p, run, memory); err != nil {
			return nil, earlier(id, run, err)
		}
		if run == id {
			return one, nil
		}
		if report.addEarlier(one); len(report.Differences) > 0 {
			break
		}
	}
	return report, nil
}

// run makes one run again, which goes on with the memory of a session; nil: it has none. It returns the memory
// that the run leaves.
func (r *Replayer) run(ctx context.Context, p skill.Principal, id string, memory []byte) (*Report, []byte, error) {
	leave, err := r.turn(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	defer func() { leave() }() // which is another one after the run
	rec, err := r.get(ctx, p, id)
	if err != nil {
		return nil, nil, err
	}
	report := &Report{ExecutionID: id, Skill: rec.Started.Skill, Version: rec.Started.Version, Draws: len(rec.Draws)}
	again := rec.again()
	if rec.Session != nil {
		again.Session = rec.Session.with(memory)
	}
	if rec.Host != r.o.Version {
		report.Notes = append(report.Notes, "recorded by another openSkill version, which may count fuel differently: then "+skill.CleanText(rec.Host, 64)+", now "+r.o.Version)
	}
	plan, err := r.door.Plan(ctx, p, again)
	switch {
	case err != nil && skill.CodeOf(err) == skill.NotFound:
		// The skill, or this version of it, is not there any more.
		report.differ(Difference{Field: "skill", Then: rec.Started.Skill + " " + rec.Started.Version, Now: messageOf(err)})
		return report, nil, nil
	case err != nil:
		return nil, nil, err
	}
	r.compareGiven(ctx, report, rec, plan)
	if len(report.Differences) > 0 {
		return report, nil, nil
	}
	leave()
	result, reply := r.door.Replay(ctx, p, again)
	if reply == nil { // it was refused on its way
		return nil, nil, refusal(result)
	}
	if code := reply.Code; code == skill.Cancelled || code == skill.WorkerCrashed {
		return nil, nil, refusal(result)
	}
	if leave, err = r.turn(ctx, p); err != nil {
		return nil, nil, err
	}
	report.ReplayID = result.Meta.ExecutionID
	if reply.Differs != "" {
		report.differ(Difference{Field: "draws", Then: "what was recorded", Now: reply.Differs})
	}
	report.compareEnds(&rec.End, endOf(result))
	report.Identical = len(report.Differences) == 0
	return report, reply.State, nil
}

// turn waits for the turn of the caller's tenant.
func (r *Replayer) turn(ctx context.Context, p skill.Principal) (leave func(), err error) {
	if leave, err = r.turns.Enter(ctx, p.Tenant); err != nil {
		return func() {}, gate.Refusal(err, "replay.Replay", "too many replays are queued")
	}
	return leave, nil
}

// get finds the recording of an execution.
func (r *Replayer) get(ctx context.Context, p skill.Principal, id string) (*Recording, error) {
	if r.o.Executions == nil {
		return nil, &skill.Error{Op: "replay.Replay", Code: skill.NotFound, Message: "executions are not stored on this host"}
	}
	e, err := r.o.Executions.Execution(ctx, p, id)
	if err != nil {
		return nil, err
	}
	refuse := func(code skill.Code, message string) error {
		return &skill.Error{Op: "replay.Replay", Code: code, Subject: id, Message: message}
	}
	if e.Status() == records.Running {
		return nil, refuse(skill.Conflict, "the execution is still running; replay it when it has ended")
	}
	row, err := r.o.Store.Get(ctx, e.Tenant, id)
	switch {
	case err != nil:
		return nil, &skill.Error{Op: "replay.Replay", Code: skill.AuditUnavailable, Message: "recordings unavailable; retry", Err: err}
	case row == nil:
		return nil, refuse(skill.NotFound, "recording not found: set OPENSKILL_RECORD=on to record executions; recordings expire with their records")
	case row.Missing != "":
		return nil, refuse(skill.Conflict, "this execution cannot be replayed: "+row.Missing)
	}
	rec, err := decode(row.Body, row.Size)
	if err == nil && (rec.Started.ExecutionID != id || rec.Started.Tenant != e.Tenant || rec.Started.Skill != e.Skill || rec.Started.Digest != e.Digest) {
		err = ErrDamaged
	}
	if err != nil {
		return nil, &skill.Error{
			Op: "replay.Replay", Code: skill.Conflict, Subject: id, Err: err,
			Message: "the recording of this execution is damaged or from another openSkill version",
		}
	}
	return rec, nil
}

// again is the call that a recording is of.
func (rec *Recording) again() *Again {
	s := &rec.Started
	a := &Again{
		Of: s.ExecutionID, Digest: s.Digest, Files: s.Files, Target: skill.Target{Kind: rec.Runner, Entry: rec.Entry}, Draws: rec.Draws,
		Request: skill.Request{
			SkillID: skill.ID(s.Skill), Version: s.Version, Input: rec.Input, Files: rec.Files, TraceID: skill.TraceID(s.TraceID), Limits: skill.Limits(rec.Limits),
		},
	}
	if rec.Script != nil {
		a.Script = &skill.ScriptRequest{
			Skill: s.Skill, Script: s.Script, Args: rec.Script.Args, Stdin: rec.Script.Stdin, Files: rec.Files, TraceID: a.Request.TraceID, Limits: a.Request.Limits,
		}
	}
	return a
}

// refusal is why a run was not made.
func refusal(r *skill.Result) error {
	if r.Error == nil { // what was not run has no other end
		return &skill.Error{Op: "replay.Replay", Code: skill.Internal, Message: "the run left no reply"}
	}
	return &skill.Error{Op: "replay.Replay", Code: r.Error.Code, Message: r.Error.Message, Details: r.Error.Details}
}

func messageOf(err error) string {
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return "it no longer exists"
}
