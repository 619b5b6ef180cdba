package conversations

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// Rows are conversations and tasks in the database of the host.
//
// A message is kept as JSON: bytes of it that are not UTF-8 become U+FFFD, and NUL stays.
// Bytes that an owner's names cannot have make no other owner: it has nothing.
type Rows struct{ db *store.DB }

var (
	_ Store    = Rows{}
	_ Sessions = Rows{}
)

// NewStore gives the conversations and tasks of a database.
func NewStore(db *store.DB) Rows { return Rows{db} }

// owns reports whether o can have anything: nobody's names are empty, and no other text
// may stand for one that the database cannot hold.
func owns(o Owner) bool {
	return o.Tenant != "" && o.Principal != "" && store.Plain(o.Tenant) == o.Tenant && store.Plain(o.Principal) == o.Principal
}

// ofOwner chooses one row of an owner's; its arguments are id, tenant and principal.
const ofOwner = " WHERE id = $1 AND tenant = $2 AND principal = $3"

// Create implements [Store].
func (s Rows) Create(ctx context.Context, c *Conversation) error {
	if !store.IsUUID(c.ID) || !owns(c.Owner) {
		return malformed("conversations.Create", "a conversation needs a UUID and an owner, whose names are text without NUL")
	}
	pending, err := pendingOf(c)
	if err != nil {
		return err
	}
	err = s.db.InTurn(ctx, c.Owner.Tenant, func() error {
		_, err := s.db.Exec(ctx, "INSERT INTO conversations (id, tenant, principal, title, created_at, updated_at, messages, iterations, tokens, pending, revision)"+
			" VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, 1)", strings.ToLower(c.ID), c.Owner.Tenant, c.Owner.Principal, first(c.Title, 80),
			s.db.At(c.CreatedAt), s.db.At(c.UpdatedAt), c.Iterations, c.Tokens, pending)
		if err != nil {
			return err
		}
		return s.fit(ctx, c)
	})
	if err == nil {
		c.Revision, c.Messages = 1, 0
	}
	return err
}

const columns = "id, tenant, principal, title, created_at, updated_at, messages, iterations, tokens, revision, pending"

// scan reads columns.
func scan(rows *sql.Rows) (*Conversation, error) {
	c := &Conversation{}
	var created, updated store.Time
	err := rows.Scan(&c.ID, &c.Owner.Tenant, &c.Owner.Principal, &c.Title, &created, &updated, &c.Messages, &c.Iterations, &c.Tokens, &c.Revision, &c.Pending)
	c.CreatedAt, c.UpdatedAt = created.Time, updated.Time
	return c, err
}

// Get implements [Store].
func (s Rows) Get(ctx context.Context, o Owner, id string) (*Conversation, error) {
	if !store.IsUUID(id) || !owns(o) {
		return nil, ErrNotFound
	}
	found, err := store.All(ctx, s.db.Read, scan, "SELECT "+columns+" FROM conversations"+ofOwner, strings.ToLower(id), o.Tenant, o.Principal)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, ErrNotFound
	}
	return found[0], nil
}

// Messages implements [Store].
func (s Rows) Messages(ctx context.Context, o Owner, id string, most int) ([]Message, error) {
	if !store.IsUUID(id) || !owns(o) {
		return nil, ErrNotFound
	}
	list, err := store.All(ctx, s.db.Read, func(rows *sql.Rows) (m Message, err error) {
		var when store.Time
		var body []byte
		if err := rows.Scan(&m.Seq, &when, &body); err != nil {
			return m, err
		}
		m.At = when.Time
		return m, json.Unmarshal(body, &m.Body)
	}, "SELECT seq, created_at, body FROM conversation_messages WHERE conversation_id = (SELECT id FROM conversations"+ofOwner+") ORDER BY seq DESC LIMIT $4",
		strings.ToLower(id), o.Tenant, o.Principal, max(most, 0))
	if err == nil && len(list) == 0 { // it has none, or there is no such conversation
		_, err = s.Get(ctx, o, id)
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	return list, nil
}

// Append implements [Store].
func (s Rows) Append(ctx context.Context, c *Conversation, add []llm.Message, keep int) error {
	switch {
	case !store.IsUUID(c.ID) || !owns(c.Owner):
		return ErrNotFound
	case keep < 1:
		return malformed("conversations.Append", "of a conversation at least one message is kept")
	}
	bodies, err := bodiesOf(add)
	if err != nil {
		return err
	}
	bodies = bodies[max(len(bodies)-keep, 0):]
	pending, err := pendingOf(c)
	if err != nil {
		return err
	}
	r := round{Rows: s, c: c, n: len(add), bodies: bodies, pending: pending, keep: keep}
	err = s.db.InTurn(ctx, c.Owner.Tenant, func() error {
		if err := r.write(ctx); err != nil {
			return err
		}
		return s.fit(ctx, c)
	})
	if err != nil {
		return err
	}
	c.Revision++
	c.Messages = r.total
	return nil
}

// fit drops the tenant's conversations that changed longest ago, but not this one, until
// it is within its quota.
func (s Rows) fit(ctx context.Context, c *Conversation) error {
	return s.db.Fit(ctx, c.Owner.Tenant, store.Conversations,
		"DELETE FROM conversations WHERE id IN (SELECT id FROM conversations WHERE tenant = $1 AND id <> $2 ORDER BY updated_at LIMIT $3)", strings.ToLower(c.ID))
}

// round is what Append writes.
type round struct {
	Rows
	c       *Conversation
	n       int      // messages
	bodies  []string // the last ones of them, which are kept
	pending any
	keep    int

	advance, insert, shorten, bytes store.Statement

	total int // messages afterwards, since the first one
}

func (r *round) write(ctx context.Context) error {
	for text, q := range map[string]*store.Statement{
		"UPDATE conversations SET updated_at = $4, iterations = $5, tokens = $6, pending = $7, messages = messages + $8, revision = revision + 1" +
			ofOwner + " AND revision = $9 RETURNING messages": &r.advance,
		insertMessage + "($1, $2, $3, $4)":                                          &r.insert,
		"DELETE FROM conversation_messages WHERE conversation_id = $1 AND seq < $2": &r.shorten,
		"SELECT bytes FROM conversations WHERE id = $1":                             &r.bytes,
	} {
		var err error
		if *q, err = r.db.Prepare(ctx, text); err != nil {
			return err
		}
	}
	return r.db.InTx(ctx, func(tx *sql.Tx) error { return r.within(ctx, tx) })
}

// within is the transaction. Its first statement holds the conversation's row until the
// end: whoever waited for that finds another revision.
func (r *round) within(ctx context.Context, tx *sql.Tx) error {
	ctx = r.db.Unwatched(ctx)
	c, id, when := r.c, strings.ToLower(r.c.ID), r.db.At(r.c.UpdatedAt)
	err := r.advance.In(ctx, tx).Row(ctx, id, c.Owner.Tenant, c.Owner.Principal, when, c.Iterations, c.Tokens, r.pending, r.n, c.Revision).Scan(&r.total)
	if errors.Is(err, sql.ErrNoRows) {
		return r.otherwise(ctx, tx, c)
	}
	if err != nil {
		return err
	}
	if err := r.messages(ctx, tx, id, when); err != nil {
		return err
	}
	if r.total > r.keep {
		if err := r.shorten.In(ctx, tx).Exec(ctx, id, r.total-r.keep); err != nil {
			return err
		}
	}
	var bytes, most int64 = 0, r.db.Quota(store.Conversations).Bytes
	if err := r.bytes.In(ctx, tx).Row(ctx, id).Scan(&bytes); err != nil || bytes <= most {
		return err
	}
	return &skill.Error{
		Op: "conversations.Append", Code: skill.PayloadTooLarge,
		Message: fmt.Sprintf("the conversation takes %d bytes, and all conversations of the tenant may take %d; begin a new one", bytes, most),
	}
}

const insertMessage = "INSERT INTO conversation_messages (conversation_id, seq, created_at, body) VALUES "

// messages writes the bodies: one by one on SQLite, and many with one round trip on
// PostgreSQL.
func (r *round) messages(ctx context.Context, tx *sql.Tx, id string, when any) error {
	together, seq := 1, r.total-len(r.bodies)
	if r.db.Postgres() {
		together = 100
	}
	for part := range slices.Chunk(r.bodies, together) {
		args := make([]any, 0, 4*len(part))
		for _, body := range part {
			args = append(args, id, seq, when, body)
			seq++
		}
		var err error
		if len(part) == 1 {
			err = r.insert.In(ctx, tx).Exec(ctx, args...)
		} else {
			_, err = tx.ExecContext(ctx, insertMessage+store.Values(4, len(part)), args...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// otherwise says why a conversation is not as c has it.
func (s Rows) otherwise(ctx context.Context, tx *sql.Tx, c *Conversation) error {
	var there int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM conversations"+ofOwner, strings.ToLower(c.ID), c.Owner.Tenant, c.Owner.Principal).Scan(&there)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ErrNotFound
	case err != nil:
		return err
	}
	return ErrChanged
}

// List implements [Store]. A page goes on behind the last one that the page before it had,
// so that changes meanwhile make no other conversation come twice or never.
func (s Rows) List(ctx context.Context, o Owner, q Query) ([]*Conversation, string, error) {
	limit := min(max(q.Limit, 1), 100)
	after, args := "", []any{o.Tenant, o.Principal, limit + 1}
	if q.Cursor != "" {
		mark, err := store.ParseCursor("conversations.List", q.Cursor)
		if err != nil {
			return nil, "", err
		}
		after = " AND (updated_at, id) < ($4, $5)"
		args = append(args, s.db.At(mark.At), mark.ID)
	}
	if !owns(o) {
		return nil, "", nil
	}
	list, err := store.All(ctx, s.db.Read, scan, "SELECT "+strings.Replace(columns, "pending", "NULL", 1)+" FROM conversations WHERE tenant = $1 AND principal = $2"+after+
		" ORDER BY updated_at DESC, id DESC LIMIT $3", args...)
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	last := list[limit-1]
	return list[:limit], store.Mark{At: last.UpdatedAt, ID: last.ID}.Cursor(), nil
}

// Delete implements [Store]. The messages go with their conversation, by its key, also those
// that somebody added in this moment.
func (s Rows) Delete(ctx context.Context, o Owner, id string) error {
	if !store.IsUUID(id) || !owns(o) {
		return ErrNotFound
	}
	n, err := s.db.ExecInTurn(ctx, "", "DELETE FROM conversations"+ofOwner, strings.ToLower(id), o.Tenant, o.Principal)
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}

// Bounds on what is removed at once.
const (
	mostPruned     = 2000
	prunedTogether = 20 // conversations, in one transaction, for which all who write wait on SQLite
)

// Prune implements [Store].
func (s Rows) Prune(ctx context.Context, before time.Time, most int) (int, error) {
	if most < 1 {
		return 0, malformed("conversations.Prune", "of an owner's conversations at least one is kept")
	}
	n, err := s.pruneWhere(ctx, mostPruned, "updated_at < $2", s.db.At(before))
	if err != nil {
		return n, err
	}
	owners, err := store.All(ctx, s.db.Read, func(rows *sql.Rows) (o Owner, err error) { return o, rows.Scan(&o.Tenant, &o.Principal) },
		"SELECT tenant, principal FROM conversations GROUP BY tenant, principal HAVING COUNT(*) > $1 LIMIT $2", most, mostPruned)
	for _, o := range owners {
		if err != nil || n >= mostPruned {
			break
		}
		var removed int
		removed, err = s.pruneOwner(ctx, o, most, mostPruned-n)
		n += removed
	}
	return n, err
}

// pruneOwner removes all but the most of an owner's that changed last: what is behind the
// last one of these. One that changes meanwhile is not there any more, and stays.
func (s Rows) pruneOwner(ctx context.Context, o Owner, most, limit int) (int, error) {
	var id string
	var updated store.Time
	err := s.db.Read.QueryRowContext(ctx, "SELECT id, updated_at FROM conversations WHERE tenant = $1 AND principal = $2 ORDER BY updated_at DESC, id DESC LIMIT 1 OFFSET $3",
		o.Tenant, o.Principal, most-1).Scan(&id, &updated)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil // some were removed meanwhile
	}
	if err != nil {
		return 0, err
	}
	return s.pruneWhere(ctx, limit, "tenant = $2 AND principal = $3 AND (updated_at, id) < ($4, $5)", o.Tenant, o.Principal, s.db.At(updated.Time), id)
}

// pruneWhere removes conversations for which a condition holds, whose parameters begin with
// $2, the oldest first and no more than most. It is asked a second time of each one when it
// goes, since somebody may have changed it while it was looked for.
func (s Rows) pruneWhere(ctx context.Context, most int, condition string, args ...any) (removed int, err error) {
	for removed < most {
		together := min(prunedTogether, most-removed)
		n, err := s.db.ExecInTurn(ctx, "", "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations WHERE "+condition+
			" ORDER BY updated_at, id LIMIT $1) AND "+condition, append([]any{together}, args...)...)
		removed += n
		if err != nil || n < together {
			return removed, err
		}
	}
	return removed, nil
}

// bodiesOf are messages as JSON, of which each must be within its bound.
func bodiesOf(messages []llm.Message) ([]string, error) {
	bodies := make([]string, len(messages))
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // nobody shows it as HTML, and code would be longer by half
	for i := range messages {
		b.Reset()
		if err := e.Encode(&messages[i]); err != nil {
			return nil, err
		}
		if b.Len() > MostMessage {
			return nil, tooLarge("a message", b.Len())
		}
		bodies[i] = strings.TrimSuffix(b.String(), "\n")
	}
	return bodies, nil
}

// pendingOf is what waits, as an argument; nil, which is NULL, for nothing.
func pendingOf(c *Conversation) (any, error) {
	switch n := len(c.Pending); {
	case n == 0:
		return nil, nil
	case n > MostMessage:
		return nil, tooLarge("what waits for an approval", n)
	}
	return c.Pending, nil
}

// first is the beginning of text that both databases hold, most characters of it.
func first(s string, most int) string {
	s = store.Plain(s)
	for i := range s {
		if most == 0 {
			return s[:i]
		}
		most--
	}
	return s
}

func malformed(op, message string) error {
	return &skill.Error{Op: op, Code: skill.InvalidArgument, Message: message}
}

func tooLarge(what string, size int) error {
	return &skill.Error{
		Op: "conversations.Append", Code: skill.PayloadTooLarge,
		Message: fmt.Sprintf("%s of the conversation takes %d bytes as JSON, and at most %d may be stored; shorten the message, or have the skill return less", what, size, MostMessage),
	}
}
