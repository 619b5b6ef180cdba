package lower_test

import (
	"errors"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/lower"
	w "openskill/wasm/wasmtest"
)

// TestImportsStayApart puts an imported function into a table. Its type is not
// changed, so no other one may become the same.
func TestImportsStayApart(t *testing.T) {
	b := w.New()
	imported := b.ImportFunc("a", "b", one64, one32)
	b.Table(1, imported)
	wants := b.Type([]binary.ValType{exnref}, one32)
	b.Export("f", b.Func(nil, one32, nil, nullExn+w.I32(0)+w.CallIndirect(wants)))
	in := musttest.Get(check.Module(source(t, b, nil, noTypes), anything))(t)
	low := musttest.Get(lower.Exceptions(in.Module, in.MaxStack, nil))(t)
	if x := low.Module.Types; x[wants].Equal(x[low.Module.Imports[0].Type]) {
		t.Errorf("a call of %v finds the import, which is %v", in.Module.Types[wants], x[wants])
	}
}

// TestTypesThatAllClash gives every width that a reference could be padded to a
// type of its own. Looking at them ends with the widths that are possible.
func TestTypesThatAllClash(t *testing.T) {
	b := w.New()
	calls := w.Unreachable
	params := one64
	for range 900 {
		calls += w.CallIndirect(b.Type(params, nil))
		params = append(params[:len(params):len(params)], i32)
	}
	calls += w.CallIndirect(b.Type([]binary.ValType{exnref}, nil))
	b.Table(1)
	b.Void(calls)
	in, err := check.Module(source(t, b, nil, noTypes), anything)
	musttest.Do(t, err)
	_, err = lower.Exceptions(in.Module, in.MaxStack, nil)
	var v *check.Error
	if !errors.As(err, &v) || v.Code != check.FeatureDisabled || !strings.Contains(v.Msg, "takes 17 values") {
		t.Errorf("got %v", err)
	}
}
