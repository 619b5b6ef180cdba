// Package records keeps the record of every run: what was asked by whom before anything
// runs, how it ended before the caller is answered, each record chained to the one
// before it, so that a change afterwards is found.
//
// [Log] writes records, by the operator's [Policy] for inputs and outputs; [Verify] reads
// chains and names the first record that is not what was written.
//
// # Several hosts
//
// Hosts on one database say every five seconds that they are alive, and what a host left
// that was silent for 15 is ended on record by the others. They go by the clock of the
// database; see [Log.DatabaseTime] and [Log.Skew].
//
// # What a chain proves
//
// Each record has a hash of itself and of the hash before it (see [Link]). Whoever changes,
// removes, moves or adds a record in the database, and leaves the others as they are, is
// found, and the record is named. Records that are removed when they are too old are
// removed on record.
//
// No key is in the hash, since whoever can change the database could most often read the
// key too. So whoever may write to the database can write a chain anew from some record
// on, up to its head, and the chain alone does not tell; it does tell whoever kept a head
// elsewhere, because a chain that was written anew has another hash at that place:
// `openskill audit head` prints heads to be kept where the database's owner cannot change
// them, and `openskill audit verify --against` compares. For the same reason a chain does not
// prove what was never written to it; that nothing runs unrecorded is the promise of the
// door, which asks [Log.Started] first.
package records
