package storetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Inner runs calls; *httpapitest.Door is one.
type Inner interface {
	Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result
}

// Scripts runs scripts; *httpapitest.AgentSkills is one.
type Scripts interface {
	RunScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest) *skill.Result
}

// Door has runs on record as the door of the host has, with all of their inputs and
// outputs. A call of the skill "refused" is refused before anything is on record.
type Door struct {
	Inner   Inner
	Scripts Scripts // nil: there are none
	Store   records.Store
	Manager *records.Manager
	Now     func() time.Time // nil: the system's clock

	count atomic.Int64
}

// ExecutionID is the id of the nth execution, from 1.
func ExecutionID(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012x", n) }

// Invoke runs a call.
func (d *Door) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	return d.Start(ctx, p, r, nil)
}

// Start runs a call, and says when it is on record.
func (d *Door) Start(ctx context.Context, p skill.Principal, r skill.Request, started func(string)) *skill.Result {
	s := &records.Started{Skill: string(r.SkillID), TraceID: string(r.TraceID), Input: payload(r.Input)}
	return d.record(ctx, p, s, r.Turn, started, func(ctx context.Context) *skill.Result { return d.Inner.Invoke(ctx, p, r) })
}

// RunScript runs a script.
func (d *Door) RunScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest) *skill.Result {
	return d.StartScript(ctx, p, r, nil)
}

// StartScript runs a script, and says when it is on record.
func (d *Door) StartScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest, started func(string)) *skill.Result {
	s := &records.Started{Skill: r.Skill, Script: r.Script, TraceID: string(r.TraceID)}
	return d.record(ctx, p, s, r.Turn, started, func(ctx context.Context) *skill.Result { return d.Scripts.RunScript(ctx, p, r) })
}

// Check refuses no call.
func (d *Door) Check(context.Context, *records.QueuedCall) *skill.Result { return nil }

// Idempotent is true of no call.
func (d *Door) Idempotent(*records.QueuedCall) bool { return false }

func (d *Door) now() time.Time {
	if d.Now == nil {
		return time.Now().UTC().Truncate(time.Microsecond)
	}
	return d.Now().UTC()
}

func (d *Door) record(ctx context.Context, p skill.Principal, s *records.Started, turn skill.Turn, started func(string), run func(context.Context) *skill.Result) *skill.Result {
	if s.Skill == "refused" {
		return skill.Failure(skill.ID(s.Skill), skill.TraceID(s.TraceID), skill.Meta{}, &skill.Error{
			Code: skill.RateLimited, Message: "too many calls are running", Details: map[string]any{"retry_after_ms": 250},
		})
	}
	s.ExecutionID = ExecutionID(int(d.count.Add(1)))
	s.Tenant, s.Principal, s.PrincipalType, s.Key = p.Tenant, p.ID, p.Type, p.Key
	s.Version, s.Digest, s.Time = "0.1.0", "sha256:0", d.now()
	if s.Session, s.Iteration = turn.Session, turn.Iteration; s.Session == "" {
		s.Session = s.ExecutionID
	}
	if err := d.append(ctx, &records.Entry{Record: records.Record{Kind: records.KindStarted}, Started: s}); err != nil {
		return skill.Failure(skill.ID(s.Skill), skill.TraceID(s.TraceID), skill.Meta{}, err)
	}
	run2, done := d.Manager.Track(ctx, s)
	defer done()
	if started != nil {
		started(s.ExecutionID)
	}
	r := run(run2)
	r.Meta.ExecutionID = s.ExecutionID
	f := &records.Finished{
		ExecutionID: s.ExecutionID, Status: records.Success, Runner: r.Meta.Runner, Fuel: r.Meta.FuelUsed, MemoryPeak: r.Meta.MemoryPeakBytes,
		DurationMS: r.Meta.LatencyMS, Tokens: turn.Tokens, Output: payload(r.Data), Time: d.now(),
	}
	if r.Error != nil {
		f.Status, f.Code, f.Message = records.StatusOf(r.Error.Code), r.Error.Code, r.Error.Message
	}
	for _, a := range r.Meta.Artifacts {
		sum := sha256.Sum256(a.Data)
		f.Artifacts = append(f.Artifacts, records.ArtifactInfo{Name: a.Name, Size: a.Size, SHA256: hex.EncodeToString(sum[:])})
	}
	ctx = context.WithoutCancel(ctx)
	err := d.Manager.Keep(ctx, s, r.Meta.Artifacts)
	if err == nil {
		err = d.append(ctx, &records.Entry{Record: records.Record{Kind: records.KindFinished}, Finished: f, Of: s})
	}
	if err != nil {
		return skill.Failure(skill.ID(s.Skill), skill.TraceID(s.TraceID), skill.Meta{}, err)
	}
	return r
}

func (d *Door) append(ctx context.Context, e *records.Entry) error {
	s, says := e.Started, any(e.Started)
	if s == nil {
		s, says = e.Of, e.Finished
	}
	body, err := json.Marshal(says)
	if err != nil {
		return err
	}
	e.Tenant, e.ExecutionID, e.Time, e.Body, e.Wait = s.Tenant, s.ExecutionID, d.now(), body, true
	if err := cmp.Or(d.Store.Append(ctx, []*records.Entry{e}), e.Left); err != nil {
		return &skill.Error{Op: "storetest.Door", Code: skill.AuditUnavailable, Message: "nothing can be put on record now", Err: err}
	}
	return nil
}

func payload(b []byte) records.Payload {
	sum := sha256.Sum256(b)
	p := records.Payload{Bytes: int64(len(b)), SHA256: hex.EncodeToString(sum[:])}
	if json.Valid(b) {
		p.JSON = b
	}
	return p
}
