package wasm

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/cpu"

	"openskill/wasm/amend"
)

// target is the processor that modules are amended for; "" is this one. The laboratory's
// checker of registers sets another by the linker: it compiles for that, and runs nothing.
var target string

func arch() string {
	if target != "" {
		return target
	}
	return runtime.GOARCH
}

// processor refuses a processor for which wazero v1.12.0 compiles clz and ctz into
// branches: unless they are amended, a guest can load from any address there. It looks
// where wazero looks, which GODEBUG=cpu.bmi1=off changes for both.
func processor(arch string, bmi1, bmi2, popcnt bool) error {
	if arch == "amd64" && !(bmi1 && bmi2 && popcnt) {
		return fmt.Errorf("wasm: this processor lacks BMI1, BMI2 or POPCNT (it has bmi1=%t bmi2=%t popcnt=%t), without which guests cannot be kept in their memory; "+
			"use another one, or give the virtual machine a processor of the type host or x86-64-v3", bmi1, bmi2, popcnt)
	}
	return nil
}

// compilerRight runs what wazero v1.12.0 gets wrong, amended as all guests are, once in a
// process: an error if the compiler gives something else than it should. An engine that only
// takes code that others have compiled does without: it takes it by the version of the
// compiler, the features of the processor and the generation, so that they have run it.
//
// It does not try the programs as they are, to do without amending where all are right: that
// one program is compiled rightly proves nothing of others. Amending ends by hand, when
// TestStillWrong in package amend fails for a new version.
var compilerRight = sync.OnceValue(func() error {
	for _, k := range amend.Programs() {
		got, err := compileAndRun(k)
		if err == nil && !slices.Equal(got, k.Want) {
			err = fmt.Errorf("it gives %v, not %v", got, k.Want)
		}
		if err != nil {
			return fmt.Errorf("wasm: this version of wazero compiles a program wrongly (%s): %w; build with the version that go.mod names", k.Name, err)
		}
	}
	return nil
})

func compileAndRun(k amend.Known) ([]uint64, error) {
	m, err := amend.Module(k.Module, arch())
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
	defer r.Close(ctx)
	inst, err := r.Instantiate(ctx, m.Encode())
	if err != nil {
		return nil, err
	}
	return inst.ExportedFunction("f").Call(ctx, k.Args...)
}

// compiler holds that guests can be compiled here, or run if they were compiled elsewhere.
func (o *Options) compiler() error {
	if o.Interpreter || target != "" {
		return nil
	}
	if err := processor(arch(), cpu.X86.HasBMI1, cpu.X86.HasBMI2, cpu.X86.HasPOPCNT); err != nil || o.CompiledOnly {
		return err
	}
	return compilerRight()
}
