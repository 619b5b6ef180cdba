package cpythontest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/plugins/python/runtimes"
)

// cheap are modules whose tests take seconds together.
var cheap = []string{"test_bisect", "test_colorsys", "test_heapq", "test_html", "test_textwrap"}

// stateDir is the state folder that has the runtime.
func stateDir(t *testing.T) string {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = filepath.Join("..", "..", "..", ".openskill")
	}
	state = musttest.Get(filepath.Abs(state))(t)
	if name, err := runtimes.New(state).For(nil, nil); err != nil || name != runtimes.Slim {
		t.Skip("the slim Python runtime is not installed; run make runtimes")
	}
	return state
}

// testsFolder is the folder that holds CPython's package test.
func testsFolder(t *testing.T, state string) string {
	t.Helper()
	folder := os.Getenv("OPENSKILL_TEST_CPYTHON_FOLDER")
	if folder == "" {
		folder = filepath.Join(state, "cpython-tests")
	}
	if _, err := os.Stat(filepath.Join(folder, "test", "support", "__init__.py")); err != nil {
		t.Skip("CPython's tests are neither in OPENSKILL_TEST_CPYTHON_FOLDER nor in cpython-tests of the state folder; fetch.sh of this package fetches them")
	}
	return folder
}

func TestCPython(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds at least")
	}
	state := stateDir(t)
	tests := testsFolder(t, state)
	e := read(t)
	update := os.Getenv("OPENSKILL_TEST_CPYTHON_UPDATE") != ""

	var names []string
	switch chosen := os.Getenv("OPENSKILL_TEST_CPYTHON_MODULES"); {
	case chosen != "":
		names = strings.Fields(chosen)
	case os.Getenv("OPENSKILL_TEST_CPYTHON") != "":
		for _, m := range e.modules {
			names = append(names, m.name)
		}
	default:
		names = cheap
	}

	ours := newHere(t, state, tests)
	var theirs *there
	if python := os.Getenv("OPENSKILL_TEST_CPYTHON_WASMTIME"); python != "" {
		theirs = newThere(t, python, state, tests)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			m := e.module(name)
			if m == nil {
				m = &module{name: name, leave: map[string]string{}}
				e.modules = append(e.modules, m)
			}
			var a, b *results
			var errHere, errThere error
			var both sync.WaitGroup
			both.Go(func() { a, errHere = ours.run(t.Context(), m) })
			if theirs != nil {
				both.Go(func() { b, errThere = theirs.run(t.Context(), m) })
			}
			both.Wait()
			if errThere != nil {
				t.Errorf("on wasmtime: %v", errThere)
			}
			if errHere != nil {
				t.Fatalf("here: %v", errHere)
			}
			got := observed(m, a, b)
			if update {
				*m = *got
				musttest.Do(t, os.WriteFile(expectedFile, []byte(e.String()), 0o600))
				return
			}
			if d := cmp.Diff(compared(m), compared(got), cmp.AllowUnexported(module{}, counts{}, difference{})); d != "" {
				t.Errorf("expected, and seen:\n%s", d)
			}
		})
	}
}

// observed gives what was seen of a module, with the reasons that are known, and
// what the file says of wasmtime where that did not run.
func observed(m *module, a, b *results) *module {
	got := &module{name: m.name, leave: m.leave, tests: map[string]difference{}}
	if got.whole = a.Whole; a.Whole == "" {
		got.ran = a.counts()
	}
	for id, here := range a.Outcomes {
		known, listed := m.tests[id]
		there := unknownOutcome
		switch {
		case b != nil:
			there = b.Outcomes[id]
			if there == "" {
				there = missingOutcome
			}
		case listed:
			there = known.there
		case here == skippedOutcome || here == passedOutcome:
			there = here
		}
		if here == there && (here == passedOutcome || here == skippedOutcome) {
			continue
		}
		d := difference{here, there, known.reason, a.Reasons[id]}
		if d.reason == "" {
			d.reason = unreviewed
		}
		if here == passedOutcome && b != nil {
			d.exception = b.Reasons[id]
		}
		got.tests[id] = d
	}
	if b == nil {
		b = &results{Outcomes: map[string]string{}}
		for id, known := range m.tests {
			if known.here == missingOutcome {
				b.Outcomes[id] = known.there
			}
		}
	}
	for id, there := range b.Outcomes {
		if _, ok := a.Outcomes[id]; !ok {
			reason := m.tests[id].reason
			if reason == "" {
				reason = unreviewed
			}
			got.tests[id] = difference{missingOutcome, there, reason, b.Reasons[id]}
		}
	}
	return got
}

// compared leaves out what differs from run to run.
func compared(m *module) *module {
	c := &module{name: m.name, ran: m.ran, whole: m.whole, tests: map[string]difference{}}
	for id, d := range m.tests {
		d.exception = ""
		c.tests[id] = d
	}
	return c
}
