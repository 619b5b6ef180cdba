// Package versions keeps the skills that strangers uploaded: their immutable
// versions on disk, which of them may be called and by whom, and what the operator
// and the host decided about them.
//
// # On disk
//
//	<dir>/.lock                                     held while a store is open
//	<dir>/.staging/<random>/                        uploads under way
//	<dir>/<tenant>/<id>/state.json                  what is so of one skill
//	<dir>/<tenant>/<id>/<version>@<16 hex of digest>/   one version, never changed
//
// One folder holds all of a tenant's uploads ([Store.Folder]); its name is the
// tenant's where that is plain, and a hash of it otherwise.
//
// A version is there if, and only if, state.json says so. Publishing writes all
// files of the staging folder through to the disk, renames it into its place, and
// replaces state.json by a new file, also written through: what was acknowledged
// survives a crash, and what was not leaves nothing that can be seen. [Open] removes
// what such a crash left. A state.json that cannot be read is put aside, reported
// by [Store.Problems], and the versions beside it come back as quarantined: what
// was decided about them is not known any more.
//
// # Who finds what
//
// A tenant finds its own uploads, and those of others that the operator approved;
// its own go first. What a tenant does not find is answered as if it were not there.
//
// A version is disabled until it is enabled. One version of a skill is the current
// one, which calls get that name none: the one enabled last. Others stay enabled for
// callers who name them.
//
// Files are compared with the digest of the version when it is first used, and again
// whenever their sizes or times have changed. A version that differs is quarantined.
package versions
