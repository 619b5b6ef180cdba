// Package store opens the database of the host, SQLite or PostgreSQL: connections,
// transactions, migrations, notices of changes, blobs. The statements stand in the rooms
// whose rows they are; host/store/storetest has their suites, which both databases pass.
//
// # One query for both
//
// Statements have $1, $2 … for their arguments, and find names without a schema. What they
// ask goes to [DB.Read], or to [DB.Urgent] where every request waits for it; what they change
// to [DB.Exec], or to [DB.InTx] where that is more than one statement. On SQLite there is one
// connection that writes and several that cannot. These arguments and columns are the same on
// both:
//
//   - [DB.At] and [Time] for a time: INTEGER on SQLite, TIMESTAMPTZ on PostgreSQL;
//   - string for UUID and TEXT; PostgreSQL refuses NUL and bytes that are not UTF-8 in
//     them, so that text of strangers goes through [Plain] first;
//   - []byte for BLOB and BYTEA, which hold anything; bool; int64.
//
// What there is much of and may wait goes by [DB.InTurn], and changes of a topic by
// [DB.InTopic], so that records and quotas do not wait for them. On PostgreSQL these have
// connections of their own besides ([DB.Records]): what others hold while they wait for a row
// is not theirs.
//
// Within a transaction everything goes by its tx: on SQLite it has the one connection that
// writes, and who waits for another one waits for ever.
//
// INSERT … ON CONFLICT … DO UPDATE, RETURNING, row values in comparisons, and FOR UPDATE
// (by [DB.ForUpdate], "" on SQLite, where a transaction that writes is alone anyway) are
// alike too.
//
// Between a host and PostgreSQL there may be a pooler that keeps sessions together, but
// none that hands out single transactions: statements are prepared, locks and LISTEN are
// of a session.
//
// # Errors
//
// [ReasonOf] tells errors apart: what the database cannot now ([Unavailable]: locked,
// full, read-only, gone) is not the caller's fault and may work later; [Taken] is a key
// that is there already.
//
// # What outlives what
//
// What was written outlives the process and its kill -9. On SQLite it does not outlive a
// power cut of the last moments (synchronous=NORMAL, where the file stays whole all the
// same); ?synchronous=full behind the file's name in the URL makes every write wait for
// the disk. On PostgreSQL its own settings decide, and its defaults wait.
package store
