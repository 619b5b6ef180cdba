package store

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

	"github.com/uptrace/bun"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// Conversations is where conversations with the agent are kept.
//
// A message is kept as JSON: bytes of it that are not UTF-8 become U+FFFD, and NUL stays.
// Bytes that an owner's names cannot have make no other owner: it has nothing.
func (d *DB) Conversations() conversations.Store { return conversationStore{d} }

type conversationStore struct{ db *DB }

// conversationRow is a row of conversations without its owner, whom every question names.
type conversationRow struct {
	bun.BaseModel `bun:"table:conversations"`

	ID         string `bun:"id"`
	Title      string `bun:"title"`
	CreatedAt  stamp  `bun:"created_at"`
	UpdatedAt  stamp  `bun:"updated_at"`
	Messages   int    `bun:"messages"`
	Iterations int    `bun:"iterations"`
	Tokens     int    `bun:"tokens"`
	Pending    []byte `bun:"pending"`
	Revision   int64  `bun:"revision"`
}

func (r *conversationRow) conversation(o conversations.Owner) *conversations.Conversation {
	return &conversations.Conversation{
		ID: r.ID, Owner: o, Title: r.Title, CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
		Messages: r.Messages, Iterations: r.Iterations, Tokens: r.Tokens, Pending: r.Pending, Revision: r.Revision,
	}
}

// owns reports whether o can have anything: nobody's names are empty, and no other text
// may stand for one that the database cannot hold.
func owns(o conversations.Owner) bool {
	return o.Tenant != "" && o.Principal != "" && plain(o.Tenant) == o.Tenant && plain(o.Principal) == o.Principal
}

// ofOwner chooses one row of an owner's; its arguments are id, tenant and principal.
const ofOwner = " WHERE id = ? AND tenant = ? AND principal = ?"

// Create implements [conversations.Store].
func (s conversationStore) Create(ctx context.Context, c *conversations.Conversation) error {
	if !isUUID(c.ID) || !owns(c.Owner) {
		return malformed("store.Create", "a conversation needs a UUID and an owner, whose names are text without NUL")
	}
	pending, err := pendingOf(c)
	if err != nil {
		return err
	}
	insert := s.db.marked("INSERT INTO conversations (id, tenant, principal, title, created_at, updated_at, messages, iterations, tokens, pending, revision)" +
		" VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, 1)")
	err = s.db.inTurn(ctx, c.Owner.Tenant, func() error {
		err := again(ctx, func() error {
			_, err := s.db.write.DB.ExecContext(ctx, insert, lower(c.ID), c.Owner.Tenant, c.Owner.Principal, first(c.Title, 80),
				at(c.CreatedAt).of(s.db.kind), at(c.UpdatedAt).of(s.db.kind), c.Iterations, c.Tokens, pending)
			return err
		})
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

// Get implements [conversations.Store].
func (s conversationStore) Get(ctx context.Context, o conversations.Owner, id string) (*conversations.Conversation, error) {
	if !isUUID(id) || !owns(o) {
		return nil, conversations.ErrNotFound
	}
	row := &conversationRow{}
	err := s.db.read.NewSelect().Model(row).Where("id = ?", lower(id)).Where("tenant = ?", o.Tenant).Where("principal = ?", o.Principal).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, conversations.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return row.conversation(o), nil
}

// Messages implements [conversations.Store].
func (s conversationStore) Messages(ctx context.Context, o conversations.Owner, id string, most int) ([]conversations.Message, error) {
	if !isUUID(id) || !owns(o) {
		return nil, conversations.ErrNotFound
	}
	rows, err := s.db.read.QueryContext(ctx, "SELECT seq, created_at, body FROM conversation_messages"+
		" WHERE conversation_id = (SELECT id FROM conversations"+ofOwner+") ORDER BY seq DESC LIMIT ?",
		lower(id), o.Tenant, o.Principal, max(most, 0))
	if err != nil {
		return nil, err
	}
	list, err := collect(rows, func(rows *sql.Rows) (m conversations.Message, err error) {
		var when stamp
		var body []byte
		if err := rows.Scan(&m.Seq, &when, &body); err != nil {
			return m, err
		}
		m.At = when.Time
		return m, json.Unmarshal(body, &m.Body)
	})
	if err == nil && len(list) == 0 { // it has none, or there is no such conversation
		_, err = s.Get(ctx, o, id)
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	return list, nil
}

// Append implements [conversations.Store].
func (s conversationStore) Append(ctx context.Context, c *conversations.Conversation, add []llm.Message, keep int) error {
	switch {
	case !isUUID(c.ID) || !owns(c.Owner):
		return conversations.ErrNotFound
	case keep < 1:
		return malformed("store.Append", "of a conversation at least one message is kept")
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
	r := round{conversationStore: s, c: c, n: len(add), bodies: bodies, pending: pending, keep: keep}
	err = s.db.inTurn(ctx, c.Owner.Tenant, func() error {
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
func (s conversationStore) fit(ctx context.Context, c *conversations.Conversation) error {
	return s.db.Fit(ctx, c.Owner.Tenant, Conversations,
		"DELETE FROM conversations WHERE id IN (SELECT id FROM conversations WHERE tenant = $1 AND id <> $2 ORDER BY updated_at LIMIT $3)", lower(c.ID))
}

// round is what Append writes.
type round struct {
	conversationStore
	c       *conversations.Conversation
	n       int      // messages
	bodies  []string // the last ones of them, which are kept
	pending any
	keep    int

	advance, insert, shorten, bytes query

	total int // messages afterwards, since the first one
}

func (r *round) write(ctx context.Context) error {
	for text, q := range map[string]*query{
		"UPDATE conversations SET updated_at = ?, iterations = ?, tokens = ?, pending = ?, messages = messages + ?, revision = revision + 1" +
			ofOwner + " AND revision = ? RETURNING messages": &r.advance,
		insertMessage: &r.insert,
		"DELETE FROM conversation_messages WHERE conversation_id = ? AND seq < ?": &r.shorten,
		"SELECT bytes FROM conversations WHERE id = ?":                            &r.bytes,
	} {
		var err error
		if *q, err = r.db.query(ctx, text); err != nil {
			return err
		}
	}
	err := r.db.inTx(ctx, r.within)
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err() // which rolled it back meanwhile
	}
	return err
}

// within is the transaction. Its first statement holds the conversation's row until the
// end: whoever waited for that finds another revision.
func (r *round) within(ctx context.Context, tx bun.Tx) error {
	if !r.db.postgres() {
		// As appendIn does it: the driver would watch the context anew for each statement.
		ctx = context.WithoutCancel(ctx)
	}
	c, id, when := r.c, lower(r.c.ID), at(r.c.UpdatedAt).of(r.db.kind)
	err := r.advance.row(ctx, tx, when, c.Iterations, c.Tokens, r.pending, r.n, id, c.Owner.Tenant, c.Owner.Principal, c.Revision).Scan(&r.total)
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
		if err := r.shorten.exec(ctx, tx, id, r.total-r.keep); err != nil {
			return err
		}
	}
	var bytes, most int64 = 0, r.db.most[Conversations].Bytes
	if err := r.bytes.row(ctx, tx, id).Scan(&bytes); err != nil || bytes <= most {
		return err
	}
	return &skill.Error{
		Op: "store.Conversations", Code: skill.PayloadTooLarge,
		Message: fmt.Sprintf("the conversation takes %d bytes, and all conversations of the tenant may take %d; begin a new one", bytes, most),
	}
}

const insertMessage = "INSERT INTO conversation_messages (conversation_id, seq, created_at, body) VALUES (?, ?, ?, ?)"

// messages writes the bodies: one by one on SQLite, and many with one round trip on
// PostgreSQL.
func (r *round) messages(ctx context.Context, tx bun.Tx, id string, when any) error {
	together, seq := 1, r.total-len(r.bodies)
	if r.db.postgres() {
		together = 100
	}
	for part := range slices.Chunk(r.bodies, together) {
		args := make([]any, 0, 4*len(part))
		for _, body := range part {
			args = append(args, id, seq, when, body)
			seq++
		}
		insert := r.insert
		if len(part) > 1 {
			insert = query{text: r.db.marked(insertMessage + strings.Repeat(", (?, ?, ?, ?)", len(part)-1))}
		}
		if err := insert.exec(ctx, tx, args...); err != nil {
			return err
		}
	}
	return nil
}

// otherwise says why a conversation is not as c has it.
func (s conversationStore) otherwise(ctx context.Context, tx bun.Tx, c *conversations.Conversation) error {
	var there int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM conversations"+ofOwner, lower(c.ID), c.Owner.Tenant, c.Owner.Principal).Scan(&there)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return conversations.ErrNotFound
	case err != nil:
		return err
	}
	return conversations.ErrChanged
}

// List implements [conversations.Store]. A page goes on behind the last one that the page
// before it had, so that changes meanwhile make no other conversation come twice or never.
func (s conversationStore) List(ctx context.Context, o conversations.Owner, q conversations.Query) ([]*conversations.Conversation, string, error) {
	limit := min(max(q.Limit, 1), 100)
	var rows []*conversationRow
	ask := s.db.read.NewSelect().Model(&rows).ExcludeColumn("pending").Where("tenant = ?", o.Tenant).Where("principal = ?", o.Principal).
		OrderExpr("updated_at DESC, id DESC").Limit(int64(limit) + 1)
	if q.Cursor != "" {
		after, err := parseCursor("store.List", q.Cursor)
		if err != nil {
			return nil, "", err
		}
		ask = ask.Where("(updated_at, id) < (?, ?)", after.at, after.id)
	}
	if !owns(o) {
		return nil, "", nil
	}
	if err := ask.Scan(ctx); err != nil {
		return nil, "", err
	}
	next := ""
	if len(rows) > limit {
		rows = rows[:limit]
		next = mark{rows[limit-1].UpdatedAt, rows[limit-1].ID}.cursor()
	}
	list := make([]*conversations.Conversation, len(rows))
	for i, r := range rows {
		list[i] = r.conversation(o)
	}
	return list, next, nil
}

// Delete implements [conversations.Store]. The messages go with their conversation, by
// its key, also those that somebody added in this moment.
func (s conversationStore) Delete(ctx context.Context, o conversations.Owner, id string) error {
	if !isUUID(id) || !owns(o) {
		return conversations.ErrNotFound
	}
	n, err := s.db.change(ctx, "DELETE FROM conversations"+ofOwner, lower(id), o.Tenant, o.Principal)
	if err == nil && n == 0 {
		return conversations.ErrNotFound
	}
	return err
}

// Bounds on what is removed at once.
const (
	mostPruned     = 2000
	prunedTogether = 20 // conversations, in one transaction, for which all who write wait on SQLite
)

// Prune implements [conversations.Store].
func (s conversationStore) Prune(ctx context.Context, before time.Time, most int) (int, error) {
	if most < 1 {
		return 0, malformed("store.Prune", "of an owner's conversations at least one is kept")
	}
	n, err := s.pruneWhere(ctx, mostPruned, "updated_at < ?", at(before))
	if err != nil {
		return n, err
	}
	var owners []conversations.Owner
	err = s.db.read.NewRaw("SELECT tenant, principal FROM conversations GROUP BY tenant, principal HAVING COUNT(*) > ? LIMIT ?", most, mostPruned).Scan(ctx, &owners)
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
func (s conversationStore) pruneOwner(ctx context.Context, o conversations.Owner, most, limit int) (int, error) {
	last := &conversationRow{}
	err := s.db.read.NewSelect().Model(last).Column("id", "updated_at").Where("tenant = ?", o.Tenant).Where("principal = ?", o.Principal).
		OrderExpr("updated_at DESC, id DESC").Limit(1).Offset(int64(most) - 1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil // some were removed meanwhile
	}
	if err != nil {
		return 0, err
	}
	return s.pruneWhere(ctx, limit, "tenant = ? AND principal = ? AND (updated_at, id) < (?, ?)", o.Tenant, o.Principal, last.UpdatedAt, last.ID)
}

// pruneWhere removes conversations for which a condition holds, the oldest first and no
// more than most. It is asked a second time of each one when it goes, since somebody may
// have changed it while it was looked for.
func (s conversationStore) pruneWhere(ctx context.Context, most int, condition string, args ...any) (removed int, err error) {
	for removed < most {
		together := min(prunedTogether, most-removed)
		all := slices.Concat(args, []any{together}, args)
		n, err := s.db.change(ctx, "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations WHERE "+condition+
			" ORDER BY updated_at, id LIMIT ?) AND "+condition, all...)
		removed += n
		if err != nil || n < together {
			return removed, err
		}
	}
	return removed, nil
}

// change runs one statement in turn, and says how many rows it changed.
func (d *DB) change(ctx context.Context, statement string, args ...any) (n int, err error) {
	err = d.inTurn(ctx, "", func() (err error) {
		n, err = d.exec(ctx, statement, args...)
		return err
	})
	return n, err
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
		if b.Len() > conversations.MostMessage {
			return nil, tooLarge("a message", b.Len())
		}
		bodies[i] = strings.TrimSuffix(b.String(), "\n")
	}
	return bodies, nil
}

// pendingOf is what waits, as an argument; nil, which is NULL, for nothing.
func pendingOf(c *conversations.Conversation) (any, error) {
	switch n := len(c.Pending); {
	case n == 0:
		return nil, nil
	case n > conversations.MostMessage:
		return nil, tooLarge("what waits for an approval", n)
	}
	return c.Pending, nil
}

// first is the beginning of text that both databases hold, most characters of it.
func first(s string, most int) string {
	s = plain(s)
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
		Op: "store.Conversations", Code: skill.PayloadTooLarge,
		Message: fmt.Sprintf("%s of the conversation takes %d bytes as JSON, and at most %d are kept; say it in fewer words, or have the skill answer with less", what, size, conversations.MostMessage),
	}
}
