//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"openskill/host/app/hosttest"
)

// TestBenchLoad calls a host that runs, and is interrupted while it does.
func TestBenchLoad(t *testing.T) {
	t.Parallel()
	needsEcho(t)
	skills, err := unlimitedEcho(filepath.Join(repository, "skills", "echo"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(skills) })
	url := serve(t, skills)
	dir := t.TempDir()
	plot, histogram := filepath.Join(dir, "p.svg"), filepath.Join(dir, "p.hgrm")
	cmd := lab(t, "bench", "load", url, "--rate", "40", "--duration", "2s", "--warmup", "0s",
		"--skill", "echo=3,no_such_skill", "--input", "no_such_skill={}", "--plot", plot, "--histogram", histogram, "--json")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != exitFailed { // one of four is not there
		t.Fatalf("%v: %s\n%s", err, out, said.Bytes())
	}
	var r loadReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Due != 80 || r.Sent+r.Unsent != 80 || r.Succeeded+r.Failed+r.Unanswered != r.Sent || r.Succeeded == 0 || len(r.Skills) != 2 || r.Latency.Max < r.Latency.P50 {
		t.Errorf("%s\n%s", out, said.Bytes())
	}
	var missing int64
	for _, f := range r.Failures {
		switch {
		case f.Code == "NOT_FOUND" && f.Status == 404:
			missing = f.Count
		case f.Code == "RATE_LIMITED" && f.Status == 429: // by a machine that stood still for a moment
		default:
			t.Errorf("failures: %+v", r.Failures)
		}
	}
	if missing == 0 || missing > 20 {
		t.Errorf("failures: %+v, want at most 20 of a skill that is not there", r.Failures)
	}
	svg, err := os.ReadFile(plot)
	if err != nil || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("the plot: %v\n%s", err, svg)
	}
	if text, err := os.ReadFile(histogram); err != nil || !strings.Contains(string(text), "1/(1-Percentile)") || !strings.Contains(string(text), "#[Mean") {
		t.Errorf("the histogram: %v\n%s", err, text)
	}

	// It goes on for an hour, or until it is told to stop, after its first word.
	cmd = lab(t, "bench", "load", url, "--rate", "20", "--duration", "1h", "--warmup", "0s",
		"--skill", "echo")
	var table bytes.Buffer
	cmd.Stdout = &table
	words, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 6)
	if _, err := words.Read(first); err != nil || string(first) != "load: " {
		t.Errorf("%q, %v", first, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var rest bytes.Buffer
	_, _ = rest.ReadFrom(words)
	_ = cmd.Wait() // by the exit code of what was measured so far
	if !strings.Contains(rest.String(), "ended before its time") || !strings.Contains(table.String(), "P99.99") {
		t.Errorf("%s\n%s", table.String(), rest.String())
	}
}

// TestBenchSoak soaks a host of its own for a few calls: all of them end as they must, and
// neither host nor folder is left. That it grows is for TestJudge.
func TestBenchSoak(t *testing.T) {
	t.Parallel()
	needsEcho(t)
	state := t.TempDir()
	hosttest.Runtimes(t, repository, state)
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("# Page\n"+soakBegins+"old\n"+soakEnds+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := lab(t, "bench", "soak", "--state", state, "--skills", absolute(t, "..", "..", "skills"),
		"--duration", "10m", "--calls", "300", "--clients", "2", "--json", "--markdown", page)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, said.Bytes())
	}
	var r soakReport
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// An upload is a call beside the 300.
	if r.Calls < 300 || r.Wrong != 0 || r.Ended || len(r.Kinds) != 9 || r.Kinds[0].Calls < 100 || r.Kinds[8].Calls < 1 {
		t.Errorf("%s\n%s", out, said.Bytes())
	}
	for _, row := range r.Rows {
		if row.Told && row.First <= 0 && row.Name == "memory of the host (RSS)" || row.Growing {
			t.Errorf("%+v", row)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(text), "# Page\n"+soakBegins) || !strings.HasSuffix(string(text), soakEnds+"after\n") ||
		!strings.Contains(string(text), "--calls 300") || strings.Contains(string(text), "old\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "soak-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func absolute(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
