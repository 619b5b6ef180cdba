//go:build unix && !race

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// answeringWith is a module that prints a text, with functions beside that take the
// compiler some milliseconds and differ from those of other texts.
func answeringWith(text string, seed byte) []byte {
	const many = 300
	body := concat([]byte{0}, slices.Repeat([]byte{0x41, seed, 0x41, 5, 0x6a, 0x41, 7, 0x6c, 0x1a}, 60), []byte{0x0b})
	main := concat([]byte{0}, i32(1, 0, 1, 8), []byte{0x10, 0, 0x1a, 0x0b})
	data := concat([]byte{16, 0, 0, 0, byte(len(text)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []byte(text))
	return concat(magic,
		section(1, 2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f),
		sectionOf(2, concat(leb(1), name("wasi_snapshot_preview1"), name("fd_write"), []byte{0, 1})),
		sectionOf(3, concat(leb(many+1), make([]byte, many+1))),
		section(5, 1, 0, 1),
		sectionOf(7, concat(leb(2), name("_start"), []byte{0, 1}, name("memory"), []byte{2, 0})),
		sectionOf(10, concat(leb(many+1), leb(len(main)), main, slices.Repeat(concat(leb(len(body)), body), many))),
		sectionOf(11, concat(leb(1), []byte{0, 0x41, 0, 0x0b}, leb(len(data)), data)),
	)
}

// killable is a host as a process, with a state folder that outlives it.
type killable struct {
	*exec.Cmd
	out *bufio.Scanner
	log strings.Builder
}

func launch(t *testing.T, skills, state string) *killable {
	t.Helper()
	k := &killable{Cmd: exec.CommandContext(t.Context(), "openskill", "serve", "--listen", "127.0.0.1:0", "--skills", skills, "--state", state)}
	k.Dir = t.TempDir()
	k.Stderr = &k.log
	out := musttest.Get(k.StdoutPipe())(t)
	k.out = bufio.NewScanner(out)
	musttest.Do(t, k.Start())
	return k
}

// kill ends it as the kernel does when memory runs out.
func (k *killable) kill() {
	_ = k.Process.Kill()
	_ = k.Wait() // the error says that it was killed
}

// answers calls every skill, and wants what it prints.
func (k *killable) answers(t *testing.T, want map[string]string) {
	t.Helper()
	if !k.out.Scan() {
		t.Fatalf("the host does not start: %s", k.log.String())
	}
	_, url, ok := strings.Cut(k.out.Text(), "listening on ")
	if !ok {
		t.Fatalf("first line %q", k.out.Text())
	}
	for id, data := range want {
		res, err := http.Post(url+"/skills/"+id+":invoke", "application/json", strings.NewReader(`{"input": {}}`))
		musttest.Do(t, err)
		var r skill.Result
		err = json.NewDecoder(res.Body).Decode(&r)
		_ = res.Body.Close()
		if err != nil || !r.Success || string(r.Data) != data {
			t.Errorf("%s: %s, %+v, %v; want %s\n%s", id, r.Data, r.Error, err, data, k.log.String())
		}
	}
}

// A host that is killed again and again while it compiles and starts skills leaves a
// cache that the next one can trust, and nothing that is there for ever.
func TestKilledWhileWarmingUp(t *testing.T) {
	if testing.Short() {
		t.Skip("these starts take half a minute")
	}
	t.Parallel()
	skills, state := t.TempDir(), t.TempDir()
	want := map[string]string{}
	for i := range byte(12) {
		id := fmt.Sprintf("skill%d", i)
		want[id] = fmt.Sprintf(`{"n":%d}`, i)
		dir := filepath.Join(skills, id)
		manifest := "id: " + id + "\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: m.wasm\n"
		if err := errors.Join(os.Mkdir(dir, 0o700),
			os.WriteFile(filepath.Join(dir, "skill.yaml"), []byte(manifest), 0o600),
			os.WriteFile(filepath.Join(dir, "m.wasm"), answeringWith(want[id], i), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cache := filepath.Join(state, "modules")
	began := time.Now()
	k := launch(t, skills, state)
	k.answers(t, want)
	warm := time.Since(began)
	k.kill()
	files, bytes := countFiles(t, cache)

	moments := rand.New(rand.NewPCG(1, 2))
	kills := 25
	if os.Getenv("OPENSKILL_TEST_KILL") != "" {
		kills = 100
	}
	for i := range kills {
		if i%4 == 0 { // else it goes on with what is there
			musttest.Do(t, os.RemoveAll(cache))
		}
		k := launch(t, skills, state)
		time.Sleep(time.Duration(moments.Int64N(int64(warm)))) // until a moment like any other
		k.kill()
		if i%20 == 19 {
			k := launch(t, skills, state)
			k.answers(t, want)
			k.kill()
		}
	}
	musttest.Do(t, os.MkdirAll(cache, 0o700)) // the last host may have been killed before it made the folder
	left, _ := countFiles(t, cache)
	if left > files+8 { // of four kills at most, each of which wrote two files at once
		t.Errorf("%d files in the cache, %d without kills", left, files)
	}
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(cache, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	})
	musttest.Do(t, err)
	k = launch(t, skills, state)
	k.answers(t, want)
	k.kill()
	if n, size := countFiles(t, cache); n != files || size != bytes {
		t.Errorf("%d files of %d bytes in the cache an hour later; want %d of %d", n, size, files, bytes)
		each(t, cache, func(path string, info fs.FileInfo) { t.Log(path, info.Size(), info.ModTime()) })
	}
}

// The same with Python, whose cache takes seconds to fill.
func TestKilledWhileWarmingUpPython(t *testing.T) {
	if os.Getenv("OPENSKILL_TEST_KILL") == "" {
		t.Skip("OPENSKILL_TEST_KILL is not set: compiling Python ten times takes minutes")
	}
	skills, state := t.TempDir(), t.TempDir()
	dir := filepath.Join(skills, "script")
	manifest := "id: script\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: python\nentry: main.py\nlimits: {timeout_ms: 60000}\n"
	program := "import json, sys\njson.load(sys.stdin)\nprint(json.dumps({'n': sum(range(10))}))\n"
	if err := errors.Join(os.Mkdir(dir, 0o700), os.MkdirAll(filepath.Join(state, "runtimes", "slim"), 0o700),
		os.WriteFile(filepath.Join(dir, "skill.yaml"), []byte(manifest), 0o600),
		os.WriteFile(filepath.Join(dir, "main.py"), []byte(program), 0o600)); err != nil {
		t.Fatal(err)
	}
	installed, err := filepath.Glob(filepath.Join("..", "..", ".openskill", "runtimes", "slim", "*"))
	if err != nil || len(installed) == 0 {
		t.Skip("the runtime slim is not installed")
	}
	for _, from := range installed {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(state, "runtimes", "slim", filepath.Base(from)), b, 0o600)
		}
		musttest.Do(t, err)
	}
	// Once undisturbed, to know how long that takes.
	ready := func() time.Duration {
		began := time.Now()
		k := launch(t, skills, state)
		for k.out.Scan() {
			break
		}
		_, url, _ := strings.Cut(k.out.Text(), "listening on ")
		for {
			res, err := http.Post(url+"/skills/script:invoke", "application/json", strings.NewReader(`{"input": {}}`))
			musttest.Do(t, err)
			var r skill.Result
			err = json.NewDecoder(res.Body).Decode(&r)
			_ = res.Body.Close()
			if err == nil && r.Error != nil && strings.Contains(r.Error.Message, "being compiled") && time.Since(began) < 5*time.Minute {
				time.Sleep(50 * time.Millisecond) // until it is ready, as its message says
				continue
			}
			if err != nil || string(r.Data) != `{"n":45}` {
				t.Fatalf("%s, %+v, %v", r.Data, r.Error, err)
			}
			took := time.Since(began)
			k.kill()
			return took
		}
	}
	took := ready()
	moments := rand.New(rand.NewPCG(3, 4))
	for i := range 8 {
		if i%2 == 0 {
			musttest.Do(t, os.RemoveAll(filepath.Join(state, "modules")))
		}
		k := launch(t, skills, state)
		time.Sleep(time.Duration(moments.Int64N(int64(took)))) // as above
		k.kill()
	}
	ready()
}

func each(t *testing.T, dir string, do func(path string, info fs.FileInfo)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			do(path, info)
		}
		return err
	})
	musttest.Do(t, err)
}

// countFiles leaves out how long the name of the tenant is: it is that of the call that
// came before the host itself compiled the module, if one did.
func countFiles(t *testing.T, dir string) (files int, bytes int64) {
	t.Helper()
	each(t, dir, func(_ string, info fs.FileInfo) {
		files++
		if info.Name() != "tenant" {
			bytes += info.Size()
		}
	})
	return files, bytes
}
