package app

import (
	"context"
	"encoding/json"
	"time"

	"openskill/host/api"
	"openskill/host/identity"
	"openskill/host/mcp"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// tasks are the executions of a host as MCP clients see them.
type tasks struct{ *Host }

// Tasks returns the calls that go on when their MCP clients leave; nil if this host keeps no results.
func (h *Host) Tasks() mcp.Tasks {
	if h.kept.executions == nil {
		return nil
	}
	return tasks{h}
}

// TendTasks ends tasks that other hosts cancelled and removes what has expired, until ctx ends; then it ends all tasks. A
// host that serves does so by itself.
func (h *Host) TendTasks(ctx context.Context) {
	h.kept.executions.Tend(ctx)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	_ = h.kept.executions.Close(stop) // they are on record as running
}

// EndSession deletes a session of the operator, which need not be there.
func (h *Host) EndSession(ctx context.Context, id string) {
	_ = h.kept.sessions.Delete(ctx, skill.Local(), id) // it expires
}

// EndWorkspace deletes a workspace of the operator, which need not be there.
func (h *Host) EndWorkspace(ctx context.Context, id string) {
	_ = h.kept.spaces.Delete(ctx, skill.Local(), id) // it expires
}

// schedules are calls that are made again and again; nil where none are queued.
func (h *Host) schedules() api.Schedules {
	if h.kept.executions == nil {
		return nil
	}
	if s := h.kept.executions.Schedules(h.door); s != nil {
		return s
	}
	return nil
}

// worker runs queued calls.
func (h *Host) worker() records.Worker {
	now := func(ctx context.Context, p skill.Principal, accepted time.Time) (skill.Principal, error) {
		switch {
		case h.kept.callers != nil:
			return h.kept.callers.Still(ctx, p, accepted)
		case p.Key != "" || p.Type != skill.Operator: // another host of the database let it in
			return p, identity.CannotTell()
		}
		return p, nil
	}
	return records.Worker{Door: h.door, Admit: func(ctx context.Context, p skill.Principal, accepted time.Time) (context.Context, skill.Principal, func(), error) {
		current, err := now(ctx, p, accepted)
		if err != nil {
			return nil, p, nil, err
		}
		run, done := identity.Start(ctx, func(ctx context.Context) error {
			_, err := now(ctx, p, accepted)
			return err
		})
		return run, current, done, nil
	}}
}

// May implements [mcp.Tasks].
func (tasks) May(p skill.Principal) bool { return records.MayRead(p) }

// Start implements [mcp.Tasks].
func (t tasks) Start(ctx context.Context, p skill.Principal, r skill.Request) (string, <-chan *skill.Result, error) {
	ended := make(chan *skill.Result, 1)
	later := &records.QueuedCall{Principal: p, Request: &r}
	id, _, early, err := t.kept.executions.Accept(ctx, later, api.Outliving(ctx, func(run context.Context, started func(string)) *skill.Result {
		begun := false
		result := t.door.Start(run, p, r, func(id string) {
			begun = true
			started(id)
		})
		if begun { // else it may be queued
			ended <- result
		}
		return result
	}), t.door)
	if early != nil {
		ended <- early
	}
	return id, ended, err
}

// Get implements [mcp.Tasks].
func (t tasks) Get(ctx context.Context, p skill.Principal, id string, result bool) (*mcp.Task, error) {
	most := 0
	if result {
		most = records.WholeResult
	}
	v, err := t.kept.executions.Get(ctx, p, id, most)
	if err != nil {
		return nil, err
	}
	task := &mcp.Task{
		Began: v.StartedAt, Updated: v.StartedAt, Script: v.Script != "", Ended: v.FinishedAt != nil,
		Kept: skill.Preparing + v.Limits.Limits().Timeout + t.settings.ResultTime(),
	}
	if v.Status == records.Queued {
		task.Kept += records.QueuedFor
	}
	if !task.Ended {
		return task, nil
	}
	task.Updated, task.Kept = *v.FinishedAt, v.FinishedAt.Sub(v.StartedAt)+t.settings.ResultTime()
	switch {
	case len(v.Result) > 0:
		return task, json.Unmarshal(v.Result, &task.Result)
	case v.Error != nil: // its host has ended, perhaps
		task.Result = skill.Failure(skill.ID(v.Skill), skill.TraceID(v.TraceID), skill.Meta{ExecutionID: id}, &skill.Error{Code: v.Error.Code, Message: v.Error.Message})
	}
	return task, nil
}

// Cancel implements [mcp.Tasks].
func (t tasks) Cancel(ctx context.Context, p skill.Principal, id string) error {
	_, err := t.kept.executions.Cancel(ctx, p, id)
	return err
}
