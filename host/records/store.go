package records

import (
	"context"
	"errors"
	"time"
)

// ErrNotFound says that there is no such execution, or none that the caller may see.
var ErrNotFound = errors.New("no such execution")

// Entry is a record to be written, with what it means for the tables that are asked:
// exactly one of Started, Finished and Change is set. Records of what was removed are written by
// [Store.Prune] alone.
type Entry struct {
	Record   // Tenant, Kind, ExecutionID, Time and Body are set; the store sets Seq, Prev and Hash
	Started  *Started
	Finished *Finished
	Change   *Change
	Of       *Started // of a Finished: what its execution began with
	Own      bool     // of a Change: its tenant made it by itself, and can make any number
	Wait     bool     // of all entries of an Append: wait a moment for chains that are held
	Sure     bool     // it was acknowledged, and is written even if its tenant has no room
	Full     bool     // set by Append: the records of its tenant take all the room that they may
	Left     error    // set by Append: why it left this one out, [ErrFull] or [ErrHeld]
}

// ErrHeld says that another host has the chain of a tenant in a transaction: nothing of the
// tenant was written, and it can be tried again.
var ErrHeld = errors.New("another host has locked the tenant's records")

// ErrFull says that the records of a tenant take as much as they may: nothing begins. A
// sixteenth more is for what the tenant changes by itself; other changes have no bound.
var ErrFull = errors.New("the tenant's record storage is full")

// RecordSize is what a record counts for, in bytes: with its row, beside its body.
func RecordSize(body int) int64 { return 200 + int64(body) }

// Store keeps records and executions. Implementations are safe for concurrent use, by
// several processes too; storetest is the suite that each one passes. Errors are as
// the database gave them; ErrNotFound is what Execution says of what is not there.
type Store interface {
	// Append writes entries in their order, all of a tenant or none, each linked by [Link] to
	// the last record of its tenant. When it returns nil they outlive the process. A Started
	// makes the execution running, a Finished ends it and makes it an execution log; a
	// second Finished of an execution is left out without an error, which says that it
	// was written before: Append may be repeated after an error that leaves it open
	// whether the entries were written, and so is a second Started. What begins
	// or is changed beyond what the records of a tenant may take is left out with ErrFull, and all entries of a
	// tenant whose chain is held elsewhere with ErrHeld: others do not wait for it. An entry
	// that was left out has Seq 0.
	Append(ctx context.Context, entries []*Entry) error

	// Tenants lists every tenant that has a chain, in order, with its ends.
	Tenants(ctx context.Context) ([]Head, error)
	// Shown lists, in order, every tenant that has a chain or executions; tenant "" means all.
	// Head and Ended are of the same moment.
	Shown(ctx context.Context, tenant string) ([]Shown, error)
	// Records gives at most limit records of a tenant from a sequence number on.
	Records(ctx context.Context, tenant string, from uint64, limit int) ([]Record, error)

	// Execution gives one; tenant "" means any.
	Execution(ctx context.Context, tenant, id string) (*Execution, error)
	// Executions gives a page, newest first, running ones included, and the cursor of
	// the next page or "".
	Executions(ctx context.Context, q Query) ([]*Execution, string, error)

	// Changes lists changes, newest first.
	Changes(ctx context.Context, q ChangeQuery) ([]Change, error)

	// Alive says that an instance of a host runs, Gone that it does not any more. Alive gives
	// the time of the database, by which it is kept.
	Alive(ctx context.Context, instance string) (time.Time, error)
	Gone(ctx context.Context, instance string) error
	// Orphans gives at most limit running executions of instances that have been silent for
	// longer than a time, by the database's clock, oldest first.
	Orphans(ctx context.Context, silent time.Duration, limit int) ([]*Started, error)

	// Resume makes an instance the one that runs an execution that another one ran: it must have taken its queued call.
	// The error is ErrNotFound if it has not, or if the execution has ended.
	Resume(ctx context.Context, executionID, instance string) error
	// Resumable gives those of ids that begin again on another host when theirs is gone, at most 1000. Orphans has none of them.
	Resumable(ctx context.Context, ids []string) ([]string, error)

	// Prune removes records and execution logs of a tenant from before a time, at most
	// limit records, from the oldest on and without a gap; a record whose execution runs
	// stays, and all after it. What was removed is put on record, as a [Pruned], in the
	// same transaction. It gives the number of records.
	Prune(ctx context.Context, tenant string, before time.Time, limit int) (int, error)
}

// Head is the chain of a tenant as its ends say it.
type Head struct {
	Tenant   string `json:"tenant"`
	First    uint64 `json:"first"` // sequence number of the oldest record that is kept
	Prev     string `json:"prev"`  // what that one names as Prev
	Last     uint64 `json:"last"`  // 0: the chain is empty
	LastHash string `json:"last_hash"`
	Bytes    int64  `json:"-"` // of all its records, by [RecordSize]

	Time time.Time `json:"time,omitzero"` // of the last record; only heads that are kept elsewhere have it
}

// Shown is the chain of a tenant beside what queries show.
type Shown struct {
	Head         // zero but for the tenant where there is none
	Ended uint64 // execution logs
}

// Query chooses executions. Zero fields choose all.
type Query struct {
	Tenant    string
	Principal string
	Skill     string
	Status    Status
	Code      string
	Session   string
	TraceID   string
	Since     time.Time // started at or after
	Until     time.Time // started before
	Cursor    string    // as a page before gave it
	Limit     int       // 1 to 1000
}
