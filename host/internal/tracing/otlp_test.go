//go:build otlp

package tracing

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const id = "4bf92f3577b34da6a3ce929d0e0e4736"

// tell makes a trace of two spans and closes the tracer, within the time that a host has.
func tell(t *testing.T, log io.Writer) {
	t.Helper()
	e, err := NewOTLP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tracer := New(Options{Exporter: e, Version: "1.2.3", PerMillion: 1e6, Log: slog.New(slog.NewTextHandler(log, nil))})
	ctx, request := tracer.Root(t.Context(), "http", id, Parent{})
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

// message is a message of Protocol Buffers: what its fields have, by their numbers.
type message map[uint64][][]byte

// decode reads a message; a number is kept as its bytes.
func decode(t *testing.T, b []byte) message {
	t.Helper()
	m := message{}
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		size, skip := uint64(0), 0
		switch key & 7 {
		case 0:
			_, skip = binary.Uvarint(b[n:])
			size, skip = uint64(skip), 0
		case 1:
			size = 8
		case 2:
			size, skip = binary.Uvarint(b[n:])
		case 5:
			size = 4
		}
		from := n + skip
		if n <= 0 || skip < 0 || size > uint64(len(b)-from) {
			t.Fatalf("%x is not a message", b)
		}
		m[key>>3] = append(m[key>>3], b[from:from+int(size)])
		b = b[from+int(size):]
	}
	return m
}

// text is that of a field which a message has once at most.
func (m message) text(field uint64) string { return string(bytes.Join(m[field], nil)) }

// What a collector gets is the trace as it was. The numbers of fields are those of
// opentelemetry/proto/trace/v1/trace.proto.
func TestSent(t *testing.T) {
	var mu sync.Mutex
	var got []message // ResourceSpans
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s %q", r.Method, r.URL.Path, r.Header)
		}
		mu.Lock()
		for _, spans := range decode(t, body)[1] {
			got = append(got, decode(t, spans))
		}
		mu.Unlock()
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer s.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", s.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
	var log bytes.Buffer
	tell(t, &log)
	names := map[string]message{}
	for _, r := range got {
		for _, a := range decode(t, r[1][0])[1] {
			attribute := decode(t, a)
			value := decode(t, attribute[2][0]).text(1)
			if want := map[string]string{"service.name": "openskill", "service.version": "1.2.3"}[attribute.text(1)]; want != "" && value != want {
				t.Errorf("%s is %q", attribute.text(1), value)
			}
		}
		for _, scope := range r[2] {
			for _, s := range decode(t, scope)[2] {
				span := decode(t, s)
				names[span.text(5)] = span
				if hex.EncodeToString([]byte(span.text(1))) != id {
					t.Errorf("%s is of the trace %x", span.text(5), span.text(1))
				}
			}
		}
	}
	request, guest := names["http"], names["guest"]
	if request == nil || guest == nil || guest.text(4) != request.text(2) {
		t.Fatalf("%v", names)
	}
	const failed = "\x02"
	of, its := decode(t, []byte(request.text(15))), decode(t, []byte(guest.text(15)))
	if its.text(3) != failed || its.text(2) != "TIMEOUT" || of.text(3) == failed {
		t.Errorf("%v, %v", of, its)
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
