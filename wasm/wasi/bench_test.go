package wasi_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/tetratelabs/wazero"

	"openskill/wasm/wasi"
)

// BenchmarkHello is what a small command costs on top of its own instructions: a
// World, its arguments, one read of input in memory, one line of output.
func BenchmarkHello(b *testing.B) {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	if _, err := wasi.Instantiate(ctx, r); err != nil {
		b.Fatal(err)
	}
	mod, err := r.Instantiate(ctx, forwarder(wasi.Functions(), memoryPages))
	if err != nil {
		b.Fatal(err)
	}
	g := &guest{t: b, mod: mod, mem: mod.Memory()}
	ptr, n := g.iovs(atData, 12)
	input, out := []byte("hello, guest"), bytes.NewBuffer(make([]byte, 0, 1024))
	args := []string{"hello", "world"}
	sizes, get, read, write := mod.ExportedFunction("args_sizes_get"), mod.ExportedFunction("args_get"), mod.ExportedFunction("fd_read"), mod.ExportedFunction("fd_write")
	stack := make([]uint64, 8)
	b.ReportAllocs()
	for b.Loop() {
		out.Reset()
		w := wasi.NewWorld(wasi.Config{Args: args, Stdin: bytes.NewReader(input), Stdout: out})
		ctx := wasi.WithWorld(ctx, w)
		stack[0], stack[1] = atResult, atResult+4
		sizes.CallWithStack(ctx, stack)
		stack[0], stack[1] = atPath, atPath2
		get.CallWithStack(ctx, stack)
		stack[0], stack[1], stack[2], stack[3] = 0, ptr, n, atResult
		read.CallWithStack(ctx, stack)
		stack[0], stack[1], stack[2], stack[3] = 1, ptr, n, atResult
		write.CallWithStack(ctx, stack)
		w.Close()
	}
	if out.String() != "hello, guest" {
		b.Fatal(out.String())
	}
}

// BenchmarkOpenReadClose is one small file of a host folder.
func BenchmarkOpenReadClose(b *testing.B) {
	root, _ := worldRoot(b, dataFolder(b))
	g := newGuest(b, wasi.Config{Root: root})
	for b.Loop() {
		fd := g.mustOpen("data/a.txt", 0, rightRead)
		if g.read(fd, 100) != "alpha" {
			b.Fatal("read")
		}
		g.want(0, "fd_close", fd)
	}
}
