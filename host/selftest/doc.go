// Package selftest holds a live host to the hostile corpus and says which promise
// held, by how much.
//
// It is handed a [Target], a host as its callers see it, and plays the cases of
// package hostile against it one after the other. While it does, a prober asks for
// the host's health and a canary of another tenant is called, all the time; after
// each case the host must be what it was before. [Run] gives a [Row] for each case
// and, at the end, one for each promise with the number that was measured.
//
// One function is the oracle, [oracle]; what it wants is written there.
package selftest
