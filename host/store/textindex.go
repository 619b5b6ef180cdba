package store

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// Document is what a [TextIndex] reads of one skill.
type Document struct{ Name, Description, Text string }

// The bounds of an index in bytes. Text beyond them is not searched; names and descriptions always are.
const (
	maxDocument = 8 << 10
	maxIndexed  = 16 << 20
)

// maxTerms is the maximum number of different words of a query. The rest is ignored.
const maxTerms = 32

// TextIndex finds documents by their words, ranked by BM25 (SQLite's FTS5, in memory). It never changes, and is safe
// for concurrent use. Its memory is freed when nothing refers to it.
type TextIndex struct {
	db   *sql.DB
	size int
}

// NewTextIndex indexes documents. The error is of SQLite, or of ctx.
func NewTextIndex(ctx context.Context, docs []Document) (_ *TextIndex, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("store.NewTextIndex: %w", err)
	}
	db.SetMaxOpenConns(1) // each connection to :memory: opens another database
	x := &TextIndex{db: db}
	if err := x.fill(ctx, docs); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("store.NewTextIndex: %w", err)
	}
	runtime.AddCleanup(x, func(db *sql.DB) { _ = db.Close() }, db)
	return x, nil
}

func (x *TextIndex) fill(ctx context.Context, docs []Document) error {
	// The documents themselves are not stored: content=''.
	const table = `CREATE VIRTUAL TABLE docs USING fts5(name, description, text, content='', tokenize='porter unicode61 remove_diacritics 2')`
	if _, err := x.db.ExecContext(ctx, table); err != nil {
		return err
	}
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	add, err := tx.PrepareContext(ctx, `INSERT INTO docs(rowid, name, description, text) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer add.Close()
	for i, d := range docs {
		text := d.Text[:min(len(d.Text), maxDocument, max(maxIndexed-x.size, 0))]
		x.size += len(d.Name) + len(d.Description) + len(text)
		if _, err := add.ExecContext(ctx, i, spaced(d.Name), spaced(d.Description), spaced(text)); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	pages, bytes := 0, 0
	if err := x.db.QueryRowContext(ctx, `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size`).Scan(&pages, &bytes); err != nil {
		return err
	}
	x.size = pages * bytes
	return nil
}

// Size returns the memory of the index in bytes.
func (x *TextIndex) Size() int { return x.size }

// Search returns the positions of the documents that contain a word of the query, the best match first: at most
// limit of those for which keep returns true. A query without words finds nothing.
func (x *TextIndex) Search(ctx context.Context, query string, limit int, keep func(i int) bool) (found []int, err error) {
	match := matching(query)
	if match == "" || limit <= 0 {
		return nil, nil
	}
	defer runtime.KeepAlive(x)
	rows, err := x.db.QueryContext(ctx, `SELECT rowid FROM docs WHERE docs MATCH ? ORDER BY bm25(docs, 10, 5, 1), rowid`, match)
	if err != nil {
		return nil, fmt.Errorf("store.Search: %w", err)
	}
	defer rows.Close()
	for len(found) < limit && rows.Next() {
		i := 0
		if err := rows.Scan(&i); err != nil {
			return nil, fmt.Errorf("store.Search: %w", err)
		}
		if keep(i) {
			found = append(found, i)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("store.Search: %w", err)
	}
	return found, nil
}

// matching is a query in the syntax of FTS5: any of its words. Of Chinese and Japanese text, which has no spaces,
// any two characters that follow each other.
func matching(query string) string {
	var terms []string
	add := func(term string) {
		if len(terms) < maxTerms && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	for word := range strings.FieldsFuncSeq(query, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N, unicode.M) }) {
		parts := strings.Fields(spaced(word))
		for i, part := range parts {
			switch first := []rune(part)[0]; {
			case !ideograph(first):
				add(`"` + part + `"`)
			case i+1 < len(parts) && ideograph([]rune(parts[i+1])[0]):
				add(`"` + part + " " + parts[i+1] + `"`)
			case i == 0 || !ideograph([]rune(parts[i-1])[0]):
				add(`"` + part + `"`)
			}
		}
	}
	return strings.Join(terms, " OR ")
}

// ideograph reports whether a character is of a script without spaces between words.
func ideograph(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// spaced puts spaces around ideographs, so that each is a word of the index.
func spaced(s string) string {
	if strings.IndexFunc(s, ideograph) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if ideograph(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
