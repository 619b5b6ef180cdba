package app

import (
	"openskill/host/api"
	"openskill/host/app/metrics"
)

// openMetrics makes the metrics. They ask the parts of the host, which are made after them,
// when somebody reads them: of a host that serves.
func (h *Host) openMetrics() error {
	h.metrics = metrics.New(metrics.Options{Version: Version, Sources: metrics.Sources{
		Load: func() (running, waiting, places, line int) { return h.door.Load() },
		Workers: func() metrics.Workers {
			w := metrics.Workers{Most: h.settings.WorkersMax}
			if h.workers == nil {
				w.Most = 0 // calls run in the host's process
				return w
			}
			s := h.workers.pool.Stats()
			w.Live, w.Spares, w.Busy, w.Starts, w.Crashes = s.Live, s.Spares, s.Busy, s.Starts, s.Crashes
			return w
		},
		Images: func() metrics.Images {
			if h.workers == nil {
				return metrics.Images(h.engine.Images())
			}
			return metrics.Images(h.workers.pool.Stats().Images)
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
