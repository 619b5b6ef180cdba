// Package runnertest is the suite that every [skill.Runner] passes: one call of
// [Run] in the runner's own tests.
//
// A runner says in a [Harness] how it is made and how a guest program for it is
// written. The suite then checks what the interface promises: the bytes of a
// result, exit codes as they are, each limit reached and named by its code,
// cancellation, an empty environment, calls that do not mix, artifacts, a data
// folder that stays as it was, readiness, closing, and that nothing is left
// behind.
//
// What a guest does is named by [Program] and chosen by the call's arguments, so
// that one module (see [GoWASI]) or one script each (see [Python]) serves every
// check. Modules made by hand may be given instead: Write is told the program
// and its parameters before the call is made.
//
// A check that a runner cannot pass by nature is listed in Harness.Skip with its
// reason; the suite prints the reason and fails for a name that it does not know.
package runnertest
