// Command compile compiles a script by the QuickJS that runs scripts, without its source and
// lines: compile FILE.js FILE.bin.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"openskill/plugins/javascript"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) != 3 {
		return errors.New("usage: compile FILE.js FILE.bin")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	code, err := javascript.Compile(ctx, text)
	if err != nil {
		return err
	}
	return os.WriteFile(os.Args[2], code, 0o600)
}
