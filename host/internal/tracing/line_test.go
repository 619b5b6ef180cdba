package tracing

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func stub(name, failure, key, value string) tracetest.SpanStub {
	began := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("east", 3600))
	return tracetest.SpanStub{
		Name:        name,
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0x4b, 15: 1}, SpanID: trace.SpanID{7: 0xa}}),
		Parent:      trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{0xb}}),
		StartTime:   began, EndTime: began.Add(1234567 * time.Nanosecond),
		Attributes: []attribute.KeyValue{attribute.String(key, value), attribute.Int64("n", -7), attribute.Bool("b", true), attribute.Float64("f", 0.5)},
		Status:     sdk.Status{Code: codes.Error, Description: failure},
	}
}

// TestLine: what a reader has is what the span was, one line each, whatever its words are.
func TestLine(t *testing.T) {
	check := func(name, failure, key, value string) {
		t.Helper()
		b := appendLine(nil, stub(name, failure, key, value).Snapshot())
		if n := bytes.Count(b, []byte("\n")); n != 1 || b[len(b)-1] != '\n' {
			t.Errorf("%d lines: %q", n, b)
		}
		var got line
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v: %q", err, b)
		}
		valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
		want := line{
			TraceID: "4b000000000000000000000000000001", SpanID: "000000000000000a", ParentID: "0b00000000000000", Name: name,
			Start: time.Date(2026, 1, 2, 2, 4, 5, 6000, time.UTC), DurationUS: 1234.567, Error: failure,
			Attributes: map[string]any{valid(key): value, "n": -7.0, "b": true, "f": "0.5"},
		}
		if !utf8.ValidString(name + failure + key + value) {
			return // that it is one line of JSON is enough
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	check("http", "TIMEOUT", "http.route", "/skills/{id}:invoke")
	check("", "", "k", "")
	check("a\"b\\c", "\n\r\t", "k\x00", "\u2028\u202e</script> ä 漢")
	check("\xff", "\xc3", "k", "\xed\xa0\x80")
	plain := tracetest.SpanStub{Name: "run", StartTime: time.Unix(0, 0), EndTime: time.Unix(0, 0)}
	if got, want := string(appendLine([]byte("x"), plain.Snapshot())),
		`x{"trace_id":"00000000000000000000000000000000","span_id":"0000000000000000","name":"run","start":"1970-01-01T00:00:00Z","duration_us":0}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzLine: each span is one line of JSON.
func FuzzLine(f *testing.F) {
	f.Add("http", "TIMEOUT", "k", "v")
	f.Add("\x00", "\u2028", "\"", "\\")
	f.Fuzz(func(t *testing.T, name, failure, key, value string) {
		b := appendLine(nil, stub(name, failure, key, value).Snapshot())
		if !json.Valid(b) || bytes.Count(b, []byte("\n")) != 1 {
			t.Errorf("%q", b)
		}
	})
}
