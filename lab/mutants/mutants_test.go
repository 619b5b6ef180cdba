package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// Whether tests catch the mutants is found out by running this command, which takes long.
// Here is what can be told at once: that each threat has a mutant whose test its row names,
// and that each mutant fits the code as it is.
func TestEveryThreatHasAMutant(t *testing.T) {
	t.Parallel()
	numbers, tests, err := threats(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Error("the numbers in docs/threats.md are not in order, or not unique")
	}
	list, err := mutants(root)
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, m := range list {
		has[m.threat] = true
		if _, err := m.apply(root); err != nil {
			t.Error(err)
		}
		for name := range strings.SplitSeq(m.test, "|") {
			top, _, _ := strings.Cut(name, "/")
			if !strings.Contains(tests[m.threat], "`"+top+"`") {
				t.Errorf("%s: the row of %s in docs/threats.md does not name %s", m.place, m.threat, top)
			}
		}
	}
	for _, n := range numbers {
		if !has[n] {
			t.Errorf("%s has no mutant in lab/mutants/threats", n)
		}
	}
}

func TestParseRefusesHalfMutants(t *testing.T) {
	t.Parallel()
	const whole = "# why\n== T001 a/b.go\n<<<\n\told\n===\n\tnew\n>>>\ntest ./a TestB\n"
	list, err := parse("x", whole+"\n"+whole)
	if err != nil || len(list) != 2 || list[0] != (mutant{"T001", "a/b.go", "\told\n", "\tnew\n", "./a", "TestB", "x:2"}) {
		t.Errorf("%+v, %v", list, err)
	}
	for i := range whole {
		if cut := whole[:i]; strings.Contains(cut, "==") {
			if list, err := parse("x", cut); err == nil && len(list) > 0 && !strings.HasSuffix(cut, "TestB") && !strings.Contains(cut, "test ./a ") {
				t.Errorf("%q gives %+v", cut, list)
			}
		}
	}
	for _, wrong := range []string{"T001 a.go\n", "== T1 a.go\n", "== T001 a.go\ntest ./a TestB\n", "== T001 a.go\n<<<\na\n===\nb\n>>>\ntest ./a\n"} {
		if _, err := parse("x", wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
