package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"openskill/host/agent/llm"
	"openskill/host/app/metrics"
	"openskill/host/dispatch"
	"openskill/host/records"
	"openskill/host/workers"
	"openskill/sdk/skill"
)

// read gives all families, by the parser of Prometheus.
func read(t testing.TB, m *metrics.Metrics, accept string) map[string]*dto.MetricFamily {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	req.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	m.ServeHTTP(w, req)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	out := map[string]*dto.MetricFamily{}
	if strings.Contains(accept, "protobuf") {
		d := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Result().Header))
		for {
			f := &dto.MetricFamily{}
			if err := d.Decode(f); err != nil {
				break
			}
			out[f.GetName()] = f
		}
		return out
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	out, err := p.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const text = "text/plain"

func ended(id string, known bool, owner string, code skill.Code) *dispatch.Ended {
	r := &skill.Result{Success: code == "", SkillID: skill.ID(id), Meta: skill.Meta{Runner: skill.WasmWASI, Ran: code == "", FuelUsed: 10, MemoryPeakBytes: 1 << 20}}
	if code != "" {
		r.Error = &skill.ResultError{Code: code}
	}
	return &dispatch.Ended{Known: known, Owner: owner, Result: r, Took: time.Millisecond}
}

// series counts those of a family, classic buckets as one.
func series(f *dto.MetricFamily) int { return len(f.GetMetric()) }

func labels(m *dto.Metric) string {
	var out []string
	for _, l := range m.GetLabel() {
		out = append(out, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(out, " ")
}

func find(f *dto.MetricFamily, with string) *dto.Metric {
	for _, m := range f.GetMetric() {
		if labels(m) == with {
			return m
		}
	}
	return &dto.Metric{}
}

// TestTenThousandSkills: however many skills there are, and whatever callers ask for,
// the number of series is bounded.
func TestTenThousandSkills(t *testing.T) {
	m := metrics.New(metrics.Options{})
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for i := part; i < 10_000; i += 4 {
				m.Call(ended(fmt.Sprintf("skill-%d", i), true, "", ""))
				m.Call(ended(fmt.Sprintf("upload-%d", i), true, fmt.Sprintf("tenant-%d", i%100), ""))
				m.Call(ended(fmt.Sprintf("made-up-%d\"}\n", i), false, "", skill.NotFound))
				m.Call(ended(fmt.Sprintf("skill-%d", i), true, "", skill.Code(fmt.Sprintf("MADE_UP_%d", i))))
				m.Answered(fmt.Sprintf("BREW-%d", i), "", 404, time.Millisecond)
			}
		})
	}
	all.Wait()
	families := read(t, m, text)
	ids, sum := map[string]bool{}, 0.0
	for _, s := range families["openskill_calls_total"].GetMetric() {
		sum += s.GetCounter().GetValue()
		for _, l := range s.GetLabel() {
			if l.GetName() == "skill" {
				ids[l.GetValue()] = true
			}
			if strings.Contains(l.GetValue(), "made-up") || strings.Contains(l.GetValue(), "MADE_UP") {
				t.Errorf("a caller's text is a label: %s", labels(s))
			}
		}
	}
	if len(ids) != 202 || !ids["other"] || !ids["none"] {
		t.Errorf("%d skills have labels, want 200, other and none", len(ids))
	}
	if sum != 40_000 {
		t.Errorf("%v calls are counted, of 40000", sum)
	}
	uploads := 0
	for id := range ids {
		if strings.HasPrefix(id, "upload-") {
			uploads++
		}
	}
	if uploads > 50 {
		t.Errorf("%d uploads have labels", uploads)
	}
	for name, most := range map[string]int{
		"openskill_calls_total": 2*201 + 1, "openskill_call_duration_seconds": 201, "openskill_call_memory_peak_bytes": 201, "openskill_call_fuel_units_total": 201,
		"openskill_calls_refused_total": 2, "openskill_http_requests_total": 1, "openskill_http_request_duration_seconds": 1,
	} {
		if n := series(families[name]); n == 0 || n > most {
			t.Errorf("%s has %d series, at most %d are wanted", name, n, most)
		}
	}
	if n := find(families["openskill_calls_total"], "code=NOT_FOUND runner=none skill=none").GetCounter().GetValue(); n != 10_000 {
		t.Errorf("%v calls of skills that do not exist", n)
	}
}

// everything has each part of a Metrics counted once.
func everything(t testing.TB) *metrics.Metrics {
	t.Helper()
	m := metrics.New(metrics.Options{Version: "1.2.3", Sources: metrics.Sources{
		Load:   func() (int, int, int, int) { return 3, 2, 32, 32 },
		Queued: func() int64 { return 7 }, Waiting: func() int { return 6 },
		Workers: func() workers.Stats {
			return workers.Stats{Live: 4, Max: 8, Spares: 1, Busy: 3, Starts: 9, Cold: 8, Evicted: 5, Crashes: 2}
		},
		Images: func() workers.Images { return workers.Images{Bytes: 4096, Made: 7, Dropped: 4, Restored: 90} },
		Disk:   func() (uint64, uint64, bool) { return 10, 20, true },
	}})
	m.Call(ended("echo", true, "", ""))
	m.Call(ended("echo", true, "", skill.RateLimited))
	m.Answered("GET", "/skills", 200, time.Millisecond)
	m.Refused("host")
	m.Turn("chat", "completed")
	m.Denied("weather", "acme", "acme")
	m.Upload(false, nil)
	m.Upload(true, nil)
	m.Upload(false, &skill.Error{Code: skill.InvalidModule})
	ctx := context.Background()
	r := m.Recorder(failing{})
	_ = r.Started(ctx, nil, nil)
	_ = r.Finished(ctx, nil, nil, nil)
	m.QuotaRefused("tenant", "calls_per_minute")
	_, _ = m.Provider("openai", failing{}).Chat(ctx, nil, nil)
	return m
}

// failing is every part that stands behind a Metrics, and does not work.
type failing struct{}

func (failing) Started(context.Context, *records.Started, []byte) error { return nil }
func (failing) Finished(context.Context, *records.Started, *records.Finished, []byte) error {
	return &skill.Error{Code: skill.AuditUnavailable}
}

func (failing) Chat(context.Context, *llm.Request, func(string)) (*llm.Reply, error) {
	return &llm.Reply{Usage: llm.Usage{Prompt: 7, Completion: 5}}, errors.New("broken")
}

// TestEveryFamily: what can be read is what the table says, with these types and labels,
// and nothing of it is missing.
func TestEveryFamily(t *testing.T) {
	families := read(t, everything(t), text)
	for _, want := range metrics.Table() {
		f := families[want.Name]
		if f == nil {
			t.Errorf("%s cannot be read", want.Name)
			continue
		}
		if got := strings.ToLower(f.GetType().String()); got != string(want.Type) {
			t.Errorf("%s is a %s, in the table a %s", want.Name, got, want.Type)
		}
		sorted := slices.Sorted(slices.Values(want.Labels))
		for _, m := range f.GetMetric() {
			var got []string
			for _, l := range m.GetLabel() {
				got = append(got, l.GetName())
			}
			if !slices.Equal(got, sorted) {
				t.Errorf("%s has the labels %q, in the table %q", want.Name, got, sorted)
			}
		}
		delete(families, want.Name)
	}
	for name := range families {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s is not in the table", name)
		}
	}
	if families["go_goroutines"] == nil {
		t.Error("Go's own numbers are missing")
	}
}

// TestValues: each thing that happened once is counted once, under its labels.
func TestValues(t *testing.T) {
	families := read(t, everything(t), text)
	for family, want := range map[string]map[string]float64{
		"openskill_calls_total":           {"code=OK runner=wasm:wasi skill=echo": 1, "code=RATE_LIMITED runner=wasm:wasi skill=echo": 1},
		"openskill_calls_refused_total":   {"code=RATE_LIMITED": 1},
		"openskill_call_fuel_units_total": {"skill=echo": 10},
		"openskill_audit_failures_total":  {"record=finished": 1, "record=started": 0},
		"openskill_quota_refusals_total":  {"limit=tenant unit=calls_per_minute": 1},
		"openskill_model_tokens_total":    {"kind=prompt provider=openai": 7, "kind=completion provider=openai": 5},
		"openskill_model_requests_total":  {"code=INTERNAL provider=openai": 1},
		"openskill_uploads_total":         {"verdict=accepted": 1, "verdict=dry_run": 1, "verdict=INVALID_MODULE": 1},
		"openskill_workers":               {"state=assigned": 3, "state=spare": 1},
		"openskill_worker_crashes_total":  {"": 2},
		"openskill_images":                {"": 3},
		"openskill_image_bytes":           {"": 4096},
		"openskill_images_made_total":     {"": 7},
		"openskill_images_dropped_total":  {"": 4},
		"openskill_image_restores_total":  {"": 90},
		"openskill_calls_waiting":         {"": 2},
		"openskill_http_refused_total":    {"reason=host": 1},
	} {
		if n := series(families[family]); n != len(want) {
			t.Errorf("%s has %d series, want %d", family, n, len(want))
		}
		for with, v := range want {
			m := find(families[family], with)
			if got := m.GetCounter().GetValue() + m.GetGauge().GetValue(); got != v {
				t.Errorf("%s{%s} is %v, want %v", family, with, got, v)
			}
		}
	}
}

// TestNativeHistograms: who reads protobuf gets native histograms, who reads text the
// classic buckets of the same.
func TestNativeHistograms(t *testing.T) {
	m := everything(t)
	const name = "openskill_call_duration_seconds"
	native := read(t, m, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")[name]
	if h := native.GetMetric()[0].GetHistogram(); h.Schema == nil || len(h.GetPositiveSpan()) == 0 || h.GetSampleCount() != 1 {
		t.Errorf("protobuf: %v", h)
	}
	classic := read(t, m, text)[name]
	if h := classic.GetMetric()[0].GetHistogram(); len(h.GetBucket()) < 10 || h.GetSampleCount() != 1 {
		t.Errorf("text: %v", h)
	}
}

// TestNobodyCounts: a host that does not serve has no metrics, and its parts are as they
// are without.
func TestNobodyCounts(t *testing.T) {
	var m *metrics.Metrics
	m.Call(ended("echo", true, "", ""))
	m.Answered("GET", "", 200, 0)
	m.Refused("host")
	m.Turn("chat", "completed")
	m.Upload(false, nil)
	m.QuotaRefused("tenant", "calls_per_minute")
	if m.Recorder(failing{}) != (failing{}) || m.Provider("x", failing{}) != (failing{}) {
		t.Error("something stands between")
	}
}
