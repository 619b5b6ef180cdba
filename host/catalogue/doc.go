// Package catalogue keeps the skills that strangers uploaded: their immutable
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
// # Several hosts
//
// A host with SQLite is alone, and what is said above is all: its files are the truth.
// Hosts that share a database server keep the records there, and the admitted files too,
// as archives under their digests ([Shared]); which of the two it is, the assembly decides
// by the kind of the database. Then:
//
//   - the database alone decides: a version is published, enabled or deleted when the
//     transaction that says so is committed, one after the other over all hosts. So of
//     uploads of one version at once one wins, and quotas hold over all hosts;
//   - a host's folder is a copy, without state.json. What no record names is removed when
//     the store is opened, and what is missing or was changed is fetched: its digest must
//     be the one on record, and the host's own admission must take it. A crash between
//     database and disk, on either side, leaves nothing that this does not mend;
//   - [Store.Refresh] reads what was changed since the last time. Who calls it when the
//     database says that [Topic] has changed is up to date within moments;
//   - until its files are here a version is not found on this host, and one that this
//     host's admission refuses is shown as quarantined on it alone, with the reason;
//   - a quarantine that cannot be written holds on its host, and is written later.
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
// whenever their sizes or times have changed. A version that differs is quarantined,
// or fetched again where it is shared.
package catalogue
