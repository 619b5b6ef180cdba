package tracing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

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

	mu     sync.Mutex
	closed bool
	f      *os.File // nil where it is closed, or could not be opened when it was last tried
	size   int64
	lines  []byte // those of one batch
}

// OpenFile makes the folder where there is none. most is what its files may have
// together, in bytes.
func OpenFile(dir string, most int64) (*File, error) {
	f := &File{dir: dir, half: most / 2}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) open() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
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

var errClosed = errors.New("tracing: the file is closed")

// ExportSpans implements the SDK's SpanExporter. A span is written whole or not at all.
func (f *File) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errClosed
	}
	if f.f == nil { // a turn has failed, which is tried again with each batch: it may have been mended
		if err := f.open(); err != nil {
			return err
		}
	}
	f.lines = f.lines[:0]
	for _, s := range spans {
		whole := len(f.lines)
		f.lines = appendLine(f.lines, s)
		size := int64(len(f.lines) - whole)
		switch {
		case size > f.half: // it would push out all others
			f.lines = f.lines[:whole]
		case f.size+int64(len(f.lines)) > f.half:
			last := f.lines[whole:]
			if err := errors.Join(f.write(f.lines[:whole]), f.turn()); err != nil {
				return err
			}
			f.lines = append(f.lines[:0], last...)
		}
	}
	return f.write(f.lines)
}

// write appends lines; what is written in part, because the disk is full, is taken back.
func (f *File) write(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	n, err := f.f.Write(lines)
	if err != nil {
		_ = f.f.Truncate(f.size) // the next line begins behind what is left
		return fmt.Errorf("tracing: %w", err)
	}
	f.size += int64(n)
	return nil
}

// turn begins another file, and forgets the one before the last. A file that somebody has
// removed has nothing to keep.
func (f *File) turn() error {
	closing := f.f.Close()
	f.f = nil
	moving := os.Rename(filepath.Join(f.dir, fileNow), filepath.Join(f.dir, fileBefore))
	if errors.Is(moving, fs.ErrNotExist) {
		moving = nil
	}
	return errors.Join(closing, moving, f.open())
}

// Shutdown implements the SDK's SpanExporter.
func (f *File) Shutdown(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}
