package metrics

import "github.com/prometheus/client_golang/prometheus"

// Type is how a family counts.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram" // native, and with classic buckets for those who read text
)

// Family is one name, with all its labels.
type Family struct {
	Name   string
	Type   Type
	Labels []string
	Help   string
}

// The names. They are stable: dashboards and rules of others are built on them.
const (
	callsTotal        = "openskill_calls_total"
	callDuration      = "openskill_call_duration_seconds"
	callFuel          = "openskill_call_fuel_units_total"
	callMemory        = "openskill_call_memory_peak_bytes"
	callsRefused      = "openskill_calls_refused_total"
	callsRunning      = "openskill_calls_running"
	callsWaiting      = "openskill_calls_waiting"
	callPlaces        = "openskill_call_places"
	waitingPlaces     = "openskill_waiting_places"
	quotaRefusals     = "openskill_quota_refusals_total"
	auditDuration     = "openskill_audit_duration_seconds"
	auditFailures     = "openskill_audit_failures_total"
	callsQueued       = "openskill_calls_queued"
	auditWaiting      = "openskill_audit_waiting"
	httpRequests      = "openskill_http_requests_total"
	httpDuration      = "openskill_http_request_duration_seconds"
	httpRefused       = "openskill_http_refused_total"
	workersLive       = "openskill_workers"
	workersMost       = "openskill_workers_max"
	workerCalls       = "openskill_worker_calls"
	workerStarts      = "openskill_worker_starts_total"
	workerCold        = "openskill_worker_cold_starts_total"
	workerEvictions   = "openskill_worker_evictions_total"
	workerCrashes     = "openskill_worker_crashes_total"
	images            = "openskill_images"
	imageBytes        = "openskill_image_bytes"
	imagesMade        = "openskill_images_made_total"
	imagesDropped     = "openskill_images_dropped_total"
	imageRestores     = "openskill_image_restores_total"
	agentTurns        = "openskill_agent_turns_total"
	modelRequests     = "openskill_model_requests_total"
	modelTokens       = "openskill_model_tokens_total"
	modelDuration     = "openskill_model_request_duration_seconds"
	uploadsTotal      = "openskill_uploads_total"
	egressDenied      = "openskill_egress_denied_total"
	stateFree         = "openskill_state_free_bytes"
	stateSize         = "openskill_state_size_bytes"
	buildInfo         = "openskill_build_info"
	skillLabels       = "openskill_metrics_skills"
	otherSkill        = "other"
	unknown           = "none"
	succeeded         = "OK"
	mostSkills        = 200
	mostUploads       = 50
	nativeFactor      = 1.1
	nativeBucketsMost = 100
)

// table is the whole of it.
var table = []Family{
	{callsTotal, Counter, []string{"skill", "runner", "code"}, "Calls that have ended, by skill, runner and error code (OK for success); of a skill that does not exist, skill and runner are none."},
	{callDuration, Histogram, []string{"skill", "runner"}, "Time of calls that ran, in seconds: from the door to the result, the wait for a place and the records included."},
	{callFuel, Counter, []string{"skill"}, "Fuel that calls used, in units of about an instruction."},
	{callMemory, Histogram, []string{"skill"}, "Largest memory of each call that ran, in bytes."},
	{callsRefused, Counter, []string{"code"}, "Calls that never ran, by the error code of the refusal; they are in openskill_calls_total too. So is each refusal of a call that is queued and runs later."},
	{callsRunning, Gauge, nil, "Calls that have a place now."},
	{callsWaiting, Gauge, nil, "Calls that wait for a place now."},
	{callsQueued, Gauge, nil, "Calls with Prefer: respond-async that wait in the database for a place on any host; counted every five seconds."},
	{callPlaces, Gauge, nil, "Calls that may run at once (OPENSKILL_CONCURRENCY)."},
	{waitingPlaces, Gauge, nil, "Calls that may wait for a place; one more is refused with 429."},
	{quotaRefusals, Counter, []string{"limit", "unit"}, "Calls that a quota refused: whose (limit: tenant, principal or skill) and of what (unit)."},
	{auditDuration, Histogram, []string{"record"}, "Time to have a record on disk, in seconds: of the start of a run (started), of its end (finished)."},
	{auditWaiting, Gauge, nil, "Records that the database does not have yet: they are in the journal of the host, or their calls wait."},
	{auditFailures, Counter, []string{"record"}, "Records that could not be written in time; the call is answered with AUDIT_UNAVAILABLE."},
	{httpRequests, Counter, []string{"method", "route", "status"}, "Answered HTTP requests, by the route of openapi.yaml (none where no route takes it) and status."},
	{httpDuration, Histogram, []string{"route"}, "Time from the head of a request to its answer, in seconds; of a stream, to its head."},
	{httpRefused, Counter, []string{"reason"}, "What the HTTP edge refused before any handler: unauthorized, forbidden, origin, host, route, method, too_large, head_too_large, timeout, malformed, connections (no room for another one), shed (closed to make room)."},
	{workersLive, Gauge, []string{"state"}, "Worker processes: of a tenant or skill (assigned), or ready for one that comes (spare)."},
	{workersMost, Gauge, nil, "Worker processes that there may be (OPENSKILL_WORKERS_MAX)."},
	{workerCalls, Gauge, nil, "Calls that workers have now."},
	{workerStarts, Counter, nil, "Worker processes that were started."},
	{workerCold, Counter, nil, "Worker processes that were started, or taken from the spares, for a call."},
	{workerEvictions, Counter, nil, "Idle worker processes that were ended to make room for others; the next calls of their tenants are slow to start."},
	{workerCrashes, Counter, nil, "Worker processes that ended unexpectedly."},
	{images, Gauge, nil, "Images in memory: skills and runtimes that were started once, whose memory calls begin with. Of all workers, each as of the end of its latest call; without workers, of the host."},
	{imageBytes, Gauge, nil, "Bytes that images and the idle instances on them hold; of all workers, as openskill_images."},
	{imagesMade, Counter, nil, "Images created."},
	{imagesDropped, Counter, nil, "Images that were dropped: unused for long, to make room, or with their worker."},
	{imageRestores, Counter, nil, "Calls after which an instance was put back to its image, for the next call; after all others it ended."},
	{agentTurns, Counter, []string{"kind", "end"}, "Turns of conversations (chat) and tasks (task), by how they ended: the stop reason, the status, or the error code."},
	{modelRequests, Counter, []string{"provider", "code"}, "Requests to models, by the name of the provider in the settings and error code (OK for success)."},
	{modelTokens, Counter, []string{"provider", "kind"}, "Tokens that models read (prompt) and wrote (completion), as far as the provider says."},
	{modelDuration, Histogram, []string{"provider"}, "Time of a request to a model, in seconds, to the end of its answer."},
	{uploadsTotal, Counter, []string{"verdict"}, "Uploads, by what admission said: accepted, dry_run, or the error code of the refusal."},
	{egressDenied, Counter, []string{"skill", "tenant"}, "Denied requests to the network (NETWORK_DENIED), at most 16 a call, by skill and the caller's tenant. The first 200 tenants have their own label; the rest are other."},
	{stateFree, Gauge, nil, "Free bytes on the disk of the state folder; only if the system reports it."},
	{stateSize, Gauge, nil, "Bytes of the disk of the state folder; only if the system reports it."},
	{buildInfo, Gauge, []string{"version", "go", "revision", "compiler"}, "1, and in the labels what this host was built of; compiler is that of modules, with a digest of its edits."},
	{skillLabels, Gauge, nil, "Skills that have a label of their own; at 200 all others are other."},
}

// Table lists all families of openSkill's own, in the order of docs/metrics.md. The
// collectors of client_golang for Go (go_…) and the process (process_…) come with them.
func Table() []Family {
	out := make([]Family, len(table))
	for i, f := range table {
		f.Labels = append([]string(nil), f.Labels...)
		out[i] = f
	}
	return out
}

// row finds a family; a name that is not in the table is a mistake of this package, which
// the first test meets.
func row(name string) Family {
	for _, f := range table {
		if f.Name == name {
			return f
		}
	}
	panic("metrics: " + name + " is not in the table")
}

func (m *Metrics) counter(name string) *prometheus.CounterVec {
	f := row(name)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name string, buckets []float64) *prometheus.HistogramVec {
	f := row(name)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: f.Name, Help: f.Help, Buckets: buckets,
		NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: nativeBucketsMost,
	}, f.Labels)
	m.registry.MustRegister(v)
	return v
}

// The classic buckets, for those who read no native histograms.
var (
	// times are seconds of calls: a warm one takes a millisecond, the longest minutes.
	times = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15, 60}
	// waits are seconds of models.
	waits = []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	// sizes are bytes of memory.
	sizes = []float64{1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30}
)
