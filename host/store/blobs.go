package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// partSize is what is read and written of a blob at once, in bytes.
const partSize = 512 << 10

// WriteBlob keeps what can be read, by its digest, where it is not kept yet. Its row is locked
// until the transaction ends: others with the same blob wait, and who removes unused ones
// leaves it alone.
func (d *DB) WriteBlob(ctx context.Context, tx *sql.Tx, digest string, from io.ReadSeeker) error {
	now, err := d.Now(ctx, tx)
	if err != nil {
		return err
	}
	var parts int
	err = tx.QueryRowContext(ctx, "INSERT INTO skill_blobs (digest, parts, used_at) VALUES ($1, 0, $2) ON CONFLICT (digest) DO UPDATE SET used_at = excluded.used_at RETURNING parts",
		digest, d.At(now)).Scan(&parts)
	if err != nil || parts > 0 {
		return err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buf := make([]byte, partSize)
	for {
		n, err := io.ReadFull(from, buf)
		if n > 0 {
			if _, err := tx.ExecContext(ctx, "INSERT INTO skill_blob_parts (digest, part, bytes) VALUES ($1, $2, $3)", digest, parts, buf[:n]); err != nil {
				return err
			}
			parts++
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if parts == 0 {
		return errors.New("store: a blob is empty")
	}
	_, err = tx.ExecContext(ctx, "UPDATE skill_blobs SET parts = $1 WHERE digest = $2", parts, digest)
	return err
}

// ReadBlob writes a blob to a writer; fs.ErrNotExist says that there is none.
func (d *DB) ReadBlob(ctx context.Context, digest string, to io.Writer) error {
	parts, err := All(ctx, d.Read, Column[int], "SELECT part FROM skill_blob_parts WHERE digest = $1 ORDER BY part", digest)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return fmt.Errorf("store: the blob %s: %w", digest, fs.ErrNotExist)
	}
	for _, part := range parts {
		var b []byte
		if err := d.Read.QueryRowContext(ctx, "SELECT bytes FROM skill_blob_parts WHERE digest = $1 AND part = $2", digest, part).Scan(&b); err != nil {
			return err
		}
		if _, err := to.Write(b); err != nil {
			return err
		}
	}
	return nil
}
