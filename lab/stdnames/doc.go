// Package stdnames makes the table of the names that CPython's standard library has on Linux
// and the sandbox has not: host/pysource/preflight/missing.txt. A test holds that the table is what
// the installed runtime lacks;
//
//	go -C lab test ./stdnames -update
//
// writes it. The names of CPython are in cpython-3.15.txt, which index.py makes.
package stdnames
