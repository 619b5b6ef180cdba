package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// File is the database's name in the state folder.
const File = "openskill.db"

// Options are which database, and where.
type Options struct {
	URL      string       // sqlite:FILE or postgres://…; "": File in StateDir
	StateDir string       // required where URL is ""
	Existing bool         // refuse a file of SQLite that is not there: none is made
	Conns    int          // most connections to a PostgreSQL server, two fifths of them for records and counts of calls, one for keys; 0: 10
	Log      *slog.Logger // nil: slog.Default()

	// What each tenant may have stored. At the bound the tenant's oldest go.
	Recordings    Quota // 0: 1 GiB, 100,000
	Conversations Quota // 0: 256 MiB, 20,000

	// What the records of each tenant may take. At the bound its calls are refused.
	Records Quota // 0: 100 GiB. Their number is not bounded here

	file string // of SQLite, whatever its name; instead of URL
}

// Kind is a kind of database.
type Kind string

// The kinds.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// DB is an open database, whose schema is that of this program. It is safe for concurrent
// use, and several processes may have the same one open.
type DB struct {
	kind Kind
	log  *slog.Logger
	url  string // of PostgreSQL, for the connection that listens; it may hold a password

	// Write and Read are the same pool on PostgreSQL. On SQLite Write is one connection, and
	// Read are several that cannot write.
	Write, Read *sql.DB
	// Records is Write, but on PostgreSQL a pool of its own: what records and counts of calls
	// need must not be held by what may wait.
	Records *sql.DB
	// Urgent is Read, with connections of its own: every request waits for a look at its key, and
	// lists of callers are not to hold that up.
	Urgent *sql.DB

	// RecordsIn says where records are before a call goes on, and Journals is the folder of those
	// that are not in the database.
	RecordsIn Place
	Journals  string

	turns   *gate.Gate // see InTurn
	changes *gate.Gate // see InTopic
	most    map[string]Quota

	preparing sync.Mutex // guards prepared
	prepared  map[string]*sql.Stmt

	close  func() error
	closed sync.Once
}

// Open opens the database and brings its schema up to that of this program; of several
// processes that do so at once, one does it and the others wait. A database of a later
// release is refused. The URL may hold a password, which no error shows.
func Open(ctx context.Context, o Options) (*DB, error) {
	where, err := o.parse()
	if err != nil {
		return nil, err
	}
	where.most = o.quotas()
	// Who turns a new file of SQLite to its log has it for himself, and others are told that
	// it is locked without a wait.
	var d *DB
	err = Retry(ctx, func() (err error) {
		d, err = where.connect(ctx)
		return err
	})
	if err == nil {
		if err = where.current(ctx, d); err != nil {
			err = errors.Join(err, d.Close())
		}
	}
	if err != nil {
		return nil, opening(err)
	}
	return d, nil
}

// opening is what the operator reads of a database that cannot be opened.
func opening(err error) error {
	if told, ok := errors.AsType[*skill.Error](err); ok {
		return told
	}
	message := "the database cannot be opened; check it, or set OPENSKILL_DATABASE_URL to another one"
	if r := ReasonOf(err); r != Refused {
		message = "the database cannot be opened (" + string(r) + "); check it, or set OPENSKILL_DATABASE_URL to another one"
	}
	return &skill.Error{Op: "store.Open", Code: skill.AuditUnavailable, Message: message, Err: err}
}

// Close closes the database. It may be called twice.
func (d *DB) Close() error {
	var err error
	d.closed.Do(func() { err = d.close() })
	return err
}

// Kind says which kind of database it is.
func (d *DB) Kind() Kind { return d.kind }

// place is what a URL says.
type place struct {
	kind     Kind
	records  Place
	journals string
	most     map[string]Quota
	log      *slog.Logger
	file     fileOptions   // of SQLite
	net      serverOptions // of PostgreSQL
}

func (o Options) parse() (*place, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	wrong := func(message string) (*place, error) {
		return nil, &skill.Error{Op: "store.Open", Code: skill.InvalidArgument, Subject: "OPENSKILL_DATABASE_URL", Message: message}
	}
	scheme, rest, ok := strings.Cut(o.URL, ":")
	switch {
	case o.file != "":
		return &place{kind: SQLite, log: o.Log, file: fileOptions{File: o.file}}, nil
	case o.URL == "" && o.StateDir == "":
		return wrong("without a URL of a database a state folder is needed")
	case o.URL == "":
		return o.there(&place{kind: SQLite, log: o.Log, file: fileOptions{File: filepath.Join(o.StateDir, File)}})
	case ok && (scheme == "postgres" || scheme == "postgresql"):
		address, records, err := cutRecords(o.URL)
		if err != nil {
			return wrong(err.Error())
		}
		return &place{kind: Postgres, records: cmp.Or(records, InDatabase), journals: filepath.Join(o.StateDir, "journal", serverName(address)), log: o.Log, net: serverOptions{URL: address, Conns: o.Conns}}, nil
	case !ok || scheme != "sqlite":
		return wrong("OPENSKILL_DATABASE_URL is neither postgres://… nor sqlite:FILE")
	}
	rest, records, err := cutRecords(rest)
	if err != nil {
		return wrong(err.Error())
	}
	file, query, _ := strings.Cut(rest, "?")
	full := strings.EqualFold(query, "synchronous=full")
	if full {
		records = cmp.Or(records, OnDisk)
	}
	records = cmp.Or(records, OnHost)
	switch {
	case query != "" && !full:
		return wrong("sqlite:FILE accepts ?synchronous=full and ?records=database|host|disk, and nothing else")
	case file == "" || strings.HasPrefix(file, ":") || strings.ContainsRune(file, 0):
		return wrong("sqlite: needs the name of a file, such as sqlite:/var/lib/openskill/openskill.db")
	}
	return o.there(&place{kind: SQLite, records: records, log: o.Log, file: fileOptions{File: file, Full: full || records == OnDisk}})
}

// Place is where records are before a call goes on, as a URL says it behind records=.
type Place string

// The places. From a journal of the host, records come into the database a moment later.
const (
	InDatabase Place = "database"
	OnHost     Place = "host" // in a journal, which outlives the process
	OnDisk     Place = "disk" // in a journal, which outlives a power cut
)

// cutRecords takes records= out of the query of a URL.
func cutRecords(from string) (rest string, records Place, err error) {
	rest, query, _ := strings.Cut(from, "?")
	var others []string
	for part := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(part, "records=")
		switch {
		case !ok && part != "":
			others = append(others, part)
		case ok && (records != "" || !slices.Contains([]Place{InDatabase, OnHost, OnDisk}, Place(value))):
			return "", "", errors.New("records= in OPENSKILL_DATABASE_URL accepts database, host or disk, once")
		case ok:
			records = Place(value)
		}
	}
	if len(others) > 0 {
		rest += "?" + strings.Join(others, "&")
	}
	return rest, records, nil
}

// Journals is the folder of the journals of a SQLite database in a state folder; one with another
// name has it beside its file as well, so that records come into no other database.
const Journals = File + journalsEnd

const journalsEnd = ".records"

// there refuses a file that must be there and is not.
func (o Options) there(p *place) (*place, error) {
	p.journals = p.file.File + journalsEnd
	if !o.Existing {
		return p, nil
	}
	if _, err := os.Stat(p.file.File); err != nil {
		return nil, &skill.Error{
			Op: "store.Open", Code: skill.NotFound, Subject: File, Err: err,
			Message: "there is no database " + skill.CleanText(p.file.File, 300) + "; name the state folder of the host (--state)",
		}
	}
	return p, nil
}

// connect opens the database as it is.
func (p *place) connect(ctx context.Context) (*DB, error) {
	d := &DB{kind: p.kind, RecordsIn: cmp.Or(p.records, OnHost), Journals: p.journals, log: p.log, most: p.most, changes: gate.New(gate.Options{Places: 4, Queue: 256}), prepared: map[string]*sql.Stmt{}}
	together := 1 // on SQLite one transaction writes
	switch p.kind {
	case Postgres:
		own, look, others := p.net, p.net, p.net
		own.Brief = true
		own.Conns = max(cmp.Or(p.net.Conns, 10)*2/5, 1)
		look.Conns = max(cmp.Or(p.net.Conns, 10)/5, 1)
		others.Conns = max(cmp.Or(p.net.Conns, 10)-own.Conns-look.Conns, 1)
		db, err := openServer(others)
		if err != nil {
			return nil, p.wrongURL(err)
		}
		records, err := openServer(own)
		if err != nil {
			return nil, p.wrongURL(err)
		}
		urgent, err := openServer(look)
		if err != nil {
			return nil, p.wrongURL(err)
		}
		d.url = p.net.URL
		together = max(others.Conns/2, 1)
		d.Write, d.Read, d.Records, d.Urgent = db, db, records, urgent
		d.close = func() error { return errors.Join(db.Close(), records.Close(), urgent.Close()) }
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := db.PingContext(ctx); err != nil {
			return nil, errors.Join(err, d.close())
		}
	default:
		pools, err := openFile(ctx, p.file)
		if err != nil {
			return nil, err
		}
		d.Write, d.Read, d.Records, d.Urgent, d.close = pools.Write, pools.Read, pools.Write, pools.Look, pools.Close
	}
	d.turns = gate.New(gate.Options{Places: together, Queue: 4096})
	return d, nil
}

func (p *place) wrongURL(error) error {
	return &skill.Error{
		Op: "store.Open", Code: skill.InvalidArgument, Subject: "OPENSKILL_DATABASE_URL",
		Message: "OPENSKILL_DATABASE_URL cannot be read; accepted is postgres://user:password@host:port/database, with special characters of the password as %XX",
	}
}
