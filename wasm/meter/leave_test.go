package meter_test

import (
	"testing"

	"openskill/internal/musttest"
	"openskill/wasm/check"
	"openskill/wasm/meter"
	"openskill/wasm/meter/metertest"
	w "openskill/wasm/wasmtest"
)

// TestLeavingSeveralLoops holds a branch that leaves two loops at once against
// the verifier: it alone tells that both lie in a third one, which is repeated
// without a test if that is not seen. Each iteration of the two passes the test
// of the innermost loop, so that they need none themselves.
func TestLeavingSeveralLoops(t *testing.T) {
	again := func(depth uint32) w.Code { return w.Get(0) + w.BrIf(depth) }
	tested := w.Loop(again(0))
	second := w.Loop(again(2), tested, again(0), w.Br(1)) // 2: out of the block in the third
	b := w.New()
	b.Command(w.Loop(w.Block(w.Loop(second)), again(0)))
	res := musttest.Get(check.Module(b.Bytes(), nil))(t)
	rw := musttest.Get(meter.Rewrite(res.Module, res.MaxStack, &meter.Options{Trace: true}))(t)
	musttest.Do(t, metertest.Verify(res.Module, rw))
}
