package wasm_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/wasmtest"
)

// asker reads its input, sends it as a request and prints the response; before it
// reads, it sends one too if early says so.
func asker(early bool) []byte {
	b := wasmtest.New()
	read, write := b.Import("fd_read"), b.Import("fd_write")
	request, response := b.Import("http_request"), b.Import("http_read")
	b.Memory(1)
	// Vectors: 0 of the input at 0x1000, 8 of the output at 0x2000; numbers at 16.
	b.Data(0, "\x00\x10\x00\x00\x00\x10\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00")
	b.Data(0x3000, "early")
	i := wasmtest.I32
	load := func(at int64) wasmtest.Code { return i(at) + "\x28\x02\x00" } // i32.load
	store := "\x36\x02\x00"                                                // i32.store
	show := i(0x2000) + i(0x1000) + i(16) + wasmtest.Call(response) + wasmtest.Drop +
		i(12) + load(16) + wasmtest.Code(store) + i(1) + i(8) + i(1) + i(16) + wasmtest.Call(write) + wasmtest.Drop
	ask := func(at int64, n wasmtest.Code) wasmtest.Code {
		return i(at) + n + i(16) + wasmtest.Call(request) + wasmtest.Drop
	}
	var body wasmtest.Code
	if early {
		body = ask(0x3000, i(5)) + show
	}
	body += i(0) + i(0) + i(1) + i(20) + wasmtest.Call(read) + wasmtest.Drop + ask(0x1000, load(20)) + show
	b.Command(body)
	return b.Bytes()
}

// Only the functions that there are can be imported, by their types (W14).
func TestW14OutgoingImports(t *testing.T) {
	e := open(t, nil)
	for _, name := range []string{"http_request", "http_read"} {
		if f, ok := e.Import("openskill_v1", name); !ok || len(f.Params) != 3 || len(f.Results) != 1 {
			t.Errorf("%s: %v, %v", name, f, ok)
		}
	}
	i32 := []binary.ValType{binary.I32, binary.I32, binary.I32}
	for _, c := range []struct {
		module, name    string
		params, results []binary.ValType
	}{
		{"openskill_v1", "fd_write", append(i32, binary.I32), i32[:1]},
		{"openskill_v1", "http_request", i32[:2], i32[:1]},
		{"openskill_v1", "http_request", i32, nil},
		{"openskill_v1", "http_connect", i32, i32[:1]},
		{"openskill_v2", "http_request", i32, i32[:1]},
		{"wasi_snapshot_preview1", "http_request", i32, i32[:1]},
		{"env", "http_request", i32, i32[:1]},
		{"", "http_request", i32, i32[:1]},
		{"openskill_v1.http_request", "", i32, i32[:1]},
	} {
		b := wasmtest.New()
		b.ImportFunc(c.module, c.name, c.params, c.results)
		b.Command("")
		_, err := e.Compile(t.Context(), b.Bytes(), nil)
		var verdict *check.Error
		if !errors.As(err, &verdict) || verdict.Code != check.ImportDenied {
			t.Errorf("%s.%s %v: %v", c.module, c.name, c.params, err)
		}
	}
	b := wasmtest.New()
	b.ImportMemory("openskill_v1", "memory")
	b.Command("")
	if _, err := e.Compile(t.Context(), b.Bytes(), nil); err == nil {
		t.Error("a memory was imported")
	}
}

// A run has the network that it is given.
func TestFetchOfRuns(t *testing.T) {
	e := open(t, nil)
	fetch := func(_ context.Context, request []byte) []byte { return append([]byte("re: "), request...) }
	for _, c := range []struct {
		fetch wasm.Fetch
		want  string
	}{{fetch, "re: hello"}, {nil, ""}} {
		out := run(t, e, asker(false), &wasm.Run{Stdin: strings.NewReader("hello"), Fetch: c.fetch})
		if out.Ended != wasm.Returned || string(out.Stdout) != c.want {
			t.Errorf("%s: %q, want %q", out.Ended, out.Stdout, c.want)
		}
	}
}

// The runs of an image each have their own network, and its start-up that of the
// program, which is the same for all.
func TestFetchOfImages(t *testing.T) {
	e := open(t, nil)
	m := compile(t, e, asker(true))
	for name, p := range map[string]*wasm.Program{
		"answered": {Module: m, Fetch: func(context.Context, []byte) []byte { return []byte("too early") }},
		"refused":  {Module: m},
	} {
		t.Run(name, func(t *testing.T) {
			im := e.Image(p, &wasm.ImageOptions{Instances: 1})
			defer im.Close()
			for _, who := range []string{"one", "two", "", "three"} {
				c := &wasm.Call{Stdin: strings.NewReader("hello")}
				want := ""
				if name == "answered" {
					want = "too early"
				}
				if who != "" {
					c.Fetch = func(_ context.Context, request []byte) []byte { return append([]byte(who+": "), request...) }
					want += who + ": hello"
				}
				out, err := im.Run(t.Context(), c)
				if err != nil || string(out.Stdout) != want {
					t.Errorf("%v, %q, want %q", err, out.Stdout, want)
				}
			}
		})
	}
}

// A request that is not answered ends with its run, and sees no other run's time.
func TestFetchSeesItsOwnRun(t *testing.T) {
	e := open(t, nil)
	im := e.Image(&wasm.Program{Module: compile(t, e, asker(false))}, &wasm.ImageOptions{Instances: 1})
	defer im.Close()
	var first func() error // the end of the first run
	out, err := im.Run(t.Context(), &wasm.Call{Stdin: strings.NewReader("x"), Limits: wasm.Limits{Timeout: 50 * time.Millisecond}, Fetch: func(ctx context.Context, _ []byte) []byte {
		first = ctx.Err
		<-ctx.Done()
		return nil
	}})
	if err != nil || out.Ended != wasm.OutOfTime {
		t.Fatalf("%v, %v", err, out)
	}
	out, err = im.Run(t.Context(), &wasm.Call{Stdin: strings.NewReader("x"), Fetch: func(ctx context.Context, _ []byte) []byte {
		if first() == nil || ctx.Err() != nil {
			t.Error("a run's context goes on in the next one's")
		}
		return bytes.Repeat([]byte("y"), 10)
	}})
	if err != nil || string(out.Stdout) != "yyyyyyyyyy" {
		t.Fatalf("%v, %v", err, out)
	}
}
