package records

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
)

// Recover does what [Open] does with the journals of hosts that were killed, and nothing if
// there are none.
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
		} else if name, ok := strings.CutSuffix(f.Name(), lockEnd); ok && left[name] == nil {
			left[name] = nil
		}
	}
	return left, err
}

// lockJournal locks a journal, if its host does not live.
func lockJournal(dir, name string) (lock *flock.Flock, free bool, err error) {
	lock = flock.New(filepath.Join(dir, name+lockEnd), flock.SetPermissions(0o600))
	free, err = lock.TryLock()
	return lock, free && err == nil, err
}

// feedLeft writes what hosts that were killed left in their journals to the database.
func (l *Log) feedLeft(ctx context.Context) error {
	left, err := journals(l.o.Journal)
	if err != nil {
		return err
	}
	for name, segments := range left {
		if err := l.feedJournal(ctx, name, segments); err != nil {
			return err
		}
	}
	return nil
}

// feedJournal writes one journal to the database and deletes it, unless its host lives.
func (l *Log) feedJournal(ctx context.Context, name string, segments []string) error {
	lock, free, err := lockJournal(l.o.Journal, name)
	if !free {
		return err
	}
	defer lock.Close()
	f := feeding{log: l, begun: map[string]*Started{}}
	for i, path := range segments {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another host was faster
		}
		if err != nil {
			return err
		}
		f.path, f.tail = path, i == len(segments)-1
		f.segment(ctx, data)
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	if f.records > 0 {
		l.o.Log.Warn("audit: the records of a host that crashed were written to the database",
			slog.Int("records", f.records), slog.Int("new", f.fresh))
	}
	for _, path := range segments {
		to := path + ".damaged" // for the operator
		var err error
		if f.damaged[path] {
			err = os.Rename(path, to)
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	err = lock.Close()
	_ = os.Remove(lock.Path()) // another host may have been faster
	return err
}

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
	if f.damaged == nil {
		f.damaged = map[string]bool{}
	}
	f.damaged[f.path] = true
	f.log.o.Log.Error("audit: the journal is damaged: calls may be missing from the records; the file is kept",
		slog.String("file", f.path+".damaged"), slog.Int("offset", at), slog.String("problem", what))
}

// segment reads a segment. What is damaged is left out, and what follows it is read.
func (f *feeding) segment(ctx context.Context, data []byte) {
	if len(data) < segmentHead && f.tail {
		return // the host was killed while it made it
	}
	if len(data) < segmentHead || !bytes.HasPrefix(data, []byte(segmentMagic)) {
		f.damage(0, "its beginning is missing")
		return
	}
	number := binary.BigEndian.Uint64(data[len(segmentMagic):])
	before := [sha256.Size]byte(data[len(segmentMagic)+8 : segmentHead])
	switch {
	case f.number != 0 && number != f.number+1:
		f.damage(0, fmt.Sprintf("%d segments before it are missing", number-f.number-1))
	case f.number != 0 && before != f.hash:
		f.damage(0, "records before it are missing or changed")
	}
	f.number, f.hash = number, before
	for at := segmentHead; at < len(data); {
		rest := data[at:]
		size := 0
		if len(rest) >= recordHead {
			size = int(binary.BigEndian.Uint32(rest))
		}
		switch {
		case size > mostPayload:
			f.damage(at, "the length of a record is wrong")
			return
		case len(rest) < recordHead+size && f.tail, len(rest) < recordHead && f.tail:
			return // the host was killed while it wrote: nobody was told that this is on record
		case len(rest) < recordHead+size, len(rest) < recordHead:
			f.damage(at, "the last record is not complete")
			return
		}
		stored, p := [sha256.Size]byte(rest[4:recordHead]), rest[recordHead:recordHead+size]
		if follow(f.hash, p) != stored {
			f.damage(at, "a record is changed")
		} else if err := f.record(ctx, p); err != nil {
			f.damage(at, err.Error())
		}
		f.hash = stored
		at += recordHead + size
	}
}

// record takes one record into the batch.
func (f *feeding) record(ctx context.Context, p []byte) error {
	f.records++
	if len(p) < 3 || len(p) < 3+int(binary.BigEndian.Uint16(p[1:])) {
		return errors.New("a record cannot be read")
	}
	n := 3 + int(binary.BigEndian.Uint16(p[1:]))
	r := Record{Tenant: string(p[3:n]), Body: slices.Clone(p[n:])}
	e := &Entry{Record: r, Sure: true}
	switch p[0] {
	case 's':
		s := &Started{}
		if err := json.Unmarshal(r.Body, s); err != nil {
			return errors.New("the beginning of a call cannot be read")
		}
		e.Kind, e.ExecutionID, e.Time, e.Started = KindStarted, s.ExecutionID, s.Time, s
		f.begun[s.ExecutionID] = s
	case 'f':
		end := &Finished{}
		if err := json.Unmarshal(r.Body, end); err != nil {
			return errors.New("the end of a call cannot be read")
		}
		e.Kind, e.ExecutionID, e.Time, e.Finished, e.Of = KindFinished, end.ExecutionID, end.Time, end, f.begun[end.ExecutionID]
		delete(f.begun, end.ExecutionID)
		if e.Of == nil {
			of, err := f.log.execution(ctx, &Started{Tenant: r.Tenant, ExecutionID: end.ExecutionID})
			if err != nil {
				return fmt.Errorf("the beginning of call %s cannot be found: %w", end.ExecutionID, err)
			}
			if of.Finished != nil { // it was written before
				return nil
			}
			e.Of = &of.Started
		}
	default:
		return errors.New("a record is of no known kind")
	}
	f.batch = append(f.batch, &job{entry: e, sure: true})
	return nil
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
		l.mu.Unlock()
		if err := l.catchUp(ctx); err != nil {
			return err
		}
		for _, j := range part {
			if j.entry.Seq != 0 {
				f.fresh++
			}
		}
	}
	return nil
}
