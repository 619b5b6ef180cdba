package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"openskill/internal/ordered"
	"openskill/internal/suggest"
	"openskill/sdk/skill"
)

// kit are the tools of one caller.
type kit struct {
	box          *Toolbox
	p            skill.Principal
	list         []skill.Tool
	agents       int        // the first tools of list, which are the host's: of Agent Skills, and search_skills
	ids          []skill.ID // of the others
	instructions string
}

var _ Set = (*kit)(nil)

func (k *kit) List() []skill.Tool { return k.list[:len(k.list):len(k.list)] }

func (k *kit) Instructions() string { return k.instructions }

// find returns the tool of a name, and the skill's id; "" for those of the host.
func (k *kit) find(name string) (*skill.Tool, skill.ID) {
	for i := range k.list {
		switch {
		case k.list[i].Name != name:
		case i < k.agents:
			return &k.list[i], ""
		default:
			return &k.list[i], k.ids[i-k.agents]
		}
	}
	return nil, ""
}

func (k *kit) Call(ctx context.Context, c Call) (out *Outcome) {
	began := k.box.o.Now()
	out = &Outcome{Call: c, Skill: skill.CleanText(c.Name, 128), Arguments: json.RawMessage("{}")}
	defer func() { // before anything else: who calls may have begun a goroutine for it
		if v := recover(); v != nil {
			k.box.broken(ctx, c.Trace, v)
			k.ended(out, k.failed(out, &skill.Error{Op: "tools.Call", Code: skill.Internal}))
		}
		out.Took = max(k.box.o.Now().Sub(began), 0)
	}()
	args, wrong := arguments(c.Arguments)
	out.Arguments = args
	tool, id := k.find(c.Name)
	if tool == nil {
		k.unknown(out)
		return out
	}
	if id != "" {
		out.Skill = string(id)
	}
	if wrong != nil {
		k.refuse(out, tool, wrong)
		return out
	}
	res := k.box.run(ctx, k.p.Tenant, func() *skill.Result {
		switch {
		case tool.Name == SearchSkills && id == "":
			return Search(ctx, k.box.o.Search, k.p, args, c.Trace)
		case id == "":
			return k.box.o.AgentSkills.CallToolIn(ctx, k.p, tool.Name, args, c.Trace, c.Turn, c.Limits)
		}
		return k.box.o.Door.Invoke(ctx, k.p, skill.Request{SkillID: id, Input: args, TraceID: c.Trace, Limits: c.Limits, Turn: c.Turn})
	}, func(err error) *skill.Result { return k.failed(out, err) })
	if e := res.Error; e != nil && e.Code == skill.InvalidArgument && !res.Meta.Ran && (id != "" || res.Meta.Runner == "") {
		k.invalid(out, tool, res) // the host's own word; what a skill says of its input is an answer like others
		return out
	}
	k.ended(out, res)
	return out
}

// failed is the result of a call that was not made.
func (k *kit) failed(out *Outcome, err error) *skill.Result {
	id, _ := skill.ParseID(out.Skill) // "" for what is no id
	return skill.Failure(id, out.Call.Trace, skill.Meta{}, err)
}

// ended tells of a result.
func (k *kit) ended(out *Outcome, res *skill.Result) {
	out.Result = res
	var sentences []string
	if e := res.Error; e != nil && !res.Meta.Ran {
		switch {
		case e.Code == skill.Forbidden && e.Details["reason"] == "approval_required":
			said := "The approval was denied. Tell the user so, and do not make this call again."
			if id, ok := e.Details["approval_id"].(string); ok && fmt.Sprint(e.Details["state"]) == "pending" {
				out.Approval = id
				said = "Tell the user that the approval " + skill.CleanText(id, 64) + " is needed for this, and do not make the call again before it is given."
			}
			sentences = []string{said}
		case e.Code == skill.RateLimited && retryAfter(e) > longestWait:
			sentences = []string{"This limit lasts. Do not repeat the call; tell the user when it can be made."}
		case e.Code == skill.RateLimited:
			sentences = []string{"The call was retried until time ran out. Continue without it, or tell the user."}
		}
	}
	_, id := k.find(out.Call.Name)
	out.Text = k.box.tell(out.Call.Name, id == "", res, sentences...)
}

// unknown tells of a tool that there is not.
func (k *kit) unknown(out *Outcome) {
	all := make([]string, len(k.list))
	for i := range k.list {
		all[i] = k.list[i].Name
	}
	offer := listed(all)
	if list := suggest.Names(out.Call.Name, all); len(list) > 0 {
		offer = "did you mean " + list[0]
		for _, name := range list[1:] {
			offer += " or " + name
		}
		offer += "?"
	}
	out.Invalid = true
	out.Result = k.failed(out, &skill.Error{
		Op: "tools.Call", Code: skill.NotFound,
		Message: skill.CleanText(fmt.Sprintf("unknown tool %q; %s", skill.CleanText(out.Call.Name, 64), offer), skill.MaxMessage),
	})
	out.Text = k.box.marked(out.Call.Name, statusInvalid, func(w *writer) (int, int) { return w.failure(out.Result.Error) },
		"Nothing ran. Call only listed tools.")
}

// refuse tells of arguments that cannot be read.
func (k *kit) refuse(out *Outcome, tool *skill.Tool, wrong *field) {
	if o, err := ordered.DecodeObject(tool.InputSchema); err == nil {
		wrong.Suggestion = "send an object such as " + example(o)
	}
	k.invalid(out, tool, k.failed(out, &skill.Error{
		Op: "tools.Call", Code: skill.InvalidArgument,
		Message: skill.CleanText("what was sent as arguments "+wrong.Problem+"; accepted is "+wrong.Expected, skill.MaxMessage),
		Details: map[string]any{"fields": []field{*wrong}},
	}))
}

// invalid tells how a call can be mended that the host refused for its arguments.
func (k *kit) invalid(out *Outcome, tool *skill.Tool, res *skill.Result) {
	out.Result, out.Invalid = res, true
	list := fieldsOf(res.Error)
	advise(tool.InputSchema, out.Arguments, list)
	out.Text = k.box.marked(tool.Name, statusInvalid, func(w *writer) (shown, of int) {
		if len(list) == 0 {
			return w.failure(res.Error)
		}
		w.put(string(res.Error.Code) + ": the arguments are wrong\n")
		said := map[string]any{"fields": list}
		if total, more := res.Error.Details["total"]; more {
			said["total"] = total
		}
		b, err := json.Marshal(said)
		if err != nil { // a total that is no number
			return w.failure(res.Error)
		}
		return w.json(b), len(b)
	}, "Nothing ran. Mend the arguments and make the call again.")
}

// How long a call waits for room, which others make.
const (
	maxTries    = 10
	firstPause  = 20 * time.Millisecond
	lastPause   = 2 * time.Second // where the host does not ask for longer
	longestWait = 5 * time.Second // that the host may ask for; what takes longer is no waiting for room
)

// run makes a call when it is its turn, and again where the host had no room, as long as
// ctx allows. While it waits between tries it holds no place of the gate's. failed makes a
// result of an error.
func (b *Toolbox) run(ctx context.Context, tenant string, call func() *skill.Result, failed func(error) *skill.Result) *skill.Result {
	for try := 1; ; try++ {
		leave, err := b.gate.Enter(ctx, tenant)
		if err != nil {
			return failed(notMade(err))
		}
		res := once(call, leave)
		if res == nil {
			b.o.Log.LogAttrs(ctx, slog.LevelError, "a call of a tool gave no result")
			return failed(&skill.Error{Op: "tools.run", Code: skill.Internal})
		}
		wait, again := pause(ctx, res, try)
		if !again {
			return res
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return failed(notMade(ctx.Err()))
		}
	}
}

func once(call func() *skill.Result, leave func()) *skill.Result {
	defer leave()
	return call()
}

// pause says whether a call is made again, and after how long.
func pause(ctx context.Context, res *skill.Result, try int) (time.Duration, bool) {
	e := res.Error
	if e == nil || e.Code != skill.RateLimited || res.Meta.Ran || try >= maxTries {
		return 0, false
	}
	after := retryAfter(e)
	if after > longestWait {
		return 0, false
	}
	wait := max(after, min(firstPause<<(try-1), lastPause))
	wait += rand.N(wait / 4) //nolint:gosec // so that those who wait do not all come back at once
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= wait {
		return 0, false
	}
	return wait, true
}

// retryAfter is when there is room again, as the host says; 0: it does not say.
func retryAfter(e *skill.ResultError) time.Duration {
	b, err := json.Marshal(e.Details["retry_after_ms"])
	var ms float64
	if err != nil || json.Unmarshal(b, &ms) != nil || !(ms > 0) {
		return 0
	}
	return time.Duration(min(ms, 1e9)) * time.Millisecond
}

// notMade says why a call was not made whose context ended before.
func notMade(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &skill.Error{Op: "tools.run", Code: skill.Timeout, Message: "the agent's time ran out before the call was made"}
	}
	return &skill.Error{Op: "tools.run", Code: skill.Cancelled, Message: "the call was not made: its turn has ended"}
}
