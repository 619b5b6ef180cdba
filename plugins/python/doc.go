// Package python runs Python scripts as they are, in the sandbox: by CPython 3.12
// compiled to WASI, one module with its standard library inside. It is the runner
// wasm:python.
//
// The runtime is a file in the state folder, StateDir/runtimes/python-3.12/python.wasm,
// fetched by make runtime-python. Its SHA-256 is part of this package: another
// file is not run. Compiling it takes 5 to 20 s the first time on a machine, some
// tenths of a second after that (the engine keeps the result in its cache
// folder). Until that is done Ready says so, and the host lets a skill's fallback
// answer; see [Runner.Warm].
//
// # What a script sees
//
//	python -B -s -X utf8 /skill/ENTRY ARGUMENTS…
//
// in the working directory "/", with the files that package sandbox shows. The
// folder of the script is the first place that imports are looked for, as
// everywhere. The environment is empty, but that TMPDIR=/work where scratch is
// granted, so that module tempfile works; what is left in /work becomes an
// artifact. -B, since the folder cannot be written; -s, since there are no users;
// -X utf8, since there is no locale.
//
// Hashes of strings are seeded anew in each run. There are no threads, processes,
// sockets or signals, and no ssl, ctypes or packages from pip.
//
// Each run starts an interpreter: 60 to 150 ms and about 380 million units of
// fuel, to be counted into limits.fuel and limits.timeout_ms.
package python
