package app

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
)

// series is one line of the metrics of a host: a name, labels as name=value, and a value. That
// Prometheus reads the format is a test of its own library, which writes it.
type series struct {
	labels []string
	value  float64
}

var metricLine = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? (\S+)$`)

// scrape reads a host's metrics by their names; of a histogram, the count.
func scrape(t *testing.T, v *serving) map[string][]series {
	t.Helper()
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(get(t, v.url+"/metrics"))
	musttest.Do(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%d: %v", res.StatusCode, err)
	}
	families := map[string][]series{}
	for line := range strings.Lines(string(text)) {
		m := metricLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			if !strings.HasPrefix(line, "#") {
				t.Errorf("a line that is not understood: %q", line)
			}
			continue
		}
		s := series{}
		for label := range strings.SplitSeq(m[2], `",`) {
			name, value, _ := strings.Cut(label, `="`)
			s.labels = append(s.labels, name+"="+strings.TrimSuffix(value, `"`))
		}
		if s.value, err = strconv.ParseFloat(m[3], 64); err != nil {
			t.Error(err)
		}
		name := strings.TrimSuffix(m[1], "_count")
		families[name] = append(families[name], s)
	}
	return families
}

func get(t *testing.T, url string) *http.Request {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))(t)
	req.Close = true
	return req
}

// value is that of the one series of a name that has all these labels.
func value(t *testing.T, families map[string][]series, name string, labels ...string) float64 {
	t.Helper()
	var found []series
	for _, s := range families[name] {
		if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(s.labels, l) }) {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Errorf("%s has %d series with %q", name, len(found), labels)
		return -1
	}
	return found[0].value
}

// TestMetricsOfAHost: what a host has done is what Prometheus reads of it.
func TestMetricsOfAHost(t *testing.T) {
	v := serve(t, settings(t, nil))
	go func() { _, _ = io.Copy(io.Discard, lines{v}) }()
	for range 3 {
		if r := v.post(t, "quick"); !r.Success {
			t.Fatalf("%+v", r.Error)
		}
	}
	v.post(t, "slow")
	v.post(t, "nothing-of-the-kind")
	families := scrape(t, v)
	kind := "runner=wasm:wasi"
	for _, c := range []struct {
		family string
		labels []string
		want   float64
	}{
		{"openskill_calls_total", []string{"skill=quick", kind, "code=OK"}, 3},
		{"openskill_calls_total", []string{"skill=slow", kind, "code=TIMEOUT"}, 1},
		{"openskill_calls_total", []string{"skill=none", "code=NOT_FOUND"}, 1},
		{"openskill_calls_refused_total", []string{"code=NOT_FOUND"}, 1},
		{"openskill_call_duration_seconds", []string{"skill=quick"}, 3},
		{"openskill_call_memory_peak_bytes", []string{"skill=slow"}, 1},
		{"openskill_audit_duration_seconds", []string{"record=started"}, 4},
		{"openskill_audit_duration_seconds", []string{"record=finished"}, 4},
		{"openskill_audit_failures_total", []string{"record=started"}, 0},
		{"openskill_http_requests_total", []string{"method=POST", "route=/skills/{id}:invoke", "status=200"}, 3},
		{"openskill_http_requests_total", []string{"status=408"}, 1},
		{"openskill_calls_running", nil, 0},
		{"openskill_call_places", nil, 32},
		{"openskill_build_info", []string{"version=" + Version}, 1},
		{"openskill_metrics_skills", nil, 2},
	} {
		if got := value(t, families, c.family, c.labels...); got != c.want {
			t.Errorf("%s %q is %v, want %v", c.family, c.labels, got, c.want)
		}
	}
	if got := value(t, families, "openskill_call_fuel_units_total", "skill=quick"); got < 10 {
		t.Errorf("fuel: %v", got)
	}
	if hasWorkers && !hosttest.UnderRace {
		if n := value(t, families, "openskill_worker_starts_total"); n < 1 {
			t.Errorf("%v workers were started", n)
		}
	}
	for name, f := range families {
		if strings.Contains(fmt.Sprint(f), "of-the-kind") {
			t.Errorf("%s has a label of a caller's text", name)
		}
	}
}

// lines reads the log of a host, so that it never waits.
type lines struct{ v *serving }

func (l lines) Read(p []byte) (int, error) {
	if !l.v.log.Scan() {
		return 0, io.EOF
	}
	return min(len(p), len(l.v.log.Bytes())), nil
}
