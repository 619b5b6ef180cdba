package javascript

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"openskill/sdk/skill"
	"openskill/wasm"
)

const compiler = `
const code = std.evalScript(std.loadFile('/skill/source.txt'), { compile_only: true });
const bin = bjson.write(code, bjson.WRITE_OBJ_BYTECODE | bjson.WRITE_OBJ_STRIP_SOURCE | bjson.WRITE_OBJ_STRIP_DEBUG);
std.out.write(bin, 0, bin.byteLength);
`

// Compile gives the code of a script without its source and lines, for this QuickJS alone.
func Compile(ctx context.Context, text []byte) ([]byte, error) {
	e, err := wasm.Open(nil)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return compile(ctx, e, text)
}

func compile(ctx context.Context, e *wasm.Engine, text []byte) (code []byte, err error) {
	dir, err := os.MkdirTemp("", "compile-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for name, b := range map[string][]byte{"main.js": []byte(compiler), "source.txt": text} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return nil, err
		}
	}
	r := New(e, nil)
	defer func() { err = errors.Join(err, r.Close()) }()
	r.command = []string{"qjs", "--std"} // without the prelude, which may be what is broken
	call := &skill.Call{
		SkillID: "compile", Folder: dir, Entry: "main.js", Trust: skill.Trusted,
		Limits: skill.Limits{Timeout: 5 * time.Minute, Memory: 256 << 20, Fuel: 1 << 40, Output: 64 << 20},
	}
	plan, err := r.Prepare(ctx, &skill.Spec{Folder: dir, Entry: call.Entry, Wait: true})
	if err != nil {
		return nil, err
	}
	call.Plan = plan
	reply, err := r.Run(ctx, call)
	if err != nil {
		return nil, err
	}
	if reply.ExitCode != 0 || len(reply.Stdout) == 0 {
		return nil, fmt.Errorf("exit code %d %s: %s", reply.ExitCode, reply.Code, reply.Stderr)
	}
	return reply.Stdout, nil
}
