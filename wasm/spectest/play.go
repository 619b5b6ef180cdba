package spectest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Transform rewrites a module before it is compiled.
type Transform func(wasm []byte) ([]byte, error)

// Stage is a runtime in which scripts are played.
type Stage struct {
	Runtime   wazero.Runtime
	Transform Transform       // nil: as it is
	Start     string          // an export that stands for the start function, called first if it is there
	Exception string          // an exported i32 that is not zero after a call that ended by an exception; "" for none
	ctx       context.Context // where instances have their memories from
	named     map[string]api.Module
	last      api.Module
}

// NewStage makes a stage. setup, if not nil, adds host modules before the module
// "spectest", which is transformed like all others. Memories are those of the context's
// allocator, if it has one.
func NewStage(ctx context.Context, tb testing.TB, cfg wazero.RuntimeConfig, tr Transform, start string, setup func(context.Context, wazero.Runtime)) *Stage {
	tb.Helper()
	s := &Stage{Runtime: wazero.NewRuntimeWithConfig(ctx, cfg), Transform: tr, Start: start, ctx: ctx, named: map[string]api.Module{}}
	if setup != nil {
		setup(ctx, s.Runtime)
	}
	if err := s.instantiate(ctx, HostModule(tb), "spectest"); err != nil {
		tb.Fatalf("module spectest: %v", err)
	}
	s.last = nil
	return s
}

// Close ends the runtime.
func (s *Stage) Close() { _ = s.Runtime.Close(context.Background()) }

func (s *Stage) instantiate(ctx context.Context, wasm []byte, name string) error {
	if s.Transform != nil {
		out, err := s.Transform(wasm)
		if err != nil {
			return fmt.Errorf("transform: %w", err)
		}
		wasm = out
	}
	c, err := s.Runtime.CompileModule(ctx, wasm)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	m, err := s.Runtime.InstantiateModule(ctx, c, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil {
		return fmt.Errorf("instantiate: %w", err)
	}
	s.last = m
	if f := m.ExportedFunction(s.Start); s.Start != "" && f != nil {
		if _, err := s.call(ctx, m, f, nil); err != nil {
			return fmt.Errorf("instantiate: %w", err)
		}
	}
	return nil
}

// ErrException is the outcome of a call that ended by an exception, as
// Stage.Exception tells it.
var ErrException = errors.New("uncaught exception")

// call looks at Stage.Exception, and clears it for the next call.
func (s *Stage) call(ctx context.Context, m api.Module, f api.Function, args []uint64) ([]uint64, error) {
	res, err := f.Call(ctx, args...)
	if s.Exception == "" || err != nil {
		return res, err
	}
	if g, ok := m.ExportedGlobal(s.Exception).(api.MutableGlobal); ok && g.Get() != 0 {
		g.Set(0)
		return nil, ErrException
	}
	return res, nil
}

// Outcome is what one command gave.
type Outcome struct {
	Results []uint64
	Err     error
}

// Play runs a command of script sc at index i. ran is false for commands that
// ask nothing of a runtime.
func (s *Stage) Play(tb testing.TB, sc *Script, i int) (o Outcome, ran bool) {
	tb.Helper()
	ctx := s.ctx
	c := &sc.Commands[i]
	switch c.Type {
	case "module":
		if !strings.HasSuffix(c.Filename, ".wasm") {
			return o, false
		}
		s.last = nil
		o.Err = s.instantiate(ctx, sc.Module(tb, c), sc.registeredAs(i))
		if c.Name != "" && o.Err == nil {
			s.named[c.Name] = s.last
		}
		return o, true
	case "assert_unlinkable", "assert_uninstantiable":
		keep := s.last
		o.Err = s.instantiate(ctx, sc.Module(tb, c), "")
		s.last = keep
		return o, true
	case "assert_return", "assert_trap", "assert_exhaustion", "action", "assert_exception":
		m := s.last
		if c.Action.Module != "" {
			m = s.named[c.Action.Module]
		}
		if m == nil {
			return o, false // the module itself could not be made; that was reported
		}
		if c.Action.Type == "get" {
			o.Results = []uint64{m.ExportedGlobal(c.Action.Field).Get()}
			return o, true
		}
		var args []uint64
		for _, a := range c.Action.Args {
			args = append(args, a.bits(tb)...)
		}
		f := m.ExportedFunction(c.Action.Field)
		if f == nil {
			tb.Fatalf("%s: no such function", sc.Where(c))
		}
		o.Results, o.Err = s.call(ctx, m, f, args)
		return o, true
	}
	return o, false
}

// registeredAs gives the name under which the module of command i is imported
// later: wazero names a module when it is made.
func (sc *Script) registeredAs(i int) string {
	name := sc.Commands[i].Name
	for j := i + 1; j < len(sc.Commands); j++ {
		c := &sc.Commands[j]
		if c.Type == "register" && (c.Name == "" || c.Name == name) {
			return c.As
		}
		if c.Type == "module" && name == "" {
			return ""
		}
	}
	return ""
}

// bits gives a value as wazero takes it: 64 bits, or twice 64 for a vector.
func (v Value) bits(tb testing.TB) []uint64 {
	tb.Helper()
	switch v.Type {
	case "v128":
		lanes, _ := v.Value.([]any)
		width := 128 / len(lanes)
		var out [2]uint64
		for i, l := range lanes {
			n := number(tb, l, min(width, 64))
			if width < 64 {
				n &= 1<<width - 1
			}
			out[i*width/64] |= n << (i * width % 64)
		}
		return out[:]
	case "externref":
		if v.Value == "null" {
			return []uint64{0}
		}
		return []uint64{number(tb, v.Value, 64) + 1} // wazero's null is 0
	case "funcref", "exnref":
		return []uint64{0}
	case "i32", "f32":
		return []uint64{number(tb, v.Value, 32)}
	}
	return []uint64{number(tb, v.Value, 64)}
}

func number(tb testing.TB, v any, width int) uint64 {
	tb.Helper()
	s, _ := v.(string)
	switch s {
	case "nan:canonical", "nan:arithmetic":
		if width == 32 {
			return uint64(math.Float32bits(float32(math.NaN())))
		}
		return math.Float64bits(math.NaN())
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		tb.Fatalf("not a number: %v", v)
	}
	return uint64(n)
}

// Matches reports whether results are what the script expects.
func (c *Command) Matches(tb testing.TB, results []uint64) bool {
	tb.Helper()
	at := 0
	for _, e := range c.Expected {
		n := 1
		if e.Type == "v128" {
			n = 2
		}
		if at+n > len(results) || !e.matches(tb, results[at:at+n]) {
			return false
		}
		at += n
	}
	return at == len(results)
}

func (v Value) matches(tb testing.TB, got []uint64) bool {
	tb.Helper()
	switch v.Type {
	case "v128":
		lanes, _ := v.Value.([]any)
		width := 128 / len(lanes)
		for i, l := range lanes {
			g := got[i*width/64] >> (i * width % 64)
			if !sameLane(tb, l, g, min(width, 64)) {
				return false
			}
		}
		return true
	case "i32", "f32":
		return sameLane(tb, v.Value, got[0], 32)
	case "funcref":
		return (v.Value == "null") == (got[0] == 0)
	}
	if v.Type == "externref" {
		return got[0] == v.bits(tb)[0]
	}
	return sameLane(tb, v.Value, got[0], 64)
}

func sameLane(tb testing.TB, want any, got uint64, width int) bool {
	tb.Helper()
	if s, _ := want.(string); strings.HasPrefix(s, "nan:") {
		if width == 32 {
			return math.IsNaN(float64(math.Float32frombits(uint32(got))))
		}
		return math.IsNaN(math.Float64frombits(got))
	}
	mask := uint64(math.MaxUint64) >> (64 - width)
	return number(tb, want, width)&mask == got&mask
}
