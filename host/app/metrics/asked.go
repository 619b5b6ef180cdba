package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"openskill/host/workers"
)

// Sources are the parts of a host that are asked when the metrics are read. They must be
// quick and safe for concurrent use; one that is nil is left out.
type Sources struct {
	// Load tells of the door: calls that run and that wait, and how many of each there may
	// be.
	Load    func() (running, waiting, places, waitingPlaces int)
	Workers func() workers.Stats
	Queued  func() int64 // calls of all hosts that wait in the database
	Waiting func() int   // records that the database does not have yet
	// Images tells of the images in memory, in workers or in the host's own process.
	Images func() workers.Images
	// Disk tells of the disk of the state folder, in bytes; ok is false where the system
	// does not say.
	Disk func() (free, size uint64, ok bool)
}

// asked is the collector of Sources.
type asked struct {
	from   Sources
	skills *names
}

var descriptions = func() map[string]*prometheus.Desc {
	all := map[string]*prometheus.Desc{}
	for _, name := range []string{
		callsRunning, callsWaiting, callsQueued, callPlaces, waitingPlaces, auditWaiting, workersLive, workersMost, workerCalls, workerStarts, workerCold, workerEvictions, workerCrashes, images, imageBytes, imagesMade, imagesDropped, imageRestores, stateFree, stateSize, skillLabels,
	} {
		f := row(name)
		all[name] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
	}
	return all
}()

// Describe implements [prometheus.Collector].
func (a *asked) Describe(to chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (a *asked) Collect(to chan<- prometheus.Metric) {
	tell := func(name string, v float64, labels ...string) {
		of := prometheus.GaugeValue
		if row(name).Type == Counter {
			of = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(descriptions[name], of, v, labels...)
	}
	tell(skillLabels, float64(a.skills.count()))
	if a.from.Load != nil {
		running, waiting, places, line := a.from.Load()
		tell(callsRunning, float64(running))
		tell(callsWaiting, float64(waiting))
		tell(callPlaces, float64(places))
		tell(waitingPlaces, float64(line))
	}
	if a.from.Queued != nil {
		tell(callsQueued, float64(a.from.Queued()))
	}
	if a.from.Waiting != nil {
		tell(auditWaiting, float64(a.from.Waiting()))
	}
	if a.from.Workers != nil {
		w := a.from.Workers()
		tell(workersLive, float64(w.Live-w.Spares), "assigned")
		tell(workersLive, float64(w.Spares), "spare")
		tell(workersMost, float64(w.Max))
		tell(workerCalls, float64(w.Busy))
		tell(workerStarts, float64(w.Starts))
		tell(workerCold, float64(w.Cold))
		tell(workerEvictions, float64(w.Evicted))
		tell(workerCrashes, float64(w.Crashes))
	}
	if a.from.Images != nil {
		im := a.from.Images()
		tell(images, float64(im.Made-im.Dropped))
		tell(imageBytes, float64(im.Bytes))
		tell(imagesMade, float64(im.Made))
		tell(imagesDropped, float64(im.Dropped))
		tell(imageRestores, float64(im.Restored))
	}
	if a.from.Disk != nil {
		if free, size, ok := a.from.Disk(); ok {
			tell(stateFree, float64(free))
			tell(stateSize, float64(size))
		}
	}
}
