// Package tracing tells where the time of a call goes: spans of its way through the
// host, in the words of OpenTelemetry.
//
// A [Tracer] is a value that the assembly hands to whoever does a part of the way: the
// HTTP edge, the door, workers, egress, models. A nil one traces nothing, at the cost of
// a comparison.
//
// # Whose trace it is
//
// Callers name a trace by W3C's traceparent, whose trace id is taken, or by X-Trace-Id: 32
// hexadecimal digits are the trace id, any other text is the attribute openskill.trace_id
// of every span, and the trace id is made of it by [ID], so that either is found by the
// other. Whether a trace is kept is for the ratio and the trace id alone: what a caller
// says of it is not asked.
//
// # What is in a span
//
// Ids of skills that exist, codes, routes, kinds, sizes: never inputs, outputs, names of
// files, or hosts that a guest asks.
package tracing
