package wasm_test

import (
	"context"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/image"
	"openskill/wasm/wasmtest"
)

// TestImageHoldsScratch holds that files which a start-up left count among what an image
// holds: each instance has them twice.
func TestImageHoldsScratch(t *testing.T) {
	if !image.Supported {
		t.Skip("images hold nothing on this platform")
	}
	const path, number, iov, count, size = 0, 72, 64, 76, 1 << 20
	b := wasmtest.New()
	create, allocate, read, closeFD := b.Import("path_open"), b.Import("fd_allocate"), b.Import("fd_read"), b.Import("fd_close")
	b.Memory(1)
	b.Data(path, "work/f")
	fd := wasmtest.I32(number) + wasmtest.Load
	b.Command(i32(3, 0, path, 6, 1) + wasmtest.I64(1<<6|1<<8) + wasmtest.I64(0) + i32(0, number) + wasmtest.Call(create) + wasmtest.Drop +
		fd + wasmtest.I64(0) + wasmtest.I64(size) + wasmtest.Call(allocate) + wasmtest.Drop + fd + wasmtest.Call(closeFD) + wasmtest.Drop +
		vector(128, 1) + i32(0, iov, 1, count) + wasmtest.Call(read) + wasmtest.Drop)
	e := open(t, nil)
	im := e.Image(&wasm.Program{Module: compile(t, e, b.Bytes()), Open: tattooFiles}, &wasm.ImageOptions{Spare: -1})
	defer im.Close()
	musttest.Do(t, im.Warm(context.Background(), 1))
	if held := im.Held(); held < 2*size || held > 3*size {
		t.Errorf("%d bytes are held", held)
	}
}
