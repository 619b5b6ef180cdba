package wasm

import (
	"context"
	"reflect"
	"slices"

	"github.com/tetratelabs/wazero/experimental"
)

// checkpoint is the stack of a guest in the middle of a host call, to which the
// guest can be put back any number of times.
//
// wazero's own snapshot can be restored once: the guest goes on in the very copy
// of the stack that the snapshot keeps, and taking a new one each time copies the
// whole stack, used or not. So the part in use is kept a second time and put back
// before each restore. Where the copy stands is read by reflection, without
// writing fields and without unsafe; a build of wazero that keeps it elsewhere
// gives no checkpoint, and instances are then used once.
type checkpoint struct {
	snapshot experimental.Snapshot
	live     []byte // the part in use, in the snapshot's copy
	saved    []byte
}

// newCheckpoint is called from within a host function, with its context; nil if
// there can be none.
func newCheckpoint(ctx context.Context) *checkpoint {
	c := &checkpoint{snapshot: experimental.GetSnapshotter(ctx).Snapshot()}
	v := reflect.ValueOf(c.snapshot)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	stack, sp, top := v.Elem().FieldByName("stack"), v.Elem().FieldByName("sp"), v.Elem().FieldByName("top")
	if !stack.IsValid() || stack.Type() != reflect.TypeFor[[]byte]() ||
		!sp.IsValid() || sp.Kind() != reflect.Uintptr || !top.IsValid() || top.Kind() != reflect.Uintptr {
		return nil
	}
	b, base := stack.Bytes(), uint64(stack.Pointer())
	if sp.Uint() < base || top.Uint() < sp.Uint() || top.Uint()-base > uint64(len(b)) {
		return nil
	}
	c.live = b[sp.Uint()-base : top.Uint()-base]
	c.saved = slices.Clone(c.live)
	return c
}

// rewind puts the stack back.
func (c *checkpoint) rewind() { copy(c.live, c.saved) }

// restore leaves the host function that calls it, and gives result to the guest
// as that of the host function in which the checkpoint was taken. The stack must
// have been put back, unless the guest goes on from here for the first time.
func (c *checkpoint) restore(result uint64) {
	c.snapshot.Restore([]uint64{result})
}
