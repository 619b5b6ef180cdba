package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"openskill/host/tracing"
	"openskill/sdk/skill"
)

// traced is a host that serves, and the spans of its calls.
func traced(t *testing.T) (string, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	h, err := Open(settings(t, nil), &Options{Uploads: true, Log: slog.New(slog.DiscardHandler), exporter: spans})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() { done <- h.Serve(ctx, func(a net.Addr) { ready <- a }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-ready:
		return "http://" + a.String(), spans
	case err := <-done:
		t.Fatal(errors.New("it does not serve"), err)
	}
	return "", nil
}

// tree writes the spans of a trace as names, each below its parent.
func tree(spans tracetest.SpanStubs, parent string, depth int) (lines []string) {
	slices.SortFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	for _, s := range spans {
		of := ""
		if s.Parent.SpanID().IsValid() {
			of = s.Parent.SpanID().String()
		}
		if of == parent {
			lines = append(lines, strings.Repeat("  ", depth)+s.Name)
			lines = append(lines, tree(slices.Clone(spans), s.SpanContext.SpanID().String(), depth+1)...)
		}
	}
	return lines
}

// TestATraceOfACall: a real call over HTTP, in a worker, is one trace, the caller's, with
// a span for each part of its way.
func TestATraceOfACall(t *testing.T) {
	url, exporter := traced(t)
	const parent = "00f067aa0ba902b7"
	for name, c := range map[string]struct {
		header   []string
		id, says string // the trace, and the header of the answer
		parent   string
		attr     string // openskill.trace_id
	}{
		"traceparent": {
			header: []string{"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-" + parent + "-00"},
			id:     "4bf92f3577b34da6a3ce929d0e0e4736", says: "4bf92f3577b34da6a3ce929d0e0e4736", parent: parent,
		},
		"32 digits": {header: []string{"X-Trace-Id", "0123456789abcdef0123456789abcdef"}, id: "0123456789abcdef0123456789abcdef", says: "0123456789abcdef0123456789abcdef"},
		"words":     {header: []string{"X-Trace-Id", "demo-123"}, id: tracing.ID("demo-123"), says: "demo-123", attr: "demo-123"},
		"both": {
			header: []string{"X-Trace-Id", "demo-5", "Traceparent", "00-5bf92f3577b34da6a3ce929d0e0e4736-" + parent + "-01"},
			id:     "5bf92f3577b34da6a3ce929d0e0e4736", says: "demo-5", parent: parent, attr: "demo-5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(t, url+"/skills/quick:invoke")
			for i := 0; i < len(c.header); i += 2 {
				req.Header.Set(c.header[i], c.header[i+1])
			}
			res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != 200 || res.Header.Get("X-Trace-Id") != c.says {
				t.Fatalf("%d %s %s", res.StatusCode, res.Header.Get("X-Trace-Id"), body)
			}
			var spans tracetest.SpanStubs
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				spans = nil
				for _, s := range exporter.GetSpans() {
					if s.SpanContext.TraceID().String() == c.id {
						spans = append(spans, s)
					}
				}
				if slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "http" }) {
					break // the last one to end
				}
			}
			want := []string{"http", "  door", "    admission", "    audit.started", "    run", "      worker", "        guest", "    output", "    audit.finished"}
			if !hasWorkers || underRace {
				want = slices.DeleteFunc(want, func(s string) bool { return strings.Contains(s, "worker") || strings.Contains(s, "guest") })
			}
			if diff := cmp.Diff(want, tree(spans, c.parent, 0)); diff != "" {
				t.Error(diff)
			}
			for _, s := range spans {
				attrs := map[string]string{}
				for _, a := range s.Attributes {
					attrs[string(a.Key)] = fmt.Sprint(a.Value.AsInterface())
				}
				if attrs["openskill.trace_id"] != c.attr {
					t.Errorf("%s has the trace id %q, want %q", s.Name, attrs["openskill.trace_id"], c.attr)
				}
				if s.EndTime.Before(s.StartTime) {
					t.Errorf("%s ends before it begins", s.Name)
				}
				switch s.Name {
				case "http":
					if attrs["http.route"] != "/skills/{id}:invoke" || attrs["http.response.status_code"] != "200" {
						t.Errorf("http: %v", attrs)
					}
				case "door":
					if attrs["openskill.skill"] != "quick" || attrs["openskill.runner"] != string(skill.WasmWASI) || attrs["openskill.fuel"] == "0" {
						t.Errorf("door: %v", attrs)
					}
				}
			}
		})
	}
}

// TestARefusedCallIsTraced: the spans of a call that never ran end, say why, and have
// nothing of what its caller wrote.
func TestARefusedCallIsTraced(t *testing.T) {
	url, exporter := traced(t)
	req := request(t, url+"/skills/no-such-thing:invoke")
	req.Header.Set("X-Trace-Id", "refused")
	req.Header.Set("Traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01")
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	var spans tracetest.SpanStubs
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && len(spans) < 2; time.Sleep(time.Millisecond) {
		spans = exporter.GetSpans()
	}
	if diff := cmp.Diff([]string{"http", "  door"}, tree(spans, "", 0)); diff != "" {
		t.Fatal(diff)
	}
	for _, s := range spans {
		if s.SpanContext.TraceID().String() != tracing.ID("refused") {
			t.Errorf("%s is of the trace %s", s.Name, s.SpanContext.TraceID())
		}
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, "no-such-thing") {
			t.Errorf("%s has what the caller wrote: %s", s.Name, text)
		}
		if s.Name == "door" && s.Status.Description != string(skill.NotFound) {
			t.Errorf("door: %+v", s.Status)
		}
	}
}

var _ sdk.SpanExporter = (*tracing.File)(nil)
