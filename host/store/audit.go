package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Audit keeps the records of runs.
//
// The text columns of executions hold what comes closest to texts that they cannot hold
// (NUL, not UTF-8, too long), and what is read is the text as JSON has it all the same.
// JSON of inputs and outputs is read as equal JSON, not byte for byte; the records have
// every byte as it was hashed.
func (d *DB) Audit() records.Store { return &d.audit }

// auditStore implements [records.Store]: audit_append.go writes, this file reads.
type auditStore struct {
	db   *DB
	lite lite
}

// Tenants implements [records.Store].
func (a *auditStore) Tenants(ctx context.Context) ([]records.Head, error) {
	rows, err := a.db.read.QueryContext(ctx, "SELECT tenant, first, prev, last, last_hash FROM audit_heads WHERE last > 0 ORDER BY tenant")
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows) (records.Head, error) { return scanHead(rows) })
}

// Shown implements [records.Store].
func (a *auditStore) Shown(ctx context.Context, tenant string) ([]records.Shown, error) {
	if plain(tenant) != tenant {
		return nil, nil // there is none
	}
	only, args := "", []any(nil)
	if tenant != "" {
		only, args = " AND tenant = ?0", []any{tenant}
	}
	q := strings.ReplaceAll(`WITH n AS (SELECT tenant, count(*) AS ended FROM execution_logs WHERE true ONLY GROUP BY tenant),
		t AS (SELECT tenant FROM audit_heads WHERE last > 0 ONLY UNION SELECT tenant FROM n UNION SELECT tenant FROM running_executions WHERE true ONLY)
		SELECT t.tenant, COALESCE(h.first, 0), COALESCE(h.prev, ''), COALESCE(h.last, 0), COALESCE(h.last_hash, ''), COALESCE(n.ended, 0)
		FROM t LEFT JOIN audit_heads h ON h.tenant = t.tenant LEFT JOIN n ON n.tenant = t.tenant ORDER BY t.tenant`, " ONLY", only)
	rows, err := a.db.read.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows) (s records.Shown, err error) {
		s.Head, err = scanHead(rows, &s.Ended)
		return s, err
	})
}

// scanHead reads a head. Numbers that none can have, of somebody who has the database, are 0.
func scanHead(rows *sql.Rows, more ...any) (h records.Head, err error) {
	var first, last int64
	err = rows.Scan(append([]any{&h.Tenant, &first, &h.Prev, &last, &h.LastHash}, more...)...)
	h.First, h.Last = uint64(max(first, 0)), uint64(max(last, 0)) // not negative
	return h, err
}

var recordColumns = []string{"tenant", "seq", "kind", "execution_id", "time", "body", "prev", "hash"}

// Records implements [records.Store].
func (a *auditStore) Records(ctx context.Context, tenant string, from uint64, limit int) ([]records.Record, error) {
	if limit <= 0 || from > 1<<62 || plain(tenant) != tenant {
		return nil, nil
	}
	rows, err := a.db.read.QueryContext(ctx,
		"SELECT tenant, seq, kind, execution_id, time, body, prev, hash FROM audit_records WHERE tenant = ? AND seq >= ? ORDER BY seq LIMIT ?",
		tenant, int64(from), limit)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows) (r records.Record, err error) {
		var when stamp
		var body []byte
		l := &lax{names: recordColumns} // what is left zero is not what was hashed
		err = rows.Scan(laxly(l, &r.Tenant), &r.Seq, laxly(l, &r.Kind), laxly(l, &r.ExecutionID), laxly(l, &when), laxly(l, &body), laxly(l, &r.Prev), laxly(l, &r.Hash))
		r.Time, r.Body = when.Time, body
		return r, err
	})
}

// collect reads all rows, and closes them.
func collect[T any](rows *sql.Rows, scan func(*sql.Rows) (T, error)) ([]T, error) {
	return collectUntil(rows, scan, func(T) bool { return false })
}

// collectUntil reads rows up to the one of which enough is true, and closes them.
func collectUntil[T any](rows *sql.Rows, scan func(*sql.Rows) (T, error), enough func(T) bool) ([]T, error) {
	defer rows.Close()
	var out []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		if out = append(out, one); enough(one) {
			return out, nil
		}
	}
	return out, rows.Err()
}

// Execution implements [records.Store].
func (a *auditStore) Execution(ctx context.Context, tenant, id string) (*records.Execution, error) {
	// No tenant has such a name, and one that comes closest is another one.
	if !isUUID(id) || plain(tenant) != tenant {
		return nil, records.ErrNotFound
	}
	choose := func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("id = ?", lower(id))
		if tenant != "" {
			q = q.Where("tenant = ?", tenant)
		}
		return q
	}
	found, err := a.running(ctx, choose)
	if err == nil && len(found) == 0 { // one that ended meanwhile is here
		found, _, err = a.logs(ctx, "execution_logs", choose)
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, records.ErrNotFound
	}
	return found[0], nil
}

func (a *auditStore) running(ctx context.Context, choose func(*bun.SelectQuery) *bun.SelectQuery) ([]*records.Execution, error) {
	rows, err := choose(a.db.read.NewSelect().TableExpr("running_executions").Column(runningColumns...)).Rows(ctx)
	if err != nil {
		return nil, err
	}
	return collect(rows, scanRunning)
}

// logs gives executions that ended; full says that it left off, as they are large.
func (a *auditStore) logs(ctx context.Context, table string, choose func(*bun.SelectQuery) *bun.SelectQuery) (found []*records.Execution, full bool, err error) {
	rows, err := choose(a.db.read.NewSelect().TableExpr(table).Column(logColumns...)).Rows(ctx)
	if err != nil {
		return nil, false, err
	}
	size := 0
	found, err = collectUntil(rows, scanLog, func(e *records.Execution) bool {
		size += len(e.Input.JSON) + len(e.Finished.Output.JSON)
		full = size > mostPage
		return full
	})
	return found, full, err
}

// mostPage is how many bytes of inputs and outputs end a page before its limit does.
const mostPage = 8 << 20

// Executions implements [records.Store]. An execution that ends between the two questions
// is in both answers; its log counts. A page of large inputs and outputs is shorter than
// its limit.
func (a *auditStore) Executions(ctx context.Context, q records.Query) ([]*records.Execution, string, error) {
	limit := min(max(q.Limit, 1), 1000)
	var after mark
	if q.Cursor != "" {
		var err error
		if after, err = parseCursor("store.Executions", q.Cursor); err != nil {
			return nil, "", err
		}
	}
	if q.Session != "" && !isUUID(q.Session) || plain(q.Tenant) != q.Tenant {
		return nil, "", nil // there is none
	}
	choose := func(s *bun.SelectQuery) *bun.SelectQuery {
		return a.chosen(s, &q, after).OrderExpr("created_at DESC, id DESC").Limit(int64(limit) + 1)
	}
	var running, logs []*records.Execution
	var full bool
	var err error
	if (q.Status == "" || q.Status == records.Running) && q.Code == "" {
		if running, err = a.running(ctx, choose); err != nil {
			return nil, "", err
		}
	}
	if q.Status != records.Running {
		logs, full, err = a.logs(ctx, a.logsBy(&q), func(s *bun.SelectQuery) *bun.SelectQuery { return chosenEnded(choose(s), &q) })
		if err != nil {
			return nil, "", err
		}
	}
	var last *records.Execution
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
	return page[:end], mark{at(page[end-1].Started.Time), lower(page[end-1].ExecutionID)}.cursor(), nil
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
func (a *auditStore) chosen(s *bun.SelectQuery, q *records.Query, after mark) *bun.SelectQuery {
	for _, w := range []struct{ column, value string }{
		{"tenant", q.Tenant},
		{"principal_id", fit(q.Principal, mostPrincipal)},
		{"skill_name", fit(q.Skill, mostSkill)},
		{"session_id", lower(q.Session)},
		{"trace_id", fit(q.TraceID, mostWord)},
	} {
		if w.value != "" {
			s = s.Where("? = ?", bun.Ident(w.column), w.value)
		}
	}
	since, until := q.Since, q.Until
	if since.IsZero() {
		since = firstYear
	}
	if until.IsZero() {
		until = yearAfterLast
	}
	s = s.Where("created_at >= ?", ceil(since)).Where("created_at < ?", ceil(until))
	if a.db.kind == SQLite {
		s = s.Where("id GLOB ?", uuids) // cursors can have no other; PostgreSQL holds no other
	}
	if after.id != "" {
		// The first part is what an index understands.
		s = s.Where("created_at <= ? AND (created_at < ? OR id < ?)", after.at, after.at, after.id)
	}
	return s
}

// ceil is the first moment that databases tell apart, at or after t.
func ceil(t time.Time) stamp {
	s := at(t)
	if s.Before(t) {
		s.Time = s.Add(time.Microsecond)
	}
	return s
}

// chosenEnded is what the table of executions that ended is asked besides.
func chosenEnded(s *bun.SelectQuery, q *records.Query) *bun.SelectQuery {
	if q.Status != "" {
		s = s.Where("status = ?", plain(string(q.Status)))
	}
	if q.Code != "" {
		s = s.Where("code = ? AND code <> ''", fit(q.Code, mostWord)) // the index has no others
	}
	return s
}

// logsBy names the table, and on SQLite the index, that answers q. PostgreSQL chooses by
// what it counted. SQLite has counted nothing, and would sooner walk through all rows of
// a tenant in their order than sort the few that are asked for.
func (a *auditStore) logsBy(q *records.Query) string {
	const table = "execution_logs"
	if a.db.postgres() {
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
func merge(running, logs []*records.Execution) []*records.Execution {
	over := make(map[string]bool, len(logs))
	for _, e := range logs {
		over[lower(e.ExecutionID)] = true
	}
	page := logs
	for _, e := range running {
		if !over[lower(e.ExecutionID)] {
			page = append(page, e)
		}
	}
	if len(page) > len(logs) {
		slices.SortStableFunc(page, func(a, b *records.Execution) int {
			if c := at(b.Started.Time).Compare(at(a.Started.Time).Time); c != 0 {
				return c
			}
			return strings.Compare(lower(b.ExecutionID), lower(a.ExecutionID))
		})
	}
	return page
}

// mark is the row after which a page begins.
type mark struct {
	at stamp
	id string
}

// cursor is the mark as callers get it.
func (m mark) cursor() string {
	b := binary.BigEndian.AppendUint64(nil, uint64(m.at.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(b, m.id...))
}

func parseCursor(op, cursor string) (mark, error) {
	const size = 8 + 36
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil && len(b) == size && len(cursor) == base64.RawURLEncoding.EncodedLen(size) { // it passes over ends of lines
		when := time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC()
		id := string(b[8:])
		if isUUID(id) && id == lower(id) && when.Year() >= 1 && when.Year() <= 9999 { // as PostgreSQL reads times
			return mark{stamp{when}, id}, nil
		}
	}
	return mark{}, &skill.Error{
		Op: op, Code: skill.InvalidArgument, Subject: "cursor",
		Message: "invalid cursor: use the next value of the previous page, or omit it for the first page",
	}
}

// Changes implements [records.Store].
func (a *auditStore) Changes(ctx context.Context, q records.ChangeQuery) ([]records.Change, error) {
	if plain(q.Tenant) != q.Tenant {
		return nil, nil // there is none
	}
	s := a.db.read.NewSelect().TableExpr("audit_records").Column("tenant", "execution_id", "time", "body").Where("kind = 'change'")
	if q.Tenant != "" {
		s = s.Where("tenant = ?", q.Tenant)
	}
	if !q.Since.IsZero() {
		s = s.Where("time >= ?", ceil(q.Since))
	}
	if !q.Until.IsZero() {
		s = s.Where("time < ?", ceil(q.Until))
	}
	if q.After != "" {
		s = s.Where("(time, execution_id) < (SELECT time, execution_id FROM audit_records WHERE kind = 'change' AND execution_id = ?)", lower(plain(q.After)))
	}
	rows, err := s.OrderExpr("time DESC, execution_id DESC").Limit(int64(min(max(q.Limit, 1), 1000))).Rows(ctx)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows) (c records.Change, err error) {
		var body []byte
		var when stamp
		l, of := &lax{names: []string{"tenant", "execution_id", "time", "body"}}, records.Change{Action: "damaged", Subject: "the record cannot be read; see openskill audit verify"}
		if err := rows.Scan(laxly(l, &of.Tenant), laxly(l, &of.ID), laxly(l, &when), laxly(l, &body)); err != nil {
			return c, err
		}
		of.Time = l.time("time", when)
		if l.decode("body", body, &c); len(l.wrong) > 0 || c.ID != of.ID || c.Tenant != of.Tenant || !at(c.Time).Equal(of.Time) {
			return of, nil // by which the next page is asked for
		}
		return c, nil
	})
}

// forgotten is when an instance that was not alive since is not kept any longer: it says
// no more than one that is not there.
const forgotten = 24 * time.Hour

// Alive implements [records.Store].
func (a *auditStore) Alive(ctx context.Context, instance string) (time.Time, error) {
	var now stamp
	err := a.db.inTx(ctx, func(ctx context.Context, tx bun.Tx) (err error) {
		if now, err = a.db.clock(ctx, tx); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO instances (id, seen) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET seen = excluded.seen",
			fit(instance, mostWord), now)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM instances WHERE id IN (SELECT id FROM instances WHERE seen < ?"+a.db.unlocked()+")", at(now.Add(-forgotten)))
		return err
	})
	return now.Time, err
}

// Gone implements [records.Store].
func (a *auditStore) Gone(ctx context.Context, instance string) error {
	return again(ctx, func() error {
		_, err := a.db.write.ExecContext(ctx, "DELETE FROM instances WHERE id = ?", fit(instance, mostWord))
		return err
	})
}

// Orphans implements [records.Store].
func (a *auditStore) Orphans(ctx context.Context, silent time.Duration, limit int) ([]*records.Started, error) {
	now, err := a.db.clock(ctx, a.db.read)
	if err != nil {
		return nil, err
	}
	rows, err := a.db.read.QueryContext(ctx, "SELECT "+strings.Join(runningColumns, ", ")+` FROM running_executions r
		WHERE NOT EXISTS (SELECT 1 FROM instances i WHERE i.id = r.instance AND i.seen >= ?) ORDER BY created_at, id LIMIT ?`, ceil(now.Add(-silent)), limit)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(rows *sql.Rows) (*records.Started, error) {
		e, err := scanRunning(rows)
		if err != nil {
			return nil, err
		}
		return &e.Started, nil
	})
}
