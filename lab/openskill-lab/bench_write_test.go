package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/measure"
)

// TestWriteBench: the tables of the page of benchmarks have their marks, and the
// plot has what can be drawn.
func TestWriteBench(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	var rows []measure.Row
	suites := []string{"image", "python", "memory", "start", "http", "peers"}
	for _, suite := range suites {
		rows = append(rows, measure.Row{Suite: suite, Case: "a case of " + suite, Variant: "openskill", P50NS: 5, N: 1})
	}
	rows = append(rows, measure.Row{Suite: "peers", Case: "memory, 100 sandboxes", Variant: "openskill", Bytes: 1e6, N: 1})
	if err := writeBench(file, rows); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range suites {
		if !strings.Contains(string(got), "a case of "+suite) {
			t.Errorf("no table of %s: its marks are not in the page", suite)
		}
	}
	if plot, err := os.ReadFile(filepath.Join(filepath.Dir(file), "benchmarks", "peers.svg")); err != nil || !strings.Contains(string(plot), "1.0 MB") {
		t.Errorf("the plot: %s, %v", plot, err)
	}
	if peerPlot(nil) != nil || peerPlot([]measure.Row{{Suite: "python", Case: "geometric mean", Variant: "openskill", Ratio: 4}}) != nil {
		t.Error("a plot of no peers")
	}
}

// TestPatiently: until there is no error, or the time is over.
func TestPatiently(t *testing.T) {
	t.Parallel()
	tries := 0
	if err := patiently(t.Context(), time.Minute, func() error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || tries != 3 {
		t.Errorf("%v after %d tries, want none after 3", err, tries)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := errors.New("never")
	if err := patiently(ctx, time.Minute, func() error { return never }); !errors.Is(err, never) {
		t.Errorf("%v, want the last error", err)
	}
}
