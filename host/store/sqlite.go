package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	sqlitedriver "modernc.org/sqlite"
)

// ErrMoved says that the file was moved, deleted or replaced by another one since the
// connection was opened: what is written to it would be lost.
var ErrMoved = errors.New("store: the database file was removed or replaced")

// fileOptions are how a file of SQLite is opened.
type fileOptions struct {
	File    string        // its path; it and its folder are made where they are missing, for the owner alone
	Full    bool          // each write waits until the disk has it (synchronous=FULL)
	Busy    time.Duration // longest time that a statement waits for a lock; 0: half a second
	Readers int           // most connections that read; 0: 4
}

// pools are the connections to one file: one that writes, several that read, and none that
// goes on with a file that is not there any more.
type pools struct {
	Write *sql.DB // one connection; its transactions take the lock when they begin
	Read  *sql.DB // connections that cannot write
	Look  *sql.DB // two more, for what every request waits for
}

// openFile makes the file, if it is not there, and gives its connections.
func openFile(ctx context.Context, o fileOptions) (*pools, error) {
	if o.Busy <= 0 {
		o.Busy = 500 * time.Millisecond
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	file, err := filepath.Abs(o.File)
	if err != nil {
		return nil, err
	}
	o.File = file
	if err := private(file); err != nil {
		return nil, err
	}
	p := &pools{Write: o.pool(false), Read: o.pool(true), Look: o.pool(true)}
	p.Write.SetMaxOpenConns(1)
	p.Read.SetMaxOpenConns(o.Readers)
	p.Read.SetMaxIdleConns(o.Readers)
	p.Look.SetMaxOpenConns(2)
	p.Look.SetMaxIdleConns(2)
	if err := p.Write.PingContext(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close closes the connections. It may be called twice.
func (p *pools) Close() error { return errors.Join(p.Read.Close(), p.Look.Close(), p.Write.Close()) }

// private makes the file for its owner alone. SQLite gives the files beside it (the log
// and its index) the same mode.
func private(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, os.ErrPermission) {
		return nil // it may be read; SQLite says what it thinks of it
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("store: %s is a folder", filepath.Base(file))
	}
	if m := info.Mode().Perm(); m&0o077 != 0 {
		return f.Chmod(m &^ 0o077)
	}
	return nil
}

func (o fileOptions) pool(read bool) *sql.DB {
	synchronous := "NORMAL"
	if o.Full {
		synchronous = "FULL"
	}
	q := url.Values{
		"mode":          {"rw"}, // a file that vanished is not made anew: its records would be missing in it
		"_busy_timeout": {fmt.Sprint(o.Busy.Milliseconds())},
		"_journal_mode": {"WAL"},
		"_synchronous":  {synchronous},
		"_foreign_keys": {"1"},
		"_txlock":       {"immediate"}, // a transaction that reads first and then writes would fail, not wait
		"_dqs":          {"0"},
		"_pragma":       {"cache_size(-16384)"}, // 16 MiB: what is written touches the ends of many indexes
	}
	if read {
		q.Del("_journal_mode") // the writer's connection, opened first, has set it: it is the file's
		q.Set("_query_only", "1")
		q.Set("_pragma", "cache_size(-4096)")
		q.Set("_txlock", "deferred")
	}
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(o.File), RawQuery: q.Encode()}).String()
	return sql.OpenDB(&connector{file: o.File, dsn: dsn})
}

// connector opens connections that know which file they are of.
type connector struct {
	file string
	dsn  string

	mu   sync.Mutex
	base driver.Connector
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return &sqlitedriver.Driver{} }

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.mu.Lock()
	if c.base == nil {
		base, err := sqlitedriver.NewConnector(c.dsn)
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
		c.base = base
	}
	base := c.base
	c.mu.Unlock()
	id, err := os.Stat(c.file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMoved, err)
	}
	under, err := base.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := under.(wholeConn)
	if !ok {
		return nil, errors.Join(errors.New("store: the driver lacks what database/sql asks of it"), under.Close())
	}
	return &conn{wholeConn: whole, file: c.file, id: id}, nil
}

// wholeConn is what the driver's connections can, all of which is passed on.
type wholeConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// conn is a connection to the file that was id when it was opened.
type conn struct {
	wholeConn
	file string
	id   os.FileInfo
}

// moved reports whether the name stands for another file, or none.
func (c *conn) moved() bool {
	now, err := os.Stat(c.file)
	return err != nil || !os.SameFile(now, c.id)
}

// ResetSession is called before the connection is used again: one of a file that is
// gone makes room for another.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.moved() {
		return driver.ErrBadConn
	}
	return c.wholeConn.ResetSession(ctx)
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	under, err := c.wholeConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &tx{Tx: under, conn: c}, nil
}

type tx struct {
	driver.Tx
	conn *conn
}

// Commit writes to the file that has the name, or fails.
func (t *tx) Commit() error {
	if t.conn.moved() {
		return errors.Join(ErrMoved, t.Rollback())
	}
	return t.Tx.Commit()
}
