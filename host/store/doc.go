// Package store keeps what openSkill must not forget, in SQLite or in PostgreSQL: records
// of runs, keys, definitions, results, recordings, what was used of quotas, conversations
// and tasks of the agent. Each of these has its interface in the package that needs it,
// its adapter here in a file of its own, its tables in a step of host/store/migrations,
// and its suite in host/store/storetest, which both databases pass.
//
// # One query for both
//
// An adapter is a struct around *DB. What it asks goes to d.read, what it changes to
// d.write, or into d.inTx where that is more than one statement: on SQLite d.write is one
// connection and d.read are several that cannot write; on PostgreSQL both are the same
// pool. Both are bun.DB, which writes the arguments into the statement in the words of the
// database, and names are found without a schema. These fields and arguments read and
// write the same on both:
//
//   - stamp for a time: INTEGER on SQLite, TIMESTAMPTZ on PostgreSQL;
//   - string for UUID and TEXT; PostgreSQL refuses NUL and bytes that are not UTF-8 in
//     them, so that text of strangers goes through plain first;
//   - []byte for BLOB and BYTEA, which hold anything; bool; int64.
//
// What may be large goes to the driver as it is, in a statement of d.marked: in bun's it
// would be text, of bytes twice as long.
//
// What there is much of and may wait goes by d.inTurn, and changes of a topic by d.inTopic,
// so that records and quotas do not wait for them. On PostgreSQL these have connections of
// their own besides (d.records): what others hold while they wait for a row is not theirs.
//
// Within d.inTx everything goes by its tx: on SQLite it has the one connection that
// d.write gives, and who waits for another one waits for ever.
//
// INSERT … ON CONFLICT … DO UPDATE, RETURNING, row values in comparisons, and FOR UPDATE
// (by d.forUpdate, "" on SQLite, where a transaction that writes is alone anyway) are
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
