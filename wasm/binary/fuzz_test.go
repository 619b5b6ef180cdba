package binary_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"openskill/wasm/binary"
	"openskill/wasm/spectest"
)

// FuzzDecode decodes any bytes: without a panic, with memory that is a multiple
// of the input, and so that what is encoded again means the same.
func FuzzDecode(f *testing.F) {
	for _, suite := range []spectest.Suite{spectest.V2, spectest.Exceptions, spectest.TailCall, spectest.ExtendedConst} {
		for i, sc := range spectest.Load(f, suite) {
			for j := range sc.Commands {
				c := &sc.Commands[j]
				if !strings.HasSuffix(c.Filename, ".wasm") || suite == spectest.V2 && (i+j)%5 != 0 {
					continue
				}
				if b := sc.Module(f, c); len(b) < 3000 {
					f.Add(b)
				}
			}
		}
	}
	f.Fuzz(roundTrip)
}

func roundTrip(t *testing.T, b []byte) {
	var m *binary.Module
	var err error
	if got, most := allocated(func() { m, err = binary.Decode(b, nil) }), uint64(100*len(b)+256<<10); got > most {
		t.Errorf("%d bytes took %d bytes of memory, at most %d expected", len(b), got, most)
	}
	if err != nil {
		var e *binary.Error
		if !errors.As(err, &e) {
			t.Fatalf("an error of type %T", err)
		}
		if msg := err.Error(); len(msg) > 512 || !utf8.ValidString(msg) || strings.ContainsFunc(msg, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("a message that cannot be shown: %q", msg)
		}
		if e.Offset < 0 || e.Offset > len(b) {
			t.Errorf("offset %d of %d bytes", e.Offset, len(b))
		}
		return
	}
	once := m.Encode()
	again, err := binary.Decode(once, nil)
	if err != nil {
		t.Fatalf("what was encoded does not decode: %v\n% x", err, once)
	}
	if d := cmp.Diff(m, again, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(binary.Code{}, "Offset"), cmpopts.IgnoreFields(binary.Custom{}, "Before")); d != "" {
		t.Errorf("encoding changed the module:\n%s", d)
	}
	if twice := again.Encode(); string(once) != string(twice) {
		t.Errorf("encoded twice it differs:\n% x\n% x", once, twice)
	}
	for i := range m.Codes {
		r := binary.NewReader(m.Codes[i].Body, m.Codes[i].Offset)
		at := 0
		for in := (binary.Instr{}); r.Next(&in); {
			if in.Pos != at || in.End <= in.Pos || in.End > len(m.Codes[i].Body) {
				t.Fatalf("instruction [%d, %d) after byte %d of %d", in.Pos, in.End, at, len(m.Codes[i].Body))
			}
			at = in.End
			switch in.Op.Imm() {
			case binary.ImmBrTable:
				if n := len(r.Targets(&in, nil)); n != int(in.A)+1 {
					t.Fatalf("%d targets of %d", n, in.A)
				}
			case binary.ImmTryTable:
				if n := len(r.Catches(&in, nil)); n != int(in.A) {
					t.Fatalf("%d catches of %d", n, in.A)
				}
			}
		}
	}
}

// allocated gives the bytes that do allocates.
func allocated(do func()) uint64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	do()
	runtime.ReadMemStats(&b)
	return b.TotalAlloc - a.TotalAlloc
}
