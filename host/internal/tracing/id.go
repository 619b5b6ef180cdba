package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"
)

// Parent is what a caller says in the header traceparent; the zero value says nothing.
type Parent struct {
	trace trace.TraceID
	span  trace.SpanID
}

// Valid reports whether there is one.
func (p Parent) Valid() bool { return p.trace.IsValid() && p.span.IsValid() }

// TraceID is its trace id, 32 hexadecimal digits.
func (p Parent) TraceID() string { return p.trace.String() }

// ParseParent reads a traceparent (W3C Trace Context, section 3.2): version, trace id,
// span id and flags in lower case, of which nothing may be all zeros. Later versions may
// have more behind a dash. What is not well-formed is as if it were not there.
func ParseParent(header []byte) (p Parent, ok bool) {
	const size = 55 // of version 00
	b := header
	if len(b) < size || b[2] != '-' || b[35] != '-' || b[52] != '-' {
		return Parent{}, false
	}
	for i, c := range b[:size] {
		if i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return Parent{}, false
		}
	}
	switch version := string(b[:2]); {
	case version == "ff", version == "00" && len(b) != size, len(b) > size && b[size] != '-', len(b) > 512:
		return Parent{}, false
	}
	_, _ = hex.Decode(p.trace[:], b[3:35]) // digits, as was seen
	_, _ = hex.Decode(p.span[:], b[36:52])
	if !p.Valid() {
		return Parent{}, false
	}
	return p, true
}

// ID is the OpenTelemetry trace id of a caller's trace id: itself where it is 32
// hexadecimal digits that are not all zeros, else the first 16 bytes of its SHA-256.
func ID(traceID string) string { return idOf(traceID).String() }

func idOf(traceID string) (id trace.TraceID) {
	if len(traceID) == 2*len(id) {
		if _, err := hex.Decode(id[:], []byte(traceID)); err == nil && id.IsValid() {
			return id
		}
	}
	sum := sha256.Sum256([]byte(traceID))
	copy(id[:], sum[:])
	return id
}

// ids makes span ids by chance, and trace ids as they are wanted.
type ids struct{}

type wantedKey struct{}

// NewIDs implements the SDK's IDGenerator.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, ok := ctx.Value(wantedKey{}).(trace.TraceID)
	if !ok {
		_, _ = rand.Read(id[:]) // never fails since Go 1.24
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements the SDK's IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // never fails since Go 1.24
	}
	return id
}
