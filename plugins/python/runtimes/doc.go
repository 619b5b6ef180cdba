// Package runtimes knows which Python runtimes there are, where they come from, and
// how each is installed, derived and verified in the state folder.
//
//	s := runtimes.New(stateDir)
//	report, err := s.Install(ctx, runtimes.Slim, nil)
//	r, err := s.Open(runtimes.Slim)   // verified: r.Module, r.Mounts, r.Args0, r.Env …
//	name, err := s.For(requires, runtimes.Imports(script))
//
// A runtime lies in STATE/runtimes/NAME:
//
//	python.wasm    the module that is run
//	stdlib.zip     its library, to be mounted (not python-3.12, which has it inside)
//	LICENSE        of all that is in it
//	manifest.json  every file with its SHA-256, and what made it
//
// What is installed is a function of three things: the archive that was fetched, by
// its SHA-256; the derivation, by its version; and this package, which pins the
// SHA-256 of every file that comes out. Nothing else is ever opened: a folder whose
// manifest names other files is not installed, and a file whose hash differs is
// damaged.
//
// Archives are fetched by the package managers of their worlds, pip and npm, as
// subprocesses, or given as files. Only named members leave an archive; nothing in
// it decides a path, a mode or a size.
package runtimes
