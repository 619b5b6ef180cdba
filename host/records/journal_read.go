package records

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Recover writes the journals of killed hosts to the database, as [Open] does. Without such
// journals it does nothing.
func Recover(ctx context.Context, o Options) error {
	left, err := journals(o.Journal)
	for name := range left {
		lock, free, wrong := lockJournal(o.Journal, name)
		if err = errors.Join(err, wrong); !free {
			continue
		}
		if err := lock.Close(); err != nil {
			return err
		}
		l, err := Open(ctx, o)
		if err != nil {
			return err
		}
		return l.Close(ctx)
	}
	return err
}

// journals are the journals in a folder, by their names, with their segments in order.
func journals(dir string) (map[string][]string, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	left := map[string][]string{}
	for _, f := range files {
		name, _, ok := strings.Cut(strings.TrimSuffix(f.Name(), segmentEnd), "-")
		if ok && strings.HasSuffix(f.Name(), segmentEnd) {
			left[name] = append(left[name], filepath.Join(dir, f.Name()))
			continue
		}
		// A lock alone is that of a host which makes its first segment, or is left over.
		name, ok = strings.CutSuffix(f.Name(), lockEnd)
		info, gone := f.Info()
		if ok && left[name] == nil && gone == nil && time.Since(info.ModTime()) > segmentAge {
			left[name] = nil
		}
	}
	return left, err
}

// lockJournal locks a journal, if its host does not live.
func lockJournal(dir, name string) (lock *flock.Flock, free bool, err error) {
	lock = flock.New(filepath.Join(dir, name+lockEnd), flock.SetPermissions(0o644))
	free, err = lock.TryLock()
	return lock, free && err == nil, err
}

// feedLeft writes what hosts that were killed left in their journals to the database. Of several
// processes one does it at a time, and the others wait: who ends calls of killed hosts on record
// must have their own ends there first.
func (l *Log) feedLeft(ctx context.Context) error {
	if _, err := os.Stat(l.o.Journal); l.o.Journal == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	turn := flock.New(filepath.Join(l.o.Journal, "recovery"), flock.SetPermissions(0o644)) // a lock needs no more than to open it
	if ok, err := turn.TryLockContext(ctx, 20*time.Millisecond); err != nil || !ok {
		return errors.Join(err, errors.New("another process recovers records"))
	}
	defer turn.Close()
	left, err := journals(l.o.Journal)
	if err != nil {
		return err
	}
	for name := range left {
		if err := l.feedJournal(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// feedJournal writes one journal to the database and deletes it, unless its host lives.
func (l *Log) feedJournal(ctx context.Context, name string) error {
	lock, free, err := lockJournal(l.o.Journal, name)
	if !free {
		return err
	}
	defer lock.Close()
	all, err := journals(l.o.Journal) // as it is now that its host is gone
	if err != nil {
		return err
	}
	segments := all[name]
	f := feeding{log: l, begun: map[string]*Started{}, damaged: map[string]bool{}}
	for i, path := range segments {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f.path, f.tail = path, i == len(segments)-1
		if err := f.segment(ctx, data); err != nil {
			return err
		}
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	if f.fresh > 0 {
		l.o.Log.Warn("audit: the records of a host that crashed were written to the database",
			slog.Int("records", f.records), slog.Int("new", f.fresh))
	}
	for _, path := range segments {
		if f.damaged[path] {
			err = os.Rename(path, path+damagedEnd) // for the operator
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	err = lock.Close()
	_ = os.Remove(lock.Path())
	return err
}

const damagedEnd = ".damaged"

// feeding is one journal on its way to the database.
type feeding struct {
	log    *Log
	path   string
	tail   bool                // it is the last segment, whose end may be torn
	number uint64              // of the segment before
	hash   [sha256.Size]byte   // of the record before
	begun  map[string]*Started // what has no end yet

	batch          []*job
	records, fresh int
	damaged        map[string]bool
}

// damage notes what is wrong with a segment.
func (f *feeding) damage(at int, what string) {
	f.damaged[f.path] = true
	f.log.o.Log.Error("audit: the journal is damaged: calls may be missing from the records; the file is kept",
		slog.String("file", f.path+damagedEnd), slog.Int("offset", at), slog.String("problem", what))
}

// segment reads a segment. What is damaged is left out, and what follows it is read. An error is
// of the database.
func (f *feeding) segment(ctx context.Context, data []byte) error {
	switch {
	case len(data) < segmentHead && f.tail: // the host was killed while it made it
		return nil
	case len(data) < segmentHead, !bytes.HasPrefix(data, []byte(segmentMagic)):
		f.damage(0, "its head is missing")
		if len(data) < segmentHead {
			return nil
		}
	default:
		number := binary.BigEndian.Uint64(data[len(segmentMagic):])
		before := [sha256.Size]byte(data[len(segmentMagic)+8 : segmentHead])
		switch {
		case f.number != 0 && number != f.number+1:
			f.damage(0, fmt.Sprintf("segments between %d and %d are missing", f.number, number))
		case f.number != 0 && before != f.hash:
			f.damage(0, "records before it are missing or changed")
		}
		f.number, f.hash = number, before
	}
	for at := segmentHead; at < len(data); {
		size, whole := sizeOf(data[at:])
		end := at + recordHead + size
		switch {
		case !whole && f.tail && len(data)-at < recordHead, whole && f.tail && end > len(data):
			return nil // the host was killed during this write, so the record was never acknowledged
		case !whole || end > len(data):
			next := f.next(data, at)
			f.damage(at, "the length of a record is wrong")
			f.hash = follow(f.hash, data[min(at+recordHead, next):next])
			at = next
			continue
		}
		stored, p := [sha256.Size]byte(data[at+12:at+recordHead]), data[at+recordHead:end]
		switch before := f.hash; {
		case binary.BigEndian.Uint32(data[at+8:]) != crc32.Checksum(p, castagnoli):
			f.damage(at, "a record is changed")
		default:
			if follow(before, p) != stored {
				f.damage(at, "records before this one are missing or changed")
			}
			wrong, err := f.record(ctx, p)
			if err != nil {
				return err
			}
			if wrong != "" {
				f.damage(at, wrong)
			}
		}
		f.hash = stored
		at = end
	}
	return nil
}

// sizeOf reads the length of a record; false if it is none.
func sizeOf(data []byte) (size int, ok bool) {
	if len(data) < recordHead {
		return 0, false
	}
	n := binary.BigEndian.Uint32(data)
	return int(n), n == ^binary.BigEndian.Uint32(data[4:]) && n <= mostPayload
}

// next finds the next record after one whose length is wrong.
func (f *feeding) next(data []byte, at int) int {
	for at++; at < len(data); at++ {
		size, ok := sizeOf(data[at:])
		if end := at + recordHead + size; ok && end <= len(data) && binary.BigEndian.Uint32(data[at+8:]) == crc32.Checksum(data[at+recordHead:end], castagnoli) {
			return at
		}
	}
	return at
}

// record takes one record into the batch. It says what is wrong with one that cannot be; an error
// is of the database.
func (f *feeding) record(ctx context.Context, p []byte) (wrong string, err error) {
	f.records++
	if len(p) < 3 || len(p) < 3+int(binary.BigEndian.Uint16(p[1:])) {
		return "a record cannot be read", nil
	}
	n := 3 + int(binary.BigEndian.Uint16(p[1:]))
	r := Record{Tenant: string(p[3:n]), Body: slices.Clone(p[n:])}
	e := &Entry{Record: r, Sure: true}
	switch p[0] {
	case 's':
		s := &Started{}
		if err := json.Unmarshal(r.Body, s); err != nil {
			return "the beginning of a call cannot be read", nil
		}
		e.Kind, e.ExecutionID, e.Time, e.Started = KindStarted, s.ExecutionID, s.Time, s
		f.begun[s.ExecutionID] = s
	case 'f':
		end := &Finished{}
		if err := json.Unmarshal(r.Body, end); err != nil {
			return "the end of a call cannot be read", nil
		}
		e.Kind, e.ExecutionID, e.Time, e.Finished, e.Of = KindFinished, end.ExecutionID, end.Time, end, f.begun[end.ExecutionID]
		delete(f.begun, end.ExecutionID)
		if e.Of == nil {
			of, err := f.log.execution(ctx, &Started{Tenant: r.Tenant, ExecutionID: end.ExecutionID})
			switch {
			case errors.Is(err, ErrNotFound) && f.expired(e):
				return "", nil
			case errors.Is(err, ErrNotFound):
				return "the beginning of the call " + end.ExecutionID + " is missing", nil
			case err != nil:
				return "", err
			}
			e.Of = &of.Started
			e.Of.On = "" // what began again ends in no journal: this is an end of the host that began it
		}
	default:
		return "a record is of no known kind", nil
	}
	if err := checkEntry(e); err != nil {
		return err.Error(), nil //nolint:nilerr // it is what is wrong with the record
	}
	if !f.expired(e) {
		f.batch = append(f.batch, &job{entry: e, sure: true, done: make(chan error, 1)})
	}
	return "", nil
}

// expired says that a record would be removed at once. It may have been: then the database does not
// know it any more, and would take it for a new one.
func (f *feeding) expired(e *Entry) bool {
	return e.Time.Before(f.log.DatabaseTime().Add(-f.log.o.Retention))
}

// flush gives the batch to the database, through the writer.
func (f *feeding) flush(ctx context.Context) error {
	l, jobs := f.log, f.batch
	f.batch = nil
	for part := range slices.Chunk(jobs, l.o.Batch) {
		l.mu.Lock()
		for _, j := range part {
			l.push(j)
		}
		l.urgent++ // somebody waits for all of them
		l.mu.Unlock()
		l.poke()
		var err error
		for _, j := range part {
			select {
			case err = <-j.done:
			case <-ctx.Done():
				err = ctx.Err()
			}
			if err != nil {
				break
			}
			if j.entry.Seq != 0 {
				f.fresh++
			}
		}
		l.mu.Lock()
		l.urgent--
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
