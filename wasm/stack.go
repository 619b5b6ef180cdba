package wasm

import (
	"context"
	"errors"
	"reflect"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// stackProbe measures how much of the host's stack a guest uses.
//
// wazero lets that stack grow to about 84 MB and has no setting for it. But a
// host function is handed its arguments in place, so their address is the depth
// of the stack, and the function value that runs the guest keeps the address of
// its top. Fuel pays for frames (meter.FrameUnit), so the stack grows little
// between two visits to the host, and looking there is enough. The field is read
// by reflection, without writing and without unsafe; where this build of wazero
// does not have it, Open fails rather than running without a limit.
type stackProbe struct {
	field []int // of the type behind api.Function; the address of the stack's top
}

// probeModule exports a function f that does nothing.
var probeModule = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x04\x01\x02\x00\x0b")

func (p *stackProbe) open(ctx context.Context, r wazero.Runtime, probe wazero.CompiledModule) error {
	m, err := r.InstantiateModule(ctx, probe, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	v := reflect.ValueOf(m.ExportedFunction("f"))
	if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if f, ok := v.Elem().Type().FieldByName("stackTop"); ok && f.Type.Kind() == reflect.Uintptr {
			p.field = f.Index
			return nil
		}
	}
	return errors.New("wasm: the stack of this version of wazero cannot be measured; build with the version that go.mod names")
}

// guest finds the stack of a function that is about to be called.
func (p *stackProbe) guest(f api.Function) reflect.Value {
	if p.field == nil {
		return reflect.Value{}
	}
	return reflect.ValueOf(f).Elem().FieldByIndex(p.field)
}

// depth is the stack in use, in bytes, seen from a host function's arguments.
func depth(top reflect.Value, args []uint64) uint64 {
	if !top.IsValid() {
		return 0
	}
	t, at := top.Uint(), uint64(reflect.ValueOf(args).Pointer())
	if at > t {
		return 0
	}
	return t - at
}
