package runtimes

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
)

func at(address int64, data string) binary.Data {
	e := binary.AppendS64([]byte{byte(binary.OpI32Const)}, address)
	return binary.Data{Offset: append(e, byte(binary.OpEnd)), Init: []byte(data)}
}

// What lies in a range is taken out of the segments, wherever they begin and end.
func TestBlank(t *testing.T) {
	b := &blanking{ranges: []addresses{{10, 20}, {30, 40}}}
	for _, c := range []struct {
		name string
		in   []binary.Data
		want []binary.Data
	}{
		{"before", []binary.Data{at(0, "0123456789")}, []binary.Data{at(0, "0123456789")}},
		{"behind", []binary.Data{at(40, "x")}, []binary.Data{at(40, "x")}},
		{"between", []binary.Data{at(20, "0123456789")}, []binary.Data{at(20, "0123456789")}},
		{"within", []binary.Data{at(12, "xyz")}, nil},
		{"all of a range", []binary.Data{at(10, "0123456789")}, nil},
		{"into it", []binary.Data{at(8, "0123")}, []binary.Data{at(8, "01")}},
		{"out of it", []binary.Data{at(18, "0123")}, []binary.Data{at(20, "23")}},
		{"over both", []binary.Data{at(9, strings.Repeat("0123456789", 4))}, []binary.Data{at(9, "0"), at(20, "1234567890"), at(40, "123456789")}},
		{"two segments", []binary.Data{at(0, "a"), at(39, "bc")}, []binary.Data{at(0, "a"), at(40, "c")}},
		{"empty", []binary.Data{at(5, "")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &surgeon{m: &binary.Module{Datas: c.in}}
			musttest.Do(t, s.blank(b))
			if diff := cmp.Diff(c.want, s.m.Datas); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Data that a function still names is not taken, unless what looks like an address
// is known to be none.
func TestBlankRefuses(t *testing.T) {
	code := func(b ...byte) *surgeon {
		return &surgeon{
			m:     &binary.Module{Funcs: []uint32{0}, Codes: []binary.Code{{Body: append(b, byte(binary.OpEnd))}}},
			names: map[uint32]string{0: "reader"}, cut: []bool{false},
		}
	}
	b := &blanking{ranges: []addresses{{10, 20}}}
	for name, s := range map[string]*surgeon{
		"a constant": code(0x41, 10, 0x1a),
		"an offset":  code(0x41, 0, 0x28, 2, 19, 0x1a), // i32.load offset=19
	} {
		if err := s.blank(b); err == nil || !strings.Contains(err.Error(), "reader") {
			t.Errorf("%s: %v", name, err)
		}
		s.cut[0] = true
		if err := s.blank(b); err != nil {
			t.Errorf("%s, of a function that goes: %v", name, err)
		}
	}
	if err := code(0x41, 20, 0x1a, 0x41, 9, 0x1a).blank(b); err != nil {
		t.Errorf("beside the range: %v", err)
	}
	if err := code(0x41, 10, 0x1a).blank(&blanking{ranges: b.ranges, masks: []uint32{10}}); err != nil {
		t.Errorf("a mask: %v", err)
	}
	passive := &surgeon{m: &binary.Module{Datas: []binary.Data{{Mode: binary.Passive, Init: []byte("x")}}}}
	if err := passive.blank(b); err == nil {
		t.Error("a passive segment was taken")
	}
}

// A module in which nothing throws any more asks for no exceptions.
func TestTagsGo(t *testing.T) {
	m, err := binary.Decode(sample(t), nil)
	musttest.Do(t, err)
	m.Customs = []binary.Custom{{Name: "name", Data: nameSection(sampleNames)}}
	m.Tags = []uint32{1}
	m.Types = append(m.Types, binary.FuncType{Results: []binary.ValType{binary.ExnRef}})
	in := m.Encode()
	out, err := derive(in, &sampleCut)
	musttest.Do(t, err)
	if m, err = binary.Decode(out, nil); err != nil || len(m.Tags) != 0 {
		t.Errorf("%d tags, %v", len(m.Tags), err)
	}
	for _, typ := range m.Types {
		if slices.Contains(typ.Results, binary.ExnRef) {
			t.Error("a type with an exception is left")
		}
	}
	if got, _ := exitOf(t, out, ""); got != 3 {
		t.Errorf("run gives %d", got)
	}
	// As long as something throws the tag stays.
	m, err = binary.Decode(in, nil)
	musttest.Do(t, err)
	m.Customs = []binary.Custom{{Name: "name", Data: nameSection(sampleNames)}}
	m.Codes[keptCtor-2].Body = []byte{byte(binary.OpI32Const), 0, byte(binary.OpThrow), 0, byte(binary.OpEnd)}
	if out, err = derive(m.Encode(), &sampleCut); err != nil {
		t.Fatal(err)
	}
	if m, err = binary.Decode(out, nil); err != nil || len(m.Tags) != 1 {
		t.Errorf("%d tags, %v", len(m.Tags), err)
	}
}
