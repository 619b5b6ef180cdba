package wasm_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"openskill/wasm"
	"openskill/wasm/check"
	"openskill/wasm/wasmtest"
)

// cat is a program that copies up to 64 bytes of its input to its output.
func cat() []byte {
	b := wasmtest.New()
	read, write := b.Import("fd_read"), b.Import("fd_write")
	b.Memory(1)
	b.Data(0, "\x40\x00\x00\x00\x40\x00\x00\x00") // where to read to, and how much
	i := wasmtest.I32
	b.Command(i(0) + i(0) + i(1) + i(4) + wasmtest.Call(read) + wasmtest.Drop + // its length becomes how much to write
		i(1) + i(0) + i(1) + i(16) + wasmtest.Call(write) + wasmtest.Drop)
	return b.Bytes()
}

// endless is a program that does not end.
func endless() []byte {
	b := wasmtest.New()
	b.Command(wasmtest.Loop(wasmtest.Br(0)))
	return b.Bytes()
}

// A module is compiled once and run many times, each run in an instance of its own. What
// ended a run is in its outcome.
func Example() {
	ctx := context.Background()
	e, err := wasm.Open(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	for _, module := range [][]byte{cat(), endless()} {
		m, err := e.Compile(ctx, module, nil)
		if err != nil {
			log.Fatal(err)
		}
		out, err := m.Run(ctx, &wasm.Run{
			Stdin:  strings.NewReader("hello"),
			Limits: wasm.Limits{Fuel: 1_000_000, Timeout: time.Minute, Memory: 1 << 20},
		})
		if err != nil {
			log.Fatal(err) // the host failed, not the guest
		}
		fmt.Printf("%s: %q\n", out.Ended, out.Stdout)
	}
	// Output:
	// returned: "hello"
	// out of fuel: ""
}

// A module that imports what there is not is refused before it is compiled.
func ExampleEngine_Compile_refused() {
	ctx := context.Background()
	e, err := wasm.Open(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	b := wasmtest.New()
	b.ImportFunc("env", "system", nil, nil)
	_, err = e.Compile(ctx, b.Bytes(), nil)
	var refused *check.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code)
	}
	// Output: IMPORT_DENIED
}

// An image is started once, to its first read of standard input; every call begins there.
func ExampleImage() {
	ctx := context.Background()
	e, err := wasm.Open(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	m, err := e.Compile(ctx, cat(), nil)
	if err != nil {
		log.Fatal(err)
	}
	im := e.Image(&wasm.Program{Module: m, Args: []string{"cat"}}, nil)
	defer im.Close()
	for _, input := range []string{"one", "two"} {
		out, err := im.Run(ctx, &wasm.Call{Stdin: strings.NewReader(input)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %q\n", out.Ended, out.Stdout)
	}
	// Output:
	// returned: "one"
	// returned: "two"
}
