package agent

import (
	"encoding/json"
	"errors"
	"maps"

	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// The members of a result that are the host's own, whatever the model says.
const (
	keyCalls   = "skill_calls"
	keyPartial = "partial"
)

// outcome is the answer to a task that ended.
func (r *taskRun) outcome(end *taskEnd) *Outcome {
	out := &Outcome{
		SessionID: r.session, Status: end.status, Iterations: len(r.calls), TotalTokens: r.budget.used.usage.Total(),
		TotalDuration: r.took(), Result: r.result(end),
	}
	if end.failure {
		details := map[string]any{}
		if cause := (*skill.Error)(nil); end.code == skill.RateLimited && errors.As(end.cause, &cause) {
			maps.Copy(details, cause.Details) // which limit, and when to come back
		}
		details["session_id"], details["status"] = r.session, string(end.status)
		out.Err = &skill.Error{
			Op: "agent.Execute", Code: end.code, Subject: r.session, Message: end.message, Err: end.cause,
			Details: details,
		}
	}
	return out
}

// result is what the model said, or where it has not finished what the host says of
// that, and the calls.
func (r *taskRun) result(end *taskEnd) json.RawMessage {
	calls := r.calls
	if calls == nil {
		calls = []SkillCall{}
	}
	o := &ordered.Object{}
	if end.result != nil {
		o = end.result
	}
	partial := end.status != TaskCompleted
	if partial {
		o = ordered.Of("summary", summary(end, len(calls)), "findings", []any{})
	}
	o.Delete(keyCalls)
	o.Delete(keyPartial)
	o.Set(keyCalls, calls)
	o.Set(keyPartial, partial)
	if partial {
		o.Set("error", ordered.Of("code", string(end.code), "message", end.message))
	}
	b, err := ordered.Encode(o)
	if err != nil { // of a value that was JSON before
		b = json.RawMessage(`{"summary":"the result cannot be written","findings":[],"skill_calls":[],"partial":true}`)
	}
	return b
}

// summary says in a sentence what became of a task that was not finished.
func summary(end *taskEnd, calls int) string {
	s := "The task was not finished: " + end.message + "."
	switch {
	case calls == 1:
		s += " One call was made before that; its result is in the records of this session."
	case calls > 1:
		s += " The calls made before that are in skill_calls; their results are in the records of this session."
	}
	return s
}
