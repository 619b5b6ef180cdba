package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"openskill/host/agent/llm/llmtest"
	"openskill/host/app/hosttest"
	"openskill/host/internal/tracing"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// traced is a host that serves, with these flags and their values, and the spans of its
// calls.
func traced(t *testing.T, flags ...string) (string, *tracetest.InMemoryExporter) {
	t.Helper()
	return tracedAndLogged(t, slog.New(slog.DiscardHandler), flags...)
}

// tracedAndLogged is traced with a log.
func tracedAndLogged(t *testing.T, log *slog.Logger, flags ...string) (string, *tracetest.InMemoryExporter) {
	t.Helper()
	all := map[string]string{}
	for i := 0; i < len(flags); i += 2 {
		all[flags[i]] = flags[i+1]
	}
	spans := tracetest.NewInMemoryExporter()
	h := musttest.Get(Open(settings(t, all), &Options{Mode: Serving, Log: log, exporter: spans}))(t)
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
			musttest.Do(t, err)
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != 200 || res.Header.Get("X-Trace-Id") != c.says {
				t.Fatalf("%d %s %s", res.StatusCode, res.Header.Get("X-Trace-Id"), body)
			}
			spans := awaitSpan(t, exporter, c.id, "http") // the last one to end
			want := []string{"http", "  door", "    admission", "    audit.started", "    run", "      worker", "        guest", "    output", "    audit.finished"}
			if !hasWorkers || hosttest.UnderRace {
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
	musttest.Do(t, err)
	_ = res.Body.Close()
	awaitSpan(t, exporter, tracing.ID("refused"), "http")
	spans := exporter.GetSpans()
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

// awaitSpan gives the spans of a trace once one of a name is among them.
func awaitSpan(t *testing.T, exporter *tracetest.InMemoryExporter, traceID, name string) tracetest.SpanStubs {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		var spans tracetest.SpanStubs
		for _, s := range exporter.GetSpans() {
			if s.SpanContext.TraceID().String() == traceID {
				spans = append(spans, s)
			}
		}
		if slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == name }) {
			return spans
		}
		if time.Now().After(end) {
			t.Fatalf("no span %q: %q", name, tree(spans, "", 0))
		}
	}
}

// within reports whether a span of a name is a part of one of another name.
func within(spans tracetest.SpanStubs, name, of string) bool {
	byID := map[trace.SpanID]tracetest.SpanStub{}
	for _, s := range spans {
		byID[s.SpanContext.SpanID()] = s
	}
	for _, s := range spans {
		for p, ok := s, s.Name == name; ok; p, ok = byID[p.Parent.SpanID()] {
			if p.Name == of {
				return true
			}
		}
	}
	return false
}

// TestWhatGoesOutIsTraced: requests of guests are parts of their call, wherever it runs,
// without the address; a remote skill is told the trace, and the span that it is a part of.
func TestWhatGoesOutIsTraced(t *testing.T) {
	var parent atomic.Value
	out := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/remote" {
			parent.Store(r.Header.Get("Traceparent"))
			_, _ = io.WriteString(w, `{"ok": true}`)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer out.Close()
	for _, workers := range []string{"off", "tenant"} {
		t.Run("workers "+workers, func(t *testing.T) {
			if hosttest.UnderRace && workers != "off" {
				t.Skip("a worker of this binary takes seconds to start; what it does not do is the same")
			}
			s := settings(t, map[string]string{"workers": workers, "http-allow": out.URL + " GET; " + out.URL + " POST"})
			farSkill(t, s.SkillsDir, "far", out.URL, fmt.Sprintf(`{"url": %q}`, out.URL+"/remote"), "")
			folder := filepath.Join(s.SkillsDir, "asker")
			manifest := manifestOf("asker", "1.0.0", fmt.Sprintf("type: wasm\nruntime: wasi\nentry: asker.wasm\npermissions: {http: ['%s GET']}\nlimits: {timeout_ms: 20000}\n", out.URL))
			if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "skill.yaml"), []byte(manifest), 0o600),
				os.WriteFile(filepath.Join(folder, "asker.wasm"), requesting(fmt.Sprintf(`{"url": "%s/secret-path"}`, out.URL)), 0o600)); err != nil {
				t.Fatal(err)
			}
			exporter := tracetest.NewInMemoryExporter()
			h := musttest.Get(Open(s, &Options{Mode: Watched, Log: slog.New(slog.DiscardHandler), exporter: exporter}))(t)
			defer h.Close()
			call := func(id skill.ID) {
				t.Helper()
				if r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: id, Input: []byte("{}"), TraceID: skill.TraceID("t-" + id)}); !r.Success {
					t.Fatalf("%s: %+v", id, r.Error)
				}
			}
			call("asker")
			spans := awaitSpan(t, exporter, tracing.ID("t-asker"), "door")
			if !within(spans, "egress", "run") {
				t.Errorf("%q", tree(spans, "", 0))
			}
			if text := fmt.Sprintf("%+v", spans); strings.Contains(text, "secret-path") || strings.Contains(text, out.URL) {
				t.Errorf("the address is in the trace: %s", text)
			}
			call("far")
			spans = awaitSpan(t, exporter, tracing.ID("t-far"), "door")
			told, _ := parent.Load().(string)
			p, ok := tracing.ParseParent([]byte(told))
			if !ok || p.TraceID() != tracing.ID("t-far") || !slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool { return s.SpanContext.SpanID().String() == told[36:52] }) {
				t.Errorf("told %q of %q", told, tree(spans, "", 0))
			}
		})
	}
}

// TestModelsAreTraced: what a model is asked is a part of the request, without its words.
func TestModelsAreTraced(t *testing.T) {
	model := musttest.Get(llmtest.New(llmtest.Script{Rules: []llmtest.Rule{{When: llmtest.When{User: "secret words"}, Say: "an answer"}}}))(t)
	url, exporter := traced(t, "openai-api-base", llmtest.NewServer(model, nil).Start(t)+"/v1", "openai-model", "scripted")
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/agent/chat", strings.NewReader(`{"message": "secret words"}`)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Trace-Id", "talk")
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
	musttest.Do(t, err)
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK || !strings.Contains(string(body), "an answer") {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	spans := awaitSpan(t, exporter, tracing.ID("talk"), "http")
	if !within(spans, "model", "http") {
		t.Errorf("%q", tree(spans, "", 0))
	}
	if text := fmt.Sprintf("%+v", spans); strings.Contains(text, "secret words") || strings.Contains(text, "an answer") {
		t.Errorf("what was said is in the trace: %s", text)
	}
}

var _ sdk.SpanExporter = (*tracing.File)(nil)
