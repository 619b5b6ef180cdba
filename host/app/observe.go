package app

import (
	"openskill/host/api"
	"openskill/host/app/metrics"
	"openskill/host/workers"
	"openskill/wasm"
)

// openMetrics makes the metrics. They ask the parts of the host, which are made after them,
// when somebody reads them: of a host that serves.
func (h *Host) openMetrics() error {
	h.metrics = metrics.New(metrics.Options{Version: Version, Compiler: wasm.CompilerVersion(), Sources: metrics.Sources{
		Load:   func() (running, waiting, places, line int) { return h.door.Load() },
		Queued: func() int64 { return h.kept.executions.Queued() }, Waiting: func() int { return h.kept.log.Waiting() },
		Workers: func() workers.Stats {
			s, _ := h.Workers() // zero if calls run in the host's process
			return s
		},
		Images: func() workers.Images {
			if h.workers == nil {
				return workers.Images(h.engine.Images())
			}
			return h.workers.pool.Stats().Images
		},
		Disk: func() (free, size uint64, ok bool) { return disk(h.settings.StateDir) },
	}})
	h.ended = append(h.ended, h.metrics.Call)
	return nil
}

// watchEdge has the metrics told of what the HTTP edge does, and read there.
func (h *Host) watchEdge(o *api.Options) {
	if h.metrics == nil {
		return
	}
	o.Metrics, o.Watch = h.metrics, h.metrics
}
