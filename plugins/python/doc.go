// Package python runs Python scripts as they are, in the sandbox: by CPython
// compiled to WASI. It is the runner wasm:python.
//
// Which CPython runs a script follows from what its skill requires and what the
// script imports, see package runtimes: slim CPython 3.15 by default, the
// scientific one for numpy and its kind, 3.12 where nothing else is installed.
// Compiling one takes 5 to 60 s the first time on a machine, some tenths of a
// second after that (the engine keeps the result in its cache folder). Until that
// is done the plan of a call says so, and the host lets a skill's fallback answer; see
// [Runner.Prepare].
//
// # What a script sees
//
//	python -B -s -u -X utf8 /openskill/boot.py /skill/ENTRY ARGUMENTS…
//
// in the working directory "/", with the files that package sandbox shows. boot.py
// runs the script as the interpreter would: __main__, sys.argv, sys.path and
// tracebacks are the script's own. The environment is what was granted, and TMPDIR and
// HOME are /work where scratch is granted, so that module tempfile works; what is
// left in /work becomes an artifact. -B, since the folder cannot be written; -s,
// since there are no users; -u, so that what was printed stays when a trap or a limit
// ends the run; -X utf8, since there is no locale.
//
// waits.py has waits with a timeout sleep and time out; one that nothing can end is a
// RuntimeError. lib/threads.py runs threads one after another. glibc.py does what the C
// library of WASI silently does otherwise than that of Linux: dates and names of locales.
// modes.py remembers permission bits, which WASI has not. hashes.py has what hashlib takes
// from OpenSSL alone.
//
// There are no signals, and no ssl, ctypes or
// packages from pip beside those of the runtime.
//
// # When a script starts
//
// A script is started once, up to its first read of standard input, and every call
// goes on from there (an image, see package wasm): what it imports and prepares
// before that read costs a call nothing. Around that read, whichever function makes
// it, first.py keeps the objects of the start-up out of the garbage collector and
// draws anew what was drawn: generators of module random and of numpy, but for those
// with a seed of the script's own. Databases of module sqlite3 that is imported before it
// draw from the system. Hashes of strings are seeded at the start, and so
// are the same in all calls that share it.
//
// Until then functions of first.py stand in the place of open, os.read, io.FileIO,
// select.select and the like. They do the same; a script can tell by their type.
//
// A script of an Agent Skill (a call's Script) is started up to where its arguments are
// read, which come before its standard input: boot.py has loaded by then what it imports
// from the library, and compiled it. Its working folder is the skill's, at /skills/NAME,
// which it may write to as if it were its own; PWD says so, TMPDIR and HOME are /tmp.
// program.py puts in the place of what WASI has not what such programs expect where it is
// missing. And the help of argparse has the form that it had up to
// Python 3.12.
//
// A call with arguments of its own, and a script that never reads its input, have
// an interpreter to themselves: some tens of milliseconds and some hundred million
// units of fuel, which count into limits.fuel and limits.timeout_ms.
//
// At its end a script's functions of module atexit run, its globals go, and its
// streams are flushed; where it has written to /work, so are the files that its modules
// or circles of objects hold. What else the interpreter does at its end, such as clearing
// all modules, is left out: it takes longer than most calls.
package python
