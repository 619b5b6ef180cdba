package config

import (
	"strings"
	"testing"
)

// TestObserving: what looks into a host is on loopback or nowhere, and a word that is not
// known stops the start.
func TestObserving(t *testing.T) {
	for _, c := range []struct{ flag, text, problem string }{
		{"admin-listen", "127.0.0.1:0", ""},
		{"admin-listen", "localhost:8001", ""},
		{"admin-listen", "[::1]:8001", ""},
		{"admin-listen", "0.0.0.0:8001", "is reachable from other machines"},
		{"admin-listen", ":8001", "is reachable from other machines"},
		{"admin-listen", "10.0.0.1:8001", "is reachable from other machines"},
		{"admin-listen", "localhost.evil.example:8001", "is reachable from other machines"},
		{"admin-listen", "127.0.0.1", "is no address"},
		{"admin-listen", "127.0.0.1:70000", "is no address"},
		{"otel-traces-exporter", "file", ""},
		{"otel-traces-exporter", "otlp", ""},
		{"otel-traces-exporter", "stdout", "is not known"},
		{"otel-traces-sampler-arg", "0.25", ""},
		{"otel-traces-sampler-arg", "-1", "is out of range"},
		{"otel-traces-sampler-arg", "half", "cannot be read"},
	} {
		_, err := Load(Sources{Dir: t.TempDir(), Flags: map[string]string{c.flag: c.text}})
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("--%s %s: %v, want %q", c.flag, c.text, err, c.problem)
		}
	}
}
