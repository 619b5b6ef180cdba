package replay

import (
	"context"
	"time"
)

// Row is a recording as it is kept.
type Row struct {
	ExecutionID string
	Tenant      string
	Created     time.Time // UTC, in microseconds
	Missing     string    // why there is no Body; "" where there is one
	Size        int64     // bytes of Body before it was compressed
	Body        []byte
}

// Store keeps recordings. Implementations are safe for concurrent use, by several
// processes too; storetest is the suite that each one passes. Errors are as the database
// gave them.
type Store interface {
	// Keep writes a row. A second one of an execution is left out without an error: the
	// first may have been written though its answer was lost.
	Keep(ctx context.Context, r *Row) error
	// Get gives the row of an execution of a tenant's; nil where there is none.
	Get(ctx context.Context, tenant, executionID string) (*Row, error)
	// Prune removes rows of all tenants that are older than a time, at most limit, and
	// gives their number.
	Prune(ctx context.Context, before time.Time, limit int) (int, error)
}
