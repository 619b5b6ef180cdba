package fronts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/plugins/all"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// TestEveryRunnerHasAFront: a host with workers has no runner of the sandbox but by a
// front. TestEveryRunnerIsInBothHosts of package host holds the same of whole hosts.
func TestEveryRunnerHasAFront(t *testing.T) {
	e, err := wasm.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	list, err := all.Sandboxed(all.Options{Engine: e, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var runners, kinds []skill.Kind
	for _, r := range list {
		runners = append(runners, r.Kind())
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, f := range All(t.TempDir(), nil) {
		kinds = append(kinds, f.Kind())
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(runners)
	slices.Sort(kinds)
	if diff := cmp.Diff(runners, kinds); diff != "" {
		t.Errorf("a runner of the sandbox needs a front in host/fronts (-runner +front):\n%s", diff)
	}
}
