// Command count prints how large the repository is, as a table in Markdown.
// It may be run anywhere in a checkout.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
)

// A part is one row of the table: Go files that serve one purpose.
type part int

const (
	product part = iota // host, wasm, plugins, cmd
	kit                 // sdk, skills
	tests               // _test.go, testdata, packages named ...test
	lab                 // lab, scripts, examples, also those of the SDKs
	generated
)

var names = [...]string{
	product:   "product: `host`, `wasm`, `plugins`, `cmd`",
	kit:       "`sdk` and `skills`",
	tests:     "tests and their support",
	lab:       "laboratory: `lab`, `scripts`, `examples`",
	generated: "generated",
}

var (
	marked  = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	exempt  = regexp.MustCompile(`//nolint[:]`)
	setting = regexp.MustCompile("`env:\"")
)

func main() {
	if err := count(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// count writes the table for the files that git knows.
func count(out io.Writer) error {
	root, err := exec.CommandContext(context.Background(), "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	if err := os.Chdir(strings.TrimSpace(string(root))); err != nil {
		return err
	}
	listed, err := exec.CommandContext(context.Background(), "git", "ls-files", "-z", "*.go").Output()
	if err != nil {
		return fmt.Errorf("list the files of the repository: %w", err)
	}
	var lines, files [len(names)]int
	var nolint, settings int
	packages := map[string]bool{}
	for name := range strings.SplitSeq(strings.Trim(string(listed), "\x00"), "\x00") {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return err
		}
		p := partOf(name, text)
		files[p]++
		lines[p] += bytes.Count(text, []byte("\n"))
		nolint += len(exempt.FindAll(text, -1))
		if strings.HasPrefix(name, "host/app/config/") && p == product {
			settings += len(setting.FindAll(text, -1))
		}
		if strings.HasPrefix(name, "host/") && !strings.Contains(name, "/testdata/") {
			packages[path.Dir(name)] = true
		}
	}
	direct, err := requirements("go.mod")
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "| part | files | lines |\n|---|---|---|\n")
	for p, name := range names {
		_, _ = fmt.Fprintf(out, "| %s | %d | %d |\n", name, files[p], lines[p])
	}
	_, _ = fmt.Fprintf(out, "\n| | |\n|---|---|\n| packages under `host/` | %d |\n| settings | %d |\n| direct dependencies of the product | %d |\n| `nolint` | %d |\n",
		len(packages), settings, direct, nolint)
	return nil
}

// partOf returns the row in which the Go file name with this text is counted.
func partOf(name string, text []byte) part {
	folder := path.Dir(name)
	room, _, _ := strings.Cut(name, "/")
	switch {
	case marked.Match(text):
		return generated
	case room == "lab" || room == "scripts" || room == "examples" || strings.HasPrefix(name, "sdk/go/examples/"):
		return lab
	case strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") || supports(folder):
		return tests
	case room == "sdk" || room == "skills":
		return kit
	}
	return product
}

// supports reports whether folder holds support of tests: a package named …test, or below one.
func supports(folder string) bool {
	for element := range strings.SplitSeq(folder, "/") {
		if strings.HasSuffix(element, "test") && element != "selftest" {
			return true
		}
	}
	return false
}

// requirements counts the direct requirements of the module file name.
func requirements(name string) (int, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, r := range file.Require {
		if !r.Indirect {
			n++
		}
	}
	return n, nil
}
