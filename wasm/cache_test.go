package wasm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"openskill/internal/digest"
	"openskill/internal/musttest"
	"openskill/wasm"
	"openskill/wasm/binary"
	"openskill/wasm/wasmtest"
)

// files lists the regular files below a folder, in order.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	musttest.Do(t, err)
	return all
}

// fill makes a cache folder with the modules exits(0) to exits(n-1).
func fill(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: dir}))(t)
	for i := range n {
		wantExit(t, e, int64(i))
	}
	musttest.Do(t, e.Close())
	return dir
}

func wantExit(t testing.TB, e *wasm.Engine, code int64) {
	t.Helper()
	m, err := e.Compile(context.Background(), exits(code), nil)
	if err != nil {
		t.Errorf("compile %d: %v", code, err)
		return
	}
	out, err := m.Run(context.Background(), &wasm.Run{})
	if err != nil || out.Ended != wasm.Exited || out.ExitCode != uint32(code) {
		t.Errorf("module %d: %+v, %v", code, out, err)
	}
}

// TestDamagedCache does to every file of the cache what disks and people do, one
// kind of damage at a time. What comes of it must be right, and the cache be
// whole afterwards.
func TestDamagedCache(t *testing.T) {
	half := func(b []byte) []byte { return b[:len(b)/2] }
	for name, damage := range map[string]func(b []byte) []byte{
		"empty":            func([]byte) []byte { return nil },
		"one byte":         func(b []byte) []byte { return b[:1] },
		"cut":              half,
		"cut by one":       func(b []byte) []byte { return b[:len(b)-1] },
		"grown":            func(b []byte) []byte { return append(b, "more"...) },
		"zeros":            func(b []byte) []byte { clear(b); return b },
		"zeros at the end": func(b []byte) []byte { clear(half(b)); return b },
		"ones":             func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) },
		"another file": func([]byte) []byte {
			return []byte("#!/bin/sh\necho not a module of ours, but long enough for a header\n")
		},
		"a flipped bit in the middle": func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
	} {
		for _, part := range []string{"metered", "code"} {
			t.Run(part+" "+name, func(t *testing.T) {
				dir := fill(t, 2)
				was := files(t, filepath.Join(dir, part))
				if len(was) < 2 {
					t.Fatalf("%d files in %s: nothing to damage", len(was), part)
				}
				for _, path := range was {
					b := musttest.Get(os.ReadFile(path))(t)
					musttest.Do(t, os.WriteFile(path, damage(b), 0o600))
				}
				for range 2 { // the second finds what the first made again
					e := open(t, &wasm.Options{CacheDir: dir})
					wantExit(t, e, 0)
					wantExit(t, e, 1)
				}
			})
		}
	}
}

// TestSwappedCache puts the metered form of one module in the place of another's.
func TestSwappedCache(t *testing.T) {
	dir := fill(t, 2)
	two := files(t, filepath.Join(dir, "metered"))
	if len(two) != 2 {
		t.Fatalf("%d files", len(two))
	}
	third := two[0] + ".third"
	for _, move := range [][2]string{{two[0], third}, {two[1], two[0]}, {third, two[1]}} {
		musttest.Do(t, os.Rename(move[0], move[1]))
	}
	e := open(t, &wasm.Options{CacheDir: dir})
	wantExit(t, e, 0)
	wantExit(t, e, 1)
}

// TestCacheIsPrivate holds modes, also of a folder that was there before, and
// that trust has entries of its own.
func TestCacheIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	musttest.Do(t, os.Mkdir(dir, 0o777))
	if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask
		t.Fatal(err)
	}
	e := open(t, &wasm.Options{CacheDir: dir})
	wantExit(t, e, 1)
	mode := func(path string) fs.FileMode {
		info := musttest.Get(os.Stat(path))(t)
		return info.Mode().Perm()
	}
	if m := mode(dir); m != 0o700 {
		t.Errorf("the folder has mode %v", m)
	}
	for _, path := range files(t, dir) {
		if m := mode(path); m&0o077 != 0 {
			t.Errorf("%s has mode %v", path, m)
		}
	}
	one := len(files(t, filepath.Join(dir, "metered")))
	m := musttest.Get(e.Compile(context.Background(), exits(1), &wasm.CompileOptions{Trusted: true}))(t)
	if out, err := m.Run(context.Background(), &wasm.Run{}); err != nil || out.ExitCode != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if n := len(files(t, filepath.Join(dir, "metered"))); one != 1 || n != 2 {
		t.Errorf("%d files, and %d with the trusted form; want 1 and 2", one, n)
	}
}

// TestTrustIsNotCached compiles as trusted what a stranger may not bring: the
// cache must not let it in afterwards.
func TestTrustIsNotCached(t *testing.T) {
	dir := t.TempDir()
	e := open(t, &wasm.Options{CacheDir: dir})
	module := manyExports(2000) // more than the 1,000 that a stranger may have
	musttest.Get(e.Compile(context.Background(), module, &wasm.CompileOptions{Trusted: true}))(t)
	for range 2 {
		if _, err := e.Compile(context.Background(), module, nil); err == nil {
			t.Error("a stranger's module went past its caps")
		}
		e = open(t, &wasm.Options{CacheDir: dir})
	}
}

// TestTwoEngines has two engines work on one folder at once.
func TestTwoEngines(t *testing.T) {
	dir := t.TempDir()
	engines := []*wasm.Engine{open(t, &wasm.Options{CacheDir: dir}), open(t, &wasm.Options{CacheDir: dir})}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 20 {
				wantExit(t, engines[worker%2], int64(i))
			}
		})
	}
	wg.Wait()
	if left := files(t, filepath.Join(dir, "metered")); len(left) != 20 {
		t.Errorf("%d files for 20 modules: %q", len(left), left)
	}
}

// Modules that differ in their data only have the same code, which is whole for each that is
// loaded from the cache while another one is.
func TestEqualCode(t *testing.T) {
	t.Parallel()
	module := func(data int) []byte {
		b := wasmtest.New()
		b.Import("proc_exit")
		b.Memory(1)
		kinds := []binary.ValType{wasmtest.TypeI32, wasmtest.TypeI64, binary.F32, binary.F64}
		for i := range 512 { // wazero does a little for each type after it lets others find the module
			var params []binary.ValType
			for digit := range 5 {
				params = append(params, kinds[i>>(2*digit)&3])
			}
			b.Type(params, nil)
		}
		b.Data(0, fmt.Sprint(data))
		b.Command(wasmtest.I32(0) + wasmtest.Load8 + wasmtest.Call(0))
		return b.Bytes()
	}
	dir := t.TempDir()
	for range 20 {
		e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: dir}))(t)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				m, err := e.Compile(t.Context(), module(i), nil)
				if err != nil {
					t.Error(err)
					return
				}
				out, err := m.Run(t.Context(), &wasm.Run{})
				if err != nil || out.Ended != wasm.Exited || out.ExitCode != uint32('0'+i) {
					t.Errorf("module %d: %+v, %v", i, out, err)
				}
			})
		}
		wg.Wait()
		musttest.Do(t, e.Close())
	}
}

// TestUnwritableCache takes the folder away under a running engine, in ways that
// hold for root too: a file stands where the folder was.
func TestUnwritableCache(t *testing.T) {
	dir := t.TempDir()
	e := open(t, &wasm.Options{CacheDir: dir})
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "metered"), nil, 0o600))
	wantExit(t, e, 1)
	wantExit(t, e, 2)

	path := filepath.Join(t.TempDir(), "file")
	musttest.Do(t, os.WriteFile(path, nil, 0o600))
	if e, err := wasm.Open(&wasm.Options{CacheDir: path}); err == nil {
		t.Error("a file was taken for a folder")
		_ = e.Close()
	}
	if e, err := wasm.Open(&wasm.Options{CacheDir: filepath.Join(path, "below")}); err == nil {
		t.Error("a folder was made below a file")
		_ = e.Close()
	}
}

// child runs a role of this test binary in another process; see TestMain.
func child(t testing.TB, role, dir string) *exec.Cmd {
	t.Helper()
	self := musttest.Get(os.Executable())(t)
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), roleEnv+"="+role, "WASM_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKilledWriter kills a process while it fills the cache, at many points. What
// it leaves is either whole or not believed.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	for kill := range 6 {
		cmd := child(t, "fill", dir)
		out := musttest.Get(cmd.StdoutPipe())(t)
		musttest.Do(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			if n == kill*3 { // it goes on writing while this is read
				break
			}
		}
		musttest.Do(t, cmd.Process.Kill())
		if err := cmd.Wait(); err == nil {
			t.Fatal("it ended before it was killed")
		}
		e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: dir}))(t)
		for i := range 30 {
			wantExit(t, e, int64(i))
		}
		musttest.Do(t, e.Close())
		if kill < 5 { // begin anew, but keep what a killed one leaves
			for _, path := range files(t, dir)[:20] {
				musttest.Do(t, os.Remove(path))
			}
		}
	}
}

// fillForever is the process that is killed.
func fillForever(dir string) error {
	for {
		e, err := wasm.Open(&wasm.Options{CacheDir: dir})
		if err != nil {
			return err
		}
		for i := range 30 {
			if _, err := e.Compile(context.Background(), exits(int64(i)), nil); err != nil {
				return err
			}
			fmt.Println(i)
		}
		if err := e.Close(); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(dir, "metered")); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Join(dir, "code")); err != nil {
			return err
		}
	}
}

// readCache is the process without the right to write.
func readCache(dir string) error {
	e, err := wasm.Open(&wasm.Options{CacheDir: dir})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err == nil {
		return errors.New("the folder can be written, so nothing is tested")
	}
	for _, code := range []int64{0, 1, 5, 6} { // the last two are not in the cache
		m, err := e.Compile(context.Background(), exits(code), nil)
		if err != nil {
			return err
		}
		out, err := m.Run(context.Background(), &wasm.Run{})
		if err != nil {
			return err
		}
		fmt.Print(out.ExitCode, " ")
	}
	return nil
}

// plain is a module that does nothing.
func plain() []byte {
	b := wasmtest.New()
	b.Memory(1)
	b.Command("")
	return b.Bytes()
}

// A module whose digest is known is not hashed again, and one that was compiled is not read.
func TestModuleIsHashedOnce(t *testing.T) {
	dir, module := t.TempDir(), plain()
	e := open(t, &wasm.Options{CacheDir: dir})
	name := wasm.Digest(module)
	before := digest.Hashed()
	report, err := e.Admit(t.Context(), module, wasm.CompileOptions{Digest: name})
	if err != nil || report.Digest != name {
		t.Fatalf("%+v, %v", report, err)
	}
	only := open(t, &wasm.Options{CacheDir: dir, CompiledOnly: true})
	musttest.Get(only.Load(t.Context(), name, nil, nil))(t)
	if now := digest.Hashed(); now != before {
		t.Errorf("%d bytes were hashed again", now-before)
	}
	var none *wasm.NotCompiledError
	if _, err := only.Load(t.Context(), name, nil, &wasm.CompileOptions{Trusted: true}); !errors.As(err, &none) {
		t.Errorf("by other caps: %v", err)
	}
}

// TestCodeOfGuardPages holds that code without checks, and code with them, are never taken for
// each other where they share a folder.
func TestCodeOfGuardPages(t *testing.T) {
	if !hasGuardPages {
		t.Skip("there are no guard pages here")
	}
	for _, first := range []bool{false, true} {
		dir, had := t.TempDir(), 0
		for _, guarded := range []bool{first, first, !first, !first} {
			e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: dir, GuardPages: guarded}))(t)
			wantExit(t, e, 3)
			musttest.Do(t, e.Close())
			made := len(files(t, filepath.Join(dir, "code")))
			if want := map[bool]int{true: 2, false: 4}[guarded == first]; made != want {
				t.Errorf("guard pages first: %v, then: %v: there are %d files of code, not %d; %d before", first, guarded, made, want, had)
			}
			had = made
		}
	}
}
