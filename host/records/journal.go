package records

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
)

// A journal is a write-ahead log: a record that is in it outlives the process before the
// database has it. Its files, segments, are deleted when the database has all their records.
// A host that was killed leaves its segments, and the next one with the same folder writes
// them to the database before it serves ([Log.feedLeft]).
//
// A segment begins with segmentMagic, its number in eight bytes and the hash of the record
// before it. Each record has a head: the length of its payload and the complement of that, by
// which a wrong length is told from a torn record, the CRC-32C of the payload, and the
// SHA-256 of the hash before and the payload. The payload is the kind in one byte ('s' or 'f'), the
// length of the tenant in two bytes, the tenant and the body. Numbers have the highest byte first.
const (
	segmentMagic = "openskill journal 1\n"
	segmentHead  = len(segmentMagic) + 8 + sha256.Size
	recordHead   = 12 + sha256.Size
	segmentAge   = time.Minute
	mostPayload  = 16 << 20 // bytes of a payload
)

const (
	segmentEnd = ".journal"
	lockEnd    = ".lock"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type journal struct {
	dir, name string // the segments are dir/name-NUMBER.journal
	most      int64  // bytes of a segment after which there is another one
	sync      bool   // wait until the disk has it
	lock      *flock.Flock

	mu   sync.Mutex // guards turn
	turn *turn      // what is written next

	writing sync.Mutex // guards what follows, and writes
	closed  bool
	all     []*segment // oldest first
	open    *segment   // the last of these, if it is not full
	number  uint64
	hash    [sha256.Size]byte
}

// turn is what is written at once: all that came while the turn before was written.
type turn struct {
	payloads [][]byte
	done     bool
	err      error
	segment  *segment // that has it
}

type segment struct {
	file *os.File
	path string
	size int64
	made time.Time
	left atomic.Int64 // records that the database may not have
}

// errNotTaken is of a record that is too large, or comes after the end.
var errNotTaken = errors.New("the journal does not take the record")

// newJournal makes a journal. It makes no file before the first record.
func newJournal(dir string, most int, sync bool) *journal {
	return &journal{dir: dir, name: strings.ToLower(rand.Text()), most: int64(most), sync: sync, turn: &turn{}}
}

// append writes an entry, together with all that come at the same time. The segment counts it
// until it is let go of.
func (j *journal) append(e *Entry) (*segment, error) {
	p := payload(e)
	if len(p) > mostPayload {
		return nil, errNotTaken
	}
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

// write writes payloads by one system call. After an error none of them is there.
func (j *journal) write(payloads [][]byte) (*segment, error) {
	if j.closed {
		return nil, errNotTaken
	}
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
		b = binary.BigEndian.AppendUint32(b, ^uint32(len(p)))
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(p, castagnoli))
		b = append(append(b, hash[:]...), p...)
	}
	if err := j.put(s, b); err != nil {
		return nil, err
	}
	j.hash = hash
	s.left.Add(int64(len(payloads)))
	if s.size >= j.most {
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

// put appends to a segment, or leaves it as it was. One that cannot be cut off again takes no more.
func (j *journal) put(s *segment, b []byte) error {
	_, err := s.file.WriteAt(b, s.size)
	if err == nil && j.sync {
		err = s.file.Sync()
	}
	if err != nil {
		cut := s.file.Truncate(s.size)
		if cut != nil {
			j.open = nil
		}
		return errors.Join(err, cut)
	}
	s.size += int64(len(b))
	return nil
}

// begin makes the next segment. Whoever sees one can tell by the lock whether its host lives.
func (j *journal) begin() error {
	if j.lock == nil {
		err := os.MkdirAll(j.dir, 0o700)
		if err == nil && j.sync {
			err = errors.Join(syncFolder(filepath.Dir(j.dir)), syncFolder(filepath.Dir(filepath.Dir(j.dir))))
		}
		if err != nil {
			return err
		}
		l, free, err := lockJournal(j.dir, j.name)
		if !free {
			return errors.Join(err, errors.New("the journal cannot be locked"))
		}
		j.lock = l
	}
	s := &segment{path: filepath.Join(j.dir, fmt.Sprintf("%s-%08d%s", j.name, j.number+1, segmentEnd)), made: time.Now()}
	var err error
	if s.file, err = os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint64([]byte(segmentMagic), j.number+1)
	if err = j.put(s, append(head, j.hash[:]...)); err == nil && j.sync {
		err = syncFolder(j.dir)
	}
	if err != nil {
		return errors.Join(err, s.remove())
	}
	j.number, j.open, j.all = j.number+1, s, append(j.all, s)
	return nil
}

// syncFolder waits until the disk has the names in a folder.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *segment) remove() error { return errors.Join(s.file.Close(), os.Remove(s.path)) }

// tidy deletes the segments of which the database has all records, from the oldest on: full ones,
// and the open one when it is old.
func (j *journal) tidy() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	var errs []error
	for len(j.all) > 0 {
		s := j.all[0]
		if s.left.Load() > 0 || s == j.open && time.Since(s.made) < segmentAge {
			break
		}
		if s == j.open {
			j.open = nil
		}
		j.all = j.all[1:]
		errs = append(errs, s.remove())
	}
	return errors.Join(errs...)
}

// close ends the journal. What the database may not have is left to the next host.
func (j *journal) close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	all := j.all
	j.closed, j.open, j.all = true, nil, nil
	if j.lock == nil {
		return nil
	}
	var errs []error
	kept := false
	for _, s := range all {
		if kept = kept || s.left.Load() > 0; kept {
			errs = append(errs, s.file.Close())
			continue
		}
		errs = append(errs, s.remove())
	}
	errs = append(errs, j.lock.Close())
	if !kept {
		_ = os.Remove(j.lock.Path()) // after the lock is free: some systems remove no file that is open
	}
	return errors.Join(errs...)
}
