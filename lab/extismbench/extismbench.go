// Package extismbench measures plug-ins of Extism on this host against Extism's own SDK
// for Go, in one process and one run.
package extismbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"openskill/internal/measure"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"openskill/plugins/extism"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Module is the plug-in, below the folder of guests.
const Module = "extism.wasm"

// Bench makes cases. The caller closes it.
type Bench struct {
	folder string
	ours   *extism.Runner
	theirs []*sdk.CompiledPlugin
}

// Open gets the plug-in of a folder of guests ready on all sides.
func Open(ctx context.Context, e *wasm.Engine, folder string) (*Bench, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	module, err := os.ReadFile(filepath.Join(folder, Module))
	if err != nil {
		return nil, err
	}
	b := &Bench{folder: folder, ours: extism.New(e, nil)}
	for _, timeout := range []time.Duration{0, time.Minute} {
		p, err := sdk.NewCompiledPlugin(ctx, sdk.Manifest{
			Wasm: []sdk.Wasm{sdk.WasmData{Data: module}}, Timeout: uint64(timeout.Milliseconds()),
		}, sdk.PluginConfig{EnableWasi: true}, nil)
		if err != nil {
			return nil, errors.Join(err, b.Close(ctx))
		}
		b.theirs = append(b.theirs, p)
	}
	return b, nil
}

// Close gives everything back. It may be called twice.
func (b *Bench) Close(ctx context.Context) error {
	err := b.ours.Close()
	for _, p := range b.theirs {
		err = errors.Join(err, p.Close(ctx))
	}
	b.theirs = nil
	return err
}

// The work that is measured.
var work = []struct {
	name, function string
	input          int // bytes
	times, n       int
}{
	{"a call that computes", "compute", 100, 1, 30},
	{"a call that needs more memory", "grow", 100, 1, 30},
	{"100 bytes back", "echo", 100, 20, 50},
	{"64 KiB back", "echo", 64 << 10, 2, 50},
}

// kinds are the two of each: Extism's SDK without a deadline, and with one.
var kinds = [...]string{"", ", its deadline on"}

// Any reports whether any case is wanted.
func Any(wanted func(suite, name string) bool) bool {
	for _, w := range work {
		for _, kind := range kinds {
			if wanted("extism", w.name+kind) {
				return true
			}
		}
	}
	return false
}

// Cases are the same calls on both sides. Extism's own instances are kept between calls, as
// its SDK is mostly used, or made for each call, as every call here has it.
func (b *Bench) Cases(ctx context.Context, wanted func(suite, name string) bool) ([]measure.Case, error) {
	var all []measure.Case
	for _, w := range work {
		input := bytes.Repeat([]byte("x"), w.input)
		var want []byte
		same := func(out []byte) error {
			if want == nil {
				want = bytes.Clone(out)
			}
			if len(out) == 0 || !bytes.Equal(out, want) {
				return fmt.Errorf("%s: the answers differ", w.name)
			}
			return nil
		}
		for i, deadline := range []string{"", ", with its deadline"} {
			name := w.name + kinds[i]
			if !wanted("extism", name) {
				continue
			}
			kept, err := b.kept(ctx, i, w.function, input, same)
			if err != nil {
				return nil, err
			}
			goal := measure.AtMost(1.3)
			if i == 1 {
				goal = measure.Faster(1)
			}
			c := measure.Case{Suite: "extism", Name: name, N: w.n, Variants: []measure.Variant{
				{Name: "Extism's SDK" + deadline + ", an instance kept", Times: w.times, Run: kept},
				{Name: "Extism's SDK" + deadline + ", one for each call", Times: min(w.times, 5), Run: b.each(i, w.function, input, same)},
				{Name: "openskill", Times: w.times, Run: b.mine(w.function, input, same), Goals: []measure.Goal{goal}},
			}}
			all = append(all, c)
		}
	}
	return all, nil
}

func (b *Bench) kept(ctx context.Context, i int, function string, input []byte, same func([]byte) error) (func(context.Context) (time.Duration, error), error) {
	p, err := b.theirs[i].Instance(ctx, sdk.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig()})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		_, out, err := p.CallWithContext(ctx, function, input)
		took := time.Since(began)
		if err != nil {
			return 0, err
		}
		return took, same(out)
	}, nil
}

func (b *Bench) each(i int, function string, input []byte, same func([]byte) error) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		p, err := b.theirs[i].Instance(ctx, sdk.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig()})
		if err != nil {
			return 0, err
		}
		_, out, err := p.CallWithContext(ctx, function, input)
		took := time.Since(began)
		if err != nil {
			return 0, errors.Join(err, p.Close(ctx))
		}
		return took, errors.Join(same(out), p.Close(ctx))
	}
}

func (b *Bench) mine(function string, input []byte, same func([]byte) error) func(context.Context) (time.Duration, error) {
	call := &skill.Call{
		SkillID: "bench", Folder: b.folder, Entry: Module + "#" + function, Stdin: input, Digest: "sha256:bench",
		Limits: skill.Limits{Timeout: time.Minute, Memory: 256 << 20, Fuel: 1 << 50, Output: 1 << 20, Scratch: 1 << 20},
	}
	return func(ctx context.Context) (_ time.Duration, err error) {
		if call.Plan.Module.Digest == "" {
			if call.Plan, err = b.ours.Prepare(ctx, call.Spec()); err != nil {
				return 0, err
			}
		}
		began := time.Now()
		reply, err := b.ours.Run(ctx, call)
		took := time.Since(began)
		switch {
		case err != nil:
			return 0, err
		case reply.Code != "" || reply.ExitCode != 0:
			return 0, fmt.Errorf("%s: %s %s, exit code %d", function, reply.Code, reply.Message, reply.ExitCode)
		}
		return took, same(reply.Stdout)
	}
}
