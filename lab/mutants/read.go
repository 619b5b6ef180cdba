package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is a defence removed.
type mutant struct {
	threat   string // T017
	file     string // of the checkout, with slashes
	old, new string
	pkg      string // of the test, such as ./host/api
	test     string // a regular expression, as go test -run takes
	place    string // where the mutant is written, for messages
}

// mutants reads those of a checkout, in order of their threats.
func mutants(root string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, "lab", "mutants", "threats", "*.mutants"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list, err := parse(filepath.Base(name), string(b))
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	slices.SortStableFunc(all, func(a, b mutant) int { return strings.Compare(a.threat, b.threat) })
	return all, nil
}

var heading = regexp.MustCompile(`^== (T\d{3}) (\S+)$`)

// parse reads one file of mutants. Lines that begin with # outside of a change are comments.
func parse(name, text string) ([]mutant, error) {
	var list []mutant
	var m *mutant
	var part *strings.Builder
	var old, changed strings.Builder
	for i, line := range strings.Split(text, "\n") {
		wrong := func(what string) error { return fmt.Errorf("%s:%d: %s", name, i+1, what) }
		switch {
		case part != nil && line == "===":
			part = &changed
		case part != nil && line == ">>>":
			m.old, m.new, part = old.String(), changed.String(), nil
		case part != nil:
			part.WriteString(line + "\n")
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "<<<" && m != nil:
			old.Reset()
			changed.Reset()
			part = &old
		case strings.HasPrefix(line, "test ") && m != nil && m.old != "":
			f := strings.Fields(line)
			if len(f) != 3 {
				return nil, wrong("want: test PACKAGE TEST")
			}
			m.pkg, m.test = f[1], f[2]
			list = append(list, *m)
			m = nil
		default:
			h := heading.FindStringSubmatch(line)
			if h == nil || m != nil {
				return nil, wrong("want: == TNNN FILE, a change between <<< === >>>, and test PACKAGE TEST")
			}
			m = &mutant{threat: h[1], file: h[2], place: fmt.Sprintf("%s:%d", name, i+1)}
		}
	}
	if m != nil {
		return nil, fmt.Errorf("%s: the last mutant is not whole", name)
	}
	return list, nil
}

// apply gives the file as the mutant has it.
func (m *mutant) apply(root string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.place, err)
	}
	if n := strings.Count(string(b), m.old); n != 1 {
		return nil, fmt.Errorf("%s: what the mutant of %s changes occurs %d times in %s, want once", m.place, m.threat, n, m.file)
	}
	return []byte(strings.Replace(string(b), m.old, m.new, 1)), nil
}

var row = regexp.MustCompile(`(?m)^\| (T\d{3}) \| (.+) \| (.+) \| (.+) \|$`)

// threats gives the numbers in docs/threats.md, each with the cell of its tests.
func threats(root string) (numbers []string, tests map[string]string, err error) {
	b, err := os.ReadFile(filepath.Join(root, "docs", "threats.md"))
	if err != nil {
		return nil, nil, err
	}
	tests = map[string]string{}
	for _, r := range row.FindAllStringSubmatch(string(b), -1) {
		numbers = append(numbers, r[1])
		tests[r[1]] = r[4]
	}
	return numbers, tests, nil
}
