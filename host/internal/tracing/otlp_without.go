//go:build !otlp

package tracing

import (
	"context"
	"errors"
)

// NewOTLP says that this build has no exporter.
func NewOTLP(context.Context) (Exporter, error) {
	return nil, errors.New("this build cannot send traces over OTLP; build one with: go build -tags otlp -o bin/openskill ./cmd/openskill")
}
