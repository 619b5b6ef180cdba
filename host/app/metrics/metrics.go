package metrics

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"openskill/host/dispatch"
	"openskill/sdk/skill"
)

// Options of a Metrics.
type Options struct {
	Version  string // of the host
	Compiler string // of modules
	// Sources are asked when the metrics are read; zero: those families are left out.
	Sources Sources
}

// Metrics are the numbers of one host. It is safe for concurrent use. A nil one counts
// nothing.
type Metrics struct {
	registry *prometheus.Registry
	handler  http.Handler
	skills   names

	calls     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	fuel      *prometheus.CounterVec
	memory    *prometheus.HistogramVec
	refused   *prometheus.CounterVec

	quota        *prometheus.CounterVec
	audit        *prometheus.HistogramVec
	unrecorded   *prometheus.CounterVec
	requests     *prometheus.CounterVec
	requestTimes *prometheus.HistogramVec
	edge         *prometheus.CounterVec
	turns        *prometheus.CounterVec
	models       *prometheus.CounterVec
	tokens       *prometheus.CounterVec
	modelTimes   *prometheus.HistogramVec
	uploads      *prometheus.CounterVec

	tenants names
	denied  *prometheus.CounterVec
}

// New makes the metrics of a host.
func New(o Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.calls, m.durations = m.counter(callsTotal), m.histogram(callDuration, times)
	m.fuel, m.memory, m.refused = m.counter(callFuel), m.histogram(callMemory, sizes), m.counter(callsRefused)
	m.quota, m.audit, m.unrecorded = m.counter(quotaRefusals), m.histogram(auditDuration, times), m.counter(auditFailures)
	m.requests, m.requestTimes, m.edge = m.counter(httpRequests), m.histogram(httpDuration, times), m.counter(httpRefused)
	m.turns, m.uploads, m.denied = m.counter(agentTurns), m.counter(uploadsTotal), m.counter(egressDenied)
	m.models, m.tokens, m.modelTimes = m.counter(modelRequests), m.counter(modelTokens), m.histogram(modelDuration, waits)
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&asked{o.Sources, &m.skills}, built(o.Version, o.Compiler),
	)
	// What is refused by nobody yet is there as 0: a rate over a series that begins with
	// its first event misses that event.
	for _, record := range []string{started, finished} {
		m.unrecorded.WithLabelValues(record)
	}
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, DisableCompression: true, MaxRequestsInFlight: 4, ErrorHandling: promhttp.HTTPErrorOnError,
	})
	return m
}

func built(version, compiler string) prometheus.Collector {
	f, revision := row(buildInfo), unknown
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: f.Name, Help: f.Help}, f.Labels)
	g.WithLabelValues(version, runtime.Version(), revision, compiler).Set(1)
	return g
}

// ServeHTTP answers with all metrics, as text, OpenMetrics or protobuf: what the header
// Accept prefers. Native histograms are in the last one alone. More than four at once are
// answered with 503.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler.ServeHTTP(w, r) }

// Call counts a call that has ended; it is what [dispatch.Options].Watch wants.
func (m *Metrics) Call(e *dispatch.Ended) {
	if m == nil {
		return
	}
	r := e.Result
	code := codeOf(r)
	if !r.Meta.Ran {
		m.refused.WithLabelValues(code).Inc()
	}
	if !e.Known { // whatever its caller wrote
		m.calls.WithLabelValues(unknown, unknown, code).Inc()
		return
	}
	id, kind := m.skills.label(string(r.SkillID), e.Owner), string(r.Meta.Runner)
	m.calls.WithLabelValues(id, kind, code).Inc()
	if !r.Meta.Ran {
		return
	}
	m.durations.WithLabelValues(id, kind).Observe(e.Took.Seconds())
	m.fuel.WithLabelValues(id).Add(float64(r.Meta.FuelUsed))
	m.memory.WithLabelValues(id).Observe(float64(r.Meta.MemoryPeakBytes))
}

// codeOf is the label of how a call ended: a published code.
func codeOf(r *skill.Result) string {
	switch {
	case r.Success:
		return succeeded
	case r.Error == nil || !r.Error.Code.Known():
		return string(skill.Internal)
	}
	return string(r.Error.Code)
}

// codeOfError is the same for an error.
func codeOfError(err error) string {
	if err == nil {
		return succeeded
	}
	if code := skill.CodeOf(err); code.Known() {
		return string(code)
	}
	return string(skill.Internal)
}

// methods are the labels of methods; others are "other".
var methods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

// Answered counts an answer of the HTTP edge. route is a row of the table of access, ""
// where none takes the request.
func (m *Metrics) Answered(method, route string, status int, took time.Duration) {
	if m == nil {
		return
	}
	if !methods[method] {
		method = otherSkill
	}
	if route == "" {
		route = unknown
	}
	m.requests.WithLabelValues(method, route, statusLabel(status)).Inc()
	m.requestTimes.WithLabelValues(route).Observe(took.Seconds())
}

func statusLabel(status int) string {
	if status < 100 || status > 599 {
		return unknown
	}
	return strconv.Itoa(status)
}

// Refused counts what the HTTP edge refused before any handler. reason is one of a fixed
// list of the edge's.
func (m *Metrics) Refused(reason string) {
	if m != nil {
		m.edge.WithLabelValues(reason).Inc()
	}
}

// Denied counts a request that a skill was not permitted to send. owner is the tenant that
// uploaded it, "" for the operator's own; tenant is the caller's.
func (m *Metrics) Denied(id, owner, tenant string) {
	if m != nil {
		m.denied.WithLabelValues(m.skills.label(id, owner), m.tenants.label(tenant, "")).Inc()
	}
}

// Turn counts a turn of an agent. kind is chat or task, end a stop reason, a status or a
// code, of fixed lists.
func (m *Metrics) Turn(kind, end string) {
	if m != nil {
		m.turns.WithLabelValues(kind, end).Inc()
	}
}

// Upload counts what admission said of an upload.
func (m *Metrics) Upload(dryRun bool, err error) {
	if m == nil {
		return
	}
	verdict := "accepted"
	switch {
	case err != nil:
		verdict = codeOfError(err)
	case dryRun:
		verdict = "dry_run"
	}
	m.uploads.WithLabelValues(verdict).Inc()
}
