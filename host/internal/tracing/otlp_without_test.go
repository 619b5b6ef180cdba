//go:build !otlp

package tracing

import (
	"strings"
	"testing"
)

// A build without the exporter says how to have one with it.
func TestWithout(t *testing.T) {
	if e, err := NewOTLP(t.Context()); e != nil || err == nil || !strings.Contains(err.Error(), "go build -tags otlp") {
		t.Errorf("%v, %v", e, err)
	}
}
