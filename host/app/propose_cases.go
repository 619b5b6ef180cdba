package app

import (
	"context"
	"fmt"
	"time"

	"openskill/internal/cases"
	"openskill/sdk/skill"
)

// caseRunner runs the cases of a proposal as the caller.
type caseRunner struct {
	host   *Host
	p      skill.Principal
	trace  skill.TraceID
	turn   skill.Turn
	limits skill.Limits // Fuel and Timeout are for all cases together
	fuel   uint64       // that they used
	ran    int          // cases whose code ran
}

// maxCasesTime bounds the cases of a proposal together.
const maxCasesTime = 2 * time.Minute

// failedCase is a case whose answer is not the expected one.
type failedCase struct {
	Name        string             `json:"name"`
	Differences []cases.Difference `json:"differences"`
	Error       *skill.ResultError `json:"error,omitempty"`
	ExecutionID string             `json:"execution_id,omitempty"`
}

// run runs the cases. failed says that some of them failed, as the error tells; other errors are no fault of the skill.
func (t *caseRunner) run(ctx context.Context, w *proposal, version string) (failed bool, err error) {
	refuse := func(code skill.Code, message string, details map[string]any) error {
		return &skill.Error{Op: "host.propose", Code: code, Subject: string(w.id), Message: message, Details: details}
	}
	var wrong []failedCase
	turn := t.turn
	turn.Tokens, turn.Workspace = 0, ""
	total := maxCasesTime
	if t.limits.Timeout > 0 {
		total = min(total, t.limits.Timeout)
	}
	ends := time.Now().Add(total)
	left := func() error { // of what the turn allows all cases together
		switch {
		case !time.Now().Before(ends):
			return refuse(skill.Timeout, fmt.Sprintf("the cases take longer than %s together; propose fewer or shorter ones", total), nil)
		case t.limits.Fuel > 0 && t.fuel >= t.limits.Fuel:
			return refuse(skill.FuelExhausted, "the cases used up the fuel of the turn; propose fewer or smaller ones", nil)
		}
		return nil
	}
	for i := range w.cases {
		c := &w.cases[i]
		if err := left(); err != nil {
			return false, err
		}
		limits := skill.Limits{Timeout: max(time.Until(ends), 1), Memory: t.limits.Memory}
		if t.limits.Fuel > 0 {
			limits.Fuel = t.limits.Fuel - t.fuel
		}
		got := t.host.door.Try(ctx, t.p, skill.Request{SkillID: w.id, Version: version, Input: c.Input, TraceID: t.trace, Turn: turn, Limits: limits.Lower(c.Limits)})
		t.fuel += got.Meta.FuelUsed
		if got.Meta.Ran {
			t.ran++
		}
		if err := left(); got.Error != nil && err != nil { // the turn ended it
			return false, err
		}
		if e := got.Error; e != nil && (ctx.Err() != nil || !got.Meta.Ran && e.Code != skill.InvalidArgument || e.Code == skill.Cancelled || e.Code == skill.AuditUnavailable) {
			return false, refuse(e.Code, e.Message, e.Details)
		}
		if found := c.Compare(got); found != nil {
			wrong = append(wrong, failedCase{c.Name, found, got.Error, got.Meta.ExecutionID})
		}
	}
	switch {
	case wrong != nil:
		return true, refuse(skill.ToolInvocationError, fmt.Sprintf("%d of %d cases failed; correct the code or the cases, and propose it again", len(wrong), len(w.cases)), map[string]any{"cases": wrong})
	case t.ran == 0:
		return true, refuse(skill.ToolInvocationError, "no case ran the code: input_schema refuses all inputs; add a case with data", nil)
	}
	return false, nil
}
