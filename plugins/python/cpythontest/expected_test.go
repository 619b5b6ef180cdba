package cpythontest

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
)

// unreviewed is the reason of what nobody has looked at.
const unreviewed = "?"

// expected is the reviewed file. Its lines are
//
//	# a comment
//	reason NAME: what it is, on one line
//	module NAME                                begins a module, whose lines follow
//	ran N: N passed, N skipped, N not          here; comparable with what CPython prints
//	whole WORDS                                instead of ran: the module was skipped as one
//	leave ID NAME                              a test that is not run, by the reason
//	ID HERE/THERE NAME | the exception         a test that did not pass here, or not on
//	                                           wasmtime; the exception is for the reader
type expected struct {
	header  []string
	reasons []string
	modules []*module
}

type module struct {
	name  string
	ran   counts
	whole string
	leave map[string]string // reasons by test
	tests map[string]difference
}

type counts struct{ passed, skipped, not int }

func (c counts) String() string {
	return fmt.Sprintf("%d: %d passed, %d skipped, %d not", c.passed+c.skipped+c.not, c.passed, c.skipped, c.not)
}

// difference is what became of a test that did not pass everywhere.
type difference struct{ here, there, reason, exception string }

func (e *expected) module(name string) *module {
	for _, m := range e.modules {
		if m.name == name {
			return m
		}
	}
	return nil
}

func parse(text string) (*expected, error) {
	e := &expected{}
	var m *module
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
		case word == "#":
			e.header = append(e.header, line)
		case word == "reason":
			e.reasons = append(e.reasons, line)
		case word == "module":
			m = &module{name: rest, leave: map[string]string{}, tests: map[string]difference{}}
			e.modules = append(e.modules, m)
		case m == nil:
			return nil, fmt.Errorf("line %d stands before the first module", n)
		case word == "ran":
			var all int
			if _, err := fmt.Sscanf(rest, "%d: %d passed, %d skipped, %d not", &all, &m.ran.passed, &m.ran.skipped, &m.ran.not); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			if rest != m.ran.String() {
				return nil, fmt.Errorf("line %d: the numbers do not add up", n)
			}
		case word == "whole":
			m.whole = rest
		case word == "leave":
			id, reason, _ := strings.Cut(rest, " ")
			m.leave[id] = reason
		default:
			front, exception, _ := strings.Cut(line, " | ")
			f := strings.Fields(front)
			if len(f) < 3 {
				return nil, fmt.Errorf("line %d: want ID HERE/THERE REASON | EXCEPTION", n)
			}
			here, there, _ := strings.Cut(f[len(f)-2], "/")
			m.tests[strings.Join(f[:len(f)-2], " ")] = difference{here, there, f[len(f)-1], exception}
		}
	}
	return e, lines.Err()
}

func (e *expected) String() string {
	var b strings.Builder
	for _, l := range e.header {
		b.WriteString(l + "\n")
	}
	b.WriteString("\n" + strings.Join(e.reasons, "\n") + "\n")
	for _, m := range e.modules {
		fmt.Fprintf(&b, "\nmodule %s\n", m.name)
		if m.whole != "" {
			fmt.Fprintf(&b, "whole %s\n", m.whole)
		} else {
			fmt.Fprintf(&b, "ran %v\n", m.ran)
		}
		for _, id := range slices.Sorted(maps.Keys(m.leave)) {
			fmt.Fprintf(&b, "leave %s %s\n", id, m.leave[id])
		}
		for _, id := range slices.Sorted(maps.Keys(m.tests)) {
			d := m.tests[id]
			fmt.Fprintf(&b, "%s %s/%s %s | %s\n", id, d.here, d.there, d.reason, d.exception)
		}
	}
	return b.String()
}

const expectedFile = "testdata/expected.txt"

func read(t *testing.T) *expected {
	t.Helper()
	b := musttest.Get(os.ReadFile(expectedFile))(t)
	e, err := parse(string(b))
	if err != nil {
		t.Fatalf("%s: %v", expectedFile, err)
	}
	return e
}

// Every failure has a reason that the file explains, and every explanation is used.
func TestExpectedIsReviewed(t *testing.T) {
	e := read(t)
	used := map[string]bool{}
	use := func(id, reason string) {
		if reason == unreviewed {
			t.Errorf("%s has no reason", id)
		}
		used[reason] = true
	}
	passed := 0
	for _, m := range e.modules {
		for id, reason := range m.leave {
			use(id, reason)
		}
		not := 0
		for id, d := range m.tests {
			use(id, d.reason)
			if d.here == failedOutcome || d.here == errorOutcome {
				not++
			}
			if d.here != passedOutcome && d.there == passedOutcome && !strings.HasPrefix(d.reason, "ours-") {
				t.Errorf("%s passes on wasmtime and not here: the reason must be one that begins with ours-", id)
			}
		}
		if m.whole == "" && not != m.ran.not {
			t.Errorf("%s: %d tests are listed that did not pass, of %d", m.name, not, m.ran.not)
		}
		if m.whole == "" && m.ran == (counts{}) {
			t.Errorf("%s: nothing was seen of it", m.name)
		}
		if m.ran.passed > 0 {
			passed++
		}
	}
	if passed < 60 {
		t.Errorf("tests of %d modules pass, want 60 modules or more", passed)
	}
	var explained []string
	for _, r := range e.reasons {
		name, text, ok := strings.Cut(strings.TrimPrefix(r, "reason "), ": ")
		if !ok || text == "" {
			t.Errorf("%q explains nothing", r)
		}
		explained = append(explained, name)
	}
	slices.Sort(explained)
	if d := cmp.Diff(slices.Sorted(maps.Keys(used)), explained); d != "" {
		t.Errorf("reasons that are used, and that are explained:\n%s", d)
	}
}

func TestExpectedIsReadAsItIsWritten(t *testing.T) {
	e := &expected{
		header:  []string{"# words"},
		reasons: []string{"reason wasi: no processes"},
		modules: []*module{
			{
				name: "test_a", ran: counts{passed: 3, skipped: 2, not: 1},
				leave: map[string]string{"test.test_a.T.test_c": "wasi"},
				tests: map[string]difference{"test.test_a.T.test b (c)": {"error", "passed", "wasi", "OSError: [Errno 58] | x"}},
			},
			{name: "test_b", whole: "skipped: no such module", leave: map[string]string{}, tests: map[string]difference{}},
		},
	}
	got := musttest.Get(parse(e.String()))(t)
	if d := cmp.Diff(e, got, cmp.AllowUnexported(expected{}, module{}, counts{}, difference{})); d != "" {
		t.Error(d)
	}
	for _, wrong := range []string{"ran 1: 1 passed, 0 skipped, 0 not", "module a\nran 2: 1 passed, 0 skipped, 0 not", "module a\nran many", "module a\nx y"} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
