package tape_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"math"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/wasm/tape"
)

var start = tape.Start{Of: "sha256:of", Shared: true, Seed: [32]byte{1, 2, 3}, Made: time.Unix(1_700_000_000, 0)}

// recorded is a tape with every kind of draw, at their ends too.
func recorded(t testing.TB) []byte {
	t.Helper()
	r := tape.NewRecorder(1 << 20)
	r.Wall(1_700_000_000_123_000_000)
	r.Mono(0)
	r.Chance([]byte("chance"))
	r.Wall(0)
	r.Wall(math.MaxInt64)
	r.Answer([]byte("request"), []byte("response"))
	r.Answer(nil, nil)
	r.Mono(math.MaxInt64)
	r.Mono(1)
	r.Chance(nil)
	b, ok := r.Tape(start)
	if !ok {
		t.Fatal("it did not fit")
	}
	return b
}

func open(t testing.TB, b []byte) *tape.Player {
	t.Helper()
	return musttest.Get(tape.Open(b))(t)
}

// TestPlayedAsRecorded holds that what was drawn comes again, and how the run began.
func TestPlayedAsRecorded(t *testing.T) {
	p := open(t, recorded(t))
	if p.Start() != start || p.Draws() != 10 {
		t.Errorf("%+v, %d draws", p.Start(), p.Draws())
	}
	chance := make([]byte, 6)
	number := func(want int64) func(int64, error) {
		t.Helper()
		return func(got int64, err error) {
			t.Helper()
			if got != want || err != nil {
				t.Errorf("%d, %v; want %d", got, err, want)
			}
		}
	}
	text := func(want string) func([]byte, error) {
		t.Helper()
		return func(got []byte, err error) {
			t.Helper()
			if string(got) != want || err != nil {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		}
	}
	number(1_700_000_000_123_000_000)(p.Wall())
	number(0)(p.Mono())
	if err := p.Chance(chance); string(chance) != "chance" || err != nil {
		t.Errorf("%q, %v", chance, err)
	}
	number(0)(p.Wall())
	number(math.MaxInt64)(p.Wall())
	text("response")(p.Answer([]byte("request")))
	text("")(p.Answer(nil))
	number(math.MaxInt64)(p.Mono())
	number(1)(p.Mono())
	if p.Over() == nil || p.Err() != nil {
		t.Errorf("with a draw left: %v, %v", p.Over(), p.Err())
	}
	if err := p.Chance(nil); err != nil || p.Over() != nil {
		t.Errorf("%v, %v", err, p.Over())
	}
}

// TestAsksForOther holds that a run that goes another way ends there, and stays ended.
func TestAsksForOther(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(p *tape.Player) error
		want string
	}{
		"another kind":    {func(p *tape.Player) error { _, err := p.Mono(); return err }, "something else than was recorded, at draw 1: time passed, and there is random bytes"},
		"more chance":     {func(p *tape.Player) error { return p.Chance(make([]byte, 3)) }, "3 random bytes where 2 were recorded, at draw 1"},
		"less chance":     {func(p *tape.Player) error { return p.Chance(nil) }, "0 random bytes where 2"},
		"another request": {func(p *tape.Player) error { _ = p.Chance(make([]byte, 2)); _, err := p.Answer([]byte("b")); return err }, "another request than was recorded, at draw 2"},
		"more": {func(p *tape.Player) error {
			_ = p.Chance(make([]byte, 2))
			_, _ = p.Answer([]byte("a"))
			_, err := p.Wall()
			return err
		}, "more than was recorded, at draw 3: time of day"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tape.NewRecorder(1000)
			r.Chance([]byte("ab"))
			r.Answer([]byte("a"), []byte("x"))
			b, _ := r.Tape(start)
			p := open(t, b)
			err := c.ask(p)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %s", err, c.want)
			}
			if again := p.Chance(make([]byte, 2)); !errors.Is(again, err) || !errors.Is(p.Err(), err) || !errors.Is(p.Over(), err) {
				t.Errorf("afterwards %v, %v, %v", again, p.Err(), p.Over())
			}
		})
	}
}

// TestBound holds that a tape is never larger than it may be, and is dropped whole.
func TestBound(t *testing.T) {
	const most = 5000
	draws := map[string]func(r *tape.Recorder){
		"clock":  func(r *tape.Recorder) { r.Wall(math.MaxInt64); r.Wall(0) },
		"chance": func(r *tape.Recorder) { r.Chance(make([]byte, 99)) },
		"answer": func(r *tape.Recorder) { r.Answer(nil, make([]byte, 99)) },
		"much":   func(r *tape.Recorder) { r.Chance(make([]byte, most)) },
	}
	for name, draw := range draws {
		t.Run(name, func(t *testing.T) {
			last := 0
			for n := 0; ; n++ {
				r := tape.NewRecorder(most)
				for range n {
					draw(r)
				}
				b, ok := r.Tape(start)
				if !ok {
					if b != nil || last > most || name != "much" && last < most-300 {
						t.Errorf("%d bytes, and then none (%d)", last, len(b))
					}
					break
				}
				if last = len(b); last > most {
					t.Fatalf("%d bytes", last)
				}
			}
		})
	}
	if _, ok := tape.NewRecorder(1).Tape(start); !ok {
		t.Log("nothing fits into a byte")
	}
	r := tape.NewRecorder(1)
	r.Wall(1)
	if _, ok := r.Tape(start); ok {
		t.Error("a draw fits into a byte")
	}
}

// TestDamaged holds that a tape that was cut, changed or made longer is none.
func TestDamaged(t *testing.T) {
	b := recorded(t)
	refused := func(what string, b []byte) {
		t.Helper()
		if p, err := tape.Open(b); !errors.Is(err, tape.ErrForm) || p != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range b {
		refused("cut", b[:i])
		for bit := range 8 {
			changed := bytes.Clone(b)
			changed[i] ^= 1 << bit
			refused("changed", changed)
		}
	}
	refused("longer", append(bytes.Clone(b), 0))
	refused("twice", append(bytes.Clone(b), b...))
}

// sealed gives what stands before a checksum the right one: what is refused of it is
// refused for what it says.
func sealed(b []byte) []byte {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return append(bytes.Clone(b), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
}

// TestForged holds what a tape may not say, though its checksum is right.
func TestForged(t *testing.T) {
	head := "OSKT\x01\x02of\x01" + strings.Repeat("s", 32) + "\x02"
	musttest.Get(tape.Open(sealed([]byte(head + ".\x00"))))(t)
	for name, body := range map[string]string{
		"nothing":             "",
		"another version":     strings.Replace(head, "\x01", "\x02", 1) + ".\x00",
		"no way to begin":     strings.Replace(head, "of\x01", "of\x02", 1) + ".\x00",
		"a long name":         "OSKT\x01\x81\x01" + strings.Repeat("n", 129) + head[8:] + ".\x00",
		"a name over the end": "OSKT\x01\x7fof",
		"made before 1970":    "OSKT\x01\x00\x01" + strings.Repeat("s", 32) + "\x01.\x00",
		"made after all":      "OSKT\x01\x00\x01" + strings.Repeat("s", 32) + "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01.\x00",
		"no end":              head,
		"no number of draws":  head + ".",
		"more draws":          head + ".\x01",
		"fewer draws":         head + "m\x00m\x00.\x01",
		"a kind of no one":    head + "x\x00.\x01",
		"a long number":       head + "m\x80\x00.\x01",
		"a number too large":  head + "m\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02.\x01",
		"time before its own": head + "m\x01.\x01",
		"time over the end":   head + "m\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01m\x02.\x02",
		"chance over the end": head + "r\x05.\x01",
		"much chance":         head + "r\xff\xff\xff\xff\xff\xff\xff\xff\x7f.\x01",
		"half an answer":      head + "h" + strings.Repeat("d", 31),
		"behind the end":      head + ".\x00m\x00",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tape.Open(sealed([]byte(body))); !errors.Is(err, tape.ErrForm) {
				t.Error(err)
			}
		})
	}
}

// FuzzTape opens anything and plays what opens: it never panics, says as many draws as it
// gives, and what those make is the same tape.
func FuzzTape(f *testing.F) {
	f.Add(recorded(f)[:len(recorded(f))-4])
	f.Add([]byte("OSKT\x01\x00\x00" + strings.Repeat("\x00", 33) + "r\x01x.\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = sealed(b)
		p, err := tape.Open(b)
		if err != nil {
			return
		}
		again := tape.NewRecorder(uint64(len(b)) + 1000*p.Draws() + 1000)
		for range p.Draws() {
			// Whatever comes next: each kind is asked of a player that stands there.
			for _, ask := range []func(p *tape.Player) error{
				func(p *tape.Player) error {
					n, err := p.Wall()
					if err == nil {
						again.Wall(n)
					}
					return err
				},
				func(p *tape.Player) error {
					n, err := p.Mono()
					if err == nil {
						again.Mono(n)
					}
					return err
				},
				func(p *tape.Player) error { return p.Chance(make([]byte, 1<<16)) },
				func(p *tape.Player) error { _, err := p.Answer(b); return err },
			} {
				at := *p
				if ask(&at) == nil {
					*p = at
					break
				}
			}
		}
	})
}
