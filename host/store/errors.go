package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// Reason says why the database did not do what it was asked.
type Reason string

// The reasons.
const (
	Locked   Reason = "locked"    // another one held it for longer than was waited
	Full     Reason = "full"      // no room on its disk, or as much as it may have
	ReadOnly Reason = "read-only" // it may not be written
	Gone     Reason = "gone"      // its server, its file or its disk cannot be reached
	Damaged  Reason = "damaged"   // it is no database, or not whole
	Raced    Reason = "raced"     // a transaction lost to another one: again, and it may work
	Taken    Reason = "taken"     // there is one with this key
	Ended    Reason = "ended"     // the context ended
	Refused  Reason = "refused"   // the statement, or its values, are at fault
)

// Unavailable reports whether err says that the database cannot now: nothing is wrong
// with what it was asked, and it may work later.
func Unavailable(err error) bool {
	switch ReasonOf(err) {
	case Locked, Full, ReadOnly, Gone, Damaged, Raced:
		return true
	default:
		return false
	}
}

// ReasonOf gives the reason of an error of this package; Refused for one that it does
// not know, and "" for nil.
func ReasonOf(err error) Reason {
	var lite *sqlitedriver.Error
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	switch _, ok := errors.AsType[net.Error](err); {
	case err == nil:
		return ""
	case errors.As(err, &lite):
		return liteReason(lite.Code())
	case errors.As(err, &pg):
		return pgReason(pg.Code)
	case errors.Is(err, ErrMoved), errors.Is(err, sql.ErrConnDone), errors.Is(err, driver.ErrBadConn):
		return Gone
	case errors.As(err, &connect):
		return Gone
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Ended
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), ok, pgconn.SafeToRetry(err):
		return Gone
	}
	return Refused
}

func liteReason(code int) Reason {
	switch code {
	case sqlitelib.SQLITE_CONSTRAINT_UNIQUE, sqlitelib.SQLITE_CONSTRAINT_PRIMARYKEY, sqlitelib.SQLITE_CONSTRAINT_ROWID:
		return Taken
	case sqlitelib.SQLITE_BUSY_SNAPSHOT:
		return Raced
	case sqlitelib.SQLITE_READONLY_DBMOVED:
		return Gone
	}
	switch code & 0xff { // the kind; the bits above say more of it
	case sqlitelib.SQLITE_BUSY, sqlitelib.SQLITE_LOCKED, sqlitelib.SQLITE_PROTOCOL:
		return Locked
	case sqlitelib.SQLITE_FULL:
		return Full
	case sqlitelib.SQLITE_READONLY, sqlitelib.SQLITE_PERM, sqlitelib.SQLITE_AUTH:
		return ReadOnly
	case sqlitelib.SQLITE_IOERR, sqlitelib.SQLITE_CANTOPEN, sqlitelib.SQLITE_NOMEM:
		return Gone
	case sqlitelib.SQLITE_CORRUPT, sqlitelib.SQLITE_NOTADB:
		return Damaged
	case sqlitelib.SQLITE_INTERRUPT:
		return Ended
	}
	return Refused
}

// pgReason reads a SQLSTATE: the first two letters are its class.
func pgReason(state string) Reason {
	switch state {
	case "23505": // unique_violation
		return Taken
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return Raced
	case "55P03", "57014": // lock_not_available; query_canceled, by statement_timeout
		return Locked
	case "53100": // disk_full
		return Full
	case "25006": // read_only_sql_transaction: a standby, or default_transaction_read_only
		return ReadOnly
	case "42501": // insufficient_privilege
		return ReadOnly
	case "3D000", "28000", "28P01": // no such database, role or password: an operator at work
		return Gone
	case "25P03": // idle_in_transaction_session_timeout
		return Gone
	case "XX001", "XX002": // data_corrupted, index_corrupted
		return Damaged
	}
	switch state[:min(2, len(state))] {
	case "08", "53", "57", "58", "XX": // connection, resources, operator, system, the server itself
		return Gone
	}
	return Refused
}
