// Package definitions keeps the operator's skills as rows of a database, which is the
// source of what is so of them; folders and lists only seed it.
//
// # Seeds and changes
//
// A host seeds when it starts: every skill of its trusted folders, of their lists in
// the agent-service form and of the CLI folder becomes a row, or brings its row up to
// date. Seeding twice changes nothing. Three things of a row can be changed over an
// edge: whether it is enabled, its cost metadata, and its description. What was changed
// stays so until it is given back (null): a seed changes what the operator did not. It
// is written down beside the change all the same, so that giving back needs no restart.
//
// What the files alone can say (schemas, version, digest, how it is run) a seed always
// brings up to date, and a host serves as its own files have it: schema and code belong
// together, and hosts that are updated one after the other have different files for a
// while. From the database a host takes what was changed.
//
// # Without code
//
// A definition may come without code: over an edge, or in a list before its script is
// there. It is listed as not enabled, with the reason, and cannot be called. Its code is
// what the operator puts beside, as of an entry of a list; a host looks for it whenever
// it reads the definitions. A script of the CLI folder that no list mentions is a skill
// by itself, until a definition says more of it. A row whose files are gone from this host is not shown here:
// another host may have them.
//
// # Deleting
//
// A definition that came over an edge is removed. One that files seed would come back
// with the next start, so its row stays and says that it was deleted; enabling it brings
// it back.
//
// Those who look never ask the database: [Catalogue.Now] is a registry in memory, which
// [Catalogue.Refresh] replaces whole.
package definitions
