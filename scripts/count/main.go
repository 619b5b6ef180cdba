// Command count reads the output of go test -json: it prints a line for each
// package, what failing tests printed, the reason of each skipped test, and the
// counts. Into a file, if asked, it writes what to run again: each failed test
// of a package, or the package alone where that died or was not built.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	counts := flag.String("counts", "", "file to append passed, failed and skipped to")
	failed := flag.String("failures", "", "file to write failed packages and tests to")
	flag.Parse()
	if err := run(*counts, *failed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(counts, failuresTo string) error {
	passed, failed, skipped := 0, 0, 0
	again := failures{}
	output := map[string][]string{} // of tests and packages that are not over
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text()) // what the go command says itself
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			output[key] = append(output[key], e.Output)
			if n := len(output[key]); n > 400 { // the beginning says most, and the end why
				output[key] = append(output[key][:200], output[key][n-200:]...)
			}
			continue
		case "pass":
			if e.Test != "" {
				passed++
			} else {
				fmt.Printf("ok    %-45s %.1fs\n", e.Package, e.Elapsed)
			}
		case "skip":
			if e.Test != "" {
				skipped++
				fmt.Printf("skip  %s %s: %s\n", e.Package, e.Test, reason(output[key]))
			}
		case "fail", "build-fail":
			if e.Test != "" {
				failed++
			}
			fmt.Printf("FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(output[key], ""))
			died := 0
			if e.Test == "" {
				died = unfinished(output, key)
				failed += died
			}
			again.add(e, died > 0)
		default:
			continue
		}
		delete(output, key)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	err := in.Err()
	if counts != "" {
		err = errors.Join(err, appendTo(counts, fmt.Sprintln(passed, failed, skipped)))
	}
	if failuresTo != "" {
		err = errors.Join(err, appendTo(failuresTo, again.lines()))
	}
	return err
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// failures has the failed tests of each package, none where the package itself failed.
type failures map[string][]string

// add takes an event that tells of a failure. A package fails after its tests; without one,
// or with one that it died in, no single test can be blamed.
func (f failures) add(e event, died bool) {
	top, _, _ := strings.Cut(e.Test, "/")
	switch tests, known := f[e.Package]; {
	case e.Package == "": // a build that failed; the packages that need it are told as well
	case top == "" && (died || !known):
		f[e.Package] = nil
	case top != "" && !slices.Contains(tests, top):
		f[e.Package] = append(tests, top)
	}
}

// lines are a package and a test each, or a package alone.
func (f failures) lines() string {
	var b strings.Builder
	for _, pkg := range slices.Sorted(maps.Keys(f)) {
		if f[pkg] == nil {
			fmt.Fprintln(&b, pkg)
		}
		for _, test := range f[pkg] {
			fmt.Fprintln(&b, pkg, test)
		}
	}
	return b.String()
}

// unfinished prints what tests said that a package did not finish: one that dies says why in
// the words of whichever test it was running. It gives how many said anything.
func unfinished(output map[string][]string, pkg string) (n int) {
	for key, lines := range output {
		if key == pkg || !strings.HasPrefix(key, pkg) {
			continue
		}
		delete(output, key)
		if told := slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "=== ") }); len(told) > 0 {
			n++
			fmt.Printf("DIED  %s\n%s", key, strings.Join(told, ""))
		}
	}
	return n
}

// reason is what a test said when it was skipped.
func reason(lines []string) string {
	for _, l := range lines {
		if !strings.HasPrefix(l, "===") && !strings.HasPrefix(l, "--- SKIP") && strings.TrimSpace(l) != "" {
			return strings.TrimSpace(l)
		}
	}
	return "no reason given"
}
