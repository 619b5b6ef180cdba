package amend_test

import (
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/amend"
	wbin "openskill/wasm/binary"
	"openskill/wasm/check"
	w "openskill/wasm/wasmtest"
)

// TestPrices holds that what the checker counts for an instruction covers what it becomes: the
// bounds on compiling go by what it counts, and it sees a module before it is amended.
func TestPrices(t *testing.T) {
	const many = 1000
	consts := map[byte]w.Code{'i': "\x41\x01", 'l': "\x42\x01", 'f': "\x43\x00\x00\x80\x3f", 'd': "\x44\x00\x00\x00\x00\x00\x00\xf0\x3f", 'v': "\xfd\x0c\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"}
	cost := func(m *wbin.Module) (ms, mib uint64) {
		t.Helper()
		report := musttest.Get(check.Module(m.Encode(), &check.Options{CompileFunction: 1 << 60, CompileModule: 1 << 60, CompileMemory: 1 << 60, Branches: 1 << 40, Limits: &wbin.Limits{BodySize: 8 << 20}}))(t)
		for _, c := range report.Report.Counts {
			switch c.Property {
			case "estimated milliseconds to compile":
				ms = c.Value
			case "estimated MiB to compile":
				mib = c.Value
			}
		}
		return ms, mib
	}
	type form struct {
		name, sig string
		code      w.Code
	}
	list := []form{{"select", "ffi:f", "\x1b"}, {"select", "ddi:d", "\x1b"}, {"select", "vvi:v", "\x1b"}}
	for op := range wbin.Op(0x300) {
		code := w.Code([]byte{byte(op)}) // below 256 here
		if op >= 0x100 {
			code = w.Code(wbin.AppendU32([]byte{0xfc + byte(op>>9)}, uint32(op&0xff)))
		}
		switch op.Imm() {
		case wbin.ImmNone:
		case wbin.ImmLane:
			code += "\x00"
		case wbin.ImmShuffle:
			code += "\x00\x11\x02\x13\x04\x15\x06\x17\x08\x19\x0a\x1b\x0c\x1d\x0e\x1f"
		case wbin.ImmMem:
			code += "\x00\x00"
		default:
			continue
		}
		if sig := op.Signature(); sig != "" && sig[len(sig)-1] != ':' {
			list = append(list, form{op.String(), sig, code})
		}
	}
	for _, f := range list {
		operands, _, _ := strings.Cut(f.sig, ":")
		one := w.Code("")
		for i := range operands {
			one += consts[operands[i]]
		}
		b := w.New()
		b.Memory(1)
		b.Export("f", b.Func(nil, nil, nil, w.Code(strings.Repeat(string(one+f.code+"\x1a"), many))))
		m := musttest.Get(wbin.Decode(b.Bytes(), nil))(t)
		counted, kept := cost(m)
		for _, arch := range []string{"amd64", "arm64"} {
			out := musttest.Get(amend.Module(m, arch))(t)
			takes, keeps := cost(out)
			if takes > counted+counted/10+1 || keeps > kept+kept/10+1 {
				t.Errorf("%s for %s: %d µs and %d KiB are counted, and it becomes what counts %d and %d", f.name, arch, counted, kept, takes, keeps)
			}
		}
	}
}
