package records

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// View is an execution as its caller sees it.
type View struct {
	ID        string     `json:"id"`
	Status    Status     `json:"status"`
	Skill     string     `json:"skill"`
	Script    string     `json:"script,omitempty"` // of an Agent Skill
	Version   string     `json:"version"`
	Digest    string     `json:"digest"`
	Runner    skill.Kind `json:"runner,omitempty"` // missing while it runs
	Tenant    string     `json:"tenant"`
	Principal string     `json:"principal"`

	PrincipalType skill.PrincipalType `json:"principal_type"`
	Key           string              `json:"key,omitempty"` // id of the API key that was shown
	TraceID       string              `json:"trace_id"`
	Session       string              `json:"session"`
	Parent        string              `json:"parent,omitempty"` // execution whose code made this call
	Iteration     int                 `json:"iteration"`
	ReplayOf      string              `json:"replay_of,omitempty"`

	Damaged string `json:"damaged,omitempty"` // what of the record cannot be read

	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"` // missing, as what follows, while it runs
	DurationMS *int64     `json:"duration_ms,omitempty"`
	Fuel       *uint64    `json:"fuel_used,omitempty"`
	MemoryPeak *uint64    `json:"memory_peak_bytes,omitempty"`
	Tokens     *int       `json:"tokens,omitempty"`
	Reported   int        `json:"reported_tokens,omitempty"` // by the skill's own word; missing where it gave none
	Error      *Failure   `json:"error,omitempty"`           // missing of a success

	Limits    skill.LimitsJSON `json:"limits"`
	Input     Payload          `json:"input"`
	Files     []FileInfo       `json:"files,omitempty"`     // of the request
	Workspace string           `json:"workspace,omitempty"` // "": none
	Output    *Payload         `json:"output,omitempty"`
	Artifacts []Artifact       `json:"artifacts,omitempty"`
	Unlisted  *Unlisted        `json:"unlisted,omitempty"`  // artifacts beyond those
	Processes *skill.Processes `json:"processes,omitempty"` // that a script started
	Logs      string           `json:"logs,omitempty"`      // the end of standard error with its lines, while it is kept
	// Of a result that is longer than its reader wants to have: its size, and its beginning as text.
	ResultBytes int             `json:"result_bytes,omitempty"`
	ResultHead  string          `json:"result_head,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"` // of a long call: the Normalized Skill Result, while it is kept
}

// Failure says how an execution failed.
type Failure struct {
	Code    skill.Code `json:"code"`
	Message string     `json:"message"`
}

// Artifact is a file that an execution left.
type Artifact struct {
	ArtifactInfo
	Kept *bool `json:"kept,omitempty"` // it can be fetched; nil in lists, which do not look
}

// sight is what a caller sees of records.
type sight struct {
	tenant    string // "" of all
	principal string // "" of all
	kind      skill.PrincipalType
}

// sees says what p sees: its own calls, those of its tenant, or all.
func sees(p skill.Principal) (sight, error) {
	switch {
	case p.May(skill.ScopeHost):
		return sight{}, nil
	case p.ID == "":
		return sight{}, &skill.Error{Op: "executions.sees", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case p.Tenant == "": // of no tenant must not become of all
		return sight{}, &skill.Error{Op: "executions.sees", Code: skill.Forbidden, Subject: p.ID, Message: "records require a tenant"}
	case p.May(skill.ScopeAllExecutions):
		return sight{tenant: p.Tenant}, nil
	case p.May(skill.ScopeExecutions):
		return sight{p.Tenant, p.ID, p.Type}, nil
	}
	return sight{}, &skill.Error{Op: "executions.sees", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + skill.ScopeExecutions}
}

// has reports whether an execution is in sight.
func (s sight) has(e *Execution) bool {
	return (s.tenant == "" || e.Tenant == s.tenant) && (s.principal == "" || e.Principal == s.principal && e.PrincipalType == s.kind)
}

// ValidID reports whether an id can be one: a UUID as this host writes them.
func ValidID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// MayRead reports whether p could read an execution of its own afterwards.
func MayRead(p skill.Principal) bool {
	_, err := sees(p)
	return err == nil
}

// find gives an execution that p sees. One that it does not see is not there.
func (m *Manager) find(ctx context.Context, p skill.Principal, id string) (*Execution, error) {
	s, err := sees(p)
	if err != nil {
		return nil, err
	}
	return m.execution(ctx, s, id)
}

// Execution gives the records of an execution that the caller may see.
func (m *Manager) Execution(ctx context.Context, p skill.Principal, id string) (*Execution, error) {
	return m.find(ctx, p, id)
}

// mine gives an execution that p has made, or, for who holds the scope admin, any.
func (m *Manager) mine(ctx context.Context, p skill.Principal, id string) (*Execution, error) {
	switch {
	case p.May(skill.ScopeHost):
		return m.execution(ctx, sight{}, id)
	case p.ID == "" || p.Tenant == "":
		return nil, notFound()
	}
	return m.execution(ctx, sight{p.Tenant, p.ID, p.Type}, id)
}

func (m *Manager) execution(ctx context.Context, s sight, id string) (*Execution, error) {
	if !ValidID(id) {
		return nil, notFound()
	}
	e, err := m.o.Records.Execution(ctx, s.tenant, id)
	if errors.Is(err, ErrNotFound) {
		e, err = m.queuedExecution(ctx, s.tenant, id)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, notFound()
	case err != nil:
		return nil, cannotKeep("executions.find", err)
	case !s.has(e):
		return nil, notFound()
	}
	return e, nil
}

// Bytes of a result that [Manager.Get] gives: all, or the beginning that fits on a page.
const (
	WholeResult = math.MaxInt
	FirstPart   = 64 << 10
)

// Get gives an execution that the caller may see, with its result where that is kept. Of one
// that is longer than most bytes it reads the beginning only.
func (m *Manager) Get(ctx context.Context, p skill.Principal, id string, most int) (*View, error) {
	e, err := m.find(ctx, p, id)
	if err != nil {
		return nil, err
	}
	return m.view(ctx, e, most)
}

// view is an execution with what is kept of it, and at most so many bytes of its result.
func (m *Manager) view(ctx context.Context, e *Execution, most int) (*View, error) {
	v := viewOf(e)
	if m.o.Results == nil {
		return v, nil
	}
	now := m.o.Now().UTC()
	sizes, err := m.o.Results.Sizes(ctx, e.Tenant, e.ExecutionID, now)
	if err != nil {
		return nil, cannotKeep("executions.Get", err)
	}
	if err := room(ctx, sizes[logsName]+min(sizes[""], most)); err != nil {
		return nil, err
	}
	for i := range v.Artifacts {
		_, kept := sizes[v.Artifacts[i].Name]
		v.Artifacts[i].Kept = &kept
	}
	if _, kept := sizes[logsName]; kept {
		logs, err := m.o.Results.Get(ctx, e.Tenant, e.ExecutionID, logsName, sizes[logsName], now)
		if err != nil && !errors.Is(err, ErrNotKept) { // expired since
			return nil, cannotKeep("executions.Get", err)
		}
		v.Logs = string(logs)
	}
	size, kept := sizes[""]
	if e.Finished == nil || !kept {
		return v, nil
	}
	result, err := m.o.Results.Get(ctx, e.Tenant, e.ExecutionID, "", min(size, most), now)
	switch {
	case errors.Is(err, ErrNotKept): // expired since
	case err != nil:
		return nil, cannotKeep("executions.Get", err)
	case size > most:
		v.ResultBytes, v.ResultHead = size, strings.ToValidUTF8(string(result), "") // it may be cut within a character
	case len(result) > 0:
		v.Result = result
	case now.Sub(e.Finished.Time) < storeTime:
		// Its end is on record and its result is being kept, perhaps by another host: who
		// asks until it has ended must not find it ended without its result.
		return viewOf(&Execution{Started: e.Started}), nil
	}
	return v, nil
}

// viewOf is what the records tell of an execution.
func viewOf(e *Execution) *View {
	v := &View{
		ID: e.ExecutionID, Status: e.Status(), Skill: e.Skill, Script: e.Script, Version: e.Version, Digest: e.Digest,
		Tenant: e.Tenant, Principal: e.Principal, PrincipalType: e.PrincipalType, Key: e.Key, TraceID: e.TraceID,
		Session: e.Session, Parent: e.Parent, Iteration: e.Iteration, ReplayOf: e.ReplayOf, StartedAt: e.Time.UTC(), Limits: e.Limits, Input: e.Input, Files: e.Files, Workspace: e.Workspace, Damaged: e.Damaged,
	}
	f := e.Finished
	if f == nil {
		return v
	}
	at := f.Time.UTC()
	v.FinishedAt, v.DurationMS, v.Fuel, v.MemoryPeak, v.Tokens, v.Reported = &at, &f.DurationMS, &f.Fuel, &f.MemoryPeak, &f.Tokens, f.Reported
	v.Runner, v.Output, v.Unlisted, v.Processes = f.Runner, &f.Output, f.Unlisted, f.Processes
	if f.Code != "" {
		v.Error = &Failure{f.Code, f.Message}
	}
	for _, a := range f.Artifacts {
		v.Artifacts = append(v.Artifacts, Artifact{ArtifactInfo: a})
	}
	return v
}

// Query chooses executions of those that the caller may see; [records.Query] says what its
// fields mean.

// List gives a page of executions that the caller may see, newest first, and the cursor
// of the next page or "".
func (m *Manager) List(ctx context.Context, p skill.Principal, q Query) ([]*View, string, error) {
	list, next, err := m.list(ctx, p, q)
	if err != nil {
		return nil, "", err
	}
	views := make([]*View, len(list))
	for i, e := range list {
		views[i] = viewOf(e)
	}
	return views, next, nil
}

func (m *Manager) list(ctx context.Context, p skill.Principal, q Query) ([]*Execution, string, error) {
	s, err := sees(p)
	if err != nil {
		return nil, "", err
	}
	if err := s.narrow(p, &q); err != nil {
		return nil, "", err
	}
	list, next, err := m.executions(ctx, q)
	if err != nil {
		return nil, "", cannotKeep("executions.List", err)
	}
	return slices.DeleteFunc(list, func(e *Execution) bool { return !s.has(e) }), next, nil
}

// executions gives a page of those on record, or of queued calls if these are asked for.
func (m *Manager) executions(ctx context.Context, q Query) ([]*Execution, string, error) {
	switch queue := m.queue(); {
	case q.Status != Queued:
		return m.o.Records.Executions(ctx, q)
	case q.Code != "" || q.Session != "" || q.TraceID != "" || !q.Since.IsZero() || !q.Until.IsZero():
		return nil, "", &skill.Error{Op: "executions.List", Code: skill.InvalidArgument, Subject: "status", Message: "status queued can be combined with tenant, principal and skill only"}
	case queue == nil:
		return nil, "", nil
	default:
		return queue.list(ctx, &q)
	}
}

// narrow makes sure that a query asks for nothing out of sight.
func (s sight) narrow(p skill.Principal, q *Query) error {
	if s.tenant != "" {
		if q.Tenant != "" && q.Tenant != s.tenant {
			return &skill.Error{Op: "executions.List", Code: skill.Forbidden, Subject: p.ID, Message: "only the operator can select another tenant"}
		}
		q.Tenant = s.tenant
	}
	if s.principal != "" {
		if q.Principal != "" && q.Principal != s.principal {
			return &skill.Error{
				Op: "executions.List", Code: skill.Forbidden, Subject: p.ID,
				Message: "missing scope " + skill.ScopeAllExecutions + " to read calls of others",
			}
		}
		q.Principal = s.principal
	}
	return nil
}

// Bounds of what is given of a session: executions, and bytes of what is kept of inputs
// and outputs, which those that began before go without.
const (
	mostOfSession  = 1000
	bytesOfSession = 16 << 20
)

// Session gives the executions of a session that the caller may see, in the order of
// their iterations; NOT_FOUND if there are none.
func (m *Manager) Session(ctx context.Context, p skill.Principal, session string) ([]*View, error) {
	if !ValidID(session) {
		return nil, notFound()
	}
	var views []*View
	left := bytesOfSession
	for q := (Query{Session: session}); ; { // a page has as many as fit
		q.Limit = mostOfSession - len(views)
		page, next, err := m.List(ctx, p, q)
		if err != nil {
			return nil, err
		}
		for _, v := range page {
			left -= shorten(&v.Input, left)
			if v.Output != nil {
				left -= shorten(v.Output, left)
			}
		}
		views = append(views, page...)
		if q.Cursor = next; next == "" || len(views) >= mostOfSession {
			break
		}
	}
	if len(views) == 0 {
		return nil, notFound()
	}
	slices.SortStableFunc(views, func(a, b *View) int {
		if a.Iteration != b.Iteration {
			return a.Iteration - b.Iteration
		}
		if d := a.StartedAt.Compare(b.StartedAt); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return views, nil
}

// shorten leaves out what does not fit, and gives the bytes of what does.
func shorten(p *Payload, room int) int {
	if len(p.JSON) > room {
		p.JSON, p.Truncated = nil, true
	}
	return len(p.JSON)
}

type roomKey struct{}

// WithRoom has ask called with the bytes of what is kept of an execution before they are read
// into memory; its error is that of the call.
func WithRoom(ctx context.Context, ask func(bytes int) error) context.Context {
	return context.WithValue(ctx, roomKey{}, ask)
}

func room(ctx context.Context, bytes int) error {
	if ask, ok := ctx.Value(roomKey{}).(func(int) error); ok {
		return ask(bytes)
	}
	return nil
}

// File gives a file that an execution left, while it is kept.
func (m *Manager) File(ctx context.Context, p skill.Principal, id, name string) ([]byte, error) {
	find := m.find
	if !MayRead(p) { // callers may always read artifacts of their own calls
		find = m.mine
	}
	e, err := find(ctx, p, id)
	if err != nil {
		return nil, err
	}
	gone := &skill.Error{
		Op: "executions.File", Code: skill.NotFound, Subject: skill.CleanText(name, 80),
		Message: "artifact not found or expired",
	}
	if m.o.Results == nil || !fitName(name) {
		return nil, gone
	}
	now := m.o.Now().UTC()
	sizes, err := m.o.Results.Sizes(ctx, e.Tenant, e.ExecutionID, now)
	if err != nil {
		return nil, cannotKeep("executions.File", err)
	}
	if err := room(ctx, sizes[name]); err != nil {
		return nil, err
	}
	data, err := m.o.Results.Get(ctx, e.Tenant, e.ExecutionID, name, sizes[name], now)
	switch {
	case errors.Is(err, ErrNotKept):
		return nil, gone
	case err != nil:
		return nil, cannotKeep("executions.File", err)
	}
	return data, nil
}

// Replay runs an execution again that the caller may see.
func (m *Manager) Replay(ctx context.Context, p skill.Principal, id string) (any, error) {
	if _, err := m.find(ctx, p, id); err != nil {
		return nil, err
	}
	if m.o.Replay == nil {
		return nil, &skill.Error{
			Op: "executions.Replay", Code: skill.NotFound, Subject: id,
			Message: "not recorded: set OPENSKILL_RECORD=on to record executions",
		}
	}
	return m.o.Replay(ctx, p, id)
}
