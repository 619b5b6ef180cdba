package main

import (
	"bytes"
	"strings"
	"testing"
)

// The suite of the benchmarks puts calls on record in all its ways.
func TestBenchAudit(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	a := &cli{stdout: &said, stderr: &said}
	rows, err := a.benchAudit(t.Context(), &benchOptions{quick: true, filter: "audit/"})
	if err != nil || len(rows) != 12 {
		t.Fatalf("%d rows, %v: %s", len(rows), err, &said)
	}
	for _, r := range rows {
		if r.Suite != "audit" || r.P50NS <= 0 || r.Note == "" {
			t.Errorf("%+v", r)
		}
	}
	if !strings.Contains(said.String(), "--postgres URL") {
		t.Errorf("that PostgreSQL is left out is not said: %s", &said)
	}
	if rows, err := a.benchAudit(t.Context(), &benchOptions{filter: "http/"}); err != nil || len(rows) != 0 {
		t.Errorf("%d rows that nobody asked for, %v", len(rows), err)
	}
}
