package wasm

import (
	"context"
	"reflect"
	"slices"

	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/image"
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
	dead     []byte // the part that is not in use, in the snapshot's copy
	live     []byte // the part in use
	saved    []byte
}

// newCheckpoint is called from within a host function, with its context; nil if
// there can be none.
func newCheckpoint(ctx context.Context) *checkpoint {
	guest := experimental.GetSnapshotter(ctx)
	c := &checkpoint{snapshot: guest.Snapshot()}
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
	c.dead, c.live = b[:sp.Uint()-base], b[sp.Uint()-base:top.Uint()-base]
	c.saved = slices.Clone(c.live)
	c.trim()
	// The stack that the guest stands on now is left at the first restore. It may have
	// been a hundred times as deep while the guest started.
	if v := reflect.ValueOf(guest); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if own := v.Elem().FieldByName("stack"); own.IsValid() && own.Type() == reflect.TypeFor[[]byte]() {
			if b := own.Bytes(); len(b) > len(c.live)+32 {
				image.Discard(b[:len(b)-len(c.live)-32]) // its top is aligned to 16 bytes
			}
		}
	}
	return c
}

// trim gives back the memory of the part of the stack that is not in use.
func (c *checkpoint) trim() { image.Discard(c.dead) }

// rewind puts the stack back.
func (c *checkpoint) rewind() { copy(c.live, c.saved) }

// restore leaves the host function that calls it, and gives result to the guest
// as that of the host function in which the checkpoint was taken. The stack must
// have been put back, unless the guest goes on from here for the first time.
func (c *checkpoint) restore(result uint64) {
	c.snapshot.Restore([]uint64{result})
}
