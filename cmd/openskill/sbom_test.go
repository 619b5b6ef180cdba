package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/internal/cyclonedx"
	"openskill/internal/musttest"
)

// TestProgramIsUnder60MB holds the program to what CONTRIBUTING.md says of its size.
func TestProgramIsUnder60MB(t *testing.T) {
	t.Parallel()
	info := musttest.Get(os.Stat(hosttest.Program(t, filepath.Join("..", ".."))))(t)
	if info.Size() > 60e6 {
		t.Errorf("the program has %d bytes; look what came in by openskill version --sbom", info.Size())
	}
}

// TestSBOM asks a binary as it is built, since a test's own records other modules. The
// laboratory holds the answer to the schema of CycloneDX.
func TestSBOM(t *testing.T) {
	t.Parallel()
	binary := hosttest.Program(t, filepath.Join("..", ".."))
	run := func() []byte {
		return musttest.Get(exec.Command(binary, "version", "--sbom").Output())(t)
	}
	text := run()
	if !bytes.Equal(text, run()) {
		t.Error("the same binary gives two bills of materials")
	}
	var bom cyclonedx.Bill
	musttest.Do(t, json.Unmarshal(text, &bom))
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	listed := musttest.Get(list.Output())(t)
	wanted := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(listed)), "\n") {
		if line != "" {
			wanted[line] = true
		}
	}
	seen := map[string]bool{}
	for _, c := range bom.Components {
		if c.Name == "std" {
			continue
		}
		seen[c.Name+" "+c.Version] = true
		if p := c.Properties; len(p) == 0 || len(p[0].Value) != 64 && (p[0].Name != "openskill:edits" || c.Name != "github.com/tetratelabs/wazero") {
			t.Errorf("%s has no sum", c.Name)
		}
	}
	for m := range wanted {
		if !seen[m] {
			t.Errorf("%s is in the binary, and not in its bill", m)
		}
	}
	if len(seen) != len(wanted) || len(seen) < 50 {
		t.Errorf("%d modules, the build has %d", len(seen), len(wanted))
	}
}
