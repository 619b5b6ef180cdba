package records

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
)

// A journal is a write-ahead log: a record that is in it outlives the process before the
// database has it. Its files, segments, are deleted when the database has all their records.
// A host that was killed leaves its segments, and the next one with the same folder writes
// them to the database before it serves ([Log.feedLeft]).
//
// A segment begins with segmentMagic, its number and the hash of the record before it. Then
// come records: the length of the payload in four bytes, the SHA-256 of the hash before and
// the payload, and the payload, which is the kind in one byte ('s' or 'f'), the length of the
// tenant in two bytes, the tenant and the body. Numbers have the highest byte first.
const (
	segmentMagic = "openskill journal 1\n"
	segmentHead  = len(segmentMagic) + 8 + sha256.Size
	recordHead   = 4 + sha256.Size
	segmentFull  = 4 << 20  // bytes after which a new segment begins
	mostPayload  = 16 << 20 // bytes of a payload; more is damage
)

const (
	segmentEnd = ".journal"
	lockEnd    = ".lock"
)

type journal struct {
	dir, name string // the segments are dir/name-NUMBER.journal
	sync      bool   // wait until the disk has it
	lock      *flock.Flock

	mu   sync.Mutex // guards turn
	turn *turn      // what is written next

	writing sync.Mutex // guards what follows, and writes
	open    *segment   // nil: the next turn makes one
	number  uint64
	hash    [sha256.Size]byte

	old []*segment // full segments, whose records the database may not have yet; guarded by Log.mu
}

// turn is what is written at once: all that came while the turn before was written.
type turn struct {
	payloads [][]byte
	done     bool
	err      error
	segment  *segment // that has it
}

type segment struct {
	file   *os.File
	path   string
	size   int64
	coming atomic.Int64  // records that have no place in the queue of the Log yet
	last   atomic.Uint64 // the last of those places
	full   atomic.Bool
}

// newJournal makes a journal. It makes no file before the first record.
func newJournal(dir string, sync bool) *journal {
	return &journal{dir: dir, name: strings.ToLower(rand.Text()), sync: sync, turn: &turn{}}
}

// append writes an entry, together with all that come at the same time.
func (j *journal) append(e *Entry) (*segment, error) {
	p := payload(e)
	j.mu.Lock()
	t := j.turn
	t.payloads = append(t.payloads, p)
	j.mu.Unlock()

	j.writing.Lock()
	defer j.writing.Unlock()
	if !t.done {
		j.mu.Lock()
		j.turn = &turn{}
		j.mu.Unlock()
		t.segment, t.err = j.write(t.payloads)
		t.done, t.payloads = true, nil
	}
	return t.segment, t.err
}

func payload(e *Entry) []byte {
	kind := byte('s')
	if e.Finished != nil {
		kind = 'f'
	}
	p := make([]byte, 0, 3+len(e.Tenant)+len(e.Body))
	p = binary.BigEndian.AppendUint16(append(p, kind), uint16(len(e.Tenant)))
	return append(append(p, e.Tenant...), e.Body...)
}

// write writes payloads by one system call. After an error the segment is as it was.
func (j *journal) write(payloads [][]byte) (*segment, error) {
	if j.open == nil {
		if err := j.begin(); err != nil {
			return nil, err
		}
	}
	s, hash := j.open, j.hash
	size := 0
	for _, p := range payloads {
		size += recordHead + len(p)
	}
	b := make([]byte, 0, size)
	for _, p := range payloads {
		hash = follow(hash, p)
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(append(b, hash[:]...), p...)
	}
	if err := s.write(b, j.sync); err != nil {
		return nil, err
	}
	j.hash = hash
	s.coming.Add(int64(len(payloads)))
	if s.size >= segmentFull {
		s.full.Store(true)
		j.open = nil
	}
	return s, nil
}

// follow is the hash of a record.
func follow(before [sha256.Size]byte, payload []byte) (hash [sha256.Size]byte) {
	h := sha256.New()
	h.Write(before[:])
	h.Write(payload)
	h.Sum(hash[:0])
	return hash
}

// write appends to a segment, or leaves it as it was. What cannot be cut off is followed by
// no other record: the segment takes no more.
func (s *segment) write(b []byte, sync bool) error {
	_, err := s.file.WriteAt(b, s.size)
	if err == nil && sync {
		err = s.file.Sync()
	}
	if err != nil {
		return errors.Join(err, s.file.Truncate(s.size))
	}
	s.size += int64(len(b))
	return nil
}

// begin makes the next segment. Whoever sees one can tell by the lock whether its host lives.
func (j *journal) begin() error {
	if j.lock == nil {
		if err := os.MkdirAll(j.dir, 0o700); err != nil {
			return err
		}
		l, free, err := lockJournal(j.dir, j.name)
		if !free {
			return errors.Join(err, errors.New("the journal cannot be locked"))
		}
		j.lock = l
	}
	s := &segment{path: filepath.Join(j.dir, fmt.Sprintf("%s-%08d%s", j.name, j.number+1, segmentEnd))}
	var err error
	if s.file, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint64([]byte(segmentMagic), j.number+1)
	if err = s.write(append(head, j.hash[:]...), j.sync); err == nil && j.sync && runtime.GOOS != "windows" {
		err = syncFolder(j.dir)
	}
	if err != nil {
		return errors.Join(err, s.remove())
	}
	j.number, j.open = j.number+1, s
	return nil
}

// syncFolder waits until the disk has the names in a folder.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *segment) remove() error { return errors.Join(s.file.Close(), os.Remove(s.path)) }

// take notes the place of a record in the queue of the Log, which holds its lock.
func (j *journal) take(s *segment, at uint64) {
	s.last.Store(at) // places grow
	s.coming.Add(-1)
	if !slices.Contains(j.old, s) {
		j.old = append(j.old, s)
	}
}

// release gives the segments that only hold records from before a place in the queue; all
// of them are complete. The Log holds its lock.
func (j *journal) release(oldest uint64) (over []*segment) {
	kept := j.old[:0]
	for _, s := range j.old {
		if s.full.Load() && s.coming.Load() == 0 && s.last.Load() < oldest {
			over = append(over, s)
			continue
		}
		kept = append(kept, s)
	}
	clear(j.old[len(kept):])
	j.old = kept
	return over
}

// close deletes the journal if the database has all of it. Otherwise the next host finds it.
func (j *journal) close(done bool) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if j.lock == nil {
		return nil
	}
	var errs []error
	if s := j.open; s != nil {
		j.open = nil
		if done && s.coming.Load() == 0 {
			errs = append(errs, s.remove())
		} else {
			errs = append(errs, s.file.Close())
		}
	}
	errs = append(errs, j.lock.Close())
	if done {
		_ = os.Remove(j.lock.Path()) // after the lock is free: some systems remove no file that is open
	}
	return errors.Join(errs...)
}
