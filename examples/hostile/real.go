package hostile

import (
	"strings"
	"time"

	"openskill/sdk/skill"
	asm "openskill/wasm/wasmtest"
)

// realSkills are what must not be refused: as large as programs of compilers are.
func realSkills() []Case {
	return []Case{
		ofModule(Case{
			Name: "R01 14 MB of module in 100,000 data segments", Promise: Real, Limit: "the caps leave room",
			Limits: skill.Limits{Timeout: 15 * time.Second}, Ends: []skill.Code{""}, Data: `{"right": 1}`,
		}, segments),
		ofModule(Case{
			Name: "R02 10,000 functions that call each other", Promise: Real, Limit: "the caps leave room",
			Limits: skill.Limits{Timeout: 15 * time.Second}, Ends: []skill.Code{""}, Data: `{"right": 1}`,
		}, functions),
		ofScript(Case{
			Name: "R03 a script in Python", Promise: Real, Limit: "the caps leave room", Needs: skill.WasmPython,
			Limits: skill.Limits{Timeout: 15 * time.Second}, Ends: []skill.Code{""}, Data: `{"sum": 499500}`,
		}, "python", "main.py", "import json, re, sys\njson.load(sys.stdin)\nprint(json.dumps({'sum': sum(range(1000))}))\n"),
		ofScript(Case{
			Name: "R04 a script in JavaScript", Promise: Real, Limit: "the caps leave room", Needs: skill.WasmJavaScript,
			Limits: skill.Limits{Timeout: 15 * time.Second}, Ends: []skill.Code{""}, Data: `{"sum": 499500}`,
		}, "javascript", "main.mjs", "import * as std from 'std'\nJSON.parse(std.in.readAsString())\nlet sum = 0\nfor (let i = 0; i < 1000; i++) sum += i\nconsole.log(JSON.stringify({sum}))\n"),
	}
}

// ofScript is a case whose upload is an archive of a script.
func ofScript(c Case, runtime, entry, text string) Case {
	c.Upload = func() *Upload {
		return &Upload{ID: c.ID(), Archive: Zip(map[string]string{"skill.yaml": string(c.manifest(runtime, entry)), entry: text})}
	}
	return c
}

// segments is as large as a web server in Go, in as many pieces.
func segments() []byte {
	const many, each = 100_000, 135
	g := newGuest(250)
	g.next = 1 << 20
	right := g.count("right")
	text := strings.Repeat("x", each-1)
	at := g.next
	for i := range int64(many) {
		g.Data(at+i*each, text+string(rune('a'+i%26)))
	}
	g.next = 512
	g.Command(asm.I32(at+(many-1)*each+each-1) + asm.Load8 + asm.I32('a'+(many-1)%26) + asm.Eq + asm.If(right) + g.answer())
	return g.Bytes()
}

// functions is as many as programs have, and all of them run.
func functions() []byte {
	const many = 10_000
	g := newGuest(1)
	right := g.count("right")
	sum := g.Global(0)
	work := asm.GlobalGet(sum) + asm.I32(1) + asm.Add + asm.GlobalSet(sum) + asm.Repeat(10, asm.GlobalGet(sum)+asm.I32(3)+asm.Mul+asm.I32(7)+asm.Add+asm.Drop)
	// Each calls the two above it in a tree, which all are in.
	first := g.Next()
	for i := range uint32(many) {
		var c asm.Code
		for _, child := range []uint32{2*i + 1, 2*i + 2} {
			if child < many {
				c += asm.Call(first + child)
			}
		}
		g.Void(work + c)
	}
	g.Command(asm.Call(first) + asm.GlobalGet(sum) + asm.I32(many) + asm.Eq + asm.If(right) + g.answer())
	return g.Bytes()
}
