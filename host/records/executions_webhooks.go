package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// This part tells webhooks that calls have ended. The row of a delivery is made in the transaction that queues the call, so that
// each end is told, whichever host it has; and it goes when the webhook has taken the message. A host that is killed meanwhile may
// have sent it: the message has an id, by which its receiver knows it.

const (
	lookAgain   = time.Minute // after which a call is looked at first whose end no host has told of; then its age decides,
	lookLast    = 10 * time.Minute
	leaseOfOne  = 30 * time.Second // of a host that sends
	sendWithin  = 10 * time.Second
	giveUp      = 24 * time.Hour // after the end of a call
	mostSending = 32             // messages of a host at a time, which tenants share,
	sendingOne  = 8              // and of a caller
)

// retries are the pauses after a message that a webhook has not taken; then it is given up.
var retries = []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour}

// delivery is a row.
type delivery struct {
	id       string // of the execution, and of the message
	key      ownKey // of the webhook
	attempts int
	next     int64
}

// hook adds the delivery of a call that is queued.
func (q queue) hook(ctx context.Context, tx *sql.Tx, c *QueuedCall) error {
	if c.Request == nil || c.Request.Webhook == "" {
		return nil
	}
	k := keyOf(c.Principal, c.Request.Webhook)
	var there bool
	var all, own int
	err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM webhooks WHERE tenant = $1 AND principal = $2 AND name = $3), (SELECT COUNT(*) FROM deliveries WHERE tenant = $1), (SELECT COUNT(*) FROM deliveries WHERE tenant = $1 AND principal = $2)",
		k.tenant, k.principal, k.id).Scan(&there, &all, &own)
	switch {
	case err != nil:
		return err
	case !there:
		return noWebhook(k.id)
	case all >= mostMessages || own >= mostMessagesOfOne:
		return &skill.Error{
			Op: "webhooks", Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": pauseLonger.Milliseconds()},
			Message: fmt.Sprintf("webhooks have too many messages to take, at most %d of a caller and %d of a tenant; see GET /webhooks", mostMessagesOfOne, mostMessages),
		}
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO deliveries (id, tenant, principal, name, attempts, next_at) VALUES ($1, $2, $3, $4, 0, $5)", c.ExecutionID, k.tenant, k.principal, k.id, c.At.Add(lookAgain).UnixMicro())
	return err
}

// tell has the webhook of a call told, which has ended, before all that is looked at.
func (m *Manager) tell(c *QueuedCall) {
	if c.Request == nil || c.Request.Webhook == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if _, err := m.o.Queue.DB.Exec(ctx, "UPDATE deliveries SET next_at = 0 WHERE id = $1 AND attempts = 0", c.ExecutionID); err != nil {
		m.o.Log.LogAttrs(ctx, slog.LevelDebug, "cannot tell a webhook of a call at once", slog.String("execution_id", c.ExecutionID), slog.Any("error", err))
	}
}

// deliver sends the messages of a caller whose time has come.
func (w *work) deliver(ctx context.Context, owner whose) error {
	scan := func(rows *sql.Rows) (d delivery, err error) {
		return d, rows.Scan(&d.id, &d.key.tenant, &d.key.principal, &d.key.id, &d.attempts, &d.next)
	}
	due, err := store.All(ctx, w.db.Read, scan, "SELECT CAST(id AS TEXT), tenant, principal, name, attempts, next_at FROM deliveries WHERE tenant = $1 AND principal = $2 AND next_at <= $3 ORDER BY next_at LIMIT $4",
		owner.tenant, owner.principal, w.o.Now().UnixMicro(), 2*sendingOne)
	for _, d := range due {
		leave := w.sendPlace(owner, d.id)
		if leave == nil {
			continue // when one of them has been sent
		}
		go func() {
			defer leave()
			ctx, cancel := context.WithTimeout(w.base, leaseOfOne)
			defer cancel()
			if err := w.send(ctx, &d); err != nil && ctx.Err() == nil {
				w.o.Log.LogAttrs(ctx, slog.LevelDebug, "cannot tell a webhook of a call", slog.String("execution_id", d.id), slog.Any("error", err))
			}
		}()
	}
	return err
}

// sendPlace takes a place to send a message of a caller, and returns nil if all places that it may have are taken.
func (w *work) sendPlace(owner whose, id string) (leave func()) {
	w.turns.Lock()
	defer w.turns.Unlock()
	own := w.sent[owner]
	if own[id] || len(own) >= sendingOne {
		return nil
	}
	out, err := w.sending.TryEnter(owner.tenant)
	if err != nil {
		return nil
	}
	if own == nil {
		own = map[string]bool{}
		w.sent[owner] = own
	}
	own[id] = true
	return func() {
		out()
		w.turns.Lock()
		defer w.turns.Unlock()
		if delete(own, id); len(own) == 0 {
			delete(w.sent, owner)
		}
		w.sendMore()
	}
}

// sendMore says that there may be a message to send and a place for it.
func (w *work) sendMore() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// send sends a message, if its call has ended and no other host does.
func (w *work) send(ctx context.Context, d *delivery) error {
	e, err := w.o.Records.Execution(ctx, d.key.tenant, d.id)
	if errors.Is(err, ErrNotFound) {
		e, err = w.queuedExecution(ctx, d.key.tenant, d.id)
	}
	now := w.o.Now().UTC()
	switch {
	case errors.Is(err, ErrNotFound), err == nil && e.Finished != nil && now.Sub(e.Finished.Time) > giveUp: // its record has expired, or no host could send
		return w.forgetMessage(ctx, d.id)
	case err != nil:
		return err
	}
	pause := leaseOfOne
	if e.Finished == nil {
		pause = min(max(now.Sub(e.Time), lookAgain), lookLast)
	}
	until := now.Add(pause).UnixMicro()
	n, err := w.db.Exec(ctx, "UPDATE deliveries SET next_at = $1 WHERE id = $2 AND next_at = $3", until, d.id, d.next)
	if err != nil || n == 0 || e.Finished == nil { // 0: another host sends it
		return err
	}
	hook, err := (&Webhooks{w.Manager}).find(ctx, d.key)
	switch {
	case skill.CodeOf(err) == skill.NotFound: // it was deleted while the call was queued
		return w.forgetMessage(ctx, d.id)
	case err != nil:
		return err
	}
	_, _, done, err := w.by.Admit(ctx, hook.principal, hook.CreatedAt)
	switch {
	case skill.CodeOf(err) == skill.Unauthorized, hook.principal.Type == "":
		return w.endOwn(ctx, hook.key, "webhook.end", "its credentials are no longer valid", removeWebhook(ctx, hook))
	case err == nil:
		done()
		err = w.o.Queue.Post.Permits(hook.URL)
	}
	if err != nil { // another host may know them, or be permitted to send
		return w.later(ctx, d, until, now.Add(notHere), 0)
	}
	body, err := message(e)
	if err != nil {
		return err
	}
	to, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	status, failed := w.o.Queue.Post.Send(to, hook.URL, hook.signed(d.id, now, body), body)
	if _, err := w.db.Exec(ctx, "UPDATE webhooks SET last_at = $1, last_status = $2 WHERE tenant = $3 AND principal = $4 AND name = $5", now.UnixMicro(), status, d.key.tenant, d.key.principal, d.key.id); err != nil {
		return err
	}
	switch {
	case failed == nil && status >= 200 && status < 300:
		return w.forgetMessage(ctx, d.id)
	case d.attempts >= len(retries):
		w.o.Log.LogAttrs(ctx, slog.LevelWarn, "a webhook was not told of a call", slog.String("webhook", d.key.id), slog.String("tenant", d.key.tenant), slog.String("execution_id", d.id), slog.Int("status", status))
		return w.forgetMessage(ctx, d.id)
	}
	return w.later(ctx, d, until, w.o.Now().Add(retries[d.attempts]), 1)
}

// later moves a message on that this host has until a time; attempts is 1 if it was sent.
func (w *work) later(ctx context.Context, d *delivery, until int64, at time.Time, attempts int) error {
	_, err := w.db.Exec(ctx, "UPDATE deliveries SET next_at = $1, attempts = attempts + $2 WHERE id = $3 AND next_at = $4", at.UnixMicro(), attempts, d.id, until)
	return err
}

func (w *work) forgetMessage(ctx context.Context, id string) error {
	_, err := w.db.Exec(ctx, "DELETE FROM deliveries WHERE id = $1", id)
	return err
}

// message is what a webhook is told of an execution: where to ask for more, and nothing of its input and result.
func message(e *Execution) ([]byte, error) {
	v := viewOf(e)
	type data struct {
		ID         string     `json:"id"`
		Status     Status     `json:"status"`
		Skill      string     `json:"skill"`
		Version    string     `json:"version"`
		TraceID    string     `json:"trace_id"`
		StartedAt  time.Time  `json:"started_at"`
		FinishedAt *time.Time `json:"finished_at"`
		Code       skill.Code `json:"code,omitempty"`
	}
	d := data{ID: v.ID, Status: v.Status, Skill: v.Skill, Version: v.Version, TraceID: v.TraceID, StartedAt: v.StartedAt, FinishedAt: v.FinishedAt}
	if v.Error != nil {
		d.Code = v.Error.Code
	}
	return json.Marshal(map[string]any{"type": "execution.ended", "timestamp": v.FinishedAt, "data": d})
}
