package records

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// QueuedCall is a call that was accepted and waits until a host has a place for it.
type QueuedCall struct {
	ExecutionID string    // UUID version 7; calls of a principal are taken in the order of their ids
	At          time.Time // when it was accepted
	Principal   skill.Principal
	Request     *skill.Request       // nil: it runs a script
	Script      *skill.ScriptRequest // nil: it calls a skill
	Again       bool                 // it may begin again on another host
	begun       bool                 // it has begun on a host that is gone
	damaged     bool                 // its row cannot be read; what is here is that of other columns
}

// queuedBody is a call as its row has it. The input is kept byte for byte.
type queuedBody struct {
	Principal skill.Principal
	Request   *skill.Request `json:",omitempty"`
	Input     []byte         `json:",omitempty"`
	Script    *skill.ScriptRequest
}

func (c *QueuedCall) body() ([]byte, error) {
	b := queuedBody{Principal: c.Principal, Script: c.Script}
	if c.Request != nil {
		r := *c.Request
		b.Input, r.Input, r.Value = r.Input, nil, nil
		b.Request = &r
	}
	return json.Marshal(&b)
}

// queuedColumns are what scanQueued reads.
const queuedColumns = "CAST(id AS TEXT), tenant, principal_id, principal_type, skill_name, created_at, again > 0, " + hasBegun + ", body"

// hasBegun says of a queued call whether it runs, or ran on a host that is gone.
const hasBegun = "EXISTS (SELECT 1 FROM running_executions r WHERE r.id = queued_calls.id)"

func scanQueued(rows *sql.Rows) (*QueuedCall, error) {
	c, p, r := &QueuedCall{}, skill.Principal{}, &skill.Request{}
	var at store.Time
	var body []byte
	if err := rows.Scan(&c.ExecutionID, &p.Tenant, &p.ID, &p.Type, &r.SkillID, &at, &c.Again, &c.begun, &body); err != nil {
		return nil, err
	}
	var b queuedBody
	c.At = at.Time
	if json.Unmarshal(body, &b) != nil || (b.Request == nil) == (b.Script == nil) || store.Plain(b.Principal.Tenant) != p.Tenant || store.Plain(b.Principal.ID) != p.ID || b.Principal.Type != p.Type {
		c.Principal, c.Request, c.damaged = p, r, true
		return c, nil
	}
	if c.Principal, c.Request, c.Script = b.Principal, b.Request, b.Script; c.Request != nil {
		c.Request.Input, c.Request.ExecutionID, c.Request.Again = b.Input, c.ExecutionID, c.begun
	} else {
		c.Script.ExecutionID = c.ExecutionID
	}
	return c, nil
}

// started is what is known of the call before it begins.
func (c *QueuedCall) started() *Started {
	p := &c.Principal
	s := &Started{ExecutionID: c.ExecutionID, Tenant: p.Tenant, Principal: p.ID, PrincipalType: p.Type, Key: p.Key, Session: c.ExecutionID, Time: c.At.UTC()}
	var turn skill.Turn
	if c.Request != nil {
		s.Skill, s.Version, s.TraceID, turn = string(c.Request.SkillID), c.Request.Version, string(c.Request.TraceID), c.Request.Turn
	} else {
		s.Skill, s.Script, s.TraceID, turn = c.Script.Skill, c.Script.Script, string(c.Script.TraceID), c.Script.Turn
	}
	if turn.Session != "" {
		s.Session, s.Iteration = turn.Session, turn.Iteration
	}
	return s
}

// waits reports whether the call waits for its workspace.
func (c *QueuedCall) waits() bool {
	switch {
	case c.Script != nil:
		return !c.Script.Workspace.NoWait
	case c.Request.SkillID == skill.RunCode: // which has it in its input
		var in struct{ Busy string }
		return json.Unmarshal(c.Request.Input, &in) == nil && in.Busy != "conflict"
	}
	return !c.Request.Workspace.NoWait
}

// errQueueFull says that a tenant has as many queued calls as it may have.
var errQueueFull = errors.New("the tenant has too many queued calls")

// queue is the table queued_calls, and what each tenant has of it in queued_sums. That a call
// begins once does not depend on it: the second beginning of an execution is not written.
type queue struct{ db *store.DB }

// put adds a call, unless its tenant has more than most then.
func (q queue) put(ctx context.Context, c *QueuedCall, most Room) error {
	return q.db.InTurn(ctx, store.Plain(c.Principal.Tenant), func() error {
		return q.db.InTx(ctx, func(tx *sql.Tx) error { return q.insert(ctx, tx, c, most) })
	})
}

// insert is put in a transaction.
func (q queue) insert(ctx context.Context, tx *sql.Tx, c *QueuedCall, most Room) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	var bytes, items int64
	tenant, size := store.Plain(c.Principal.Tenant), Size("", int64(len(body)))
	err = tx.QueryRowContext(ctx, `INSERT INTO queued_sums (tenant, bytes, items) VALUES ($1, $2, 1)
		ON CONFLICT (tenant) DO UPDATE SET bytes = queued_sums.bytes + excluded.bytes, items = queued_sums.items + 1 RETURNING bytes, items`, tenant, size).Scan(&bytes, &items)
	if err != nil {
		return err
	}
	if bytes > most.Bytes || items > most.Items {
		return errQueueFull
	}
	e, again := c.started(), 0
	if c.Again {
		again = 1 + mostAgain
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO queued_calls (id, tenant, principal_id, principal_type, skill_name, script, session_id, trace_id, created_at, bytes, body, again)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`, c.ExecutionID, tenant, store.Plain(c.Principal.ID), string(c.Principal.Type), store.Plain(e.Skill), store.Plain(e.Script),
		store.Plain(e.Session), store.Plain(e.TraceID), q.db.At(c.At), size, body, again)
	if err != nil {
		return err
	}
	return q.hook(ctx, tx, c)
}

// nextTenant gives the tenant after one that has calls that wait; "" if there is none.
func (q queue) nextTenant(ctx context.Context, after string) (tenant string, err error) {
	err = q.db.Read.QueryRowContext(ctx, "SELECT tenant FROM queued_calls WHERE instance = '' AND tenant > $1 ORDER BY tenant LIMIT 1", after).Scan(&tenant)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return tenant, err
}

// next gives the first call that waits of the principal of a tenant that comes after one; "" if there is none. It sorts by
// the column q.id, as the index does: id would be the text.
func (q queue) next(ctx context.Context, tenant, after string) (principal, id string, err error) {
	err = q.db.Read.QueryRowContext(ctx, "SELECT principal_id, CAST(id AS TEXT) FROM queued_calls q WHERE instance = '' AND tenant = $1 AND principal_id > $2 ORDER BY q.principal_id, q.id LIMIT 1", tenant, after).
		Scan(&principal, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", nil
	}
	return principal, id, err
}

// claim takes a call for a host; nil if it does not wait any more.
func (q queue) claim(ctx context.Context, id, instance string) (c *QueuedCall, err error) {
	err = q.db.InTx(ctx, func(tx *sql.Tx) error {
		c = nil // of a try before
		list, err := store.All(ctx, tx, scanQueued, "UPDATE queued_calls SET instance = $1 WHERE id = $2 AND instance = '' RETURNING "+queuedColumns, fit(instance, mostWord), id)
		if len(list) > 0 {
			c = list[0]
		}
		return err
	})
	return c, err
}

// release lets a call wait again that a host has taken.
func (q queue) release(ctx context.Context, id, instance string) error {
	_, err := q.db.Exec(ctx, "UPDATE queued_calls SET instance = '' WHERE id = $1 AND instance = $2", id, fit(instance, mostWord))
	return err
}

// handOver lets a call wait again that runs on a host which stops: that does not count.
func (q queue) handOver(ctx context.Context, id, instance string) error {
	_, err := q.db.Exec(ctx, "UPDATE queued_calls SET instance = '', again = again + 1 WHERE id = $1 AND instance = $2", id, fit(instance, mostWord))
	return err
}

// has reports whether a host runs a call, or none does that took it over.
func (q queue) has(ctx context.Context, id, instance string) (has bool, err error) {
	return has, q.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM queued_calls q WHERE id = $1 AND instance IN ('', $2)
		AND NOT EXISTS (SELECT 1 FROM running_executions r WHERE r.id = q.id AND r.instance <> $2))`, id, fit(instance, mostWord)).Scan(&has)
}

// drop removes a call that a host has taken.
func (q queue) drop(ctx context.Context, id, instance string) error {
	return q.db.InTx(ctx, func(tx *sql.Tx) error {
		var tenant string
		var size int64
		err := tx.QueryRowContext(ctx, "DELETE FROM queued_calls WHERE id = $1 AND instance = $2 RETURNING tenant, bytes", id, fit(instance, mostWord)).Scan(&tenant, &size)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE queued_sums SET bytes = bytes - $1, items = items - 1 WHERE tenant = $2", size, tenant)
		}
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM queued_sums WHERE tenant = $1 AND items <= 0", tenant)
		}
		return err
	})
}

// rescue removes the calls that hosts have taken and whose beginning is on record, unless they may begin again, and lets the others wait again: those of
// hosts that are gone, or have been silent for longer than a time, and those of this host, self, that it does not have.
func (q queue) rescue(ctx context.Context, self string, has func(id string) bool, gone func(instance string) bool, silent time.Duration) error {
	self = fit(self, mostWord)
	all, err := store.All(ctx, q.db.Read, store.Column[string], "SELECT DISTINCT instance FROM queued_calls WHERE instance <> ''")
	if err != nil || len(all) == 0 {
		return err
	}
	now, err := q.db.Now(ctx, q.db.Read)
	if err != nil {
		return err
	}
	alive, err := store.All(ctx, q.db.Read, store.Column[string], "SELECT id FROM instances WHERE seen >= $1", q.db.At(ceil(now.Add(-silent))))
	if err != nil {
		return err
	}
	for _, instance := range all {
		if instance != self && slices.Contains(alive, instance) && !gone(instance) {
			continue
		}
		if err := q.takeBack(ctx, instance, func(id string) bool { return instance == self && has(id) }); err != nil {
			return err
		}
	}
	return nil
}

// takeBack removes the calls of a host that are on record, and lets the others wait again that it does not have.
func (q queue) takeBack(ctx context.Context, instance string, has func(id string) bool) error {
	type row struct {
		id           string
		begun, ended bool
		again        int
	}
	rows, err := store.All(ctx, q.db.Read, func(rows *sql.Rows) (r row, err error) { return r, rows.Scan(&r.id, &r.begun, &r.ended, &r.again) },
		"SELECT CAST(id AS TEXT), "+hasBegun+", EXISTS (SELECT 1 FROM execution_logs e WHERE e.id = queued_calls.id), again FROM queued_calls WHERE instance = $1", instance)
	for _, r := range rows {
		switch {
		case r.again > 0 && has(r.id): // it stays until its result is kept
		case r.ended, r.begun && r.again <= 1:
			err = cmp.Or(err, q.drop(ctx, r.id, instance))
		case !has(r.id):
			err = cmp.Or(err, q.release(ctx, r.id, instance))
		}
	}
	return err
}

// seenColumns are what callers see of a call, which scanSeen reads.
const seenColumns = "CAST(q.id AS TEXT), tenant, principal_id, principal_type, skill_name, script, session_id, trace_id, created_at"

func scanSeen(rows *sql.Rows) (*Execution, error) {
	e := &Execution{Queued: true}
	var at store.Time
	err := rows.Scan(&e.ExecutionID, &e.Tenant, &e.Principal, &e.PrincipalType, &e.Skill, &e.Script, &e.Session, &e.TraceID, &at)
	e.Started.Time = at.Time
	return e, err
}

// get gives a call as callers see it; tenant "" means any.
func (q queue) get(ctx context.Context, tenant, id string) (*Execution, error) {
	list, err := store.All(ctx, q.db.Read, scanSeen, "SELECT "+seenColumns+" FROM queued_calls q WHERE id = $1 AND ($2 = '' OR tenant = $2)", id, store.Plain(tenant))
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, ErrNotFound
	}
	return list[0], nil
}

// list gives a page of calls, newest first, without what they are called with.
func (q queue) list(ctx context.Context, of *Query) ([]*Execution, string, error) {
	w, args := "", []any(nil)
	add := func(condition string, arg any) {
		args = append(args, arg)
		w += " AND " + condition + store.List(len(args), 1)
	}
	for _, c := range []struct{ column, value string }{{"tenant", of.Tenant}, {"principal_id", of.Principal}, {"skill_name", of.Skill}} {
		if c.value != "" {
			add(c.column+" = ", store.Plain(c.value))
		}
	}
	if of.Cursor != "" {
		after, err := store.ParseCursor("records.Executions", of.Cursor)
		if err != nil {
			return nil, "", err
		}
		add("id < ", after.ID)
	}
	limit := min(max(of.Limit, 1), 1000)
	args = append(args, limit+1)
	page, err := store.All(ctx, q.db.Read, scanSeen, "SELECT "+seenColumns+" FROM queued_calls q WHERE NOT EXISTS (SELECT 1 FROM running_executions r WHERE r.id = q.id)"+w+
		" ORDER BY q.id DESC LIMIT "+store.List(len(args), 1), args...)
	if err != nil || len(page) <= limit {
		return page, "", err
	}
	page = page[:limit]
	return page, store.Mark{At: page[limit-1].Started.Time, ID: page[limit-1].ExecutionID}.Cursor(), nil
}

// waiting is how many calls there are of all tenants.
func (q queue) waiting(ctx context.Context) (n int64, err error) {
	return n, q.db.Read.QueryRowContext(ctx, "SELECT COALESCE(CAST(SUM(items) AS BIGINT), 0) - (SELECT COUNT(*) FROM queued_calls WHERE instance <> '' AND again > 0) FROM queued_sums").Scan(&n)
}
