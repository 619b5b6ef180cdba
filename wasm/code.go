package wasm

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// code compiles a metered module, or loads its machine code from the cache.
//
// wazero fails on a file that is damaged and on one that it cannot write. For the
// first, the second try goes without what lies there, since everything in that
// folder can be made again. For the second, it finds the code in memory.
func (e *Engine) code(metered []byte, trusted bool) (wazero.CompiledModule, error) {
	ctx := context.Background()
	if trusted {
		// A runtime of ours is waited for; a stranger's module gets one core.
		ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	}
	c, err := e.compileCode(ctx, metered)
	switch {
	case err == nil || e.cache == nil || e.o.CompiledOnly:
	case unwritten(err):
		if c, err = e.compileCode(ctx, metered); err == nil {
			_ = c.Close(ctx) // the reference that the failed try took and did not give back
		}
	default:
		e.clearCode()
		c, err = e.compileCode(ctx, metered)
	}
	if err != nil {
		// The checker let it pass, so this is a difference between the two, not news for the author.
		return nil, fmt.Errorf("wasm: compile: %w", err)
	}
	return c, nil
}

// compileCode is wazero's part. It allocates what the header of a cached file
// says, and panics where that is absurd. It lets others find a module that it loads from
// the cache before the module is whole, and modules of strangers can be equal but for their
// data, so that equal ones wait for each other here.
func (e *Engine) compileCode(ctx context.Context, metered []byte) (c wazero.CompiledModule, err error) {
	turn := &e.turns[maphash.Bytes(e.seed, metered)%uint64(len(e.turns))]
	turn.Lock()
	defer turn.Unlock()
	defer func() {
		if p := recover(); p != nil {
			c, err = nil, fmt.Errorf("the compiler failed: %v", p)
		}
	}()
	return e.runtime.CompileModule(ctx, metered)
}

// unwritten reports whether the code was compiled, and only its file is missing:
// wazero writes to a temporary file and renames it.
func unwritten(err error) bool {
	var path *fs.PathError
	var link *os.LinkError
	return errors.As(err, &link) || errors.As(err, &path) && strings.HasSuffix(path.Path, ".tmp")
}

func (e *Engine) codeDir() string { return filepath.Join(e.o.CacheDir, "code") }

// leftOver is the age at which a temporary file of the cache has no writer any more:
// writing one takes seconds. Who writes one for longer finds the code in memory.
const leftOver = 10 * time.Minute

// sweepCache removes the temporary files of processes that were killed while they
// wrote: wazero's end in .tmp, and those of [replace] begin with a dot.
func (e *Engine) sweepCache(now time.Time) {
	for _, dir := range []string{e.codeDir(), filepath.Join(e.o.CacheDir, "metered")} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, ".tmp") && !strings.HasPrefix(d.Name(), ".") {
				return nil
			}
			if info, err := d.Info(); err == nil && now.Sub(info.ModTime()) > leftOver {
				_ = os.Remove(path) // it is tried again the next time
			}
			return nil
		})
	}
}

// unused is how long the code of another compiler is kept after an engine last opened it:
// programs of several versions may share a cache.
const unused = 14 * 24 * time.Hour

// sweepVersions notes that the folder of this compiler's code is in use, and removes those
// of others that were not for long. An engine that is still open keeps what it compiles
// then in memory.
func (e *Engine) sweepVersions(now time.Time) {
	own := "wazero-" + CompilerVersion() + "-" + runtime.GOARCH + "-" + runtime.GOOS // as wazero names it
	_ = os.Chtimes(filepath.Join(e.codeDir(), own), now, now)                        // reading its files changes no time
	entries, _ := os.ReadDir(e.codeDir())                                            // the next start tries again
	for _, d := range entries {
		if info, err := d.Info(); err == nil && strings.HasPrefix(d.Name(), "wazero-") && d.Name() != own && now.Sub(info.ModTime()) > unused {
			_ = os.RemoveAll(filepath.Join(e.codeDir(), d.Name()))
		}
	}
}

// clearCode removes the files of compiled code. Those who have loaded them keep
// their own copy.
func (e *Engine) clearCode() {
	_ = filepath.WalkDir(e.codeDir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			_ = os.Remove(path) // what cannot be removed fails the next try, which tells
		}
		return nil
	})
}
