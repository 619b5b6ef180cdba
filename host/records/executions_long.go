package records

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// What ends a call that would have gone on.
var (
	errCancelled = errors.New("the call was cancelled by DELETE")
	errStopping  = errors.New("the host is shutting down")
	errLeft      = errors.New("the client disconnected before the call was recorded")
)

// Run is a call as an edge hands it over: it calls started when the call is on record,
// with the id of its execution, and gives its result, which is not nil.
type Run func(ctx context.Context, started func(executionID string)) *skill.Result

// Start runs a call that goes on when its caller leaves. It gives the id of its execution
// as soon as that is on record, or the result of a call that ended before. Until then
// the call ends with ctx; afterwards it ends by itself, by [Manager.Cancel] or with the host.
func (m *Manager) Start(ctx context.Context, p skill.Principal, run Run) (id string, r *skill.Result, err error) { // it outlives ctx, that is what it is for
	leave, err := m.enter(p)
	if err != nil {
		return "", nil, err
	}
	long, cancel := context.WithCancelCause(m.base)
	begun, done := make(chan string, 1), make(chan *skill.Result, 1)
	go func() {
		defer leave()
		defer cancel(nil)
		done <- m.run(long, p, run, begun)
	}()
	select {
	case id = <-begun:
		return id, nil, nil
	case r = <-done:
	case <-ctx.Done():
		cancel(errLeft)
		r = <-done
	}
	select {
	case id = <-begun: // on record all the same
		return id, nil, nil
	default:
		return "", r, nil
	}
}

// run runs a call and keeps its result, before done is told.
func (m *Manager) run(ctx context.Context, p skill.Principal, run Run, begun chan<- string) (r *skill.Result) {
	var id string
	var once sync.Once
	defer func() {
		if v := recover(); v != nil {
			m.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "panic in a long call", slog.String("execution_id", id),
				slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			r = skill.Failure("", skill.TraceID(id), skill.Meta{ExecutionID: id}, errors.New("panic"))
		}
		if id != "" && r != nil && m.ours(ctx, id, r) {
			m.keepResult(ctx, p.Tenant, id, r)
		}
	}()
	return run(ctx, func(executionID string) {
		once.Do(func() {
			id = executionID
			m.expectResult(ctx, p.Tenant, id)
			begun <- id
		})
	})
}

// enter takes a place among the long calls, unless queued calls wait for one.
func (m *Manager) enter(p skill.Principal) (leave func(), err error) {
	m.mu.Lock()
	late := m.late(whose{tenant: p.Tenant}) || m.late(whose{p.Tenant, p.ID})
	m.mu.Unlock()
	if late {
		return nil, m.tooMany(&gate.FullError{After: time.Second, Part: -1})
	}
	return m.place(p.Tenant)
}

// place takes a place among the long calls.
func (m *Manager) place(tenant string) (leave func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, &skill.Error{Op: "executions.Start", Code: skill.Cancelled, Message: "the host is shutting down; retry when it is back", Err: errStopping}
	}
	out, err := m.places.TryEnter(tenant)
	if err != nil {
		return nil, m.tooMany(err)
	}
	m.long.Add(1)
	return func() {
		out()
		m.long.Done()
		m.poke()
	}, nil
}

func (m *Manager) tooMany(err error) error {
	e := gate.Refusal(err, "executions.Start", fmt.Sprintf("too many long calls (at most %d in total, and a share per tenant); call without Prefer: respond-async", m.o.Long))
	e.Details["limit"], e.Details["remaining"], e.Details["reset_ms"] = m.o.Long, 0, e.Details["retry_after_ms"]
	return e
}

// expectResult says that there will be a result, by an empty one.
func (m *Manager) expectResult(ctx context.Context, tenant, id string) {
	if m.o.Results == nil {
		return
	}
	if err := m.put(ctx, tenant, id, []Item{{}}); err != nil {
		m.log(ctx, "cannot record the pending result", err)
	}
}

// storeTime is how long the keeping of a result may take: it must not hold up the end of
// a host.
const storeTime = 5 * time.Second

// keepResult keeps the whole result of a long call.
func (m *Manager) keepResult(ctx context.Context, tenant, id string, r *skill.Result) {
	if m.o.Results == nil {
		return
	}
	b, err := Written(r)
	if err == nil && int64(len(b)) > m.o.MostOfOne {
		err = fmt.Errorf("it has %d bytes; at most %d are stored", len(b), m.o.MostOfOne)
	}
	if err == nil {
		err = m.put(ctx, tenant, id, []Item{{Data: b}})
	}
	if err != nil {
		m.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "the result of a long call is not stored",
			slog.String("execution_id", id), slog.String("error", err.Error()))
	}
}

// Written returns a result as JSON. Its data is copied as the door gave it, and not read: the
// door has made sure that it is JSON, and it may be long.
func Written(r *skill.Result) ([]byte, error) {
	plain := *r
	plain.Data = nil
	b, err := json.Marshal(&plain)
	if err != nil || len(r.Data) == 0 {
		return b, err
	}
	const data = `"data":` // no text of JSON has a quote in it
	before, after, _ := bytes.Cut(b, []byte(data+"null"))
	return bytes.Join([][]byte{before, []byte(data), r.Data, after}, nil), nil
}

// Keep keeps the files that a run left, so that they can be fetched; those beyond
// [Options.MostOfOne] are left out, in their order. The door calls it before the end of
// the execution is on record. Those that are kept get the URL under which the HTTP API gives
// them. After an error nothing is kept.
func (m *Manager) Keep(ctx context.Context, s *Started, artifacts []skill.Artifact) error {
	if m.o.Results == nil || len(artifacts) == 0 {
		return nil
	}
	if !m.ours(ctx, s.ExecutionID, nil) {
		return unavailable("executions.Keep", foreignMessage, nil)
	}
	var items []Item
	var kept []*skill.Artifact
	left, cut := m.o.MostOfOne, 0
	for i := range artifacts {
		a := &artifacts[i]
		size := Size(a.Name, int64(len(a.Data)))
		switch {
		case !fitName(a.Name): // it is not in the result either
		case size > left:
			cut++
		default:
			items = append(items, Item{a.Name, a.Data})
			kept = append(kept, a)
			left -= size
		}
	}
	if cut > 0 {
		m.o.Log.LogAttrs(ctx, slog.LevelWarn, "artifacts not stored: too large", slog.String("execution_id", s.ExecutionID), slog.Int("files", cut))
	}
	if err := m.put(ctx, s.Tenant, s.ExecutionID, items); err != nil {
		return &skill.Error{
			Op: "executions.Keep", Code: skill.AuditUnavailable, Subject: s.ExecutionID,
			Message: "cannot store the artifacts of the run; retry", Err: err,
		}
	}
	for _, a := range kept {
		a.URL = "/executions/" + s.ExecutionID + "/artifacts/" + url.PathEscape(a.Name)
	}
	return nil
}

// logsName is the item that holds what a run wrote to standard error. No file has it: it
// is not plain text.
const logsName = "\tlogs"

// KeepLogs keeps the end of what a run wrote to standard error, where [Options.Logs] says
// so; text makes it fit to be shown. A run is none the worse for it that they are not kept,
// which the log says.
func (m *Manager) KeepLogs(ctx context.Context, s *Started, failed bool, text func() string) {
	if m.o.Results == nil || m.o.Logs != LogsOfAll && (m.o.Logs != LogsOfFailed || !failed) || !m.ours(ctx, s.ExecutionID, nil) {
		return
	}
	logs := text()
	if logs == "" {
		return
	}
	if err := m.put(ctx, s.Tenant, s.ExecutionID, []Item{{logsName, []byte(logs)}}); err != nil {
		m.o.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn, "standard error of a run is not stored",
			slog.String("execution_id", s.ExecutionID), slog.String("error", err.Error()))
	}
}

// fitName reports whether a name that a guest gave is plain text.
func fitName(name string) bool { return name != "" && name == skill.CleanText(name, 255) }

// put keeps items, also of a call whose context has ended.
func (m *Manager) put(ctx context.Context, tenant, id string, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	now := m.o.Now().UTC()
	return m.o.Results.Put(ctx, &Kept{Tenant: tenant, ExecutionID: id, Items: items, At: now, Until: now.Add(m.o.Keep)}, m.o.MostOfAll)
}
