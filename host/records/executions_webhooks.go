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
	lookAgain   = time.Minute      // after which a call is looked at whose end nobody has told of
	leaseOfOne  = 30 * time.Second // of a host that sends
	sendWithin  = 10 * time.Second
	mostSending = 32 // messages of a host at a time, which tenants share
	dueOfOne    = 8  // of a tenant in a look
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
	var waiting int
	err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM webhooks WHERE tenant = $1 AND principal = $2 AND name = $3), (SELECT COUNT(*) FROM deliveries WHERE tenant = $1)", k.tenant, k.principal, k.id).Scan(&there, &waiting)
	switch {
	case err != nil:
		return err
	case !there:
		return noWebhook(k.id)
	case waiting >= mostDeliveries:
		return &skill.Error{
			Op: "webhooks", Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": pauseLonger.Milliseconds()},
			Message: fmt.Sprintf("webhooks of this tenant have %d messages to take; see GET /webhooks", mostDeliveries),
		}
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO deliveries (id, tenant, principal, name, attempts, next_at) VALUES ($1, $2, $3, $4, 0, $5)", c.ExecutionID, k.tenant, k.principal, k.id, c.At.Add(lookAgain).UnixMicro())
	return err
}

// tell has the webhook of a call told, which has ended.
func (w *work) tell(c *QueuedCall) {
	if c.Request == nil || c.Request.Webhook == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if _, err := w.db.Exec(ctx, "UPDATE deliveries SET next_at = $1 WHERE id = $2 AND attempts = 0", w.o.Now().UnixMicro(), c.ExecutionID); err != nil {
		w.log(ctx, "cannot tell a webhook of a call at once", err)
	}
}

// deliver sends the messages whose time has come. Tenants share the places.
func (w *work) deliver(ctx context.Context) error {
	if w.o.Queue.Post == nil {
		return nil
	}
	look, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	scan := func(rows *sql.Rows) (d delivery, err error) {
		return d, rows.Scan(&d.id, &d.key.tenant, &d.key.principal, &d.key.id, &d.attempts, &d.next)
	}
	due, err := store.All(look, w.db.Read, scan, `SELECT CAST(id AS TEXT), tenant, principal, name, attempts, next_at FROM
		(SELECT d.*, ROW_NUMBER() OVER (PARTITION BY tenant ORDER BY next_at) AS place FROM deliveries d WHERE next_at <= $1) AS due WHERE place <= $2 LIMIT 256`, w.o.Now().UnixMicro(), dueOfOne)
	for _, d := range due {
		leave, err := w.sending.TryEnter(d.key.tenant)
		if err != nil {
			continue // at the next look
		}
		go func() {
			defer leave()
			ctx, cancel := context.WithTimeout(w.base, leaseOfOne)
			defer cancel()
			if err := w.send(ctx, &d); err != nil && ctx.Err() == nil {
				w.log(ctx, "cannot tell a webhook of a call", err)
			}
		}()
	}
	return err
}

// send sends a message, if its call has ended and no other host does.
func (w *work) send(ctx context.Context, d *delivery) error {
	e, err := w.o.Records.Execution(ctx, d.key.tenant, d.id)
	pause := leaseOfOne
	switch {
	case errors.Is(err, ErrNotFound):
		if _, err := w.get(ctx, d.key.tenant, d.id); errors.Is(err, ErrNotFound) {
			return w.forgetMessage(ctx, d.id) // its record has expired
		}
		pause = lookAgain
	case err != nil:
		return err
	case e.Finished == nil:
		pause = lookAgain
	}
	ended := err == nil && e.Finished != nil
	now := w.o.Now().UTC()
	n, err := w.db.Exec(ctx, "UPDATE deliveries SET next_at = $1, attempts = attempts + $2 WHERE id = $3 AND next_at = $4", now.Add(pause).UnixMicro(), map[bool]int{true: 1}[ended], d.id, d.next)
	if err != nil || n == 0 || !ended { // 0: another host sends it
		return err
	}
	hook, err := (&Webhooks{w.Manager}).find(ctx, d.key)
	if err != nil {
		return err
	}
	_, _, done, err := w.by.Admit(ctx, hook.principal, hook.CreatedAt)
	switch {
	case skill.CodeOf(err) == skill.Unauthorized, hook.principal.Type == "":
		return w.endWebhook(ctx, hook)
	case err != nil: // another host may know them
		return nil
	}
	done()
	body, err := message(e)
	if err != nil {
		return err
	}
	status, err := 0, w.o.Queue.Post.Permits(hook.URL)
	if err == nil {
		to, cancel := context.WithTimeout(ctx, sendWithin)
		defer cancel()
		status, err = w.o.Queue.Post.Send(to, hook.URL, hook.signed(d.id, now, body), body)
	}
	if _, err := w.db.Exec(ctx, "UPDATE webhooks SET last_at = $1, last_status = $2 WHERE tenant = $3 AND principal = $4 AND name = $5", now.UnixMicro(), status, d.key.tenant, d.key.principal, d.key.id); err != nil {
		return err
	}
	switch {
	case err == nil && status >= 200 && status < 300:
		return w.forgetMessage(ctx, d.id)
	case d.attempts >= len(retries):
		w.o.Log.LogAttrs(ctx, slog.LevelWarn, "a webhook was not told of a call", slog.String("webhook", d.key.id), slog.String("tenant", d.key.tenant), slog.String("execution_id", d.id), slog.Int("status", status))
		return w.forgetMessage(ctx, d.id)
	}
	_, err = w.db.Exec(ctx, "UPDATE deliveries SET next_at = $1 WHERE id = $2", w.o.Now().Add(retries[d.attempts]).UnixMicro(), d.id)
	return err
}

func (w *work) forgetMessage(ctx context.Context, id string) error {
	_, err := w.db.Exec(ctx, "DELETE FROM deliveries WHERE id = $1", id)
	return err
}

// endWebhook removes a webhook whose credentials are not valid any more, on record.
func (w *work) endWebhook(ctx context.Context, hook *webhook) error {
	by := skill.Principal{ID: hook.key.principal, Type: hook.principal.Type, Tenant: hook.key.tenant}
	return w.changeOwn(ctx, by, "webhook.end", hook.Name, map[string]string{"reason": "its credentials are no longer valid"}, removeWebhook(ctx, hook.key))
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
