package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// The files of a folder of traces: the one that is written, and the one before it.
const (
	fileNow    = "spans.jsonl"
	fileBefore = "spans.1.jsonl"
)

// File writes finished spans as lines of JSON into a folder, and keeps the latest. It is
// for one process at a time, and safe for concurrent use.
type File struct {
	dir  string
	half int64

	mu   sync.Mutex
	f    *os.File // nil after Shutdown
	size int64
}

// OpenFile makes the folder where there is none. most is what its files may have
// together, in bytes.
func OpenFile(dir string, most int64) (*File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("tracing.OpenFile: %w", err)
	}
	f := &File{dir: dir, half: most / 2}
	return f, f.open()
}

func (f *File) open() error {
	file, err := os.OpenFile(filepath.Join(f.dir, fileNow), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.f, f.size = file, info.Size()
	return nil
}

// line is one span.
type line struct {
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	ParentID   string         `json:"parent_id,omitempty"`
	Name       string         `json:"name"`
	Start      time.Time      `json:"start"`
	DurationUS float64        `json:"duration_us"`
	Error      string         `json:"error,omitempty"` // the code
	Attributes map[string]any `json:"attributes,omitempty"`
}

func lineOf(s sdk.ReadOnlySpan) line {
	l := line{
		TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(), Name: s.Name(),
		Start: s.StartTime().UTC(), DurationUS: float64(s.EndTime().Sub(s.StartTime()).Nanoseconds()) / 1e3,
	}
	if s.Parent().SpanID().IsValid() {
		l.ParentID = s.Parent().SpanID().String()
	}
	if s.Status().Code == codes.Error {
		l.Error = s.Status().Description
	}
	for _, a := range s.Attributes() {
		if l.Attributes == nil {
			l.Attributes = map[string]any{}
		}
		l.Attributes[string(a.Key)] = a.Value.AsInterface()
	}
	return l
}

var errClosed = errors.New("tracing: the file is closed")

// ExportSpans implements the SDK's SpanExporter. A span is written whole or not at all.
func (f *File) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b bytes.Buffer
	for _, s := range spans {
		text, err := json.Marshal(lineOf(s))
		if err != nil {
			return fmt.Errorf("tracing: %w", err)
		}
		text = append(text, '\n')
		if int64(len(text)) > f.half {
			continue // it would push out all others
		}
		if f.size+int64(b.Len()+len(text)) > f.half {
			if err := errors.Join(f.write(&b), f.turn()); err != nil {
				return err
			}
		}
		b.Write(text)
	}
	return f.write(&b)
}

// write appends lines; what is written in part, because the disk is full, is taken back.
func (f *File) write(b *bytes.Buffer) error {
	if f.f == nil {
		return errClosed
	}
	if b.Len() == 0 {
		return nil
	}
	n, err := f.f.Write(b.Bytes())
	b.Reset()
	if err != nil {
		_ = f.f.Truncate(f.size) // the next line begins behind what is left
		return fmt.Errorf("tracing: %w", err)
	}
	f.size += int64(n)
	return nil
}

// turn begins another file, and forgets the one before the last.
func (f *File) turn() error {
	if f.f == nil {
		return errClosed
	}
	err := errors.Join(f.f.Close(), os.Rename(filepath.Join(f.dir, fileNow), filepath.Join(f.dir, fileBefore)))
	f.f = nil
	if openErr := f.open(); openErr != nil || err != nil {
		return errors.Join(err, openErr)
	}
	return nil
}

// Shutdown implements the SDK's SpanExporter.
func (f *File) Shutdown(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
