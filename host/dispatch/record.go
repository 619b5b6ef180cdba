package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"openskill/host/identity"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// Recorder keeps runs on record; *records.Log is one. It is safe for concurrent use, and
// its errors are *skill.Error.
type Recorder interface {
	// Started writes that a run is about to begin, and returns when that outlives the
	// process. After an error the run does not begin.
	Started(ctx context.Context, s *records.Started, input []byte) error
	// Finished writes how it ended, once for each Started that gave no error. After an
	// error the caller is not told the result; the record is still written, as soon as
	// it can be.
	Finished(ctx context.Context, of *records.Started, f *records.Finished, output []byte) error
}

// Executions knows the runs under way, and keeps what they leave; *executions.Manager
// is one.
type Executions interface {
	// Track makes a run known that is on record and about to begin. It runs with the
	// context, and done is called when it has ended.
	Track(ctx context.Context, s *records.Started) (run context.Context, done func())
	// Keep is called before a run that left artifacts is on record as finished. It sets the
	// URL of those that it keeps.
	Keep(ctx context.Context, of *records.Started, artifacts []skill.Artifact) error
	// KeepLogs is called before a run that wrote to standard error is on record as finished;
	// text gives the end of that.
	KeepLogs(ctx context.Context, of *records.Started, failed bool, text func() string)
	// Ours reports whether what a run leaves counts: it does not where another host goes on with the call.
	Ours(ctx context.Context, executionID string) bool
}

// Quotas bound what principals and tenants may use; *quota.Quotas is one.
type Quotas interface {
	// Enter counts a call, and gives the function that is called once when it is over,
	// with what it used. Its error, a *skill.Error, is RATE_LIMITED with a time to come
	// back. owner is the tenant that uploaded the skill, perMinute how often the skill
	// may be called (0: as often as one likes), fuel the most that the call may use.
	Enter(ctx context.Context, p skill.Principal, owner string, id skill.ID, perMinute int, fuel uint64) (leave func(skill.Usage), err error)
}

func (d *Dispatcher) within(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if d.o.Quotas == nil {
			return next(ctx, c)
		}
		leave, err := d.o.Quotas.Enter(ctx, c.principal, c.skill.Owner, c.skill.Descriptor.ID, perMinute(c.skill), d.limits(c).Fuel)
		if err != nil {
			return err
		}
		defer func() {
			var used skill.Usage
			if c.reply != nil {
				used = c.reply.Usage
			}
			leave(used)
		}()
		return next(ctx, c)
	}
}

// recorded has every run on record before it begins and before it is answered. What
// is refused on the way to here never ran, and is in the log alone.
func (d *Dispatcher) recorded(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if d.o.Recorder == nil {
			c.ran = true
			if c.began != nil {
				c.began(c.executionID)
			}
			return next(ctx, c)
		}
		s := d.starts(c)
		_, span := d.o.Trace.Start(ctx, "audit.started")
		err := d.o.Recorder.Started(ctx, s, given(c))
		span.Fail(codeOf(err))
		span.End()
		if refused := identity.Refused(ctx); err != nil && refused != nil { // while it waited for its record
			return refused
		}
		if err != nil {
			return err
		}
		c.started, c.ran = s, true
		if d.o.Executions != nil { // before anybody can know its id, and end it
			var done func()
			ctx, done = d.o.Executions.Track(ctx, s)
			defer done()
		}
		if c.began != nil {
			c.began(c.executionID)
		}
		err = next(ctx, c)
		_, span = d.o.Trace.Start(ctx, "audit.finished")
		unkept := d.finished(context.WithoutCancel(ctx), c, err)
		span.Fail(codeOf(unkept))
		span.End()
		if unkept != nil {
			c.outcome = outcome{}
			return unkept
		}
		return err
	}
}

// codeOf is the code of an error as spans have it; "" of none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return string(skill.CodeOf(err))
}

// starts is what is known of a call before it runs.
func (d *Dispatcher) starts(c *call) *records.Started {
	k := &c.skill.Descriptor
	s := &records.Started{
		ExecutionID: c.executionID, Tenant: c.principal.Tenant, Principal: c.principal.ID, PrincipalType: c.principal.Type, Key: c.principal.Key,
		TraceID: string(c.request.TraceID), Session: c.request.Turn.Session, Iteration: c.request.Turn.Iteration,
		Skill: string(k.ID), Version: k.Version, Digest: k.Digest, Owner: c.skill.Owner,
		Limits: d.limits(c).JSON(),
		Time:   d.now(),
	}
	if s.Session == "" {
		s.Session = c.executionID
	}
	s.Files, s.Parent = c.fileInfos, c.parent
	if c.workspace != nil {
		s.Workspace, s.WorkspaceRevision = c.workspace.ID, c.workspace.Revision
	}
	if c.script != nil {
		s.Script = c.skill.Primary.Entry
	}
	if c.again != nil {
		s.ReplayOf = c.again.Of
	}
	s.Contested, s.Again = c.request.ExecutionID != "", c.request.Again
	return s
}

// now is the time as records have it.
func (d *Dispatcher) now() time.Time { return d.o.Now().UTC().Truncate(time.Microsecond) }

// given is the input of a call as its record describes it.
func given(c *call) []byte {
	if c.script == nil {
		return c.request.Input
	}
	b, err := json.Marshal(struct {
		Args  []string `json:"args"`
		Input string   `json:"input,omitempty"`
	}{append([]string{}, c.script.Args...), strings.ToValidUTF8(string(c.script.Stdin), "\uFFFD")})
	if err != nil { // strings can always be written
		panic(fmt.Sprintf("dispatch.given: %v", err))
	}
	return b
}

// finished puts the end of a run on record.
func (d *Dispatcher) finished(ctx context.Context, c *call, err error) error {
	r := d.result(c, err)
	f := &records.Finished{
		ExecutionID: c.executionID, Status: records.Success, Runner: r.Meta.Runner, Fuel: r.Meta.FuelUsed, MemoryPeak: r.Meta.MemoryPeakBytes,
		DurationMS: r.Meta.LatencyMS, Tokens: c.request.Turn.Tokens, Reported: c.outcome.tokens, Processes: r.Meta.Processes, Time: d.now(),
	}
	if r.Error != nil {
		f.Status, f.Code, f.Message = records.StatusOf(r.Error.Code), r.Error.Code, words(r.Error, err)
	}
	for _, a := range r.Meta.Artifacts {
		f.Artifacts = append(f.Artifacts, records.ArtifactInfo{Name: a.Name, Size: a.Size, SHA256: sum(a.Data)})
	}
	var unkept error
	if d.o.Executions != nil && len(r.Meta.Artifacts) > 0 {
		if unkept = d.o.Executions.Keep(ctx, c.started, r.Meta.Artifacts); unkept != nil {
			f.Status, f.Code, f.Message, f.Artifacts = records.Failed, skill.CodeOf(unkept), "the artifacts could not be stored", nil
		} else {
			c.reply.Artifacts = r.Meta.Artifacts // which say where they are
		}
	}
	if d.o.Executions != nil && c.reply != nil && len(c.reply.Stderr) > 0 {
		d.o.Executions.KeepLogs(ctx, c.started, f.Status != records.Success, func() string { return d.lines(c.reply.Stderr, c.skill.Folder) })
	}
	if err := d.o.Recorder.Finished(ctx, c.started, f, r.Data); err != nil {
		return err
	}
	return unkept
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
