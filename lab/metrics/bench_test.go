package metrics_test

import (
	"testing"

	"openskill/host/app/metrics"
)

// BenchmarkCall is what metrics cost a call, beside the work of the call itself: some
// tenths of a microsecond of a call's hundreds.
func BenchmarkCall(b *testing.B) {
	m := metrics.New(metrics.Options{})
	e := ended("echo", true, "", "")
	b.ReportAllocs()
	for b.Loop() {
		m.Call(e)
	}
}

// BenchmarkRequest is what they cost a request of HTTP.
func BenchmarkRequest(b *testing.B) {
	m := metrics.New(metrics.Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.Answered("POST", "/skills/{id}:invoke", 200, 1000)
	}
}
