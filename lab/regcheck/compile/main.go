// Command compile compiles modules as the engine does, in a program whose wazero checks its
// allocations of registers, and prints what that found. Only lab/regcheck builds it so.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/wasm"
	"openskill/wasm/check"
	"openskill/wasm/passtest"
)

func main() {
	c := compiler{}
	flag.BoolVar(&c.raw, "raw", false, "compile modules as they are, without the passes of the engine")
	flag.BoolVar(&c.guarded, "guarded", false, "compile for guard pages, without checks of addresses")
	flag.BoolVar(&c.trusted, "trusted", false, "compile files as language runtimes of the host")
	generate := flag.String("generate", "", "compile generated programs: "+strings.Join(names(), ", "))
	first := flag.Uint64("first", 0, "the first seed of generated programs")
	count := flag.Uint64("count", 100, "how many programs are generated")
	flag.Parse()
	// The functions of a module are compiled in order, so that a fault names the right one.
	runtime.GOMAXPROCS(1)
	switch err := c.run(*generate, *first, *count, flag.Args()); {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case c.faults > 0:
		os.Exit(1)
	}
}

type compiler struct {
	raw, trusted, guarded bool

	engine   *wasm.Engine
	compiled int // by this engine
	modules  int
	refused  int
	faults   int
	short    int // of registers
}

// generators make programs; they are those that the tests of the passes use.
var generators = map[string]func([]byte) []byte{
	"arithmetic": passtest.Arithmetic,
	"addresses":  passtest.Addresses,
	"calls":      passtest.Calls,
	"pressure":   passtest.Pressure,
	"program":    passtest.Program,
}

func names() (all []string) {
	for n := range generators {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

func (c *compiler) run(generate string, first, count uint64, files []string) error {
	if expvar.Get("regcheck.functions") == nil {
		return errors.New("this program was built without the checker: run go -C lab run ./regcheck")
	}
	began := time.Now()
	for _, f := range files {
		module, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := c.module(f, module, false); err != nil {
			return err
		}
	}
	if generate != "" {
		program, ok := generators[generate]
		if !ok {
			return fmt.Errorf("generator %q not found; use one of %s", generate, strings.Join(names(), ", "))
		}
		for seed := first; seed < first+count; seed++ {
			if err := c.module(fmt.Sprint(generate, " of seed ", seed), program(passtest.Bytes(seed, 8)), true); err != nil {
				return err
			}
		}
	}
	if c.short > 0 {
		fmt.Printf("%d had too few registers\n", c.short)
	}
	fmt.Printf("%d modules, %v functions, %v instructions, %d refused, %d faults, %v\n", c.modules,
		expvar.Get("regcheck.functions"), expvar.Get("regcheck.instructions"), c.refused, c.faults, time.Since(began).Round(time.Second/10))
	return nil
}

// perEngine is how many modules an engine compiles before another one takes its place: it
// keeps what it has compiled.
const perEngine = 200

// module compiles one, and prints its faults; of a generated one only those, since some are refused
// for a processor by the hundred.
func (c *compiler) module(name string, module []byte, generated bool) error {
	c.modules++
	before := c.faults
	err := c.compile(module)
	for _, f := range found() {
		c.faults++
		fmt.Printf("%s, function %d: %s: %s\n", name, f.Function, f.Instruction, f.What)
		for _, line := range f.Around {
			fmt.Println("\t", line)
		}
	}
	if refused := (&check.Error{}); errors.As(err, &refused) {
		c.refused++
		if !generated {
			fmt.Printf("%s is refused: %v\n", name, err)
		}
	} else if err != nil && strings.Contains(err.Error(), "not found any allocatable register") {
		c.short++
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if c.faults > before {
		fmt.Printf("%s: %d faults\n", name, c.faults-before)
	}
	return nil
}

func (c *compiler) compile(module []byte) error {
	ctx := context.Background()
	if c.raw {
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2))
		defer func() { _ = r.Close(ctx) }()
		_, err := r.CompileModule(ctx, module)
		return err
	}
	if c.engine != nil && c.compiled >= perEngine {
		if err := c.engine.Close(); err != nil {
			return err
		}
		c.engine = nil
	}
	if c.engine == nil {
		e, err := wasm.Open(&wasm.Options{GuardPages: c.guarded})
		if err != nil {
			return err
		}
		c.engine, c.compiled = e, 0
	}
	c.compiled++
	_, err := c.engine.Compile(ctx, module, &wasm.CompileOptions{Trusted: c.trusted})
	return err
}

// fault is what package regcheck says of one, which is laid into wazero.
type fault struct {
	Function    int
	Instruction string
	What        string
	Around      []string
}

// found takes the faults since the last time.
func found() (all []fault) {
	if err := json.Unmarshal([]byte(expvar.Get("regcheck.faults").String()), &all); err != nil {
		panic(err) // both sides are of this folder
	}
	return all
}
