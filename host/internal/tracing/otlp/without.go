//go:build !otlp

package otlp

import (
	"context"
	"errors"

	"openskill/host/internal/tracing"
)

// New says that this build has no exporter.
func New(context.Context) (tracing.Exporter, error) {
	return nil, errors.New("this build cannot send traces over OTLP; build one with: go build -tags otlp -o bin/openskill ./cmd/openskill")
}
