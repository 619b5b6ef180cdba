package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"openskill/internal/measure"
)

// TestBenchAgent has the suite measured a few times, to see that all of it works.
func TestBenchAgent(t *testing.T) {
	t.Parallel()
	needsEcho(t)
	cmd := lab(t, "bench", "--filter", "agent/", "--quick", "--json", "--state", t.TempDir())
	cmd.Dir = repository
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	var got []string
	for dec := json.NewDecoder(&out); dec.More(); {
		var r measure.Row
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Suite != "agent" || r.P50NS <= 0 {
			t.Errorf("%+v", r)
		}
		got = append(got, r.Case+", "+r.Variant)
	}
	want := []string{
		agentRound + ", conversations in SQLite",
		agentFirst + ", asked of the model", agentFirst + ", asked of openskill", agentMany + ", openskill",
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("measured are %q", got)
	}
}
