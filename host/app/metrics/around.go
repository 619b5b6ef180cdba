package metrics

import (
	"context"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/dispatch"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// The records of a run.
const (
	started  = "started"
	finished = "finished"
)

// Recorder counts how long records take, and those that fail, in front of where they are
// written.
func (m *Metrics) Recorder(next dispatch.Recorder) dispatch.Recorder {
	if m == nil || next == nil {
		return next
	}
	return &recorder{m, next}
}

type recorder struct {
	m    *Metrics
	next dispatch.Recorder
}

func (r *recorder) Started(ctx context.Context, s *records.Started, input []byte) error {
	began := time.Now()
	err := r.next.Started(ctx, s, input)
	r.ended(started, began, err)
	return err
}

func (r *recorder) Finished(ctx context.Context, of *records.Started, f *records.Finished, output []byte) error {
	began := time.Now()
	err := r.next.Finished(ctx, of, f, output)
	r.ended(finished, began, err)
	return err
}

func (r *recorder) ended(record string, began time.Time, err error) {
	r.m.audit.WithLabelValues(record).Observe(time.Since(began).Seconds())
	if err != nil && skill.CodeOf(err) != skill.Cancelled { // its caller left
		r.m.unrecorded.WithLabelValues(record).Inc()
	}
}

// QuotaRefused counts a call, request or question that a quota refused: whose limit it was, and
// of what. Package quota has a fixed list of both.
func (m *Metrics) QuotaRefused(what, unit string) {
	if m != nil {
		m.quota.WithLabelValues(what, unit).Inc()
	}
}

// Provider counts what is asked of a provider of models. name is its name in the settings.
func (m *Metrics) Provider(name string, next llm.Provider) llm.Provider {
	if m == nil || next == nil {
		return next
	}
	return &provider{m, name, next}
}

type provider struct {
	m    *Metrics
	name string
	next llm.Provider
}

func (p *provider) Chat(ctx context.Context, r *llm.Request, text func(part string)) (*llm.Reply, error) {
	began := time.Now()
	reply, err := p.next.Chat(ctx, r, text)
	p.m.modelTimes.WithLabelValues(p.name).Observe(time.Since(began).Seconds())
	p.m.models.WithLabelValues(p.name, codeOfError(err)).Inc()
	if reply != nil {
		p.m.tokens.WithLabelValues(p.name, "prompt").Add(float64(max(reply.Usage.Prompt, 0)))
		p.m.tokens.WithLabelValues(p.name, "completion").Add(float64(max(reply.Usage.Completion, 0)))
	}
	return reply, err
}
