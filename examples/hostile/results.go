package hostile

import (
	"strings"

	"openskill/sdk/skill"
	asm "openskill/wasm/wasmtest"
)

// prints is a module that answers with a text, whatever it is.
func prints(text string) func() []byte {
	return func() []byte {
		g := newGuest(uint32(len(text)>>16) + 2)
		g.Command(g.print(text))
		return g.Bytes()
	}
}

// results are cases E21 and E22: what a guest can learn of the host by asking, and
// answers that would hurt whoever reads them.
func results() []Case {
	environment := newGuest(1, "environ_sizes_get")
	environment.Command(environment.call("environ_sizes_get", asm.I32(0), asm.I32(4)) + asm.Drop +
		asm.I32(0) + asm.Load + asm.If(environment.count("variables")) + environment.answer())

	huge := newGuest(17)
	huge.next = 1 << 16
	megabyte := huge.write(1<<16, 1<<20)
	huge.Command(asm.Times(1024, 0, megabyte))

	all := []Case{
		ofModule(Case{
			Name: "E21 the environment", Promise: Contained, Limit: "no environment", Limits: deep,
			Ends: []skill.Code{""}, Data: `{"variables": 0}`,
		}, ready(environment.Bytes())),
		ofModule(Case{
			Name: "E22 a result of 1 GiB", Promise: Bounded, Limit: "the output limit", Limits: deep, Wears: true,
			Ends: []skill.Code{skill.OutputLimit},
		}, ready(huge.Bytes())),
	}
	for _, bad := range []struct{ name, text string }{
		{"of depth 100,000", `{"a": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"},
		{"of depth 100,000 that does not end", strings.Repeat(`{"a":`, 100_000)},
		{"with NaN", `{"a": NaN}`},
		{"with a number of a million digits", `{"a": ` + strings.Repeat("9", 1_000_000) + "}"},
		{"with an exponent of nine digits", `{"a": 1e999999999}`},
		{"with a key twice", `{"a": 1, "a": 2}`},
		{"that is not UTF-8", "{\"a\": \"\xff\xfe\"}"},
		{"with a control character", "{\"a\": \"\x1b[31m\"}"},
		{"of two values", `{"a": 1} {"a": 2}`},
		{"that is a list", `[1, 2]`},
		{"that is no JSON", "\x1b[2J\x1b]0;title\x07 hello"},
	} {
		all = append(all, ofModule(Case{
			Name: "E22 a result " + bad.name, Promise: Contained, Limit: "the reader of results", Limits: deep,
			Ends: []skill.Code{skill.InvalidOutput},
		}, prints(bad.text)))
	}
	for _, code := range []string{"TIMEOUT", "UNAUTHORIZED", "RATE_LIMITED", "WORKER_CRASHED"} {
		all = append(all, ofModule(Case{
			Name: "E22 a result that claims " + code, Promise: Contained, Limit: "the host's own record of how a run ended", Limits: deep,
			Ends: []skill.Code{skill.ToolInvocationError},
		}, prints(`{"success": false, "data": null, "error": {"code": "`+code+`", "message": "\u001b[31mred\u001b[0m\r\n\u202egnp.exe\u0000`+strings.Repeat("A", 5000)+`"}}`)))
	}
	return all
}
