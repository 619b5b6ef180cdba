package records

import (
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"openskill/host/store"
)

// lax reads a row of which somebody who has the database may have made anything. What
// cannot be read is noted and left zero: an error of the query would take away the other rows.
type lax struct {
	names []string // of the columns, in the order in which they are scanned
	n     int
	wrong []string // columns that cannot be read
	other []string // columns that say something else than the record beside them
}

func (l *lax) note(column string) {
	if !slices.Contains(l.wrong, column) {
		l.wrong = append(l.wrong, column)
	}
}

// same notes a column that does not have what it must.
func (l *lax) same(column string, same bool) {
	if !same {
		l.other = append(l.other, column)
	}
}

// damage says what cannot be read, and what is not what it must be; "" for nothing.
func (l *lax) damage() string {
	var what []string
	if len(l.wrong) > 0 {
		what = append(what, strings.Join(l.wrong, ", ")+" cannot be read")
	}
	if len(l.other) > 0 {
		what = append(what, strings.Join(l.other, ", ")+" not as on record")
	}
	return strings.Join(what, "; ")
}

// laxly is the next column.
func laxly[T any](l *lax, to *T) sql.Scanner { return laxColumn[T]{l, to} }

type laxColumn[T any] struct {
	l  *lax
	to *T
}

// Scan implements sql.Scanner.
func (c laxColumn[T]) Scan(from any) error {
	var v sql.Null[T]
	if err := v.Scan(from); err != nil {
		c.l.note(c.l.names[c.l.n])
	} else {
		*c.to = v.V
	}
	c.l.n++
	return nil
}

// valid is JSON that can be written as it is.
func (l *lax) valid(column string, raw []byte) json.RawMessage {
	if raw != nil && !json.Valid(raw) {
		l.note(column)
		return nil
	}
	return raw
}

// decode reads JSON, if there is any.
func (l *lax) decode(column string, raw []byte, into any) {
	if raw != nil && json.Unmarshal(raw, into) != nil {
		l.note(column)
	}
}

// time is a time that JSON can have.
func (l *lax) time(column string, t store.Time) time.Time {
	if !t.IsZero() && (t.Year() < 1 || t.Year() > 9999) {
		l.note(column)
		return time.Time{}
	}
	return t.Time
}
