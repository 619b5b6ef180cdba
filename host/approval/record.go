package approval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"openskill/sdk/skill"
)

// The files of the record, in the store's folder.
const (
	recordFile   = "approvals.jsonl"
	previousFile = "approvals.1.jsonl" // what recordFile was before it was begun anew
	lockFile     = ".lock"
)

// maxLine is the longest line that is read, in bytes; what this package writes is
// shorter.
const maxLine = 64 << 10

// lockWait is how long a change waits for those of others, in this process and in
// another one.
const lockWait = 2 * time.Second

// line is one change, with all of what it changed: the last line of an approval is what
// is so of it.
type line struct {
	Event    event     `json:"event"`
	At       time.Time `json:"at"`
	By       string    `json:"by,omitempty"`
	Approval *Approval `json:"approval"`
}

// event is what happened.
type event string

const (
	asked    event = "asked"
	approved event = "approved"
	denied   event = "denied"
	used     event = "used"
	expired  event = "expired" // to make room for another one
	kept     event = "kept"    // nothing happened: the file was begun anew
)

// record is the file. It is guarded by the store's locks.
type record struct {
	dir   string
	log   *slog.Logger
	max   int64                           // bytes, above which it is begun anew
	apply func(l *line)                   // takes a line in
	reset func()                          // forgets all lines
	live  func(now time.Time) []*Approval // what must be kept

	file *os.File // for reading; nil while there is none
	read int64    // bytes of it that were taken in
	tail int64    // bytes of it after these, which are no whole line yet
	base int64    // bytes that it had when it was begun anew
}

func (r *record) path() string { return filepath.Join(r.dir, recordFile) }

// catchUp takes in what was written since the last time, by whichever process.
func (r *record) catchUp() error {
	info, err := os.Stat(r.path())
	if errors.Is(err, fs.ErrNotExist) {
		r.forget()
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	if r.file != nil {
		open, err := r.file.Stat()
		if err != nil || !os.SameFile(open, info) || info.Size() < r.read {
			r.forget()
		}
	}
	if r.file == nil {
		if r.file, err = os.Open(r.path()); err != nil {
			r.file = nil
			return unreadable(err)
		}
	}
	if info.Size() == r.read+r.tail {
		return nil
	}
	return r.readOn()
}

// forget begins with an empty record.
func (r *record) forget() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
		r.reset()
	}
	r.read, r.tail, r.base = 0, 0, 0
}

// readOn takes in whole lines. What comes after the last line end is left for the next
// time: it is being written, or was torn by a crash.
func (r *record) readOn() error {
	if _, err := r.file.Seek(r.read, io.SeekStart); err != nil {
		return unreadable(err)
	}
	in := bufio.NewReaderSize(r.file, maxLine)
	for {
		b, err := in.ReadSlice('\n')
		size, damaged := int64(len(b)), false
		for errors.Is(err, bufio.ErrBufferFull) {
			damaged = true
			b, err = in.ReadSlice('\n')
			size += int64(len(b))
		}
		if errors.Is(err, io.EOF) {
			r.tail = size
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		at := r.read
		r.read += size
		if len(bytes.TrimSpace(b)) == 0 && !damaged {
			continue
		}
		l := &line{}
		if damaged || json.Unmarshal(b, l) != nil || !l.valid() {
			r.log.Warn("a line of the record of approvals is skipped: a crash tore it, or it is damaged",
				slog.String("file", recordFile), slog.Int64("at", at), slog.Int64("bytes", size))
			continue
		}
		if l.Approval.Arguments == nil {
			l.Approval.Arguments = []string{}
		}
		if l.Event == kept {
			r.base = r.read
		}
		r.apply(l)
	}
}

// valid reports whether the line says all that an approval needs to be found and
// compared. What is missing elsewhere makes it narrower, never wider.
func (l *line) valid() bool {
	a := l.Approval
	if a == nil || len(a.ID) != 36 || uuid.Validate(a.ID) != nil || a.Skill == "" || a.Digest == "" || a.CallHash == "" || a.Policy != PerVersion && a.Policy != PerCall {
		return false
	}
	_, err := ParseState(string(a.State))
	return err == nil
}

// whole keeps other processes from changing the record until unlock is called. It waits
// as long as ctx says.
func (r *record) whole(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, unwritable(err)
	}
	lock := flock.New(filepath.Join(r.dir, lockFile))
	locked, err := lock.TryLockContext(ctx, 2*time.Millisecond)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, unwritable(errors.New("another process holds the lock"))
	case err != nil:
		return nil, unwritable(err)
	case !locked:
		return nil, unwritable(errors.New("another process holds the lock"))
	}
	return func() { _ = lock.Close() }, nil // closing the file gives the lock up
}

// add appends changes, and returns when they are on the disk. The caller holds the lock
// and has caught up; it catches up again afterwards.
func (r *record) add(now time.Time, lines []*line) error {
	var b bytes.Buffer
	f, err := os.OpenFile(r.path(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return unwritable(err)
	}
	info, err := f.Stat()
	if err != nil {
		return unwritable(errors.Join(err, f.Close()))
	}
	before := info.Size()
	if before > r.read {
		b.WriteByte('\n') // what a crash tore ends here, and is skipped from now on
	}
	if err := encode(&b, lines); err != nil {
		return unwritable(errors.Join(err, f.Close()))
	}
	_, err = f.Write(b.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		// Nobody was answered: what has arrived of it must not come up later.
		err = errors.Join(err, f.Truncate(before), f.Close())
		return unwritable(err)
	}
	if err := f.Close(); err != nil {
		return unwritable(err)
	}
	if before == 0 {
		if err := syncDir(r.dir); err != nil {
			return unwritable(err)
		}
	}
	if err := r.catchUp(); err != nil {
		return err
	}
	if r.read > max(r.max, 2*r.base) {
		if err := r.anew(now); err != nil {
			// All is on record; the file is only longer than it should be.
			r.log.Warn("the record of approvals cannot be begun anew", slog.String("error", err.Error()))
		}
	}
	return nil
}

// anew begins the file anew with what must be kept; what it was is kept beside it.
func (r *record) anew(now time.Time) error {
	var lines []*line
	for _, a := range r.live(now) {
		lines = append(lines, &line{Event: kept, At: now, Approval: a})
	}
	var b bytes.Buffer
	if err := encode(&b, lines); err != nil {
		return err
	}
	f, err := os.CreateTemp(r.dir, ".anew-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		// A second name for the old file, so that there is one under the first at any time.
		previous := filepath.Join(r.dir, previousFile)
		if err = os.Remove(previous); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = os.Link(r.path(), previous)
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), r.path())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := syncDir(r.dir); err != nil {
		return err
	}
	return r.catchUp()
}

func encode(b *bytes.Buffer, lines []*line) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func (r *record) close() { r.forget() }

// Without its record a run does not begin.
func unreadable(err error) error {
	return &skill.Error{
		Op: "approval.read", Code: skill.AuditUnavailable, Err: fmt.Errorf("the record of approvals cannot be read: %w", err),
		Message: "the record of approvals cannot be read, so nothing that needs one runs; the operator finds the reason in the log",
	}
}

func unwritable(err error) error {
	return &skill.Error{
		Op: "approval.write", Code: skill.AuditUnavailable, Err: fmt.Errorf("the record of approvals cannot be written: %w", err),
		Message: "the record of approvals cannot be written, so nothing that needs one runs; the operator finds the reason in the log",
	}
}
