package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// pgSchema is where all tables are.
const pgSchema = "agent"

// serverOptions are how a PostgreSQL server is reached.
type serverOptions struct {
	URL   string // postgres://…; what it says of statement_timeout and the like holds
	Conns int    // most connections; 0: 10

	// Brief has the server end transactions in which nothing comes for a second: those whose
	// rows calls wait for, and between whose statements no client has much to do.
	Brief bool
	// Patient leaves out the bounds on the time of a statement, for changes of the schema.
	Patient bool
}

// errURL says that a URL cannot be read. What is wrong with it is not told, as its
// password would be.
var errURL = errors.New("store: the URL cannot be read")

// serverName names a database for a folder: records that wait there must come into no other one.
func serverName(url string) string {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return "" // it is not opened
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", c.Host, c.Port, c.Database))
	return hex.EncodeToString(sum[:8])
}

// openServer gives connections to the server, none of which is made yet.
func openServer(o serverOptions) (*sql.DB, error) {
	c, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return nil, errURL
	}
	setting(c, "search_path", pgSchema, true) // tables are found without it, and those of no other schema
	setting(c, "application_name", "openskill", false)
	setting(c, "TimeZone", "UTC", true)
	setting(c, "default_transaction_isolation", "read committed", true) // who waited for a lock sees what was written meanwhile
	// A plan that was made for an empty table would be kept while it grows.
	setting(c, "plan_cache_mode", "force_custom_plan", false)
	if !o.Patient {
		setting(c, "statement_timeout", "10s", false)
		setting(c, "lock_timeout", "5s", false)
		// A host that hangs must not hold for others what it locked.
		idle := "10s"
		if o.Brief {
			idle = "1s"
		}
		setting(c, "idle_in_transaction_session_timeout", idle, false)
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	var after []stdlib.OptionOpenDB
	if _, ok := c.RuntimeParams[commit]; !ok {
		after = append(after, stdlib.OptionAfterConnect(waitForCommits))
	}
	db := stdlib.OpenDB(*c, after...)
	if o.Conns <= 0 {
		o.Conns = 10
	}
	db.SetMaxOpenConns(o.Conns)
	db.SetMaxIdleConns(min(4, o.Conns))
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(time.Hour) // so that a server behind an address that changed is left
	return db, nil
}

// commit is the setting by which a commit is answered before it is written.
const commit = "synchronous_commit"

// waitForCommits has commits wait until they are written where the server's own setting
// is that they do not: a server that crashes would forget runs that were answered. What
// other servers are set to (on, local, remote_write, remote_apply) stays.
func waitForCommits(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "SELECT set_config('"+commit+"', 'on', false) WHERE current_setting('"+commit+"') = 'off'")
	return err
}

func setting(c *pgx.ConnConfig, name, value string, always bool) {
	if _, ok := c.RuntimeParams[name]; !ok || always {
		c.RuntimeParams[name] = value
	}
}

// lockKey is the advisory lock of changes to the schema: "openskil" in ASCII.
const lockKey = 0x6f70656e736b696c

// lockSchema waits until no other process changes the schema, makes the schema if it is
// missing, and gives what ends the lock.
func lockSchema(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	// A connection that is closed gives up its lock, whatever happened to the context.
	drop := func() {
		_ = c.Raw(func(any) error { return driver.ErrBadConn })
		_ = c.Close()
	}
	if _, err := c.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(lockKey)); err != nil {
		drop()
		return nil, err
	}
	var missing bool
	if err := c.QueryRowContext(ctx, "SELECT to_regnamespace($1) IS NULL", pgSchema).Scan(&missing); err != nil {
		drop()
		return nil, err
	}
	if missing {
		if _, err := c.ExecContext(ctx, "CREATE SCHEMA "+pgSchema); err != nil {
			drop()
			return nil, err
		}
	}
	return drop, nil
}

// connectListener makes one connection apart from the pool, for those who listen. The caller
// closes it.
func connectListener(ctx context.Context, url string) (*pgx.Conn, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errURL
	}
	setting(c, "search_path", pgSchema, true)
	setting(c, "application_name", "openskill listener", false)
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	return pgx.ConnectConfig(ctx, c)
}
