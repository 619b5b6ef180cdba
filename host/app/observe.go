package app

import (
	"context"

	"openskill/host/agent/chat"
	"openskill/host/agent/react"
	"openskill/host/api"
	"openskill/host/app/metrics"
	"openskill/sdk/skill"
)

// openMetrics makes the metrics of a host that serves. They ask its parts, which are
// made after them, when somebody reads them.
func (h *Host) openMetrics() {
	h.metrics = metrics.New(metrics.Options{Version: Version, Sources: metrics.Sources{
		Load: func() (running, waiting, places, line int) {
			if h.door == nil {
				return 0, 0, 0, 0
			}
			return h.door.Load()
		},
		Workers: func() metrics.Workers {
			w := metrics.Workers{Most: h.settings.WorkersMax}
			if h.workers == nil || h.workers.pool == nil {
				w.Most = 0 // calls run in the host's process
				return w
			}
			s := h.workers.pool.Stats()
			w.Live, w.Spares, w.Busy, w.Starts, w.Crashes = s.Live, s.Spares, s.Busy, s.Starts, s.Crashes
			return w
		},
		Images: func() metrics.Images {
			if h.workers == nil || h.workers.pool == nil {
				if h.engine == nil {
					return metrics.Images{}
				}
				return metrics.Images(h.engine.Images())
			}
			return metrics.Images(h.workers.pool.Stats().Images)
		},
		Disk: func() (free, size uint64, ok bool) { return disk(h.settings.StateDir) },
	}})
	h.ended = append(h.ended, h.metrics.Call)
}

// watchEdge has the metrics told of what the HTTP edge does, and read there.
func (h *Host) watchEdge(o *api.Options) {
	if h.metrics == nil {
		return
	}
	o.Metrics, o.Watch = h.metrics, h.metrics
	o.Chat, o.React = countedChat{o.Chat, h.metrics}, countedTasks{o.React, h.metrics}
}

// countedChat counts turns of conversations.
type countedChat struct {
	api.Chat
	m *metrics.Metrics
}

func (c countedChat) Turn(ctx context.Context, p skill.Principal, r chat.Request, hear func(chat.Event)) (*chat.Answer, error) {
	a, err := c.Chat.Turn(ctx, p, r, hear)
	c.ended(a, err)
	return a, err
}

func (c countedChat) Approve(ctx context.Context, p skill.Principal, id string, d chat.Decision, hear func(chat.Event)) (*chat.Answer, error) {
	a, err := c.Chat.Approve(ctx, p, id, d, hear)
	c.ended(a, err)
	return a, err
}

func (c countedChat) ended(a *chat.Answer, err error) {
	if err != nil || a == nil {
		c.m.Turn("chat", string(skill.CodeOf(err)))
		return
	}
	c.m.Turn("chat", string(a.StopReason))
}

// countedTasks counts tasks.
type countedTasks struct {
	api.React
	m *metrics.Metrics
}

func (c countedTasks) Execute(ctx context.Context, p skill.Principal, t react.Task) (*react.Outcome, error) {
	out, err := c.React.Execute(ctx, p, t)
	if err != nil || out == nil {
		c.m.Turn("task", string(skill.CodeOf(err)))
		return out, err
	}
	c.m.Turn("task", string(out.Status))
	return out, nil
}
