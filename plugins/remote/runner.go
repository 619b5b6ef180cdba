package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"openskill/sdk/skill"
)

// maxSent is how many bytes a request may have, which is what hosts send for a guest.
const maxSent = 1 << 20

// Runner asks skills that are elsewhere. It is safe for concurrent use.
type Runner struct {
	outgoing skill.Outgoing

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner whose requests outgoing makes; nil: there is no network, and no
// skill is ready.
func New(outgoing skill.Outgoing) *Runner { return &Runner{outgoing: outgoing} }

// Kind is http.
func (r *Runner) Kind() skill.Kind { return skill.HTTP }

// Prepare implements [skill.Runner]. It does not ask the other side.
func (r *Runner) Prepare(_ context.Context, s *skill.Spec) (plan skill.Plan, err error) {
	if s.Entry != "" || s.Folder != "" {
		if _, err = read(s.Folder, s.Entry); err == nil {
			err = r.network()
		}
	}
	return plan, err
}

func (r *Runner) network() error {
	if r.outgoing == nil {
		return &skill.Error{
			Op: "remote.Ready", Code: skill.ToolInvocationError,
			Message: "requests of skills are disabled on this host; the operator can allow addresses in OPENSKILL_HTTP_ALLOW",
		}
	}
	return nil
}

// Close waits for the runs under way. It may be called twice.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.runs.Wait()
	return nil
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &skill.Error{Op: "remote.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	r.runs.Add(1)
	return nil
}

var errTimeout = errors.New("timeout")

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.runs.Done()
	if call.Trust < skill.Trusted {
		return nil, &skill.Error{
			Op: "remote.Run", Code: skill.Forbidden, Subject: string(call.SkillID),
			Message: "community skills run only in the sandbox; http is only for skills in the operator's own folders",
		}
	}
	if err := r.network(); err != nil || call.Ahead {
		return &skill.Reply{}, err
	}
	to, err := read(call.Folder, call.Entry)
	if err != nil {
		return nil, err
	}
	request, err := to.request(call)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, call.Limits.Timeout, errTimeout)
	defer stop()
	if ctx.Err() != nil {
		return ended(ctx, call), nil
	}
	response := r.outgoing.For(call)(ctx, request)
	if ctx.Err() != nil { // whatever came of it, it came too late
		return ended(ctx, call), nil
	}
	return reply(response, call)
}

// head is the first line of a request, as docs/authors.md has it for guests.
type head struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	TimeoutMS int64             `json:"timeout_ms"`
}

// request is what is sent for a call.
func (a *address) request(call *skill.Call) ([]byte, error) {
	headers, err := a.headers(call)
	if err != nil {
		return nil, err
	}
	var in struct {
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(call.Stdin, &in); err != nil || len(in.Input) == 0 {
		return nil, &skill.Error{
			Op: "remote.request", Code: skill.ToolInvocationError, Subject: string(call.SkillID), Err: err,
			Message: `invalid input of a remote skill: send one object, {"input": {…}}`,
		}
	}
	body := append(append([]byte(`{"input":`), in.Input...), '}')
	if len(body) > maxSent {
		return nil, &skill.Error{
			Op: "remote.request", Code: skill.PayloadTooLarge, Subject: string(call.SkillID),
			Message: fmt.Sprintf("the request to the remote skill is too large: %d bytes, the limit is %d", len(body), maxSent),
		}
	}
	first, err := json.Marshal(head{"POST", a.URL, headers, min(call.Limits.Timeout.Milliseconds()+1, 1<<31)})
	if err != nil {
		return nil, err
	}
	return append(append(first, '\n'), body...), nil
}

// ended is the reply of a run that its context has ended.
func ended(ctx context.Context, call *skill.Call) *skill.Reply {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return &skill.Reply{
			Code:    skill.Timeout,
			Message: fmt.Sprintf("the remote skill did not answer within %d ms; it may still be running there", call.Limits.Timeout.Milliseconds()),
		}
	}
	return &skill.Reply{Code: skill.Cancelled, Message: "the client disconnected before the remote skill answered"}
}

// answer is the first line of a response.
type answer struct {
	Status int `json:"status"`
	Error  *struct {
		Code    skill.Code `json:"code"`
		Message string     `json:"message"`
	} `json:"error"`
}

// reply makes the reply of a run out of a response.
func reply(response []byte, call *skill.Call) (*skill.Reply, error) {
	first, body, _ := bytes.Cut(response, []byte("\n"))
	var a answer
	if err := json.Unmarshal(first, &a); err != nil {
		return nil, &skill.Error{Op: "remote.reply", Code: skill.Internal, Message: "the request to the remote skill failed", Err: err}
	}
	if e := a.Error; e != nil {
		out := &skill.Reply{Code: e.Code, Message: e.Message}
		switch e.Code { //nolint:exhaustive // the others say it as it is
		case skill.PayloadTooLarge: // the request is not: that was looked at before
			out.Code = skill.OutputLimit
		case skill.InvalidArgument, skill.Cancelled, skill.RateLimited: // of the entry, or the host's; not of the caller's input
			out.Code = skill.ToolInvocationError
		}
		return out, nil
	}
	out := &skill.Reply{Stdout: body}
	if uint64(len(body)) > call.Limits.Output {
		return &skill.Reply{
			Code: skill.OutputLimit, Stdout: body[:call.Limits.Output],
			Message: fmt.Sprintf("the remote skill's response exceeds its limit of %d bytes", call.Limits.Output),
		}, nil
	}
	if a.Status < 200 || a.Status > 299 {
		out.ExitCode = 1
		out.Stderr = fmt.Appendf(nil, "the remote skill answered with the HTTP status %d\n", a.Status)
	}
	return out, nil
}
