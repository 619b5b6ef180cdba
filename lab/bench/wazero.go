package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// Wazero runs WASI programs on wazero with the edits of wasm/edits: without fuel, images or limits.
type Wazero struct {
	bare *bare
	p    Program
}

// Program is a WASI program, command or reactor.
type Program struct {
	Module []byte
	Mounts map[string]fs.FS // read-only, by the path in the guest
	Env    [][2]string
	Init   string // exported function to call first; "" for none
	Entry  string // exported function that gives the exit code; "_start" gives it by exiting
}

// OpenWazero compiles a program. It is never closed: the process ends soon.
func OpenWazero(ctx context.Context, p *Program, cacheDir string) (*Wazero, error) {
	b, err := newBare(ctx, &Guest{Module: p.Module}, cacheDir, false)
	if err != nil {
		return nil, err
	}
	for _, f := range b.compiled.ImportedFunctions() {
		if module, name, _ := f.Import(); module == "host" && name == "call" {
			// What a reactor of CPython may ask of a host that has nothing to offer.
			_, err = b.runtime.NewHostModuleBuilder("host").NewFunctionBuilder().
				WithFunc(func(_, _, _, _ int32) int32 { return -1 }).Export("call").Instantiate(ctx)
			if err != nil {
				return nil, err
			}
		}
	}
	return &Wazero{bare: b, p: *p}, nil
}

// Run is a whole call, from a new instance to the program's end.
func (w *Wazero) Run(ctx context.Context, args []string, stdin []byte) (stdout []byte, took time.Duration, err error) {
	var out, problem bytes.Buffer
	began := time.Now()
	exit, err := w.start(ctx, args, bytes.NewReader(stdin), &out, &problem)
	took = time.Since(began)
	if err == nil && exit != 0 {
		err = fmt.Errorf("exit code %d: %.300s", exit, problem.Bytes())
	}
	return out.Bytes(), took, err
}

func (w *Wazero) start(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (exit uint32, err error) {
	files := wazero.NewFSConfig()
	for at, f := range w.p.Mounts {
		files = files.WithFSMount(f, at)
	}
	cfg := wazero.NewModuleConfig().WithName("").WithArgs(args...).WithFSConfig(files).
		WithStdin(stdin).WithStdout(stdout).WithStderr(stderr).
		WithSysWalltime().WithSysNanotime().WithStartFunctions()
	for _, v := range w.p.Env {
		cfg = cfg.WithEnv(v[0], v[1])
	}
	m, err := w.bare.instantiate(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer m.Close(ctx)
	if w.p.Init != "" {
		_, err = m.ExportedFunction(w.p.Init).Call(ctx)
	}
	var results []uint64
	if err == nil {
		results, err = m.ExportedFunction(w.p.Entry).Call(ctx)
	}
	var ended *sys.ExitError
	switch {
	case errors.As(err, &ended):
		return ended.ExitCode(), nil
	case err != nil:
		return 0, err
	case len(results) > 0:
		return api.DecodeU32(results[0]), nil
	}
	return 0, nil
}
