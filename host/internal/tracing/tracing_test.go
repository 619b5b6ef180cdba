package tracing

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"openskill/internal/musttest"
)

func TestParseParent(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for header, want := range map[string]bool{
		good: true, strings.Replace(good, "-01", "-00", 1): true, "cc" + good[2:]: true, "cc" + good[2:] + "-more": true,
		"": false, good + "-more": false, good + "x": false, "cc" + good[2:] + "x": false, "ff" + good[2:]: false, good[:54]: false,
		strings.ToUpper(good): false, strings.Replace(good, "-", "_", 1): false, " " + good: false, "0x" + good[2:]: false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false, "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01": false, "cc" + good[2:] + "-" + strings.Repeat("x", 10_000): false,
	} {
		p, ok := ParseParent([]byte(header))
		if ok != want || p.Valid() != want || want && p.TraceID() != good[3:35] {
			t.Errorf("%.80q is %v, want %v", header, ok, want)
		}
	}
}

func FuzzParseParent(f *testing.F) {
	f.Add([]byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, header []byte) {
		p, ok := ParseParent(header)
		if ok != p.Valid() || ok && string(header[3:35]) != p.TraceID() {
			t.Errorf("%q: %v %v", header, p, ok)
		}
	})
}

// TestID: the trace id is the caller's where it can be, and the same for the same words.
func TestID(t *testing.T) {
	for given, want := range map[string]string{
		"0123456789abcdef0123456789abcdef": "0123456789abcdef0123456789abcdef",
		"0123456789ABCDEF0123456789abcdef": "0123456789abcdef0123456789abcdef",
		"demo-123":                         "f19e479a30e8f2b587ec205e62340d39", // as sha256sum says
		"00000000000000000000000000000000": "84e0c0eafaa95a34c293f278ac52e45c",
	} {
		if got := ID(given); got != want {
			t.Errorf("ID(%q) = %s, want %s", given, got, want)
		}
	}
	if ID("demo-123") == ID("demo-124") {
		t.Error("two traces have one id")
	}
}

// TestRatio: of a thousand traces about as many are kept as the ratio says, the same ones
// by every host, whatever callers say.
func TestRatio(t *testing.T) {
	kept := func() (names string, n int) {
		e := tracetest.NewInMemoryExporter()
		tr := New(Options{Exporter: e, PerMillion: 250_000, AtOnce: true})
		for i := range 1000 {
			p, _ := ParseParent(fmt.Appendf(nil, "00-4bf92f3577b34da6%016x-00f067aa0ba902b7-01", uint64(i+1)<<54))
			_, s := tr.Root(context.Background(), "r", "x", p)
			s.End()
		}
		for _, s := range e.GetSpans() {
			names += s.SpanContext.TraceID().String()
			n++
		}
		return names, n
	}
	first, n := kept()
	if second, _ := kept(); first != second || n < 150 || n > 350 {
		t.Errorf("%d of 1000 are kept; twice the same: %v", n, first == second)
	}
}

// TestNothing: a nil Tracer and its spans do nothing, and cost no memory.
func TestNothing(t *testing.T) {
	var tr *Tracer
	ctx := context.Background()
	got := testing.AllocsPerRun(100, func() {
		c, s := tr.StartOrRoot(ctx, "x", "id")
		_, _ = tr.Start(c, "x")
		_, _ = tr.Root(c, "x", "id", Parent{})
		tr.Past(c, "x", time.Time{}, 0)
		s.Text("a", "b")
		s.Number("a", 1)
		s.Fail("X")
		s.End()
		if s.In(c) != ctx || tr.Header(c) != "" || tr.Close(c) != nil {
			t.Error("it does something")
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
	tracing := New(Options{Exporter: tracetest.NewInMemoryExporter(), PerMillion: 1e6, AtOnce: true})
	if c, s := tracing.Start(ctx, "of nothing"); s != nil || c != ctx {
		t.Error("a part of nothing is a span")
	}
}

// TestNotKept: of a trace that is not kept there are no parts, and who is called next is
// told that.
func TestNotKept(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tr := New(Options{Exporter: exporter, AtOnce: true})
	ctx, root := tr.Root(t.Context(), "http", "0123456789abcdef0123456789abcdef", Parent{})
	c, part := tr.StartOrRoot(ctx, "door", "other")
	tr.Past(c, "guest", time.Now(), time.Second)
	if header := tr.Header(c); part != nil || !strings.HasPrefix(header, "00-0123456789abcdef0123456789abcdef-") || !strings.HasSuffix(header, "-00") {
		t.Errorf("%v, %q", part, header)
	}
	part.End()
	root.End()
	if err := tr.Close(t.Context()); err != nil || len(exporter.GetSpans()) != 0 {
		t.Errorf("%v, %+v", err, exporter.GetSpans())
	}
}

func spansOf(t testing.TB, tr *Tracer, n int, name string) {
	t.Helper()
	for i := range n {
		_, s := tr.Root(context.Background(), name, fmt.Sprint("trace-", i), Parent{})
		s.Number("i", int64(i))
		s.End()
	}
}

// line is one span, as a reader has it.
type line struct {
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	ParentID   string         `json:"parent_id"`
	Name       string         `json:"name"`
	Start      time.Time      `json:"start"`
	DurationUS float64        `json:"duration_us"`
	Error      string         `json:"error"`
	Attributes map[string]any `json:"attributes"`
}

// read gives the lines of a folder of traces, the oldest first, each of which must be
// whole, and what they take.
func read(t *testing.T, dir string) (lines []line, size int64) {
	t.Helper()
	for _, name := range []string{fileBefore, fileNow} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		musttest.Do(t, err)
		info, _ := f.Stat()
		size += info.Size()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			var l line
			if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
				t.Fatalf("%s: %v: %s", name, err, sc.Text())
			}
			lines = append(lines, l)
		}
		_ = f.Close()
	}
	return lines, size
}

// TestFileIsBounded: the files never take more than they may, and have the latest spans.
func TestFileIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "traces")
	const most = 8 << 10
	for range 3 { // as a host that is started again
		f := musttest.Get(OpenFile(dir, most))(t)
		tr := New(Options{Exporter: f, PerMillion: 1e6, AtOnce: true})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { spansOf(t, tr, 50, "door") })
		}
		all.Wait()
		spansOf(t, tr, 1, "last")
		spansOf(t, tr, 1, strings.Repeat("x", most)) // longer than the file may be
		if err := errors.Join(tr.Close(t.Context()), tr.Close(t.Context())); err != nil {
			t.Error(err)
		}
		lines, size := read(t, dir)
		if size > most || size < most/4 {
			t.Errorf("%d bytes", size)
		}
		if l := lines[len(lines)-1]; l.Name != "last" || l.TraceID != ID("trace-0") || l.Attributes["openskill.trace_id"] != "trace-0" || l.Start.IsZero() {
			t.Errorf("%+v", l)
		}
	}
}

// TestFileComesBack: where another file cannot be begun, because somebody removed the folder
// or it is unusable, spans are kept again as soon as it can be.
func TestFileComesBack(t *testing.T) {
	const most = 8 << 10
	for name, what := range map[string]struct{ breaks, mends func(dir string) error }{
		"the folder is removed": {breaks: os.RemoveAll}, // which nobody has to mend
		"a file is in its place": {func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, os.Remove},
		"the file cannot be moved": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, fileBefore, "full"), 0o700)
		}, func(dir string) error { return os.RemoveAll(filepath.Join(dir, fileBefore)) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "traces")
			f := musttest.Get(OpenFile(dir, most))(t)
			var log strings.Builder
			tr := New(Options{Exporter: f, PerMillion: 1e6, AtOnce: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
			spansOf(t, tr, 3, "before")
			musttest.Do(t, what.breaks(dir))
			spansOf(t, tr, 200, "meanwhile") // enough for some turns
			if failed := strings.Contains(log.String(), "cannot be exported"); failed != (what.mends != nil) {
				t.Errorf("failed is %v: %s", failed, log.String())
			}
			if what.mends != nil {
				musttest.Do(t, what.mends(dir))
			}
			spansOf(t, tr, 1, "last")
			lines, size := read(t, dir)
			if len(lines) == 0 || lines[len(lines)-1].Name != "last" || size > most {
				t.Errorf("%d lines, %d bytes", len(lines), size)
			}
			if err := errors.Join(tr.Close(t.Context()), f.Shutdown(t.Context())); err != nil {
				t.Error(err)
			}
			if err := f.ExportSpans(t.Context(), nil); !errors.Is(err, errClosed) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// TestExportFailsQuietly: spans that cannot be written are one line in the log, and
// nobody's failure.
func TestExportFailsQuietly(t *testing.T) {
	f := musttest.Get(OpenFile(t.TempDir(), 1<<20))(t)
	musttest.Do(t, f.Shutdown(t.Context()))
	var log strings.Builder
	tr := New(Options{Exporter: f, PerMillion: 1e6, AtOnce: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
	spansOf(t, tr, 5, "door")
	if n := strings.Count(log.String(), "traces cannot be exported"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

var _ sdk.SpanExporter = (*File)(nil)
