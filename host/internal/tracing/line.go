package tracing

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// appendLine appends a span as a line of JSON. It is written by hand: package encoding/json
// took a third of all that tracing costs a call (BenchmarkCall), for ten lines a call.
func appendLine(b []byte, s sdk.ReadOnlySpan) []byte {
	trace, span, parent := s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent().SpanID()
	b = append(b, `{"trace_id":"`...)
	b = hex.AppendEncode(b, trace[:])
	b = append(b, `","span_id":"`...)
	b = hex.AppendEncode(b, span[:])
	if parent.IsValid() {
		b = append(b, `","parent_id":"`...)
		b = hex.AppendEncode(b, parent[:])
	}
	b = append(b, `","name":`...)
	b = appendText(b, s.Name())
	b = append(b, `,"start":"`...)
	b = s.StartTime().UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","duration_us":`...)
	b = strconv.AppendFloat(b, float64(s.EndTime().Sub(s.StartTime()).Nanoseconds())/1e3, 'f', -1, 64)
	if st := s.Status(); st.Code == codes.Error {
		b = append(b, `,"error":`...)
		b = appendText(b, st.Description)
	}
	for i, a := range s.Attributes() {
		if i == 0 {
			b = append(b, `,"attributes":{`...)
		} else {
			b = append(b, ',')
		}
		b = appendText(b, string(a.Key))
		b = append(b, ':')
		b = appendValue(b, a.Value)
	}
	if len(s.Attributes()) > 0 {
		b = append(b, '}')
	}
	return append(b, "}\n"...)
}

func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() { //nolint:exhaustive // no other is made here
	case attribute.STRING:
		return appendText(b, v.AsString())
	case attribute.INT64:
		return strconv.AppendInt(b, v.AsInt64(), 10)
	case attribute.BOOL:
		return strconv.AppendBool(b, v.AsBool())
	}
	return appendText(b, v.String())
}

// appendText appends a string of JSON. Almost all are plain: names of the host's making, and
// the trace ids of callers, which have no other characters.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil { // a string can always be written
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
