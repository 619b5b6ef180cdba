package wasm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/wasmtest"
)

// TestSharedCode holds that an engine that compiles nothing runs the code of another
// one's pages, and that pages which are not the same are not taken.
func TestSharedCode(t *testing.T) {
	wasm.LowerShareFrom(t, 1)
	dir := t.TempDir()
	module := wasmtest.OneLine(2000)
	maker := musttest.Get(wasm.Open(&wasm.Options{CacheDir: dir, ShareCode: true}))(t)
	musttest.Get(maker.Compile(t.Context(), module, nil))(t)
	musttest.Do(t, maker.Close())
	pages, _ := filepath.Glob(filepath.Join(dir, "pages", "*"))
	if len(pages) != 1 {
		t.Fatalf("left for others: %q", pages)
	}
	for _, c := range []struct {
		name  string
		spoil func()
		taken bool
	}{
		{"the same", func() {}, true},
		{"other bytes", func() {
			b := musttest.Get(os.ReadFile(pages[0]))(t)
			for i := 0; i < len(b); i += 1000 {
				b[i] ^= 1
			}
			musttest.Do(t, os.WriteFile(pages[0], b, 0o600))
		}, false},
		{"cut off", func() {
			musttest.Do(t, os.Truncate(pages[0], 10))
		}, false},
		{"gone", func() { _ = os.Remove(pages[0]) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spoil()
			own := filepath.Join(t.TempDir(), "cache") // what another one mapped goes when Go's collector says so
			musttest.Do(t, os.CopyFS(own, os.DirFS(dir)))
			e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: own, ShareCode: true, CompiledOnly: true}))(t)
			defer e.Close()
			m := musttest.Get(e.Compile(t.Context(), module, nil))(t)
			maps := musttest.Get(os.ReadFile("/proc/self/maps"))(t)
			if taken := strings.Contains(string(maps), filepath.Join(own, "pages")); taken != c.taken {
				t.Errorf("taken: %t", taken)
			}
			out, err := m.Run(t.Context(), &wasm.Run{})
			if err != nil || out.Ended != wasm.Returned {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// TestSharesCodeInThePlaceOfOther holds that code is found also where it lies in the place of
// code that a finalizer unmapped while it was loaded.
func TestSharesCodeInThePlaceOfOther(t *testing.T) {
	wasm.LowerShareFrom(t, 1)
	dir := t.TempDir()
	module := wasmtest.OneLine(200)
	maker := musttest.Get(wasm.Open(&wasm.Options{CacheDir: dir, ShareCode: true}))(t)
	m := musttest.Get(maker.Compile(t.Context(), module, nil))(t)
	code := m.CodeAt()
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: dir, ShareCode: true, CompiledOnly: true}))(t)
	defer e.Close()
	// The cached code is read from a pipe, which waits until the maker's code is unmapped.
	var path string
	var cached []byte
	files, _ := filepath.Glob(filepath.Join(dir, "code", "*", "*"))
	for _, f := range files {
		b := musttest.Get(os.ReadFile(f))(t)
		if len(b) > len(cached) {
			path, cached = f, b
		}
	}
	musttest.Do(t, errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)))
	compiled := make(chan error, 1)
	go func() {
		_, err := e.Compile(t.Context(), module, nil)
		compiled <- err
	}()
	pipe := musttest.Get(os.OpenFile(path, os.O_WRONLY, 0))(t) // waits for the reader
	musttest.Do(t, maker.Close())
	for tries := 0; executable(t, code); tries++ {
		if tries == 1000 {
			t.Fatal("the code of a closed engine stays mapped")
		}
		runtime.GC()
	}
	musttest.Get(pipe.Write(cached))(t)
	musttest.Do(t, errors.Join(pipe.Close(), <-compiled))
	maps := musttest.Get(os.ReadFile("/proc/self/maps"))(t)
	if !strings.Contains(string(maps), filepath.Join(dir, "pages")) {
		t.Error("the code is not shared")
	}
}

// executable reports whether code is mapped at an address.
func executable(t *testing.T, at uintptr) bool {
	t.Helper()
	maps := musttest.Get(os.ReadFile("/proc/self/maps"))(t)
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var may string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &may); err == nil && from <= at && at < to {
			return strings.Contains(may, "x")
		}
	}
	return false
}
