// Package load sends requests to a host at a rate that does not depend on its answers, and
// measures how long each took from when it was due.
//
// That is an open model: a host that stops for a second is seen by all requests that were
// due in that second, and not by one alone, as by clients that wait for an answer before
// they ask again (Tene, "How not to measure latency"; Schroeder, Wierman and
// Harchol-Balter, "Open versus closed", NSDI 2006).
package load
