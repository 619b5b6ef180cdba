package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"openskill/wasm/check"
	"openskill/wasm/spectest"
)

// FuzzCheck holds the validator against wazero's: what is accepted here must
// compile there, and what compiles there must be accepted here, within the caps
// and but for what wazero is known to let through. wazero is asked only about
// bytes that decode, since some that do not would end the process.
func FuzzCheck(f *testing.F) {
	for _, suite := range []spectest.Suite{spectest.V2, spectest.ExtendedConst} {
		for i, sc := range spectest.Load(f, suite) {
			for j := range sc.Commands {
				c := &sc.Commands[j]
				if !strings.HasSuffix(c.Filename, ".wasm") || suite == spectest.V2 && (i+j)%5 != 0 {
					continue
				}
				if b := sc.Module(f, c); len(b) < 3000 {
					f.Add(b)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 8<<10 {
			return // wazero's compiler is not linear
		}
		agree(t, b)
	})
}

var fuzzed = &check.Options{AnyImport: true, Workers: 1}

func agree(t *testing.T, b []byte) {
	t.Helper()
	res, err := check.Module(b, fuzzed)
	if res.Module == nil {
		return // does not decode
	}
	var e *check.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("an error of type %T: %v", err, err)
	}
	m := *res.Module
	m.Customs = nil // wazero refuses malformed name sections, which the specification ignores
	bare := m.Encode()
	theirs := compiles(bare, wazero.NewRuntimeConfigInterpreter())
	switch {
	case err == nil && theirs != nil:
		t.Fatalf("accepted, and wazero refuses it: %v", theirs)
	case err == nil:
		if theirs := compiles(bare, wazero.NewRuntimeConfigCompiler()); theirs != nil {
			t.Fatalf("accepted, and wazero's compiler refuses it: %v", theirs)
		}
	case theirs == nil && e.Code == check.InvalidModule && !lenient(e):
		t.Fatalf("refused, and wazero accepts it: %v", err)
	}
}

// lenient lists what wazero accepts and the specification does not.
func lenient(e *check.Error) bool {
	for _, known := range []string{
		"malformed block type",                 // a value type in more bytes than one
		"constant expression required: global", // a mutable global is read
		"only imported ones may be read",       // a global of the module's own is read
	} {
		if strings.Contains(e.Msg, known) {
			return true
		}
	}
	return false
}

func compiles(b []byte, cfg wazero.RuntimeConfig) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, cfg.WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesExtendedConst))
	defer func() { _ = r.Close(ctx) }()
	_, err = r.CompileModule(ctx, b)
	return err
}
