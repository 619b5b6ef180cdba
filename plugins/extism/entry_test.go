package extism

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	asm "openskill/wasm/wasmtest"
)

// plug is a plug-in in the making. Its functions have a local of 64 bits, and answer
// with it.
type plug struct {
	*asm.Builder
	alloc, store, set, fail, log, length, config, get, put uint32
}

func newPlug() *plug {
	p := &plug{Builder: asm.New()}
	for _, f := range []struct {
		to   *uint32
		name string
	}{
		{&p.alloc, "alloc"},
		{&p.store, "store_u64"},
		{&p.set, "output_set"},
		{&p.fail, "error_set"},
		{&p.log, "log_warn"},
		{&p.length, "input_length"},
		{&p.config, "config_get"},
		{&p.get, "var_get"},
		{&p.put, "var_set"},
	} {
		*f.to = p.ImportPlugin(f.name)
	}
	p.Memory(1)
	return p
}

var locals = []binary.LocalGroup{{Count: 1, Type: asm.TypeI64}}

// text leaves the offset of a block with up to eight letters in the local.
func (p *plug) text(s string) asm.Code {
	v := int64(0)
	for i := range 8 {
		c := byte(' ')
		if i < len(s) {
			c = s[i]
		}
		v |= int64(c) << (8 * i)
	}
	return asm.I64(8) + asm.Call(p.alloc) + asm.Set(0) + asm.Get(0) + asm.I64(v) + asm.Call(p.store)
}

func (p *plug) says(s string) asm.Code {
	return p.text(s) + asm.Get(0) + asm.I64(8) + asm.Call(p.set)
}

func (p *plug) function(name string, results []binary.ValType, body asm.Code) *plug {
	p.Export(name, p.Func(nil, results, locals, body))
	return p
}

var i32 = []binary.ValType{asm.TypeI32}

// What the entry names is called, after what begins the module.
func TestEntries(t *testing.T) {
	t.Parallel()
	r := New(engine(t), nil)
	t.Cleanup(func() { r.Close() })
	// A global tells what was called before: one digit each.
	var haskell []binary.ValType // of hs_init
	counted := func(exports ...string) []byte {
		p := newPlug()
		calls := p.Global(0)
		mark := func(n int64) asm.Code {
			return asm.GlobalGet(calls) + asm.I32(10) + asm.Mul + asm.I32(n) + asm.Add + asm.GlobalSet(calls)
		}
		for i, name := range exports {
			p.function(name, nil, mark(int64(i+1)))
		}
		p.Start(p.Void(mark(9)))
		if haskell != nil { // its result is dropped, and it is called without a command line
			p.Export("hs_init", p.Func([]binary.ValType{asm.TypeI32, asm.TypeI32}, haskell, nil,
				asm.GlobalGet(calls)+asm.I32(10)+asm.Mul+asm.I32(8)+asm.Add+asm.Get(0)+asm.Add+asm.Get(1)+asm.Add+asm.GlobalSet(calls)+asm.Code(strings.Repeat(string(asm.I32(5)), len(haskell)))))
		}
		// The answer has the digits as a number of the base 2^32 of the text.
		p.function("invoke", nil, p.text("")+
			asm.Get(0)+asm.GlobalGet(calls)+asm.Extend+asm.Call(p.store)+asm.Get(0)+asm.I64(8)+asm.Call(p.set))
		return p.Bytes()
	}
	withHaskell := func(results []binary.ValType, exports ...string) []byte {
		haskell = results
		defer func() { haskell = nil }()
		return counted(exports...)
	}
	number := func(n uint32) string {
		return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), 0, 0, 0, 0})
	}
	for _, tc := range []struct {
		name, entry string
		module      []byte
		code        skill.Code
		exit        uint32
		stdout      string
		message     string
	}{
		{"invoke is the default", "m.wasm", newPlug().function("invoke", nil, newPlug().says("default")).Bytes(), "", 0, "default ", ""},
		{"a named function", "m.wasm#other", newPlug().function("invoke", nil, newPlug().says("default")).function("other", nil, newPlug().says("other")).Bytes(), "", 0, "other   ", ""},
		{"one called run", "m.wasm#run", newPlug().function("run", nil, newPlug().says("run")).Bytes(), "", 0, "run     ", ""},
		{"run is not called unless it is named", "m.wasm", newPlug().function("run", nil, "\x00").function("invoke", nil, newPlug().says("ok")).Bytes(), "", 0, "ok      ", ""},
		{"and neither is _start", "m.wasm", newPlug().function("_start", nil, "\x00").function("invoke", nil, newPlug().says("ok")).Bytes(), "", 0, "ok      ", ""},
		{"a status of zero", "m.wasm", newPlug().function("invoke", i32, newPlug().says("ok")+asm.I32(0)).Bytes(), "", 0, "ok      ", ""},
		{"another status", "m.wasm", newPlug().function("invoke", i32, newPlug().says("bad")+asm.I32(7)).Bytes(), "", 7, "bad     ", ""},
		{"a status with the sign set", "m.wasm", newPlug().function("invoke", i32, asm.I32(-1)).Bytes(), "", 1<<32 - 1, "", ""},
		{"no output", "m.wasm", newPlug().function("invoke", nil, "").Bytes(), "", 0, "", ""},
		{"a start function", "m.wasm", counted(), "", 0, number(9), ""},
		{"a reactor", "m.wasm", counted("_initialize"), "", 0, number(91), ""},
		{"constructors", "m.wasm", counted("__wasm_call_ctors"), "", 0, number(91), ""},
		{"a reactor does its constructors itself", "m.wasm", counted("__wasm_call_ctors", "_initialize"), "", 0, number(92), ""},
		{"Haskell's runtime", "m.wasm", withHaskell([]binary.ValType{}), "", 0, number(98), ""},
		{"Haskell's runtime after the reactor", "m.wasm", withHaskell([]binary.ValType{}, "_initialize"), "", 0, number(918), ""},
		{"Haskell's runtime with a result", "m.wasm", withHaskell(i32, "_initialize"), "", 0, number(918), ""},
		{"Haskell's runtime and no constructors", "m.wasm", withHaskell([]binary.ValType{}, "__wasm_call_ctors"), "", 0, number(98), ""},
		{"another hs_init", "m.wasm", counted("hs_init", "_initialize"), "", 0, number(92), ""},
		{"_start begins by itself", "m.wasm#_start", newPlug().function("_initialize", nil, "\x00").function("_start", nil, newPlug().says("start")).Bytes(), "", 0, "start   ", ""},
		{"_initialize is called once", "m.wasm#_initialize", newPlug().function("_initialize", nil, newPlug().says("init")).Bytes(), "", 0, "init    ", ""},
		{"a beginning that traps", "m.wasm", newPlug().function("_initialize", nil, "\x00").function("invoke", nil, "").Bytes(), skill.Trap, 0, "", ""},
		{"no such function", "m.wasm#nothing", newPlug().function("invoke", nil, "").Bytes(), skill.InvalidModule, 0, "", "exports no function nothing"},
		{"no invoke", "m.wasm", newPlug().function("main", nil, "").Bytes(), skill.InvalidModule, 0, "", "exports no function invoke"},
		{"a memory is no function", "m.wasm#memory", newPlug().function("invoke", nil, "").Bytes(), skill.InvalidModule, 0, "", "exports no function memory"},
		{"a function that returns 64 bits", "m.wasm", newPlug().function("invoke", []binary.ValType{asm.TypeI64}, asm.I64(0)).Bytes(), skill.InvalidModule, 0, "", "has the wrong type"},
		{"a function of other hosts", "m.wasm", imports("extism:host/user", "hello"), skill.ImportDenied, 0, "", "hello"},
		{"a function that Extism has not", "m.wasm", imports("extism:host/env", "system"), skill.ImportDenied, 0, "", "system"},
		{"not a module", "m.wasm", []byte("#!/bin/sh"), skill.InvalidModule, 0, "", ""},
		{"a component", "m.wasm", []byte("\x00asm\x0d\x00\x01\x00"), skill.FeatureDisabled, 0, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			call := pluginOf(t, tc.module, tc.entry)
			for range 2 { // the second is answered from what is known
				reply := musttest.Get(runnertest.Do(t.Context(), r, call))(t)
				if reply.Code != tc.code || reply.ExitCode != tc.exit || string(reply.Stdout) != tc.stdout || !strings.Contains(reply.Message, tc.message) {
					t.Errorf("%q, exit code %d, output %q: %s", reply.Code, reply.ExitCode, reply.Stdout, reply.Message)
				}
			}
		})
	}
}

func imports(module, name string) []byte {
	b := asm.New()
	b.ImportFunc(module, name, nil, nil)
	b.Export("invoke", b.Void(""))
	return b.Bytes()
}

// An error that a plug-in sets is what its caller reads.
func TestErrors(t *testing.T) {
	t.Parallel()
	r := New(engine(t), nil)
	t.Cleanup(func() { r.Close() })
	for text, want := range map[string]string{
		"broken":                                 `{"data":null,"error":{"code":"TOOL_INVOCATION_ERROR","message":"broken  "},"success":false}`,
		"a\xffb":                                 `{"data":null,"error":{"code":"TOOL_INVOCATION_ERROR","message":"a�b     "},"success":false}`,
		`{"code"}`:                               `{"data":null,"error":{"code":"TOOL_INVOCATION_ERROR","message":"{\"code\"}"},"success":false}`,
		`{"code":"X","message":"Y"}`:             `{"data":null,"error":{"code":"X","message":"Y"},"success":false}`,
		`{"code":"X","message":"Y","details":1}`: `{"data":null,"error":{"code":"X","message":"Y","details":1},"success":false}`,
	} {
		for _, status := range []int64{0, 3} {
			p := newPlug()
			var c asm.Code
			n := max((len(text)+7)/8, 1)
			c += asm.I64(int64(8*n)) + asm.Call(p.alloc) + asm.Set(0)
			for i := range n {
				v := int64(0)
				for j := range 8 {
					b := byte(' ')
					if 8*i+j < len(text) {
						b = text[8*i+j]
					}
					v |= int64(b) << (8 * j)
				}
				c += asm.Get(0) + asm.I64(int64(8*i)) + asm.Add64 + asm.I64(v) + asm.Call(p.store)
			}
			c += asm.Get(0) + asm.Call(p.fail) + asm.I32(status)
			reply, err := runnertest.Do(t.Context(), r, pluginOf(t, p.function("invoke", i32, c).Bytes(), "m.wasm"))
			if err != nil || reply.Code != "" || reply.ExitCode != uint32(max(status, 1)) {
				t.Fatalf("%q: %+v, %v", text, reply, err)
			}
			if diff := gocmp.Diff(want, string(reply.Stdout)); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		}
	}
}

// A run sees nothing of another: neither variables, nor blocks, nor the module's own
// memory, though all begin in one image.
func TestRunsAreApart(t *testing.T) {
	t.Parallel()
	p := newPlug()
	seen := p.Global(0)
	// It says how often it was called, by its global, by a variable and by its memory.
	body := p.text("name") + asm.Get(0) + asm.Call(p.get) + asm.I64(0) + asm.Ne64 +
		asm.GlobalGet(seen) + asm.Add + asm.I32(100) + asm.Load + asm.Add + asm.GlobalSet(seen) +
		asm.I32(100) + asm.I32(1) + asm.Store +
		p.text("name") + asm.Get(0) + p.value() + asm.Call(p.put) +
		asm.GlobalGet(seen) + asm.If(p.says("again"), "\x0f") +
		asm.I32(1) + asm.GlobalSet(seen) + p.says("fresh") + p.text("to log") + asm.Get(0) + asm.Call(p.log)
	module := p.function("invoke", nil, asm.Call(p.length)+"\x1a"+body).Bytes()
	r := New(engine(t), nil)
	t.Cleanup(func() { r.Close() })
	call := pluginOf(t, module, "m.wasm")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 50 {
				c := *call
				c.Stdin = fmt.Appendf(nil, "%d", i)
				reply, err := runnertest.Do(t.Context(), r, &c)
				if err != nil || string(reply.Stdout) != "fresh   " || string(reply.Stderr) != "warn: to log  \n" {
					t.Errorf("%+v, %v", reply, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// value leaves the offset of a new block on the stack.
func (p *plug) value() asm.Code { return asm.I64(8) + asm.Call(p.alloc) }

// Command refuses what a checker refuses, with its code.
func TestCommandRefuses(t *testing.T) {
	t.Parallel()
	for name, module := range map[string][]byte{"nothing": nil, "text": []byte("text"), "cut": newPlug().function("invoke", nil, "").Bytes()[:40]} {
		_, err := Command(module, Function)
		if e := new(check.Error); !errors.As(err, &e) || e.Code != check.InvalidModule {
			t.Errorf("%s: %v", name, err)
		}
	}
	module := newPlug().function("invoke", nil, "").Bytes()
	a, err := Command(module, Function)
	b, err2 := Command(module, Function)
	if err != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("not the same twice: %v, %v", err, err2)
	}
}
