// Package metrics counts what a host does, for those who watch it: stable names, and
// labels of which there is a bounded number, in the words of Prometheus.
//
// A [Metrics] is a value: two hosts in one process count by themselves. Its parts are
// told by whoever does the work ([Metrics.Call] by the door, [Metrics.Answered] by the
// HTTP edge), stand in front of a part of the host ([Metrics.Recorder], [Metrics.Quotas],
// [Metrics.Provider]), or ask when they are read ([Sources]).
//
// # Labels
//
// No label is ever what a caller wrote. Routes are rows of the table of access, codes are
// published ones, and skills are those that exist: the first 200 that are called, of
// which at most 50 are uploads, have a label of their own; all others are "other", and
// what was asked for and does not exist is "none".
//
// docs/metrics.md lists the names; it is made from [Table].
package metrics
