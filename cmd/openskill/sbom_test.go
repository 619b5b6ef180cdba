package main

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"openskill/host/hosttest"
)

// TestSBOM asks a binary as it is built, since a test's own records other modules, and
// holds the answer to the schema of CycloneDX, as the module of its library has it.
func TestSBOM(t *testing.T) {
	t.Parallel()
	binary := hosttest.Program(t, filepath.Join("..", ".."))
	run := func() []byte {
		out, err := exec.Command(binary, "version", "--sbom").Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	text := run()
	if !bytes.Equal(text, run()) {
		t.Error("the same binary gives two bills of materials")
	}
	valid(t, text)
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", ".")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	listed, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(listed)), "\n") {
		if line != "" {
			wanted[line] = true
		}
	}
	seen := map[string]bool{}
	for _, c := range *bom.Components {
		if c.Name == "std" {
			continue
		}
		seen[c.Name+" "+c.Version] = true
		if c.Properties == nil || len((*c.Properties)[0].Value) != 64 {
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

// valid checks a document against the published schema.
func valid(t *testing.T, text []byte) {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(fromModule(strings.TrimSpace(string(dir))))
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(doc); err != nil {
		t.Errorf("not as the schema wants it: %v", err)
	}
}

// fromModule loads schemas by the last part of their address from the module's folder:
// nothing is fetched.
type fromModule string

func (dir fromModule) Load(address string) (any, error) {
	name := path.Base(address)
	if name == "jsf-0.82.schema.json" {
		name = "jsf-0.82.schemax.json" // as the module calls it
	}
	f, err := os.Open(filepath.Join(string(dir), "schema", name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return jsonschema.UnmarshalJSON(f)
}
