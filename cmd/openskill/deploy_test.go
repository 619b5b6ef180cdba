package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// TestUnit has systemd read the unit, where it is: nothing in it is misspelt, and what it
// leaves open is no more than the page of installing says.
func TestUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not here")
	}
	unit := filepath.Join("..", "..", "deploy", "openskill.service")
	out, _ := exec.Command("systemd-analyze", "verify", unit).CombinedOutput() // it fails where nothing is installed
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "openskill.service") || strings.Contains(line, "is not executable") || strings.Contains(line, "man openskill(1)") {
			continue // other units of this machine, and what only an installed package has
		}
		t.Errorf("systemd-analyze verify: %s", line)
	}
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", unit).CombinedOutput()
	if err != nil {
		t.Skipf("systemd-analyze does not rate files here: %v: %s", err, out)
	}
	m := regexp.MustCompile(`exposure level for openskill.service: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("it says:\n%s", out)
	}
	if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > 3 {
		t.Errorf("exposure %s, want 3 at most:\n%s", m[1], out)
	}
}

// TestContainerfile holds what the page promises of the image: nothing but the binary
// around it, and never root. It is read by lines; building it needs a network.
func TestContainerfile(t *testing.T) {
	t.Parallel()
	b := musttest.Get(os.ReadFile(filepath.Join("..", "..", "deploy", "Containerfile")))(t)
	known := map[string]bool{}
	for _, word := range strings.Fields("FROM RUN COPY USER WORKDIR ENV EXPOSE VOLUME ENTRYPOINT CMD") {
		known[word] = true
	}
	last := map[string]string{} // of the last stage
	text := strings.ReplaceAll(string(b), "\\\n", " ")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if !known[word] {
			t.Errorf("no instruction: %s", line)
		}
		if word == "FROM" {
			clear(last)
		}
		last[word] = rest
	}
	for word, want := range map[string]string{
		"FROM": "scratch", "USER": "10001:10001", "ENTRYPOINT": `["/usr/bin/openskill"]`, "VOLUME": `["/var/lib/openskill"]`,
	} {
		if last[word] != want {
			t.Errorf("%s is %q, want %q", word, last[word], want)
		}
	}
	if last["RUN"] != "" {
		t.Error("the last stage runs something, and has no shell")
	}
}
