package main

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/CycloneDX/cyclonedx-go" // its module has the schemas
	"github.com/santhosh-tekuri/jsonschema/v6"

	"openskill/host/app/hosttest"
)

// TestBillIsCycloneDX holds openskill version --sbom to the published schema.
func TestBillIsCycloneDX(t *testing.T) {
	text, err := exec.Command(hosttest.Program(t, repository), "version", "--sbom").Output()
	if err != nil {
		t.Fatal(err)
	}
	valid(t, text)
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
