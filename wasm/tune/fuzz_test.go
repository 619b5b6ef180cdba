package tune_test

import (
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/check"
	"openskill/wasm/passtest"
	"openskill/wasm/tune"
)

// FuzzTune holds tuned programs to what they were, on compiler and interpreter:
// results, traps and the whole memory. No sum in the programs wraps, so nothing may
// differ.
func FuzzTune(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(passtest.Bytes(seed, int(seed*11%300)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4096 {
			compare(t, passtest.Addresses(data))
		}
	})
}

// compare tunes a program and runs both. It gives what was changed, and whether the
// program returned.
func compare(t *testing.T, wasm []byte) (stats tune.Stats, returned bool) {
	t.Helper()
	in, err := check.Module(wasm, nil)
	if err != nil {
		t.Fatalf("the generated module is refused: %v", err)
	}
	tuned := musttest.Get(tune.Module(in.Module, &tune.Options{Low: 1024}))(t)
	rewritten := tuned.Module.Encode()
	if _, err := check.Module(rewritten, nil); err != nil {
		t.Fatalf("not valid any more: %v", err)
	}
	for _, engine := range passtest.Engines(api.CoreFeaturesV2) {
		want := passtest.Run(t, engine, wasm, in.Module, nil)
		passtest.Same(t, "tuned, on the "+engine.Name, want, passtest.Run(t, engine, rewritten, in.Module, nil))
		returned = want.Calls[0][:2] == "f["
	}
	return tuned.Stats, returned
}

// TestRandomPrograms is FuzzTune for some hundred programs, and holds that they are
// what it is about.
func TestRandomPrograms(t *testing.T) {
	changed, returned := 0, 0
	first, end := passtest.Seeds(t, 200)
	for seed := first; seed < end; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			stats, ok := compare(t, passtest.Addresses(passtest.Bytes(seed, 8)))
			changed += stats.Direct + stats.Shared
			if ok {
				returned++
			}
		})
	}
	t.Logf("%d changes, %d programs that returned", changed, returned)
	if changed < 300 || returned < 50 {
		t.Errorf("%d changes, %d programs that returned: too few", changed, returned)
	}
}
