package skillbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"openskill/internal/measure"

	"openskill/host/pysource"
	"openskill/plugins/javascript"
	"openskill/plugins/python"
	"openskill/plugins/python/runtimes"
	"openskill/plugins/shell"
	"openskill/plugins/wasi"
	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Options say where things are; all are required, but Quick.
type Options struct {
	Engine   *wasm.Engine // the caller closes it, after the Bench
	StateDir string       // of the host: its runtimes
	CacheDir string       // for what bare wazero compiles
	Scripts  string       // the folder examples/bench/python
	Skills   string       // the folder of the skills that come with openSkill
	Data     string       // the folder that skills may read
	// Quick measures each thing a few times only, to try whether all of it works.
	Quick bool
}

// Bench makes cases. The caller closes it.
type Bench struct {
	o      Options
	wasi   *wasi.Runner
	js     *javascript.Runner
	python *python.Runner
	shell  *shell.Runner
	store  *runtimes.Store
}

// New makes the runners that are measured. Nothing is compiled or started yet.
func New(o *Options) (*Bench, error) {
	b := &Bench{o: *o}
	for _, folder := range []*string{&b.o.Scripts, &b.o.Skills, &b.o.Data} {
		var err error
		if *folder, err = filepath.Abs(*folder); err != nil {
			return nil, err
		}
	}
	programs := &sandbox.Programs{}
	b.wasi, b.js = wasi.New(o.Engine, nil), javascript.New(o.Engine, &javascript.Options{Programs: programs})
	b.shell = shell.New(o.Engine, &shell.Options{Programs: programs, StateDir: o.StateDir})
	var read *pysource.Analyzer // by the runner itself, as a host has it
	b.python = python.New(o.Engine, &python.Options{
		StateDir: o.StateDir, Programs: programs,
		Imports: func(ctx context.Context, s *skill.Spec, script []byte) ([]string, error) {
			return read.Imports(ctx, s, script)
		},
	})
	read = pysource.New(pysource.Options{Runner: b.python, Dir: filepath.Join(o.StateDir, "pyast")})
	b.store = runtimes.New(o.StateDir)
	return b, nil
}

// Close closes the runners. It may be called twice.
func (b *Bench) Close() error {
	return errors.Join(b.wasi.Close(), b.js.Close(), b.shell.Close(), b.python.Close())
}

// few gives n, or less where all is only tried.
func (b *Bench) few(n, quick int) int {
	if b.o.Quick {
		return quick
	}
	return n
}

// limits are those of all calls that are measured: wide, so that none is reached.
var limits = skill.Limits{Timeout: time.Minute, Memory: 256 << 20, Fuel: 1 << 50, Output: 1 << 20, Scratch: 16 << 20}

// stdin is what a skill is given on standard input.
func stdin(input string) []byte { return []byte(`{"input":` + input + `}`) }

// script is a call of a script of the folder of scripts.
func (b *Bench) script(name, input string, requires ...string) *skill.Call {
	call := &skill.Call{SkillID: "bench", Folder: b.o.Scripts, Entry: name, Trust: skill.Trusted, Stdin: stdin(input), Limits: limits}
	if len(requires) > 0 {
		spec := call.Spec()
		spec.Requires = requires
		call.Plan, _ = b.python.Prepare(context.Background(), spec) // the first call tells
	}
	return call
}

// planned makes the plan of a call that has none.
func planned(ctx context.Context, r skill.Runner, call *skill.Call) (err error) {
	if call.Plan.Module.Digest == "" {
		call.Plan, err = r.Prepare(ctx, call.Spec())
	}
	return err
}

// once runs a call and gives what it printed, with the time from the call to the
// answer in the host.
func once(ctx context.Context, r skill.Runner, call *skill.Call) (*skill.Reply, time.Duration, error) {
	if err := planned(ctx, r, call); err != nil {
		return nil, 0, err
	}
	began := time.Now()
	reply, err := r.Run(ctx, call)
	took := time.Since(began)
	switch {
	case err != nil:
		return nil, 0, err
	case reply.Code != "" || reply.ExitCode != 0:
		return nil, 0, fmt.Errorf("%s: %s %s, exit code %d: %.300s", call.Entry, reply.Code, reply.Message, reply.ExitCode, reply.Stderr)
	}
	return reply, took, nil
}

// agree holds the outputs of variants against each other.
type agree struct{ want []byte }

func (a *agree) with(out []byte) error {
	out = bytes.TrimSpace(out)
	if a.want == nil {
		a.want = bytes.Clone(out)
	}
	if len(out) == 0 || !bytes.Equal(out, a.want) {
		return fmt.Errorf("the output differs between variants: %.80q and %.80q", a.want, out)
	}
	return nil
}

// ours is the variant of a runner of this host.
func ours(r skill.Runner, call *skill.Call, a *agree) measure.Variant {
	var fuel, memory uint64
	return measure.Variant{
		Name: "openskill",
		Run: func(ctx context.Context) (time.Duration, error) {
			reply, took, err := once(ctx, r, call)
			if err != nil {
				return 0, err
			}
			fuel, memory = reply.Usage.Fuel, reply.Usage.MemoryPeak
			return took, a.with(reply.Stdout)
		},
		Note: func() string { return fmt.Sprintf("fuel %d, %d MiB", fuel, memory>>20) },
	}
}

// timed is what a program that measures itself prints.
type timed struct {
	Result json.RawMessage `json:"result"`
	NS     int64           `json:"ns"`
}

// selfTimed reads what such a program printed, and holds its result against the
// other variants'.
func selfTimed(out []byte, a *agree) (time.Duration, error) {
	var t timed
	if err := json.Unmarshal(out, &t); err != nil || t.NS <= 0 {
		return 0, fmt.Errorf("no result and time: %.100q", out)
	}
	return time.Duration(t.NS), a.with(t.Result)
}
