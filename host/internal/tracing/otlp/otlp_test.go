//go:build otlp

package otlp

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"openskill/host/internal/tracing"
)

const id = "4bf92f3577b34da6a3ce929d0e0e4736"

// tell makes a trace of two spans and closes the tracer, within the time that a host has.
func tell(t *testing.T, log io.Writer) {
	t.Helper()
	e, err := New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tracer := tracing.New(tracing.Options{Exporter: e, Version: "1.2.3", PerMillion: 1e6, Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, request := tracer.Root(t.Context(), "http", id, tracing.Parent{})
	_, guest := tracer.Start(ctx, "guest")
	guest.Fail("TIMEOUT")
	guest.End()
	request.End()
	closing, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := tracer.Close(closing); err != nil && closing.Err() == nil {
		t.Error(err)
	}
}

// What a collector gets, by the format's own code, is the trace as it was.
func TestSent(t *testing.T) {
	var mu sync.Mutex
	var got []*spans.ResourceSpans
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s %q", r.Method, r.URL.Path, r.Header)
		}
		var m collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &m); err != nil {
			t.Error(err)
		}
		mu.Lock()
		got = append(got, m.ResourceSpans...)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
	var log bytes.Buffer
	tell(t, &log)
	names := map[string]*spans.Span{}
	for _, r := range got {
		for _, a := range r.Resource.Attributes {
			if want := map[string]string{"service.name": "openskill", "service.version": "1.2.3"}[a.Key]; want != "" && a.Value.GetStringValue() != want {
				t.Errorf("%s is %q", a.Key, a.Value.GetStringValue())
			}
		}
		for _, scope := range r.ScopeSpans {
			for _, span := range scope.Spans {
				names[span.Name] = span
				if hex.EncodeToString(span.TraceId) != id {
					t.Errorf("%s is of the trace %x", span.Name, span.TraceId)
				}
			}
		}
	}
	request, guest := names["http"], names["guest"]
	if request == nil || guest == nil || !bytes.Equal(guest.ParentSpanId, request.SpanId) {
		t.Fatalf("%v", names)
	}
	if guest.Status.GetCode() != spans.Status_STATUS_CODE_ERROR || guest.Status.GetMessage() != "TIMEOUT" || request.Status.GetCode() == spans.Status_STATUS_CODE_ERROR {
		t.Errorf("%v, %v", request.Status, guest.Status)
	}
	if log.Len() > 0 {
		t.Errorf("%s", log.String())
	}
}

// A collector that refuses, or is not there, is told in the log, once, and holds up
// nobody for longer than the end of a host may take.
func TestNotSent(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) }))
	defer refuses.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, url := range map[string]string{"refuses": refuses.URL, "gone": gone.URL} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
			var log bytes.Buffer
			began := time.Now()
			tell(t, &log)
			if took := time.Since(began); took > 20*time.Second { // 5 s are given
				t.Errorf("closing took %s", took)
			}
			if n := strings.Count(log.String(), "traces cannot be exported"); n != 1 {
				t.Errorf("%d lines: %s", n, log.String())
			}
		})
	}
}
