package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"openskill/sdk/skill"
)

// Run is a call that goes on by itself on the host.
type Run struct {
	ID string // of its execution

	c    *Client
	done *skill.Result // of a host that answered at once
}

// Start begins a call that goes on by itself, and gives it as soon as it is on record. Who
// may not read executions (executions:read) waits for the answer here; the Run has it then.
func (c *Client) Start(ctx context.Context, id skill.ID, input any) (*Run, error) {
	return c.StartWith(ctx, id, input, CallOptions{})
}

// StartWith is Start of a version, or within limits of the caller's.
func (c *Client) StartWith(ctx context.Context, id skill.ID, input any, o CallOptions) (*Run, error) {
	body, err := requestOf(id, input, o)
	if err != nil {
		return nil, err
	}
	res, err := c.send(context.WithValue(ctx, preferKey{}, "respond-async"), http.MethodPost, "/skills/"+string(id)+":invoke", body, typeJSON)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := c.body(res)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusAccepted {
		r := &skill.Result{}
		if err := unmarshal(res, b, r); err != nil {
			return nil, err
		}
		return &Run{ID: r.Meta.ExecutionID, c: c, done: r}, nil
	}
	var accepted skill.Accepted
	if err := unmarshal(res, b, &accepted); err != nil {
		return nil, err
	}
	if accepted.ID == "" {
		return nil, errors.New("client: the response names no execution; check that the base URL is an openSkill server")
	}
	return &Run{ID: accepted.ID, c: c}, nil
}

type preferKey struct{}

// The pauses between two looks at a run.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// Wait waits until the call has ended, and gives its result as Invoke does. The end of ctx
// ends the waiting, and not the call.
func (r *Run) Wait(ctx context.Context) (*skill.Result, error) {
	for pause := firstPause; r.done == nil; pause = min(2*pause, longestPause) {
		e, err := r.c.Execution(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		if e.Status != "running" && e.Status != "queued" {
			return ended(e)
		}
		if err := r.c.sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("client: the call continues as the execution %s: %w", r.ID, err)
		}
	}
	return r.done, nil
}

// ended is the result of an execution that has ended.
func ended(e *Execution) (*skill.Result, error) {
	switch r := e.Result; {
	case r != nil && r.Success && r.Error == nil:
		return r, nil
	case r != nil && r.Error != nil:
		return r, newError(r.Error.Status, r.Error, string(r.TraceID))
	case e.Error != nil:
		return nil, newError(0, e.Error, e.TraceID)
	}
	return nil, fmt.Errorf("client: the execution %s ended as %s, but its result is no longer stored", skill.CleanText(e.ID, 80), skill.CleanText(e.Status, 40))
}

// Cancel ends the call.
func (r *Run) Cancel(ctx context.Context) (*Execution, error) { return r.c.Cancel(ctx, r.ID) }

// Cancel ends a call of one's own that is under way. To ask twice does no harm.
func (c *Client) Cancel(ctx context.Context, id string) (*Execution, error) {
	part, err := segment("execution id", id)
	if err != nil {
		return nil, err
	}
	return get[Execution](ctx, c, http.MethodDelete, "/executions/"+part, nil)
}
