// Package cpythontest holds CPython's own regression tests of library modules against
// our engine, and against wasmtime with the same module: it is tests only.
//
// testdata/expected.txt is the reviewed file: for every module how many tests pass,
// and for each that does not pass the reason. The tests here fail on any difference
// from it, in both directions.
//
// The tests of CPython are not part of this repository. fetch.sh takes them from
// Debian's package and unpacks them into the state folder:
//
//	plugins/python/cpythontest/fetch.sh
//	OPENSKILL_TEST_CPYTHON=1 go test -timeout 60m ./plugins/python/cpythontest
//
// These variables change what is done:
//
//	OPENSKILL_TEST_CPYTHON=1           all modules of the file; else a few that take seconds
//	OPENSKILL_TEST_CPYTHON_FOLDER      the folder that holds test/; else cpython-tests in the state folder
//	OPENSKILL_TEST_CPYTHON_WASMTIME    a Python that has PyPI's wasmtime: compared as well
//	OPENSKILL_TEST_CPYTHON_MODULES     the modules to run, with spaces between
//	OPENSKILL_TEST_CPYTHON_UPDATE=1    the file is written with what was seen; a new failure
//	                                   has the reason "?", which the next run does not accept
//
// With a wasmtime, TestLinks holds symbolic links in scratch space against its own.
package cpythontest
