package hostile

import (
	"encoding/binary"
	"fmt"
	"strings"

	asm "openskill/wasm/wasmtest"
)

// guest is a module in the making that counts what it achieved and answers with the
// counts, as {"name": 0 to 9, …}.
type guest struct {
	*asm.Builder
	fn    map[string]uint32 // imported functions of preview1
	next  int64             // free memory
	tally []string          // names of the counts, which are the first globals
}

// newGuest has the first KiB of its memory for results of host functions.
func newGuest(pages uint32, imports ...string) *guest {
	g := &guest{Builder: asm.New(), fn: map[string]uint32{}, next: 1024}
	for _, name := range append([]string{"fd_write"}, imports...) {
		if _, twice := g.fn[name]; !twice {
			g.fn[name] = g.Import(name)
		}
	}
	g.Memory(pages)
	return g
}

// text puts bytes into the memory and gives their address.
func (g *guest) text(s string) int64 {
	at := g.next
	g.Data(at, s)
	g.next += (int64(len(s)) + 8) &^ 7
	return at
}

// numbers puts words of 32 bits into the memory.
func (g *guest) numbers(n ...int64) int64 {
	var b []byte
	for _, x := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return g.text(string(b))
}

func (g *guest) call(name string, args ...asm.Code) asm.Code {
	return asm.Code(joined(args)) + asm.Call(g.fn[name])
}

func joined(codes []asm.Code) string {
	var b strings.Builder
	for _, c := range codes {
		b.WriteString(string(c))
	}
	return b.String()
}

// write prints bytes of the memory.
func (g *guest) write(at int64, size int) asm.Code {
	list := g.numbers(at, int64(size))
	return g.call("fd_write", asm.I32(1), asm.I32(list), asm.I32(1), asm.I32(0)) + asm.Drop
}

func (g *guest) print(s string) asm.Code { return g.write(g.text(s), len(s)) }

// count is the code that adds one to a count.
func (g *guest) count(name string) asm.Code {
	i := g.counter(name)
	return asm.GlobalGet(i) + asm.I32(1) + asm.Add + asm.GlobalSet(i)
}

func (g *guest) counter(name string) uint32 {
	for i, t := range g.tally {
		if t == name {
			return uint32(i)
		}
	}
	g.tally = append(g.tally, name)
	return g.Global(0)
}

// ifOK runs code when a call before it gave the error number 0.
func ifOK(code ...asm.Code) asm.Code { return asm.Eqz + asm.If(code...) }

// answer prints the counts.
func (g *guest) answer() asm.Code {
	var text strings.Builder
	var digits []int
	for i, name := range g.tally {
		fmt.Fprintf(&text, "%c%q:0", ",{"[b2i(i == 0)], name)
		digits = append(digits, text.Len()-1)
	}
	text.WriteByte('}')
	at := g.text(text.String())
	var c asm.Code
	for i, d := range digits {
		n := uint32(i)
		c += asm.I32(9) + asm.GlobalGet(n) + asm.LtU + asm.If(asm.I32(9)+asm.GlobalSet(n)) +
			asm.I32(at+int64(d)) + asm.GlobalGet(n) + asm.I32('0') + asm.Add + asm.Store8
	}
	return c + g.write(at, text.Len())
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// root is the descriptor of the folder that guests see as /.
const root = 3

// opened is where path_open leaves the new descriptor.
const opened = 8

// Rights and flags of path_open.
const (
	rightRead = 1 << 1
	allRights = 1<<29 - 1
	oCreat    = 1
	oDir      = 2
	oExcl     = 4
	oTrunc    = 8
	fdAppend  = 1
)

// open is path_open below a descriptor; the error number stays on the stack.
func (g *guest) open(fd asm.Code, path string, oflags, rights, fdflags int64) asm.Code {
	return g.call("path_open", fd, asm.I32(1), asm.I32(g.text(path)), asm.I32(int64(len(path))),
		asm.I32(oflags), asm.I64(rights), asm.I64(0), asm.I32(fdflags), asm.I32(opened))
}

// shut closes what open left.
func (g *guest) shut() asm.Code {
	return g.call("fd_close", asm.I32(opened)+asm.Load) + asm.Drop
}

// first reads into the memory and leaves the first byte that was read on the stack, 0
// if there is none.
func (g *guest) first() asm.Code {
	list := g.numbers(16, 64)
	return asm.I32(16) + asm.I32(0) + asm.Store8 +
		g.call("fd_read", asm.I32(opened)+asm.Load, asm.I32(list), asm.I32(1), asm.I32(12)) + asm.Drop +
		asm.I32(16) + asm.Load8
}
