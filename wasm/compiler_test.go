package wasm

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

func TestRefusesOldProcessors(t *testing.T) {
	for _, c := range []struct {
		arch               string
		bmi1, bmi2, popcnt bool
		refused            bool
	}{
		{"amd64", true, true, true, false},
		{"amd64", false, true, true, true},
		{"amd64", true, false, true, true},
		{"amd64", true, true, false, true},
		{"arm64", false, false, false, false},
	} {
		if err := processor(c.arch, c.bmi1, c.bmi2, c.popcnt); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestRefusesToOpenOnOldProcessors opens an engine in a process that takes this processor
// for an old one, as wazero does there.
func TestRefusesToOpenOnOldProcessors(t *testing.T) {
	if os.Getenv("WASM_TEST_PROCESSOR") != "" {
		for _, o := range []Options{{}, {CacheDir: t.TempDir(), CompiledOnly: true}} {
			e, err := Open(&o)
			if err == nil {
				_ = e.Close()
				t.Errorf("%+v was opened", o)
			} else if !strings.Contains(err.Error(), "lacks BMI1, BMI2 or POPCNT") {
				t.Error(err)
			}
		}
		e := musttest.Get(Open(&Options{Interpreter: true}))(t)
		_ = e.Close()
		return
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("these are features of amd64")
	}
	for _, feature := range []string{"bmi1", "bmi2", "popcnt"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "WASM_TEST_PROCESSOR=old", "GODEBUG=cpu."+feature+"=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("without %s: %v\n%s", feature, err, out)
		}
	}
}
