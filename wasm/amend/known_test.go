package amend_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/internal/musttest"
	"openskill/wasm/amend"
	"openskill/wasm/binary"
	"openskill/wasm/check"
)

// f calls the function f of a module on the compiler.
func f(t *testing.T, cfg wazero.RuntimeConfig, m *binary.Module, args []uint64) []uint64 {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, cfg.WithCoreFeatures(api.CoreFeaturesV2))
	defer func() { _ = r.Close(ctx) }()
	inst := musttest.Get(r.Instantiate(ctx, m.Encode()))(t)
	return musttest.Get(inst.ExportedFunction("f").Call(ctx, args...))(t)
}

// lacking runs the test t in a process of its own that takes this processor for one
// without a feature, for each that changes what the compiler makes.
func lacking(t *testing.T) (child bool) {
	t.Helper()
	if os.Getenv("AMEND_CHILD") != "" {
		return true
	}
	if runtime.GOARCH != "amd64" {
		return false
	}
	for _, feature := range []string{"bmi1", "bmi2", "popcnt"} {
		t.Run("without "+feature, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()[:len(t.Name())-len("/without_"+feature)]+"$")
			cmd.Env = append(os.Environ(), "AMEND_CHILD=1", "GODEBUG=cpu."+feature+"=off")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	return false
}

// TestKnown holds that what the compiler gets wrong is right amended, on processors that
// lack a feature too.
func TestKnown(t *testing.T) {
	lacking(t)
	for _, k := range amend.Programs() {
		t.Run(k.Name, func(t *testing.T) {
			musttest.Get(check.Module(k.Module.Encode(), nil))(t)
			if got := f(t, wazero.NewRuntimeConfigInterpreter(), k.Module, k.Args); !slices.Equal(got, k.Want) {
				t.Fatalf("interpreted %v, want %v", got, k.Want)
			}
			for _, arch := range []string{"amd64", "arm64"} {
				m := musttest.Get(amend.Module(k.Module, arch))(t)
				cfg := wazero.NewRuntimeConfigInterpreter()
				if arch == runtime.GOARCH {
					cfg = wazero.NewRuntimeConfigCompiler()
				}
				if got := f(t, cfg, m, k.Args); !slices.Equal(got, k.Want) {
					t.Errorf("for %s: %v, want %v", arch, got, k.Want)
				}
			}
		})
	}
}

// TestStillWrong fails where a kind of fault is gone from wazero as it is: then what stands
// against it in this package can go too. With the edits of wasm/edits the compiler is right.
func TestStillWrong(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the programs are made for the compiler for amd64")
	}
	_, edited := wazero.NewRuntimeConfigCompiler().(interface{ Edits() (string, []string) })
	for _, k := range amend.Programs() {
		t.Run(k.Name, func(t *testing.T) {
			if k.Feature != "" && !edited {
				t.Skip("without its edits it would read and crash anywhere, on a processor that this may not be")
			}
			if got := f(t, wazero.NewRuntimeConfigCompiler(), k.Module, k.Args); slices.Equal(got, k.Want) != edited {
				t.Errorf("%v, where %v is right: edited is %t", got, k.Want, edited)
			}
		})
	}
}

func ExamplePrograms() {
	for _, k := range amend.Programs() {
		fmt.Println(k.Name)
	}
	// Output:
	// select of a float
	// select of a vector
	// copysign
	// conversion of an unsigned number
	// conversion that gives an address of the host's
	// clz
	// ctz
	// 0 below the result of and
}
