package records

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/google/uuid"

	"openskill/host/store"
)

const (
	// resultPart is how many bytes of an item one transaction writes. SQLite has one
	// connection that writes, and records, which calls wait for, would wait for all of it.
	resultPart = 1 << 20
	// partsAtOnce is how many parts are removed in one transaction.
	partsAtOnce = store.MostFreed / resultPart
	// abandoned is when parts that no item names are removed: those of a host that was killed.
	abandoned = 10 * time.Minute
)

// writeParts writes the items that are larger than a part, each part in a turn of its own.
// It returns their ids, "" for the other items; those of an error may be written in part.
func (s results) writeParts(ctx context.Context, k *Kept) (ids []string, err error) {
	ids = make([]string, len(k.Items))
	for i, item := range k.Items {
		if len(item.Data) <= resultPart {
			continue
		}
		ids[i] = uuid.NewString()
		n := 0
		for body := range slices.Chunk(item.Data, resultPart) {
			err := s.db.InTurn(ctx, k.Tenant, func() error {
				_, err := s.db.Exec(ctx, "INSERT INTO result_parts (id, part, created_at, body) VALUES ($1, $2, $3, $4)", ids[i], n, s.db.At(k.At), body)
				return err
			})
			if err != nil {
				return ids, err
			}
			n++
		}
	}
	return ids, nil
}

// readParts reads the first size bytes of an item that is in parts: one part at a time, into
// memory that is taken once.
func (s results) readParts(ctx context.Context, id string, size int) (body []byte, err error) {
	rows, err := s.db.Read.QueryContext(ctx, "SELECT body FROM result_parts WHERE id = $1 AND part < $2 ORDER BY part", id, (size+resultPart-1)/resultPart)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	body = make([]byte, 0, size)
	for rows.Next() {
		var part sql.RawBytes
		if err := rows.Scan(&part); err != nil {
			return nil, err
		}
		body = append(body, part[:min(len(part), size-len(body))]...)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(body) != size {
		return nil, ErrNotKept // it is being removed
	}
	return body, nil
}

// dropParts removes the parts of items of a tenant, the first part last: it is what
// dropAbandoned looks for.
func (s results) dropParts(ctx context.Context, tenant string, ids []string) error {
	for _, id := range ids {
		for n := partsAtOnce; id != "" && n == partsAtOnce; {
			var err error
			n, err = s.db.ExecInTurn(ctx, tenant, "DELETE FROM result_parts WHERE id = $1 AND part IN (SELECT part FROM result_parts WHERE id = $1 ORDER BY part DESC LIMIT $2)", id, partsAtOnce)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// dropAbandoned removes parts that no item names.
func (s results) dropAbandoned(ctx context.Context, now time.Time, limit int) error {
	ids, err := store.All(ctx, s.db.Read, store.Column[string],
		"SELECT id FROM result_parts WHERE part = 0 AND created_at <= $1 AND NOT EXISTS (SELECT 1 FROM results WHERE results.parts = result_parts.id) LIMIT $2",
		s.db.At(now.Add(-abandoned)), limit)
	if err != nil {
		return err
	}
	return s.dropParts(ctx, "", ids)
}
