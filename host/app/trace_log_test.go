package app

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"openskill/internal/musttest"
)

// logged keeps what a log writes, from any goroutine.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// of gives the lines of a trace by their messages.
func (l *logged) of(t *testing.T, trace string) map[string]map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]map[string]any{}
	for line := range strings.Lines(l.text.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if fields["trace_id"] == trace {
			msg, _ := fields["msg"].(string)
			found[msg] = fields
		}
	}
	return found
}

// TestLogLinesLeadToSpans: the lines of a call that is traced have the id of the span in which
// they were written, and those of one that is not kept have none.
func TestLogLinesLeadToSpans(t *testing.T) {
	log := &logged{}
	// One of a million traces is kept: which, their ids say.
	url, exporter := tracedAndLogged(t, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), "traces-per-million", "1")
	call := func(path, trace string) {
		req := request(t, url+path)
		req.Header.Set("X-Trace-Id", trace)
		res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
		musttest.Do(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	const kept, other = "00000000000000000000000000000001", "ffffffffffffffffffffffffffffffff"
	call("/skills/quick:invoke", other)
	call("/skills/quick:invoke", kept)
	ids := map[string]string{}
	for _, s := range awaitSpan(t, exporter, kept, "http") {
		ids[s.Name] = s.SpanContext.SpanID().String()
	}
	written := log.of(t, kept)
	for msg, span := range map[string]string{"invoke": "door", "request": "http"} {
		if line := written[msg]; line == nil || len(ids[span]) != 16 || line["span_id"] != ids[span] {
			t.Errorf("the line %q is %v, and the span %s %q", msg, line, span, ids[span])
		}
	}
	for msg, line := range log.of(t, other) {
		if id, ok := line["span_id"]; ok {
			t.Errorf("the line %q of a trace that is not kept has the span %v", msg, id)
		}
	}
	if log.of(t, other)["invoke"] == nil {
		t.Error("a call that is not traced has no line")
	}
}
