// Package catalogue keeps the skills that strangers uploaded: which versions there are, who
// may call them, and what the operator and the host decided about them.
//
// The database decides: a version is published, enabled or deleted when the transaction that
// says so is committed, one after the other over all hosts. It has the admitted files too, as
// archives by their digests. A folder of copies is a host's own:
//
//	<dir>/.lock                  held while a store is open
//	<dir>/.staging/<random>/     uploads under way
//	<dir>/<tenant>/<digest>/     the files of one version
//
// What no record names is removed from it when the store is opened; what is missing or was
// changed is fetched: its digest must be the one on record, and the host's own admission must
// take it. Until its files are here a version is not found on this host, and one that this
// host's admission refuses is shown as quarantined on it alone, with the reason.
//
// A tenant finds its own uploads, and those of others that the operator approved; its own go
// first. What a tenant does not find is answered as if it were not there. One version of a
// skill is the current one, which calls get that name none: the one enabled last. Others stay
// enabled for callers who name them.
package catalogue
