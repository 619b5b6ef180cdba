package pysource

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"openskill/sdk/skill"
)

// compiler is the file of the program that compiles.
const compiler = "modules.py"

// compileLimits are those of one run that compiles: some ten times what [MaxSource] bytes
// of the largest packages take. The fuel ends it first: what is compiled does not depend
// on how fast the machine is.
var compileLimits = skill.Limits{
	Timeout: 10 * time.Minute, Memory: 512 << 20, Fuel: 1 << 36, Output: 16 << 20, Scratch: 1 << 20,
}

// Compiled are modules as an interpreter reads them. They may be forged, by a module that
// breaks the compiler.
type Compiled struct {
	Tag   string   // of the interpreter, in the names of such files: cpython-315
	Files [][]byte // empty: the module cannot be compiled
}

// Compile compiles modules in one run: paths are where scripts see them, and texts their
// sources, of [MaxSource] bytes together or one alone. Where the run meets a limit or breaks
// at a module, only those before it come. The same modules give the same bytes. The
// error is a *skill.Error.
func (a *Analyzer) Compile(ctx context.Context, tenant string, paths []string, texts [][]byte) (*Compiled, error) {
	list := make([][2]any, len(paths))
	for i, path := range paths {
		list[i] = [2]any{path, len(texts[i])}
	}
	head, err := json.Marshal(list)
	if err != nil {
		return nil, &skill.Error{Op: "pysource.Compile", Code: skill.Internal, Err: err}
	}
	call, err := a.call(tenant, compiler, slices.Concat(append([][]byte{head, []byte("\n")}, texts...)...), compileLimits)
	if err != nil {
		return nil, err
	}
	reply, err := a.run(ctx, call, false)
	switch {
	case err != nil:
		return nil, err
	case reply.Code == skill.Cancelled:
		return nil, &skill.Error{Op: "pysource.Compile", Code: reply.Code, Message: reply.Message}
	}
	return compiledOf(reply.Stdout, len(paths)), nil
}

// compiledOf reads what the program printed, which may end anywhere.
func compiledOf(out []byte, most int) *Compiled {
	c := &Compiled{}
	tag, rest, whole := bytes.Cut(out, []byte("\n"))
	if !whole {
		return c
	}
	c.Tag = string(tag)
	for len(c.Files) < most {
		length, after, found := bytes.Cut(rest, []byte("\n"))
		n, err := strconv.Atoi(string(length))
		if !found || err != nil || n < 0 || n > len(after) {
			break
		}
		c.Files, rest = append(c.Files, after[:n:n]), after[n:]
	}
	return c
}
