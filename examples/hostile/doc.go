// Package hostile is the corpus of hostile cases: every module, script and archive
// that a host must survive, made by code, each with how it must end.
//
// A [Case] says what a stranger uploads, what the host may refuse it with, and how
// a call of it may end. The numbers in its name (W01, E07, F02 …) are those of
// docs/security.md. Nothing here runs anything: `openskill selftest` holds a live
// host to the cases, the tests of this repository hold a server to them over HTTP.
//
// Everything is encoded when it is asked for; no compiler is needed, and no binary
// is kept. See README.md for how to use a case by hand.
package hostile
