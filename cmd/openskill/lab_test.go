package main

import (
	"bytes"
	"strings"
	"testing"
)

// A release has openskill alone.
func TestSaysHowToBuildTheLaboratory(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var stderr bytes.Buffer
	code := Run(t.Context(), []string{"bench", "--json"}, strings.NewReader(""), &stderr, &stderr)
	if code != exitUsage || !strings.Contains(stderr.String(), "make build") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}
