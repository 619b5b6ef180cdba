package all

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

func runners(t *testing.T, o Options) []skill.Runner {
	t.Helper()
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(sdkState(t), "cache", "wasm")}))(t) // where QuickJS is compiled
	o.Engine = e
	list := Runners(o)
	t.Cleanup(func() {
		for _, r := range list {
			if err := r.Close(); err != nil {
				t.Errorf("closing %s: %v", r.Kind(), err)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return list
}

func TestEveryKindOnce(t *testing.T) {
	var kinds []skill.Kind
	for _, r := range runners(t, Options{}) {
		kinds = append(kinds, r.Kind())
	}
	if diff := cmp.Diff([]skill.Kind{skill.WasmWASI, skill.WasmJavaScript, skill.WasmPython, skill.WasmShell, skill.WasmExtism, skill.CLIPython, skill.CLIExec, skill.HTTP}, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// A machine without any Python: modules still run, and the operator reads what is
// missing, without a path of the host.
func TestWhatIsMissing(t *testing.T) {
	state := t.TempDir()
	list := runners(t, Options{StateDir: state, Python: "none-such-python"})
	want := map[skill.Kind]string{
		skill.WasmWASI:       "",
		skill.WasmJavaScript: "",
		skill.WasmPython:     "openskill runtime install",
		skill.WasmShell:      "make runtimes",
		skill.CLIPython:      "install Python",
		skill.CLIExec:        "install Python",
		skill.HTTP:           "",
	}
	for _, s := range Statuses(t.Context(), list) {
		if (s.Missing == "") != (want[s.Kind] == "") || !strings.Contains(s.Missing, want[s.Kind]) || strings.Contains(s.Missing, state) {
			t.Errorf("%s: %q; want it to name %q", s.Kind, s.Missing, want[s.Kind])
		}
	}
}
