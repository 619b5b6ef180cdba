package app

import (
	"context"
	"fmt"

	"openskill/host/dispatch"
	"openskill/host/dispatch/quota"
	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// Trial is how a host calls skills for those who write them: the same door and the same
// sandbox, but by the way that they want to see. nil and zero are as always.
type Trial struct {
	// Fallback runs a skill by its fallback, whether or not it could run as it asks first;
	// one without a fallback runs as always.
	Fallback bool
	// Unlimited counts no calls: limits of calls a minute or a day would end a measurement
	// or a long list of cases, and a slow disk one that is right.
	Unlimited bool
	// Said is told the end of what a run wrote to standard error, with its lines, before the
	// run is answered; nil: nobody is.
	Said func(executionID, text string)
}

// of is the skill as it is tried. What was given is not changed.
func (t *Trial) of(s *manifest.Skill) *manifest.Skill {
	if t == nil {
		return s
	}
	c := *s
	if t.Fallback && s.Fallback != nil {
		c.Primary, c.Fallback = *s.Fallback, nil
		c.Descriptor.Runner, c.Descriptor.Fallback = c.Primary.Kind, ""
	}
	return &c
}

// tried finds skills as they are tried.
type tried struct {
	dispatch.Skills
	trial *Trial
}

// Get implements dispatch.Skills.
func (t tried) Get(tenant string, id skill.ID, version string) (*manifest.Skill, error) {
	s, err := t.Skills.Get(tenant, id, version)
	if err != nil {
		return nil, err
	}
	return t.trial.of(s), nil
}

// heard tells who tries skills what their runs wrote to standard error, and keeps of them
// what is always kept.
type heard struct {
	dispatch.Executions
	said func(executionID, text string)
}

// hears is where runs are known and what they leave is kept.
func (t *Trial) hears(e dispatch.Executions) dispatch.Executions {
	if t == nil || t.Said == nil {
		return e
	}
	return heard{e, t.Said}
}

// counts is what counts the calls; nil: nothing does.
func (t *Trial) counts(q *quota.Quotas) dispatch.Quotas {
	if t != nil && t.Unlimited {
		return nil
	}
	return q
}

// KeepLogs implements dispatch.Executions.
func (h heard) KeepLogs(ctx context.Context, of *records.Started, failed bool, text func() string) {
	h.said(of.ExecutionID, text())
	h.Executions.KeepLogs(ctx, of, failed, text)
}

// Ready reports whether one of the operator's skills would run as it asks first, or in
// a [Trial] as that wants; a fallback does not count. The error is a *skill.Error that
// says what is missing.
func (h *Host) Ready(id skill.ID) error {
	s, err := h.skills.Now().Get(id, "")
	if err != nil {
		return fmt.Errorf("host.Ready: %w", err)
	}
	s = h.trial.of(s)
	_, _, _, err = h.runners.Choose(context.Background(), s.Spec(s.Primary, skill.Local().Tenant), s.Primary, nil)
	return err
}
