// Command opentypes writes the types of an OpenAPI document for TypeScript, so that
// programs in it are checked against what hosts answer.
//
//	go run ./scripts/opentypes host/api/openapi.json sdk/typescript/openskill.d.ts
package main

import (
	"io"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		_, _ = io.WriteString(os.Stderr, "usage: opentypes FROM.json TO.d.ts\n")
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
	out, err := types(b)
	if err != nil {
		return err
	}
	return os.WriteFile(to, out, 0o644)
}
