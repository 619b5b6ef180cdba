package cpythontest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/python"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

//go:embed testdata/driver.py
var driver []byte

// Outcomes of a test, in the driver's words.
const (
	passedOutcome  = "passed"
	skippedOutcome = "skipped"
	failedOutcome  = "failed"
	errorOutcome   = "error"
	missingOutcome = "missing" // one of the two did not come to it
	unknownOutcome = "unknown" // it did not run
)

// results is what the driver prints.
type results struct {
	Whole    string            `json:"whole"`
	Outcomes map[string]string `json:"outcomes"`
	Reasons  map[string]string `json:"reasons"`
}

func (r *results) counts() counts {
	var c counts
	for _, o := range r.Outcomes {
		switch o {
		case passedOutcome:
			c.passed++
		case skippedOutcome:
			c.skipped++
		default:
			c.not++
		}
	}
	return c
}

// task is what the driver is asked, on its standard input.
func task(m *module) []byte {
	leave := m.leave
	if leave == nil {
		leave = map[string]string{}
	}
	b, err := json.Marshal(map[string]any{"module": m.name, "leave": leave})
	if err != nil {
		panic(err) // strings only
	}
	return append(b, '\n')
}

// resultsOf reads what the driver printed. An error says what the guest did last.
func resultsOf(stdout, stderr []byte) (*results, error) {
	_, last, ok := bytes.Cut(stdout, []byte("\n@@result "))
	if !ok {
		at := "before the first test"
		for line := range strings.Lines(string(stderr)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "@@ "); ok {
				at = "in " + name
			}
		}
		return nil, fmt.Errorf("ended %s; standard error ends with %q", at, stderr[max(0, len(stderr)-300):])
	}
	var r results
	if err := json.Unmarshal(last, &r); err != nil {
		return nil, fmt.Errorf("the driver's line: %w", err)
	}
	return &r, nil
}

// limit bounds one module's tests; the slowest take a minute on a quiet machine.
const limit = 3 * time.Minute

// here runs the driver as a skill on the runner, which has its instances wait where
// the driver reads its standard input: these are tests of images as well.
type here struct {
	runner *python.Runner
	skill  string
	tests  string
}

func newHere(t *testing.T, state, tests string) *here {
	t.Helper()
	e := musttest.Get(wasm.Open(&wasm.Options{CacheDir: filepath.Join(state, "cache", "wasm")}))(t)
	r := python.New(e, &python.Options{StateDir: state})
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	folder := t.TempDir()
	musttest.Do(t, os.WriteFile(filepath.Join(folder, "driver.py"), driver, 0o600))
	musttest.Do(t, runnertest.Ready(t.Context(), r))
	return &here{runner: r, skill: folder, tests: tests}
}

func (h *here) run(ctx context.Context, m *module) (*results, error) {
	reply, err := h.script(ctx, "driver.py", task(m))
	if err != nil {
		return nil, err
	}
	r, err := resultsOf(reply.Stdout, reply.Stderr)
	if err != nil {
		return nil, fmt.Errorf("%s %s, exit %d: %w", reply.Code, reply.Message, reply.ExitCode, err)
	}
	return r, nil
}

// script runs a script that lies in the skill's folder.
func (h *here) script(ctx context.Context, entry string, stdin []byte) (*skill.Reply, error) {
	return runnertest.Do(ctx, h.runner, &skill.Call{
		SkillID: "cpython-tests", Folder: h.skill, Entry: entry, Trust: skill.Trusted, Stdin: stdin,
		// Files with holes count in full; the tests of large files make some of 2.5 GB.
		Limits: skill.Limits{Timeout: limit, Memory: 1 << 30, Fuel: 1 << 44, Output: 32 << 20, Scratch: 8 << 30},
		Grants: skill.Grants{Data: h.tests, Scratch: true},
	})
}
