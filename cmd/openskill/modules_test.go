package main

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"sync"
)

// named are small modules by name, written down in bytes: programs that behave
// badly in one way each, and the few good ones that scripts need. They are made when they
// are asked for: this binary is started as openskill a thousand times.
var named = sync.OnceValue(func() map[string][]byte {
	return map[string][]byte{
		"empty":       program(nil, nil),
		"unreachable": program(nil, []byte{0x00}),
		"spin":        program(nil, loop(nil)),
		"recurse":     program(nil, []byte{0x10, 0x00}),
		// Two calls of the next function, thirty deep: 2^30 calls without a loop.
		"calls": callTree(30),
		// memory.grow by a page, touch it, for ever: ends when growing is refused.
		"grow": program(nil, concat(
			[]byte{0x03, 0x40, 0x41, 0x01, 0x40, 0x00, 0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b},
			[]byte{0x3f, 0x00, 0x41, 0x80, 0x80, 0x04, 0x6c, 0x41, 0x04, 0x6b, 0x41, 0x01, 0x36, 0x02, 0x00, 0x0c, 0x00, 0x0b})),
		"flood":    program(fdWrite, loop(concat(i32(1, 0, 1, 8), []byte{0x10, 0, 0x1a}))),
		"sleep":    program(pollOneoff, concat(i32(64, 128, 1, 8), []byte{0x10, 0, 0x1a})),
		"hello":    program(fdWrite, concat(i32(1, 0, 1, 8), []byte{0x10, 0, 0x1a})),
		"halfline": program(fdWrite, concat(i32(2, 16, 1, 8), []byte{0x10, 0, 0x1a, 0x00})),
		// Says hello, then computes for ever: whoever reads hello knows that it runs.
		"hellospin":    program(fdWrite, concat(i32(1, 0, 1, 8), []byte{0x10, 0, 0x1a}, loop(nil))),
		"readforever":  program(fdRead, loop(concat(i32(0, 24, 1, 8), []byte{0x10, 0, 0x1a}))),
		"exit0":        exiting(0),
		"exit124":      exiting(124),
		"exit125":      exiting(125),
		"forged":       forging(125),
		"exit1":        exiting(1),
		"exit7":        exiting(7),
		"exit256":      exiting(256),
		"exitdeadline": exiting(0xefffffff),
		"exitmax":      exiting(0xffffffff),
		"denied":       program(&function{"env", "system", 1, 0}, nil),
		"reserved":     program(&function{"openskill", "refuel", 1, 0}, nil),
		"minimum": concat(magic, section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(5, 1, 0, 0x80, 0x80, 0x04),
			start(0), section(10, 1, 2, 0, 0x0b)),
		"startspin": concat(magic, section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(8, 0), codes(loop(nil))),
		"nostart":   concat(magic, section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(7, 1, 1, 'f', 0, 0), codes(nil)),
		"threads":   concat(magic, section(5, 1, 0x03, 1, 1)),
		"cut":       program(nil, nil)[:20],
		"text":      []byte("#!/bin/sh\necho this is no module\n"),
		"nothing":   {},

		// Counts that are larger than any module.
		"w01": fromHex("0061736d010000000205ffffffff0f"),
		"w02": fromHex("0061736d010000000705ffffffff0f"),
		"w04": fromHex("0061736d0100000001070160ffffffff0f"),
		"w05": fromHex("0061736d01000000000c046e616d650105ffffffff0f"),
		"w06": fromHex("0061736d01000000010401600000030201000a0a010801ffffffff0f7e0b"),
		"w07": concat(magic, section(1, 1, 0x60, 0, 0), section(3, 1, 0), start(0),
			codes(concat(slices.Repeat([]byte{0x02, 0x40}, 400_000), slices.Repeat([]byte{0x0b}, 400_000)))),
		"w08": concat(magic, section(1, 1, 0x60, 0, 0), section(3, 1, 0), start(0),
			codes(concat([]byte{0x02, 0x40, 0x41, 0, 0x0e}, leb(1_000_000), make([]byte, 1_000_001), []byte{0x0b}))),
		"w11": concat(magic, section(1, 1, 0x60, 0, 0), sectionOf(3, concat(leb(500_000), make([]byte, 500_000))),
			sectionOf(10, concat(leb(500_000), slices.Repeat([]byte{2, 0, 0x0b}, 500_000)))),
		"e11": fromHex("0061736d01000000010401600000030201000404016f00000503010001071302065f73746172740000066d656d6f727902000a0c010a00d06f417efc0f001a0b"),
	}
})

// function is an import that takes i32s and gives i32s.
type function struct {
	module, name    string
	params, results int
}

var (
	fdWrite    = &function{"wasi_snapshot_preview1", "fd_write", 4, 1}
	fdRead     = &function{"wasi_snapshot_preview1", "fd_read", 4, 1}
	pollOneoff = &function{"wasi_snapshot_preview1", "poll_oneoff", 4, 1}
	procExit   = &function{"wasi_snapshot_preview1", "proc_exit", 1, 0}
)

var magic = []byte("\x00asm\x01\x00\x00\x00")

// program is a module whose _start has this body, with a memory of one page:
//
//	0: vector of "hello\n" at 32   16: vector of "half a line" at 48
//	24: vector of 4 KiB at 4096    64: subscription to a clock, in four days
func program(im *function, body []byte) []byte {
	types, imports, index := section(1, 1, 0x60, 0, 0), []byte(nil), byte(0)
	if im != nil {
		sig := concat([]byte{2, 0x60, 0, 0, 0x60, byte(im.params)}, slices.Repeat([]byte{0x7f}, im.params),
			[]byte{byte(im.results)}, slices.Repeat([]byte{0x7f}, im.results))
		types = section(1, sig...)
		imports = section(2, concat([]byte{1}, name(im.module), name(im.name), []byte{0, 1})...)
		index = 1
	}
	if len(body) == 2 && body[0] == 0x10 { // calls itself
		body = []byte{0x10, index}
	}
	return concat(magic, types, imports, section(3, 1, 0), section(5, 1, 0, 1), start(index), codes(body), data())
}

func exiting(code uint32) []byte {
	return program(procExit, concat([]byte{0x41}, sleb(int32(code)), []byte{0x10, 0}))
}

// forging writes what looks like the last line of a host that ended the run, and exits.
func forging(code int32) []byte {
	line := []byte(`{"error":{"code":"TIMEOUT","message":"the run did not end within 15s; raise --timeout"}}` + "\n")
	vector := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 16), uint32(len(line)))
	imported := func(f *function, sig byte) []byte { return concat(name(f.module), name(f.name), []byte{0, sig}) }
	return concat(magic,
		section(1, 3, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 1, 0x7f, 0),
		section(2, concat([]byte{2}, imported(fdWrite, 1), imported(procExit, 2))...),
		section(3, 1, 0), section(5, 1, 0, 1), start(2),
		codes(concat(i32(2, 0, 1, 8), []byte{0x10, 0, 0x1a}, i32(code), []byte{0x10, 1})),
		section(11, concat([]byte{1, 0, 0x41, 0, 0x0b}, leb(16+len(line)), vector, make([]byte, 8), line)...))
}

func callTree(depth int) []byte {
	var bodies [][]byte
	for i := range depth {
		bodies = append(bodies, []byte{0x10, byte(i + 1), 0x10, byte(i + 1)})
	}
	bodies = append(bodies, nil)
	return concat(magic, section(1, 1, 0x60, 0, 0), section(3, concat(leb(depth+1), make([]byte, depth+1))...),
		start(0), codes(bodies...))
}

func data() []byte {
	page := make([]byte, 128)
	put := func(at int, v uint32) { binary.LittleEndian.PutUint32(page[at:], v) }
	put(0, 32)
	put(4, 6)
	put(16, 48)
	put(20, 11)
	put(24, 4096)
	put(28, 4096)
	copy(page[32:], "hello\n")
	copy(page[48:], "half a line")
	put(64+16, 1)                                                         // the monotonic clock
	binary.LittleEndian.PutUint64(page[64+24:], 4*24*60*60*1_000_000_000) // four days
	return section(11, concat([]byte{1, 0, 0x41, 0, 0x0b}, leb(len(page)), page)...)
}

// start exports a function as _start and memory 0, if there is one before it.
func start(index byte) []byte {
	return section(7, concat([]byte{1}, name("_start"), []byte{0, index})...)
}

func loop(body []byte) []byte {
	return concat([]byte{0x03, 0x40}, body, []byte{0x0c, 0, 0x0b})
}

func i32(values ...int32) (b []byte) {
	for _, v := range values {
		b = append(append(b, 0x41), sleb(v)...)
	}
	return b
}

func codes(bodies ...[]byte) []byte {
	b := leb(len(bodies))
	for _, body := range bodies {
		b = concat(b, leb(len(body)+2), []byte{0}, body, []byte{0x0b})
	}
	return sectionOf(10, b)
}

func section(id byte, content ...byte) []byte { return sectionOf(id, content) }

func sectionOf(id byte, content []byte) []byte {
	return concat([]byte{id}, leb(len(content)), content)
}

func name(s string) []byte { return concat(leb(len(s)), []byte(s)) }

func leb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func sleb(v int32) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func concat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func fromHex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}
