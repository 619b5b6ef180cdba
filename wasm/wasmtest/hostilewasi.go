package wasmtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"openskill/wasm"
	wbin "openskill/wasm/binary"
	"openskill/wasm/check"
)

// Error numbers of preview1 that guests exit with here.
const (
	errBadf  = 8
	errFault = 21
	errInval = 28
)

// le puts numbers one behind the other, as memory shows them.
func le(numbers ...any) string {
	var b []byte
	for _, n := range numbers {
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, n); err != nil {
			panic(err)
		}
	}
	return string(b)
}

// blocked is an input on which nothing ever comes.
func blocked() (io.Reader, func()) {
	r, w := io.Pipe()
	return r, func() { w.Close() }
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func streams() []Case {
	sleep := New()
	poll := sleep.Import("poll_oneoff")
	sleep.Memory(1)
	fourDays := uint64(4 * 24 * time.Hour)
	sleep.Data(0, le(uint64(1), uint64(0), uint64(1), fourDays, uint64(0), uint64(0)))
	sleep.Command(I32(0) + I32(256) + I32(1) + I32(512) + Call(poll) + Drop)

	read := New()
	fdRead := read.Import("fd_read")
	read.Memory(2)
	read.Data(0, le(uint32(1024), uint32(65536)))
	read.Command(Loop(I32(0) + I32(0) + I32(1) + I32(512) + Call(fdRead) + Drop + Br(0)))

	printer := func(fd, vectors int64, size uint32) []byte {
		b := New()
		write := b.Import("fd_write")
		exit := b.Import("proc_exit")
		b.Memory(32)
		var list strings.Builder
		for range vectors {
			list.WriteString(le(uint32(1<<20), size))
		}
		b.Data(0, list.String())
		b.Data(1<<20, "never-ending words\n")
		b.Command(Loop(I32(fd) + I32(0) + I32(vectors) + I32(1<<20-4) + Call(write) + Tee(0) + If(Get(0)+Call(exit)) + Br(0)))
		return b.Bytes()
	}

	return []Case{
		{Name: "E12 sleep four days", Module: sleep.Bytes(), Want: wasm.OutOfTime, Limits: clock},
		{Name: "E13 input that never comes", Module: read.Bytes(), Want: wasm.OutOfTime, Limits: clock, Stdin: blocked},
		{
			Name: "E13 input that never ends", Module: read.Bytes(), Want: wasm.OutOfFuel, Limits: fuel,
			Stdin: func() (io.Reader, func()) { return zeros{}, func() {} },
		},
		{
			Name: "E13 input that never ends until the deadline", Module: read.Bytes(), Want: wasm.OutOfTime, Limits: clock,
			Stdin: func() (io.Reader, func()) { return zeros{}, func() {} },
		},
		{Name: "E14 print forever", Module: printer(1, 1, 19), Want: wasm.OutputOverflow, Limits: deep},
		{Name: "E14 print forever on standard error", Module: printer(2, 1, 19), Want: wasm.OutputOverflow, Limits: deep},
		{Name: "E14 print nothing forever", Module: printer(1, 1, 0), Want: wasm.OutOfFuel, Limits: fuel},
		{Name: "E15 one fd_write with 32,768 vectors", Module: printer(1, 32_768, 1<<20), Want: wasm.Exited, ExitCode: errInval, Limits: deep},
		{Name: "E15 one fd_write with 1,024 vectors of 1 MiB", Module: printer(1, 1024, 1<<20), Want: wasm.OutputOverflow, Limits: deep},
	}
}

func calls() []Case {
	var all []Case
	add := func(c Case) { all = append(all, c) }

	for _, code := range []uint32{0, 1, 0xefffffff, 0xffffffff} {
		b := New()
		exit := b.Import("proc_exit")
		b.Command(I32(int64(int32(code))) + Call(exit))
		add(Case{Name: fmt.Sprintf("E16 proc_exit %#x", code), Module: b.Bytes(), Want: wasm.Exited, ExitCode: code})
	}

	none := New()
	write := none.Import("fd_write")
	exit := none.Import("proc_exit")
	none.Command(I32(1) + I32(0) + I32(1) + I32(8) + Call(write) + Call(exit))
	add(Case{Name: "E17 a call without memory", Module: none.Bytes(), Want: wasm.Exited, ExitCode: errFault})

	for _, at := range []struct {
		pages    uint32
		ptr, len uint32
	}{
		{1, 65536, 1},
		{1, 65535, 2},
		{1, 0xffffffff, 1},
		{1, 0xffffffff, 0xffffffff},
		{1, 0, 65537},
		{0, 0, 1},
		{32768, 0x7fffffff, 2},
		{32768, 0xffffffff, 0xffffffff},
		{32768, 1, 0xffffffff},
	} {
		b := New()
		random := b.Import("random_get")
		exit := b.Import("proc_exit")
		b.Memory(at.pages)
		b.Command(I32(int64(int32(at.ptr))) + I32(int64(int32(at.len))) + Call(random) + Call(exit))
		add(Case{
			Name:   fmt.Sprintf("E17 %d bytes at %#x of %d pages", at.len, at.ptr, at.pages),
			Module: b.Bytes(), Want: wasm.Exited, ExitCode: errFault, Limits: wasm.Limits{Memory: 1 << 31},
		})
	}

	shuffle := New()
	closeFD := shuffle.Import("fd_close")
	renumber := shuffle.Import("fd_renumber")
	write = shuffle.Import("fd_write")
	exit = shuffle.Import("proc_exit")
	shuffle.Memory(1)
	shuffle.Data(0, le(uint32(8), uint32(4))+"lost")
	shuffle.Command(
		Times(300, 0, Times(20, 1, Get(0)+Get(1)+Call(renumber)+Drop+Get(1)+Get(0)+Call(renumber)+Drop)) +
			Times(300, 0, Get(0)+Call(closeFD)+Drop) + I32(0) + Call(closeFD) + Drop +
			I32(1) + I32(0) + I32(1) + I32(16) + Call(write) + Call(exit))
	add(Case{Name: "E18 close and renumber every descriptor", Module: shuffle.Bytes(), Want: wasm.Exited, ExitCode: errBadf})

	for _, n := range []int{4 << 20, 4095} {
		names := New()
		ansi := strings.Repeat("\x1b[31mroot\x07\r\n", n/12)
		names.Command(Unreachable)
		function := string(wbin.AppendName([]byte{1, 0}, ansi))
		names.Custom("name", append(wbin.AppendName([]byte{0}, ansi), wbin.AppendName([]byte{1}, function)...))
		names.Export(strings.Repeat("\x1b[31mroot\x07\r\n", 341), 0)
		add(Case{Name: fmt.Sprintf("E19 names of %d bytes with control characters", n), Module: names.Bytes(), Want: wasm.Trapped, Trap: "unreachable"})
	}

	chance := New()
	random := chance.Import("random_get")
	exit = chance.Import("proc_exit")
	chance.Memory(4096)
	chance.Command(I32(0) + I32(256<<20) + Call(random) + Call(exit))
	add(Case{Name: "E20 256 MiB of randomness", Module: chance.Bytes(), Want: wasm.Exited, Limits: deep})

	add(Case{Name: "E21 arguments and environment", Module: dump(), Want: wasm.Returned, Stdout: le(uint32(0), uint32(0), uint32(0), uint32(0))})
	return all
}

// dump prints the number and size of arguments, and then of the environment, as
// four numbers, and whatever strings there are.
func dump() []byte {
	b := New()
	argSizes := b.Import("args_sizes_get")
	envSizes := b.Import("environ_sizes_get")
	args := b.Import("args_get")
	env := b.Import("environ_get")
	write := b.Import("fd_write")
	b.Memory(4)
	b.Data(0, le(uint32(64), uint32(16), uint32(1<<17), uint32(0), uint32(3<<16), uint32(0)))
	b.Command(
		I32(64) + I32(68) + Call(argSizes) + Drop + I32(72) + I32(76) + Call(envSizes) + Drop +
			I32(1<<16) + I32(1<<17) + Call(args) + Drop + I32(1<<16) + I32(3<<16) + Call(env) + Drop +
			I32(12) + I32(68) + Load + Store + I32(20) + I32(76) + Load + Store +
			I32(1) + I32(0) + I32(3) + I32(32) + Call(write) + Drop)
	return b.Bytes()
}

func isolation() []Case {
	takes := func(build func(b *Builder)) []byte {
		b := New()
		build(b)
		b.Command("")
		return b.Bytes()
	}
	return []Case{
		{Name: "X02 import another's memory", Module: takes(func(b *Builder) { b.ImportMemory("tenantA", "memory") }), Refused: check.ImportDenied},
		{Name: "X02 import the memory of env", Module: takes(func(b *Builder) { b.ImportMemory("env", "memory") }), Refused: check.ImportDenied},
		{Name: "X02 import a function of env", Module: takes(func(b *Builder) { b.ImportFunc("env", "f", nil, nil) }), Refused: check.ImportDenied},
		{
			Name: "X02 import the host's fuel", Module: takes(func(b *Builder) {
				b.ImportFunc("openskill", "refuel", []wbin.ValType{TypeI64, TypeI64}, []wbin.ValType{TypeI64})
			}), Refused: check.ImportDenied,
		},
		{
			Name: "X02 export the host's names", Module: takes(func(b *Builder) { b.Export("openskill:fuel", 0) }),
			Refused: check.InvalidModule,
		},
		{
			Name: "X02 take the name env", Module: takes(func(b *Builder) {
				b.Memory(1)
				b.Custom("name", wbin.AppendName([]byte{0}, string(wbin.AppendName(nil, "env"))))
			}), Want: wasm.Returned,
		},
		{
			Name: "X02 take the name of the host's module", Module: takes(func(b *Builder) {
				b.Custom("name", wbin.AppendName([]byte{0}, string(wbin.AppendName(nil, "wasi_snapshot_preview1"))))
			}), Want: wasm.Returned,
		},
	}
}
