// Command specjson turns an OpenAPI document from YAML into JSON, so that the
// server needs no YAML reader to show it.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"gopkg.in/yaml.v3"
)

func main() {
	if len(os.Args) != 3 {
		_, _ = io.WriteString(os.Stderr, "usage: specjson FROM.yaml TO.json\n")
		os.Exit(2)
	}
	if err := convert(os.Args[1], os.Args[2]); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		os.Exit(1)
	}
}

func convert(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var document any
	if err := yaml.Unmarshal(b, &document); err != nil {
		return err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", " ")
	if err := e.Encode(document); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}
