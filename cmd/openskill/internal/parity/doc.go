// Package parity runs scripts twice, on this machine's own Python and in the sandbox,
// and tells where the two differ.
//
// A case is a command line with its standard input and the files that it finds. Each
// run gets a copy of the folder of its own. What is compared is standard output byte
// for byte, the exit code, and the files that were made or changed, by SHA-256;
// standard error is shown and not compared, since tracebacks tell the version of the
// language. Whatever a case leaves out of that, it names.
//
// The native half executes the scripts with the rights of this process. It is for
// operators who trust them, on a machine of their own.
package parity
