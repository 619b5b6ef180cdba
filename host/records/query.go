package records

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"time"

	"openskill/host/store"
)

// tables are the records in the database of the host: append.go writes, this file reads.
//
// The text columns of executions hold what comes closest to texts that they cannot hold
// (NUL, not UTF-8, too long), and what is read is the text as JSON has it all the same.
// JSON of inputs and outputs is read as equal JSON, not byte for byte; the records have
// every byte as it was hashed.
type tables struct{ db *store.DB }

// NewStore gives the records of a database.
func NewStore(db *store.DB) Store { return &tables{db} }

// Tenants implements [Store].
func (a *tables) Tenants(ctx context.Context) ([]Head, error) {
	return store.All(ctx, a.db.Read, func(rows *sql.Rows) (Head, error) { return scanHead(rows) },
		"SELECT tenant, first, prev, last, last_hash FROM audit_heads WHERE last > 0 ORDER BY tenant")
}

// Shown implements [Store].
func (a *tables) Shown(ctx context.Context, tenant string) ([]Shown, error) {
	if store.Plain(tenant) != tenant {
		return nil, nil // there is none
	}
	only, args := "", []any(nil)
	if tenant != "" {
		only, args = " AND tenant = $1", []any{tenant}
	}
	q := strings.ReplaceAll(`WITH n AS (SELECT tenant, count(*) AS ended FROM execution_logs WHERE true ONLY GROUP BY tenant),
		t AS (SELECT tenant FROM audit_heads WHERE last > 0 ONLY UNION SELECT tenant FROM n UNION SELECT tenant FROM running_executions WHERE true ONLY)
		SELECT t.tenant, COALESCE(h.first, 0), COALESCE(h.prev, ''), COALESCE(h.last, 0), COALESCE(h.last_hash, ''), COALESCE(n.ended, 0)
		FROM t LEFT JOIN audit_heads h ON h.tenant = t.tenant LEFT JOIN n ON n.tenant = t.tenant ORDER BY t.tenant`, " ONLY", only)
	return store.All(ctx, a.db.Read, func(rows *sql.Rows) (s Shown, err error) {
		s.Head, err = scanHead(rows, &s.Ended)
		return s, err
	}, q, args...)
}

// scanHead reads a head. Numbers that none can have, of somebody who has the database, are 0.
func scanHead(rows *sql.Rows, more ...any) (h Head, err error) {
	var first, last int64
	err = rows.Scan(append([]any{&h.Tenant, &first, &h.Prev, &last, &h.LastHash}, more...)...)
	h.First, h.Last = uint64(max(first, 0)), uint64(max(last, 0)) // not negative
	return h, err
}

var recordColumns = []string{"tenant", "seq", "kind", "execution_id", "time", "body", "prev", "hash"}

// Records implements [Store].
func (a *tables) Records(ctx context.Context, tenant string, from uint64, limit int) ([]Record, error) {
	if limit <= 0 || from > 1<<62 || store.Plain(tenant) != tenant {
		return nil, nil
	}
	return store.All(ctx, a.db.Read, func(rows *sql.Rows) (r Record, err error) {
		var when store.Time
		var body []byte
		l := &lax{names: recordColumns} // what is left zero is not what was hashed
		err = rows.Scan(laxly(l, &r.Tenant), &r.Seq, laxly(l, &r.Kind), laxly(l, &r.ExecutionID), laxly(l, &when), laxly(l, &body), laxly(l, &r.Prev), laxly(l, &r.Hash))
		r.Time, r.Body = when.Time, body
		return r, err
	}, "SELECT tenant, seq, kind, execution_id, time, body, prev, hash FROM audit_records WHERE tenant = $1 AND seq >= $2 ORDER BY seq LIMIT $3",
		tenant, int64(from), limit)
}

// Execution implements [Store].
func (a *tables) Execution(ctx context.Context, tenant, id string) (*Execution, error) {
	// No tenant has such a name, and one that comes closest is another one.
	if !store.IsUUID(id) || store.Plain(tenant) != tenant {
		return nil, ErrNotFound
	}
	w := where{args: []any{strings.ToLower(id)}, text: "id = $1"}
	if tenant != "" {
		w.and("tenant = ?", tenant)
	}
	found, err := a.running(ctx, &w, "")
	if err == nil && len(found) == 0 { // one that ended meanwhile is here
		found, _, err = a.logs(ctx, "execution_logs", &w, "")
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	return found[0], nil
}

// where is a condition with its arguments.
type where struct {
	text string
	args []any
}

// and adds a condition, whose question marks become the parameters of values.
func (w *where) and(condition string, values ...any) {
	for _, v := range values {
		w.args = append(w.args, v)
		condition = strings.Replace(condition, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	if w.text != "" {
		w.text += " AND "
	}
	w.text += condition
}

func (a *tables) running(ctx context.Context, w *where, order string) ([]*Execution, error) {
	return store.All(ctx, a.db.Read, scanRunning, "SELECT "+strings.Join(runningColumns, ", ")+" FROM running_executions WHERE "+w.text+order, w.args...)
}

// logs gives executions that ended; full says that it left off, as they are large.
func (a *tables) logs(ctx context.Context, table string, w *where, order string) (found []*Execution, full bool, err error) {
	size := 0
	found, err = store.Until(ctx, a.db.Read, scanLog, func(e *Execution) bool {
		size += len(e.Input.JSON) + len(e.Finished.Output.JSON)
		full = size > mostPage
		return full
	}, "SELECT "+strings.Join(logColumns, ", ")+" FROM "+table+" WHERE "+w.text+order, w.args...)
	return found, full, err
}

// mostPage is how many bytes of inputs and outputs end a page before its limit does.
const mostPage = 8 << 20

// Executions implements [Store]. An execution that ends between the two questions
// is in both answers; its log counts. A page of large inputs and outputs is shorter than
// its limit.
func (a *tables) Executions(ctx context.Context, q Query) ([]*Execution, string, error) {
	limit := min(max(q.Limit, 1), 1000)
	var after store.Mark
	if q.Cursor != "" {
		var err error
		if after, err = store.ParseCursor("records.Executions", q.Cursor); err != nil {
			return nil, "", err
		}
	}
	if q.Session != "" && !store.IsUUID(q.Session) || store.Plain(q.Tenant) != q.Tenant {
		return nil, "", nil // there is none
	}
	w := a.chosen(&q, after)
	order := " ORDER BY created_at DESC, id DESC LIMIT " + strconv.Itoa(limit+1)
	var running, logs []*Execution
	var full bool
	var err error
	if (q.Status == "" || q.Status == Running) && q.Code == "" {
		if running, err = a.running(ctx, w, order); err != nil {
			return nil, "", err
		}
	}
	if q.Status != Running {
		w.ended(&q)
		if logs, full, err = a.logs(ctx, a.logsBy(&q), w, order); err != nil {
			return nil, "", err
		}
	}
	var last *Execution
	if full { // what comes after the last one that was read is not known
		last = logs[len(logs)-1]
	}
	page := merge(running, logs) // which may sort the array of logs
	end := len(page)
	if full {
		end = slices.Index(page, last) + 1
	}
	if end = min(end, limit); end == len(page) && !full {
		return page, "", nil
	}
	return page[:end], store.Mark{At: store.Micro(page[end-1].Started.Time), ID: strings.ToLower(page[end-1].ExecutionID)}.Cursor(), nil
}

// The times that JSON and cursors can have. Rows with others were made by somebody who has
// the database, and are not among executions.
var (
	firstYear     = time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)
	yearAfterLast = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// uuids is the pattern of ids.
var uuids = strings.NewReplacer("x", "[0-9a-f]").Replace("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")

// chosen is what both tables are asked.
func (a *tables) chosen(q *Query, after store.Mark) *where {
	w := &where{}
	for _, c := range []struct{ column, value string }{
		{"tenant", q.Tenant},
		{"principal_id", fit(q.Principal, mostPrincipal)},
		{"skill_name", fit(q.Skill, mostSkill)},
		{"session_id", strings.ToLower(q.Session)},
		{"trace_id", fit(q.TraceID, mostWord)},
	} {
		if c.value != "" {
			w.and(c.column+" = ?", c.value)
		}
	}
	since, until := q.Since, q.Until
	if since.IsZero() {
		since = firstYear
	}
	if until.IsZero() {
		until = yearAfterLast
	}
	w.and("created_at >= ?", a.db.At(ceil(since)))
	w.and("created_at < ?", a.db.At(ceil(until)))
	if !a.db.Postgres() {
		w.and("id GLOB ?", uuids) // cursors can have no other; PostgreSQL holds no other
	}
	if at := a.db.At(after.At); after.ID != "" {
		// The first part is what an index understands.
		w.and("created_at <= ? AND (created_at < ? OR id < ?)", at, at, after.ID)
	}
	return w
}

// ceil is the first moment that databases tell apart, at or after t.
func ceil(t time.Time) time.Time {
	s := store.Micro(t)
	if s.Before(t) {
		s = s.Add(time.Microsecond)
	}
	return s
}

// ended is what the table of executions that ended is asked besides.
func (w *where) ended(q *Query) {
	if q.Status != "" {
		w.and("status = ?", store.Plain(string(q.Status)))
	}
	if q.Code != "" {
		w.and("code = ? AND code <> ''", fit(q.Code, mostWord)) // the index has no others
	}
}

// logsBy names the table, and on SQLite the index, that answers q. PostgreSQL chooses by
// what it counted. SQLite has counted nothing, and would sooner walk through all rows of
// a tenant in their order than sort the few that are asked for.
func (a *tables) logsBy(q *Query) string {
	const table = "execution_logs"
	if a.db.Postgres() {
		return table
	}
	index := "created"
	if q.Tenant != "" {
		index = "tenant"
	}
	switch {
	case q.Session != "":
		index = "session"
	case q.TraceID != "":
		index = "trace"
	case q.Principal != "":
		index += "_principal"
	case q.Code != "" && q.Tenant != "":
		index = "tenant_code"
	case q.Skill != "":
		index += "_skill"
	case q.Status != "":
		index += "_status"
	}
	if q.Tenant == "" {
		index = strings.TrimPrefix(index, "created_")
	}
	return table + " INDEXED BY idx_execution_logs_" + index
}

// merge gives the executions of both lists in their order, each once.
func merge(running, logs []*Execution) []*Execution {
	over := make(map[string]bool, len(logs))
	for _, e := range logs {
		over[strings.ToLower(e.ExecutionID)] = true
	}
	page := logs
	for _, e := range running {
		if !over[strings.ToLower(e.ExecutionID)] {
			page = append(page, e)
		}
	}
	if len(page) > len(logs) {
		slices.SortStableFunc(page, func(a, b *Execution) int {
			if c := store.Micro(b.Started.Time).Compare(store.Micro(a.Started.Time)); c != 0 {
				return c
			}
			return strings.Compare(strings.ToLower(b.ExecutionID), strings.ToLower(a.ExecutionID))
		})
	}
	return page
}

// Changes implements [Store].
func (a *tables) Changes(ctx context.Context, q ChangeQuery) ([]Change, error) {
	if store.Plain(q.Tenant) != q.Tenant {
		return nil, nil // there is none
	}
	w := &where{}
	w.and("kind = 'change'")
	if q.Tenant != "" {
		w.and("tenant = ?", q.Tenant)
	}
	if !q.Since.IsZero() {
		w.and("time >= ?", a.db.At(ceil(q.Since)))
	}
	if !q.Until.IsZero() {
		w.and("time < ?", a.db.At(ceil(q.Until)))
	}
	if q.After != "" {
		w.and("(time, execution_id) < (SELECT time, execution_id FROM audit_records WHERE kind = 'change' AND execution_id = ?)", strings.ToLower(store.Plain(q.After)))
	}
	return store.All(ctx, a.db.Read, func(rows *sql.Rows) (c Change, err error) {
		var body []byte
		var when store.Time
		l, of := &lax{names: []string{"tenant", "execution_id", "time", "body"}}, Change{Action: "damaged", Subject: "the record cannot be read; see openskill audit verify"}
		if err := rows.Scan(laxly(l, &of.Tenant), laxly(l, &of.ID), laxly(l, &when), laxly(l, &body)); err != nil {
			return c, err
		}
		of.Time = l.time("time", when)
		if l.decode("body", body, &c); len(l.wrong) > 0 || c.ID != of.ID || c.Tenant != of.Tenant || !store.Micro(c.Time).Equal(of.Time) {
			return of, nil // by which the next page is asked for
		}
		return c, nil
	}, "SELECT tenant, execution_id, time, body FROM audit_records WHERE "+w.text+" ORDER BY time DESC, execution_id DESC LIMIT "+strconv.Itoa(min(max(q.Limit, 1), 1000)), w.args...)
}

// forgotten is when an instance that was not alive since is not kept any longer: it says
// no more than one that is not there.
const forgotten = 24 * time.Hour

// Alive implements [Store].
func (a *tables) Alive(ctx context.Context, instance string) (now time.Time, err error) {
	err = a.db.InTx(ctx, func(tx *sql.Tx) (err error) {
		if now, err = a.db.Now(ctx, tx); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO instances (id, seen) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen",
			fit(instance, mostWord), a.db.At(now))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM instances WHERE id IN (SELECT id FROM instances WHERE seen < $1"+a.db.SkipLocked()+")", a.db.At(now.Add(-forgotten)))
		return err
	})
	return now, err
}

// Gone implements [Store].
func (a *tables) Gone(ctx context.Context, instance string) error {
	_, err := a.db.Exec(ctx, "DELETE FROM instances WHERE id = $1", fit(instance, mostWord))
	return err
}

// Orphans implements [Store].
func (a *tables) Orphans(ctx context.Context, silent time.Duration, limit int) ([]*Started, error) {
	now, err := a.db.Now(ctx, a.db.Read)
	if err != nil {
		return nil, err
	}
	return store.All(ctx, a.db.Read, func(rows *sql.Rows) (*Started, error) {
		e, err := scanRunning(rows)
		if err != nil {
			return nil, err
		}
		return &e.Started, nil
	}, "SELECT "+strings.Join(runningColumns, ", ")+` FROM running_executions r
		WHERE NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = r.instance AND i.seen >= $1)
		AND NOT EXISTS (SELECT 1 FROM queued_calls q WHERE q.id = r.id AND q.again > 1 AND q.created_at >= $3) ORDER BY created_at, id LIMIT $2`, a.db.At(ceil(now.Add(-silent))), limit, a.db.At(now.Add(-QueuedFor)))
}
