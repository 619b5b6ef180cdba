package community

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// counted is what testdata/summary.json says of a collection, and of a category of it.
type counted struct {
	Package    string              `json:"package,omitempty"`
	Scripts    int                 `json:"scripts"`
	Cases      int                 `json:"cases"`
	AsNatively int                 `json:"as_natively"`       // cases
	Differs    map[string]string   `json:"differs,omitempty"` // case to reason
	Categories map[string]*counted `json:"categories,omitempty"`
}

func (n *counted) add(k *kase, seen map[string]bool, id string) {
	if !seen[id] {
		seen[id] = true
		n.Scripts++
	}
	n.Cases++
	if k.Differs == "" {
		n.AsNatively++
	} else {
		if n.Differs == nil {
			n.Differs = map[string]string{}
		}
		n.Differs[k.Name] = k.Differs
	}
}

// summary is what docs/compatibility.md is made of; the cases say whether it is true.
func TestSummary(t *testing.T) {
	all, total := map[string]*counted{}, map[string]*counted{}
	for _, c := range load(t) {
		n := &counted{Package: c.Package, Categories: map[string]*counted{}}
		seen := map[string]bool{}
		for _, k := range c.Cases {
			if n.Categories[k.Category] == nil {
				n.Categories[k.Category] = &counted{}
			}
			script := k.Folder + "/" + k.Script
			n.add(k, seen, script)
			n.Categories[k.Category].add(k, seen, k.Category+" "+script)
			n.Categories[k.Category].Differs = nil
			if total[k.Category] == nil {
				total[k.Category] = &counted{}
			}
			total[k.Category].add(k, seen, c.Name+" "+k.Category+" "+script)
		}
		all[c.Name] = n
	}
	for _, category := range categories {
		if n := total[category]; n != nil {
			t.Logf("%-10s %3d scripts, %3d of %3d runs as natively", category, n.Scripts, n.AsNatively, n.Cases)
		}
	}
	text := musttest.Get(json.MarshalIndent(all, "", " "))(t)
	text = append(text, '\n')
	file := filepath.Join("testdata", "summary.json")
	if *update {
		musttest.Do(t, os.WriteFile(file, text, 0o600))
	}
	want := musttest.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("run with -update (-want +got)\n%s", diff)
	}
}
