// Package metrics reads the metrics of a host by the parsers of Prometheus.
package metrics
