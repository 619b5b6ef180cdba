package hostile

import (
	"fmt"
	"time"

	"openskill/sdk/skill"
	asm "openskill/wasm/wasmtest"
)

// isolation are the X cases.
func isolation() []Case {
	var all []Case
	for _, c := range asm.Hostile() {
		if c.Name[0] != 'X' {
			continue
		}
		s := Case{Name: c.Name, Promise: Contained, Limit: "imports come from one table; instances have no names", Limits: deep}
		if c.Refused != "" {
			s.Refused = []skill.Code{skill.Code(c.Refused)}
		} else {
			s.Ends = []skill.Code{ends[c.Want]}
		}
		all = append(all, ofModule(s, ready(c.Module)))
	}
	for _, reads := range []bool{false, true} {
		name := "X03 two tenants, 1,000 interleaved calls each"
		if reads {
			name += ", from an image"
		}
		all = append(all, ofModule(Case{
			Name: name, Promise: Contained, Limit: "every call begins in a fresh state",
			Limits: skill.Limits{Timeout: 10 * time.Second}, Ends: []skill.Code{""}, Data: `{"found": 0}`,
			Two: true, Calls: 1000, AtOnce: 4,
		}, ready(marks(reads))))
	}
	return append(all, ofModule(Case{
		Name: CrashName, Promise: Ends, Limit: "the process boundary",
		Limits: skill.Limits{Timeout: 10 * time.Second}, Ends: []skill.Code{skill.WorkerCrashed}, Calls: 1,
	}, func() []byte { return command(asm.Loop(asm.Br(0)))() }))
}

// CrashName is the case whose worker process is killed while it runs; without workers
// there is nothing to kill.
const CrashName = "X05 the worker is killed in mid-run"

// marks looks for what an earlier run of it left: in memory, its size, a global, the
// table, scratch files and descriptors. Then it leaves a mark in each. One that reads
// its input first is what an image is made of.
func marks(reads bool) []byte {
	g := newGuest(2, "path_open", "fd_close", "fd_read", "path_create_directory")
	found := g.count("found")
	state := g.Global(0)
	list := g.numbers(512, 256)
	dir := "work/mark"
	at := g.text(dir)
	const mark = 0x4000
	file := g.open(asm.I32(root), "work/file", oCreat|oExcl, allRights, 0)
	if reads {
		// As Python and Go do: all of the input.
		g.Table(2)
	} else {
		g.Table(1)
	}
	var input asm.Code
	if reads {
		input = asm.Loop(g.call("fd_read", asm.I32(0), asm.I32(list), asm.I32(1), asm.I32(0)) + asm.Drop + asm.I32(0) + asm.Load + asm.BrIf(0))
	}
	g.Command(input +
		asm.I32(mark) + asm.Load + asm.If(found) +
		asm.MemorySize + asm.I32(2) + asm.Ne + asm.If(found) +
		asm.GlobalGet(state) + asm.If(found) +
		asm.I32(0) + asm.TableGet(0) + asm.IsNull + asm.Eqz + asm.If(found) +
		// The first descriptor after the root is the one that a fresh world gives.
		file + asm.If(found) + asm.I32(opened) + asm.Load + asm.I32(root+1) + asm.Ne + asm.If(found) +
		g.call("path_create_directory", asm.I32(root), asm.I32(at), asm.I32(int64(len(dir)))) + asm.If(found) +
		asm.I32(mark) + asm.I32(1) + asm.Store +
		asm.I32(1) + asm.MemoryGrow + asm.Drop +
		asm.I32(1) + asm.GlobalSet(state) +
		asm.I32(0) + asm.RefFunc(g.Next()) + asm.TableSet(0) +
		g.answer())
	g.Custom("x", fmt.Appendf(nil, "%t", reads)) // so that the two are two modules
	return g.Bytes()
}
