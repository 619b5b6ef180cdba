//go:build otlp

package tracing

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// NewOTLP sends spans to a collector over OTLP and HTTP, in builds with the tag otlp; others
// do without its 17 MB. Where to and how is said by the variables of the OpenTelemetry
// specification (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS and their like). It connects to nobody before there are spans.
func NewOTLP(ctx context.Context) (Exporter, error) {
	e, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("otlp.New: %w", err)
	}
	return e, nil
}
