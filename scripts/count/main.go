// Command count reads the output of go test -json: it prints a line for each
// package, what failing tests printed, the reason of each skipped test, and the
// counts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	passed, failed, skipped := 0, 0, 0
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
			if e.Test == "" {
				failed += unfinished(output, key)
			}
		default:
			continue
		}
		delete(output, key)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return in.Err()
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
