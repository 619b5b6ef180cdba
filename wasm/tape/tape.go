// Package tape keeps what a run drew from outside of itself, so that the run can be made
// again: on another day, in another process, without a clock, chance or a network.
//
// A guest computes, and a machine computes the same from the same. What is left is what a
// guest is told: the time of day, the time since it began, random bytes, and what comes
// back from the network. A [Recorder] writes these draws down in their order, a [Player]
// gives them in that order, and ends the run where it asks for anything else.
//
// # The form
//
// Four letters "OSKT", a version, then how the run began: what ran (a length and a name),
// 1 and the seed and the time of an image's start-up, or 0 where all of the run is on the
// tape, and the same. Then draws, each a letter and what it is of:
//
//	w  time of day: nanoseconds since the last one, or since 1970
//	m  time since the run began: nanoseconds since the last one
//	r  chance: a length and as many bytes
//	h  the network: SHA-256 of the request, a length and as many bytes of the response
//
// and "." with the number of draws and a CRC-32C of all before. Numbers are varints of
// package encoding/binary, in their shortest form; so there is one tape for a run, and
// [Open] takes nothing else.
package tape

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
)

const magic = "OSKT\x01"

// Kind is what a draw is of.
type Kind byte

// The kinds of draws.
const (
	Wall   Kind = 'w'
	Mono   Kind = 'm'
	Chance Kind = 'r'
	Answer Kind = 'h'

	end Kind = '.'
)

// String names the kind to people.
func (k Kind) String() string {
	switch k {
	case Wall:
		return "time of day"
	case Mono:
		return "time passed"
	case Chance:
		return "random bytes"
	case Answer:
		return "answer from the network"
	case end:
		return "end"
	}
	return "unknown"
}

// Start is how a run began.
type Start struct {
	// Of names the program, such as by a digest: another one draws otherwise. It has at
	// most 128 bytes; of a longer one the rest counts for nothing.
	Of string
	// Shared says that it began in an image, whose start-up saw Seed and Made in the
	// place of chance and clock. If not, its start-up is on the tape.
	Shared bool
	Seed   [32]byte
	Made   time.Time // in whole seconds
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Recorder writes the draws of one run. Its methods cannot fail: what no longer fits is
// dropped with all before it, and the run goes on. It serves one run.
type Recorder struct {
	most int
	b    []byte // draws
	n    uint64 // of them
	wall int64  // the last ones
	mono int64
	over bool
}

const maxOf = 128

// The most that stands before the draws, and behind them.
const (
	startSize  = len(magic) + 2 + maxOf + 1 + 32 + binary.MaxVarintLen64
	endingSize = 1 + binary.MaxVarintLen64 + 4
)

// NewRecorder makes a recorder whose tape has at most that many bytes.
func NewRecorder(most uint64) *Recorder {
	return &Recorder{most: int(min(most, math.MaxInt32)) - startSize - endingSize} // bounded
}

// room reports whether n more bytes fit.
func (r *Recorder) room(n int) bool {
	if r.over || n > r.most-len(r.b) {
		r.over, r.b = true, nil
		return false
	}
	r.n++
	return true
}

// drawSize is the most bytes of a draw beside what it carries.
const drawSize = 1 + 32 + binary.MaxVarintLen64

// Wall writes the time of day, in nanoseconds since 1970; never negative.
func (r *Recorder) Wall(now int64) {
	if r.room(drawSize) {
		r.b = binary.AppendVarint(append(r.b, byte(Wall)), now-r.wall)
		r.wall = now
	}
}

// Mono writes the time that has passed, in nanoseconds; never negative.
func (r *Recorder) Mono(passed int64) {
	if r.room(drawSize) {
		r.b = binary.AppendVarint(append(r.b, byte(Mono)), passed-r.mono)
		r.mono = passed
	}
}

// Chance writes random bytes.
func (r *Recorder) Chance(b []byte) {
	if r.room(drawSize + len(b)) {
		r.b = binary.AppendUvarint(append(r.b, byte(Chance)), uint64(len(b)))
		r.b = append(r.b, b...)
	}
}

// Answer writes what a request was answered with. Of the request there is a digest: it
// may have a secret in it.
func (r *Recorder) Answer(request, response []byte) {
	if r.room(drawSize + len(response)) {
		sum := sha256.Sum256(request)
		r.b = append(append(r.b, byte(Answer)), sum[:]...)
		r.b = binary.AppendUvarint(r.b, uint64(len(response)))
		r.b = append(r.b, response...)
	}
}

// Tape gives the tape of a run that has ended, or false if it has grown too large.
func (r *Recorder) Tape(s Start) ([]byte, bool) {
	if r.over {
		return nil, false
	}
	of := s.Of[:min(len(s.Of), maxOf)]
	b := append(make([]byte, 0, startSize+len(r.b)+endingSize), magic...)
	b = append(binary.AppendUvarint(b, uint64(len(of))), of...)
	if s.Shared {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = append(b, s.Seed[:]...)
	b = binary.AppendVarint(b, s.Made.Unix())
	b = append(b, r.b...)
	b = binary.AppendUvarint(append(b, byte(end)), r.n)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), true
}

// ErrForm is what [Open] says of what is no tape, whole and as it was written.
var ErrForm = errors.New("tape: this is not a recording, or it was changed")

// Player gives the draws of a tape. It serves one run.
type Player struct {
	start Start
	rest  []byte // draws, and "."
	total uint64
	n     uint64 // given
	wall  int64
	mono  int64
	err   error
}

// Open reads all of a tape and gives a player of it, which keeps b. The error is
// [ErrForm].
func Open(b []byte) (*Player, error) {
	p := &Player{}
	r := reader{b: b}
	if len(b) < 4 || string(r.take(len(magic))) != magic {
		return nil, ErrForm
	}
	body := b[:len(b)-4]
	if binary.LittleEndian.Uint32(b[len(body):]) != crc32.Checksum(body, castagnoli) {
		return nil, ErrForm
	}
	r.b = body[min(len(magic), len(body)):]
	of := r.take(r.length())
	shared := r.take(1)
	seed := r.take(32)
	made := r.signed()
	if r.bad || len(of) > maxOf || shared[0] > 1 || made < 0 || made > math.MaxInt64/int64(time.Second) {
		return nil, ErrForm
	}
	p.start = Start{Of: string(of), Shared: shared[0] == 1, Seed: [32]byte(seed), Made: time.Unix(made, 0)}
	p.rest = r.b
	walls, monos := int64(0), int64(0)
	for !r.bad {
		switch k := Kind(r.byte()); k {
		case Wall:
			walls = r.sum(walls)
		case Mono:
			monos = r.sum(monos)
		case Chance:
			r.take(r.length())
		case Answer:
			r.take(sha256.Size)
			r.take(r.length())
		case end:
			if r.number() != p.total || r.bad || len(r.b) > 0 {
				return nil, ErrForm
			}
			return p, nil
		default:
			return nil, ErrForm
		}
		p.total++
	}
	return nil, ErrForm
}

// Start is how the run began.
func (p *Player) Start() Start { return p.start }

// Draws is how many there are.
func (p *Player) Draws() uint64 { return p.total }

// Err says where the run was not as the recorded one, once it asked for what the tape
// has not: nil as long as it did not.
func (p *Player) Err() error { return p.err }

// Over says what is left of the tape when the run has ended by itself: nil, if it has
// asked for everything.
func (p *Player) Over() error {
	if p.err == nil && p.n < p.total {
		return fmt.Errorf("the run asked for less than was recorded: %d draws of %d", p.n, p.total)
	}
	return p.err
}

// Wall is the next draw, which must be the time of day.
func (p *Player) Wall() (int64, error) {
	r, err := p.next(Wall)
	if err != nil {
		return 0, err
	}
	p.wall = r.sum(p.wall)
	p.rest = r.b
	return p.wall, nil
}

// Mono is the next draw, which must be the time that has passed.
func (p *Player) Mono() (int64, error) {
	r, err := p.next(Mono)
	if err != nil {
		return 0, err
	}
	p.mono = r.sum(p.mono)
	p.rest = r.b
	return p.mono, nil
}

// Chance is the next draw, which must be as many random bytes.
func (p *Player) Chance(b []byte) error {
	r, err := p.next(Chance)
	if err != nil {
		return err
	}
	kept := r.take(r.length())
	if len(kept) != len(b) {
		return p.differs("the run asked for %d random bytes where %d were recorded, at draw %d", len(b), len(kept), p.n)
	}
	copy(b, kept)
	p.rest = r.b
	return nil
}

// Answer is the next draw, which must be the answer to that request. It is the tape's
// own: nobody writes to it.
func (p *Player) Answer(request []byte) ([]byte, error) {
	r, err := p.next(Answer)
	if err != nil {
		return nil, err
	}
	kept := r.take(sha256.Size)
	if sum := sha256.Sum256(request); string(kept) != string(sum[:]) {
		return nil, p.differs("the run sent another request than was recorded, at draw %d", p.n)
	}
	response := r.take(r.length())
	p.rest = r.b
	return response, nil
}

// next gives what stands behind the kind of the next draw. That the tape has the form
// is known since Open.
func (p *Player) next(k Kind) (reader, error) {
	r := reader{b: p.rest}
	if p.err != nil {
		return r, p.err
	}
	p.n++
	switch got := Kind(r.byte()); got {
	case k:
		return r, nil
	case end:
		return r, p.differs("the run asked for more than was recorded, at draw %d: %s", p.n, k)
	default:
		return r, p.differs("the run asked for something else than was recorded, at draw %d: %s, and there is %s", p.n, k, got)
	}
}

func (p *Player) differs(format string, args ...any) error {
	p.n--
	p.err = fmt.Errorf(format, args...)
	return p.err
}
