package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Connect makes one connection apart from the pool, for those who listen. The caller
// closes it.
func Connect(ctx context.Context, url string) (*pgx.Conn, error) {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, ErrURL
	}
	set(c, "search_path", Schema, true)
	set(c, "application_name", "openskill listener", false)
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 5 * time.Second
	}
	return pgx.ConnectConfig(ctx, c)
}
