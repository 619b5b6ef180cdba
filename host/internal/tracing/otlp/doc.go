// Package otlp sends spans to a collector over OTLP and HTTP, in builds with the tag
// otlp. Others do without its 17 MB, and [New] says how to build one.
//
// Where to and how is said by the variables of the OpenTelemetry specification
// (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS and their like).
package otlp
