package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/sdk/skill"
)

// This file is the Tasks extension, io.modelcontextprotocol/tasks (SEP-2663): a call that may take long and has not ended
// soon is answered with a task, whose result the client asks for later. The id of a task is that of the execution.

const tasksExtension = "io.modelcontextprotocol/tasks"

// Tasks runs calls that go on when their clients leave. It authorizes; its errors are *skill.Error.
type Tasks interface {
	// May reports whether p could ask for its tasks afterwards.
	May(p skill.Principal) bool
	// Start runs a call and returns the id of its execution as soon as that is on record; "" if the call ended before.
	// ended gets the result. ctx is that of the request.
	Start(ctx context.Context, p skill.Principal, r skill.Request) (id string, ended <-chan *skill.Result, err error)
	// Get returns a task, with its result if that is asked for, which may be long.
	Get(ctx context.Context, p skill.Principal, id string, result bool) (*Task, error)
	Cancel(ctx context.Context, p skill.Principal, id string) error
}

// Task is an execution as the client of a task sees it.
type Task struct {
	Began, Updated time.Time
	Kept           time.Duration // from Began until the result may be gone
	Ended          bool
	Result         *skill.Result // nil if it has not ended, or if the result is not kept
	Script         bool          // of an Agent Skill
}

type taskParams struct {
	mcp.ParamsBase
	TaskID         string          `json:"taskId"`
	InputResponses json.RawMessage `json:"inputResponses,omitempty"`
}

type taskResult struct {
	mcp.ResultBase
	ResultType string     `json:"resultType"`
	TaskID     string     `json:"taskId,omitempty"`
	Status     string     `json:"status,omitempty"`
	CreatedAt  string     `json:"createdAt,omitempty"`
	UpdatedAt  string     `json:"lastUpdatedAt,omitempty"`
	TTLMS      int64      `json:"ttlMs,omitempty"`
	PollMS     int64      `json:"pollIntervalMs,omitempty"`
	Result     mcp.Result `json:"result,omitempty"`
}

// pollEvery is how long a client should wait between two questions about a task.
const pollEvery = time.Second

// addTasks makes the methods of tasks known to the SDK. [caller.handle] answers them.
func (c *caller) addTasks() error {
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		err := mcp.AddReceivingCustomMethod(c.server, method, func(context.Context, *mcp.ServerSession, *taskParams) (*taskResult, error) {
			return nil, protocolError(fmt.Errorf("mcp: %s was not answered", method))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// declared reports whether the client of a request supports tasks.
func declared(version string, caps *mcp.ClientCapabilities) bool {
	if version < stateless || caps == nil {
		return false
	}
	_, ok := caps.Extensions[tasksExtension]
	return ok
}

var errNoTasks = &jsonrpc.Error{
	Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client must declare the extension " + tasksExtension + " in the capabilities of the request",
	Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}`),
}

// mayTask reports whether a call can be answered with a task: its client supports tasks, its caller may read the result
// later, and its time limit is above Options.TaskLimit.
func (c *caller) mayTask(r *mcp.CallToolRequest, id skill.ID) bool {
	o := &c.s.opt
	if o.Tasks == nil || !declared(r.ProtocolVersion(), r.ClientCapabilities()) || !o.Tasks.May(c.p) {
		return false
	}
	d, err := o.Catalogue.Get(c.p, id, "")
	if err != nil {
		return false // the call says why
	}
	limit := d.Limits.TimeoutMS
	if id == skill.RunCode {
		var in struct{ Limits skill.LimitsJSON }
		if json.Unmarshal(r.Params.Arguments, &in) == nil {
			limit = max(limit, in.Limits.TimeoutMS)
		}
	}
	return limit > uint64(o.TaskLimit.Milliseconds()) // positive by withDefaults
}

// callAsTask runs a call, and answers with a task if it has not ended soon.
func (c *caller) callAsTask(ctx context.Context, r *mcp.CallToolRequest, req skill.Request) (*taskResult, *skill.Result, error) {
	tasks, asker := c.s.opt.Tasks, ctx
	if e := c.s.web.exchangeOf(r.Extra); e != nil {
		asker = e.asked
	}
	id, ended, err := tasks.Start(asker, c.p, req)
	if skill.CodeOf(err) == skill.RateLimited { // too many long calls; its client waits for it
		return nil, c.s.opt.Door.Invoke(ctx, c.p, req), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if id == "" {
		return nil, <-ended, nil
	}
	soon := time.NewTimer(c.s.opt.TaskAfter)
	defer soon.Stop()
	select {
	case res := <-ended:
		return nil, res, nil
	case <-ctx.Done(): // no client has the id of the task
		err := tasks.Cancel(context.WithoutCancel(ctx), c.p, id)
		return nil, skill.Failure(req.SkillID, req.TraceID, skill.Meta{ExecutionID: id}, &skill.Error{
			Op: "mcp.task", Code: skill.Cancelled, Message: "the client disconnected", Err: err,
		}), nil
	case <-soon.C:
	}
	t, err := tasks.Get(ctx, c.p, id, true)
	if err == nil && t.Ended && t.Result != nil { // it was queued
		c.withImages(ctx, id, t.Result.Meta.Artifacts)
		t.Result.Meta.Ran = true
		return nil, t.Result, nil
	}
	if err != nil { // no client has the id of the task
		return nil, nil, errors.Join(err, tasks.Cancel(context.WithoutCancel(ctx), c.p, id))
	}
	t.Ended = false // the result comes with tasks/get
	out := c.taskOf(nil, id, t)
	out.ResultType = "task"
	return out, nil, nil
}

// task answers tasks/get, tasks/update and tasks/cancel.
func (c *caller) task(ctx context.Context, method string, r *mcp.ServerRequest[*taskParams]) (*taskResult, error) {
	tasks := c.s.opt.Tasks
	if !declared(r.ProtocolVersion(), r.ClientCapabilities()) {
		return nil, errNoTasks
	}
	id := r.Params.TaskID
	none := func(err error) error {
		if skill.CodeOf(err) != skill.NotFound {
			return err
		}
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "task not found: " + skill.CleanText(id, 64)}
	}
	if method == "tasks/cancel" {
		return &taskResult{ResultType: complete}, none(tasks.Cancel(ctx, c.p, id))
	}
	t, err := tasks.Get(ctx, c.p, id, method == "tasks/get")
	switch {
	case err != nil:
		return nil, none(err)
	case method == "tasks/update": // no task asks for input
		return &taskResult{ResultType: complete}, nil
	case t.Ended && t.Result == nil:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the task has expired: its result is not kept any more, or was too large"}
	}
	if t.Ended {
		c.withImages(ctx, id, t.Result.Meta.Artifacts)
	}
	return c.taskOf(c.outgoing(r), id, t), nil
}

// withImages reads the small images among the artifacts of a task, which its result has inline.
func (c *caller) withImages(ctx context.Context, id string, list []skill.Artifact) {
	for i := range list {
		if a := &list[i]; c.s.opt.Artifact != nil && a.Size <= mostImage && imageKind(a.Name) != "" {
			a.Data, _ = c.s.opt.Artifact(ctx, c.p, id, a.Name) // it may have expired: its link says so
		}
	}
}

// taskOf describes a task.
func (c *caller) taskOf(b *bodies, id string, t *Task) *taskResult {
	out := &taskResult{
		ResultType: complete, TaskID: id, Status: "working", CreatedAt: t.Began.UTC().Format(time.RFC3339Nano), UpdatedAt: t.Updated.UTC().Format(time.RFC3339Nano),
		TTLMS: t.Kept.Milliseconds(), PollMS: pollEvery.Milliseconds(),
	}
	switch {
	case !t.Ended:
	case t.Result.Error != nil && t.Result.Error.Code == skill.Cancelled:
		out.Status = "cancelled"
	default:
		content := dataContent
		if t.Script {
			content = agentContent
		}
		out.Status, out.Result = "completed", completed(stateless, b.toolResult(t.Result, content))
	}
	return out
}

// asksForTasks reports whether the params of subscriptions/listen name tasks, and the client does not declare the
// extension. The SDK does not know these params.
func asksForTasks(params json.RawMessage) bool {
	var p struct {
		Meta struct {
			Capabilities struct {
				Extensions map[string]json.RawMessage `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
		Notifications struct {
			TaskIDs json.RawMessage `json:"taskIds"`
		} `json:"notifications"`
	}
	if json.Unmarshal(params, &p) != nil || p.Notifications.TaskIDs == nil {
		return false
	}
	_, ok := p.Meta.Capabilities.Extensions[tasksExtension]
	return !ok
}
