package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/uptrace/bun"

	"openskill/host/catalogue"
)

// partSize is what is read and written of an archive at once, in bytes.
const partSize = 512 << 10

// write keeps the files of a version. Their row is locked until the transaction ends:
// others with the same files wait, and Tidy leaves them alone.
func (s uploadStore) write(ctx context.Context, tx bun.Tx, files *catalogue.Files) error {
	now, err := s.db.clock(ctx, tx)
	if err != nil {
		return err
	}
	var parts int
	err = tx.NewRaw("INSERT INTO skill_blobs (digest, parts, used_at) VALUES (?, 0, ?) ON CONFLICT (digest) DO UPDATE SET used_at = EXCLUDED.used_at RETURNING parts",
		files.Digest, now).Scan(ctx, &parts)
	if err != nil || parts > 0 {
		return err
	}
	if _, err := files.From.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buf := make([]byte, partSize)
	for {
		n, err := io.ReadFull(files.From, buf)
		if n > 0 {
			if _, err := tx.NewRaw("INSERT INTO skill_blob_parts (digest, part, bytes) VALUES (?, ?, ?)", files.Digest, parts, buf[:n]).Exec(ctx); err != nil {
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
		return errors.New("store: an archive is empty")
	}
	_, err = tx.NewRaw("UPDATE skill_blobs SET parts = ? WHERE digest = ?", parts, files.Digest).Exec(ctx)
	return err
}

// Archive implements catalogue.Shared.
func (s uploadStore) Archive(ctx context.Context, digest string, to io.Writer) error {
	var parts []int
	if err := s.db.read.NewRaw("SELECT part FROM skill_blob_parts WHERE digest = ? ORDER BY part", digest).Scan(ctx, &parts); err != nil {
		return err
	}
	if len(parts) == 0 {
		return fmt.Errorf("store: the files %s: %w", digest, fs.ErrNotExist)
	}
	for _, part := range parts {
		var b []byte
		if err := s.db.read.NewRaw("SELECT bytes FROM skill_blob_parts WHERE digest = ? AND part = ?", digest, part).Scan(ctx, &b); err != nil {
			return err
		}
		if _, err := to.Write(b); err != nil {
			return err
		}
	}
	return nil
}
