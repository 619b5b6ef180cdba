// Package pysource asks CPython's own parser about a Python program: what it imports and uses,
// and which JSON Schema describes one of its functions or its command line. The program that
// answers is written in Python, in folder python.
//
// The parser runs in the sandbox, as any skill does: a program that breaks it, by
// nesting a thousand deep or by megabytes in one expression, ends one run of it and
// nothing else. The program that is looked at is never executed.
//
// [Module] is the form of the answer, and of the JSON in between. It may be forged: a program
// that breaks the parser can say what it likes.
package pysource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"openskill/sdk/skill"
)

//go:embed python/*.py
var program embed.FS

// entry is the file of the program at which it begins.
const entry = "answer.py"

// MaxSource is the size in bytes up to which a program is read.
const MaxSource = 1 << 20

// limits of one run. A source of [MaxSource] bytes that is one expression takes some
// hundred MiB as a tree.
var limits = skill.Limits{
	Timeout: 30 * time.Second, Memory: 512 << 20, Fuel: 1 << 38, Output: 8 << 20, Scratch: 1 << 20,
}

// Options say how programs are read. Runner and Dir are needed.
type Options struct {
	Runner skill.Runner // of kind wasm:python
	// Dir is a folder of the host's own, made when missing, in which the program that
	// reads programs is put. Where runners work in processes that may read some folders
	// only, it must be one of them.
	Dir string
	// Cache is a folder of the host alone, in which is kept what programs import; "": nowhere.
	Cache string
	// Most is how many answers Cache has at most, the oldest go; 0: 10,000.
	Most int
}

// Analyzer reads programs. It is safe for concurrent use.
type Analyzer struct {
	o     Options
	count atomic.Uint64

	mu     sync.Mutex
	folder string // with the program; "" until it is written
}

// New makes an analyzer. It writes and runs nothing yet.
func New(o Options) *Analyzer { return &Analyzer{o: o} }

// Digest tells this version of the reader from others, for those who keep what it found.
func Digest() string {
	sum := sha256.New()
	for _, f := range files() {
		_, _ = fmt.Fprintf(sum, "%s %d\n", f.name, len(f.text)) // a hash takes everything
		sum.Write(f.text)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

type file struct {
	name string
	text []byte
}

// files gives the program's files in the order of their names.
var files = sync.OnceValue(func() (list []file) {
	entries, err := program.ReadDir("python")
	for _, e := range entries {
		text, failed := program.ReadFile("python/" + e.Name())
		list, err = append(list, file{e.Name(), text}), errors.Join(err, failed)
	}
	if err != nil {
		panic(err) // they are part of this program
	}
	return list
})

// Question is what is asked of a program beside its imports.
type Question struct {
	Uses        bool    `json:"uses,omitempty"`
	Function    *string `json:"function,omitempty"` // the schemas of this function; "": of the one that is meant
	CommandLine bool    `json:"command_line,omitempty"`
	NoWait      bool    `json:"-"` // where the runtime is not compiled yet, that is the error
}

// Analyze is [Analyzer.Ask] for the uses.
func (a *Analyzer) Analyze(ctx context.Context, tenant string, source []byte) (*Module, error) {
	return a.Ask(ctx, tenant, source, Question{Uses: true})
}

// Ask reads one program for a tenant, when the runtime is compiled. A program that is no Python is no error: the
// Module says so, see [Module.Problem]. The error is a *skill.Error: INVALID_ARGUMENT for
// a source that is too large or takes too much to be read, and else what a runner says.
func (a *Analyzer) Ask(ctx context.Context, tenant string, source []byte, q Question) (*Module, error) {
	if len(source) > MaxSource {
		return nil, &skill.Error{
			Op: "pyast.Analyze", Code: skill.InvalidArgument,
			Message: fmt.Sprintf("the program is too large: %d bytes, the limit is %d", len(source), MaxSource),
		}
	}
	question, err := json.Marshal(q)
	if err != nil {
		return nil, &skill.Error{Op: "pyast.Analyze", Code: skill.Internal, Err: err}
	}
	call, err := a.call(tenant, entry, slices.Concat(question, []byte("\n"), source), limits)
	if err != nil {
		return nil, err
	}
	reply, err := a.run(ctx, call, q.NoWait)
	if err != nil {
		return nil, err
	}
	return read(reply)
}

// call is a run of a file of the program.
func (a *Analyzer) call(tenant, entry string, stdin []byte, l skill.Limits) (*skill.Call, error) {
	folder, err := a.prepare()
	if err != nil {
		return nil, &skill.Error{Op: "pyast.Analyze", Code: skill.Internal, Err: err}
	}
	return &skill.Call{
		SkillID: "pyast", TraceID: "pyast", ExecutionID: fmt.Sprintf("pyast-%d", a.count.Add(1)), Tenant: tenant,
		Folder: folder, Entry: entry, Digest: Digest(), Trust: skill.Builtin, Stdin: stdin, Limits: l,
	}, nil
}

// run prepares and runs it; noWait: not where the runtime is still being compiled.
func (a *Analyzer) run(ctx context.Context, call *skill.Call, noWait bool) (*skill.Reply, error) {
	spec := call.Spec()
	spec.Wait, spec.NoWait = !noWait, noWait // its compilation is not in the time of the run
	var err error
	if call.Plan, err = a.o.Runner.Prepare(ctx, spec); err != nil {
		return nil, err
	}
	if noWait && call.Plan.Missing != nil {
		return nil, call.Plan.Missing
	}
	return a.o.Runner.Run(ctx, call)
}

// read makes a module of what the program printed.
func read(r *skill.Reply) (*Module, error) {
	fail := func(code skill.Code, message string, err error) error {
		return &skill.Error{Op: "pyast.Analyze", Code: code, Message: message, Err: err}
	}
	switch {
	case r.Code == skill.Cancelled || r.Code == skill.WorkerCrashed:
		return nil, fail(r.Code, r.Message, nil)
	case r.Code != "": // the parser met a limit, or the end of its stack
		return nil, fail(skill.InvalidArgument, "cannot parse the program: it is nested too deeply or too large", fmt.Errorf("%s: %s", r.Code, r.Message))
	case r.ExitCode != 0:
		return nil, fail(skill.Internal, "", fmt.Errorf("exit code %d: %s", r.ExitCode, skill.CleanText(string(r.Stderr), 2000)))
	}
	m := &Module{}
	if err := json.Unmarshal(r.Stdout, m); err != nil {
		return nil, fail(skill.Internal, "", err)
	}
	return m, nil
}

// prepare puts the program into its folder, whose name is its digest.
func (a *Analyzer) prepare() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.folder != "" {
		return a.folder, nil
	}
	if a.o.Dir == "" {
		return "", errors.New("no folder is set")
	}
	dir, err := filepath.Abs(a.o.Dir)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(dir, "pyast-"+Digest()[len("sha256:"):][:16])
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return "", err
	}
	for _, f := range files() {
		path := filepath.Join(folder, f.name)
		if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, f.text) {
			if err := replace(folder, path, f.text); err != nil {
				return "", err
			}
		}
	}
	a.folder = folder
	return folder, nil
}

// replace writes a file whole or not at all: another host may use the same folder.
func replace(folder, path string, text []byte) error {
	f, err := os.CreateTemp(folder, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path) // CreateTemp makes files of mode 0600
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
