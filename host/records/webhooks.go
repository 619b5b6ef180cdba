package records

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// Limits of webhooks.
const (
	mostWebhooks      = 1000   // of a tenant
	mostWebhooksOfOne = 100    // of a principal
	mostMessages      = 10_000 // of a tenant
	mostMessagesOfOne = 5_000  // of a principal
	mostWebhookURL    = 2048
	secretBytes       = 32
	secretPrefix      = "whsec_"
)

// Post is what webhooks need of the network.
type Post struct {
	// Permits gives an error, a *skill.Error, unless the operator permits requests to a URL.
	Permits func(url string) error
	// Send makes a POST request, without following redirects, and gives the status of the answer.
	Send func(ctx context.Context, url string, header map[string]string, body []byte) (status int, err error)
}

// Webhooks stores the addresses that callers want told when their calls have ended. Errors are *skill.Error. Webhooks is safe
// for concurrent use.
type Webhooks struct{ m *Manager }

// Webhooks returns the webhooks of a host, and nil for one that may not send.
func (m *Manager) Webhooks() *Webhooks {
	if m.o.Queue == nil || m.o.Queue.Post == nil {
		return nil
	}
	return &Webhooks{m}
}

// webhook is a row.
type webhook struct {
	skill.Webhook
	principal skill.Principal
	key       ownKey
	secret    []byte
}

const webhookColumns = "tenant, principal, name, url, secret, made_by, created_at, last_at, last_status, (SELECT COUNT(*) FROM deliveries d WHERE d.tenant = w.tenant AND d.principal = w.principal AND d.name = w.name)"

func scanWebhook(rows *sql.Rows) (*webhook, error) {
	w := &webhook{}
	var by []byte
	var created, last int64
	err := rows.Scan(&w.key.tenant, &w.key.principal, &w.key.id, &w.URL, &w.secret, &by, &created, &last, &w.LastStatus, &w.Waiting)
	if err != nil {
		return nil, err
	}
	w.Name, w.CreatedAt = w.key.id, time.UnixMicro(created).UTC()
	if last > 0 {
		at := time.UnixMicro(last).UTC()
		w.LastAt = &at
	}
	if json.Unmarshal(by, &w.principal) != nil || keyOf(w.principal, w.Name) != w.key {
		w.principal = skill.Principal{}
	}
	return w, nil
}

// Create adds a webhook, and gives it with its secret.
func (s *Webhooks) Create(ctx context.Context, p skill.Principal, name, url string) (*skill.Webhook, error) {
	switch {
	case !skill.ValidWorkspace(name):
		return nil, badWebhook("name", "use 1 to 64 of a-z, A-Z, 0-9, _ and -")
	case len(url) > mostWebhookURL:
		return nil, badWebhook("url", fmt.Sprintf("at most %d bytes", mostWebhookURL))
	}
	if err := keepable(p); err != nil {
		return nil, err
	}
	if err := s.m.o.Queue.Post.Permits(url); err != nil {
		return nil, err
	}
	origin, _, err := skill.ParseHTTPOrigin(url) // the rest may be secret
	if err != nil {
		return nil, err
	}
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // which does not fail
	by, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	now, k := s.m.o.Now().UTC().Truncate(time.Microsecond), keyOf(p, name)
	err = s.m.changeOwn(ctx, p, "webhook.create", name, map[string]string{"origin": origin.String()}, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "INSERT INTO webhooks (tenant, principal, name, url, secret, made_by, created_at, last_at, last_status)"+
			" SELECT $1, $2, $3, $4, $5, $6, CAST($7 AS BIGINT), 0, 0"+
			" WHERE (SELECT COUNT(*) FROM webhooks WHERE tenant = $1) < $8 AND (SELECT COUNT(*) FROM webhooks WHERE tenant = $1 AND principal = $2) < $9 ON CONFLICT (tenant, principal, name) DO NOTHING",
			k.tenant, k.principal, k.id, url, secret, by, now.UnixMicro(), mostWebhooks, mostWebhooksOfOne)
		return changed(res, err, &skill.Error{
			Op: "webhooks.Create", Code: skill.Conflict, Subject: name,
			Message: fmt.Sprintf("a webhook of this name exists, or there are too many: at most %d of a caller, %d of a tenant; delete one first", mostWebhooksOfOne, mostWebhooks),
		})
	})
	if err != nil {
		return nil, err
	}
	return &skill.Webhook{Name: name, URL: url, Secret: secretPrefix + base64.StdEncoding.EncodeToString(secret), CreatedAt: now}, nil
}

func badWebhook(field, message string) error {
	return &skill.Error{Op: "webhooks.Create", Code: skill.InvalidArgument, Subject: field, Message: "invalid " + field + ": " + message}
}

func (s *Webhooks) find(ctx context.Context, k ownKey) (*webhook, error) {
	list, err := store.All(ctx, s.m.o.Queue.DB.Read, scanWebhook, "SELECT "+webhookColumns+" FROM webhooks w WHERE tenant = $1 AND principal = $2 AND name = $3", k.tenant, k.principal, k.id)
	if err == nil && len(list) == 0 {
		return nil, noWebhook(k.id)
	}
	if err != nil {
		return nil, cannotKeep("webhooks.Get", err)
	}
	return list[0], nil
}

func noWebhook(name string) error {
	return &skill.Error{Op: "webhooks.Get", Code: skill.NotFound, Subject: skill.CleanText(name, 64), Message: "webhook not found; it ends with the credentials that made it"}
}

// Get returns a webhook of the principal.
func (s *Webhooks) Get(ctx context.Context, p skill.Principal, name string) (*skill.Webhook, error) {
	w, err := s.find(ctx, keyOf(p, name))
	if err != nil {
		return nil, err
	}
	return &w.Webhook, nil
}

// List returns a page of the principal's webhooks in the order of their names, and the cursor of the next page or "".
func (s *Webhooks) List(ctx context.Context, p skill.Principal, cursor string, limit int) (page []*skill.Webhook, more string, err error) {
	k := keyOf(p, cursor)
	list, err := store.All(ctx, s.m.o.Queue.DB.Read, scanWebhook, "SELECT "+webhookColumns+" FROM webhooks w WHERE tenant = $1 AND principal = $2 AND name > $3 ORDER BY name LIMIT $4", k.tenant, k.principal, k.id, limit+1)
	if err != nil {
		return nil, "", cannotKeep("webhooks.Get", err)
	}
	if len(list) > limit {
		list, more = list[:limit], list[limit-1].Name
	}
	for _, one := range list {
		page = append(page, &one.Webhook)
	}
	return page, more, nil
}

// Delete removes a webhook of the principal. It is not told of calls any more.
func (s *Webhooks) Delete(ctx context.Context, p skill.Principal, name string) error {
	w, err := s.find(ctx, keyOf(p, name))
	if err != nil {
		return err
	}
	return s.m.changeOwn(ctx, p, "webhook.delete", name, nil, removeWebhook(ctx, w))
}

func removeWebhook(ctx context.Context, w *webhook) func(tx *sql.Tx) error {
	k := w.key
	return func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "DELETE FROM webhooks WHERE tenant = $1 AND principal = $2 AND name = $3 AND created_at = $4", k.tenant, k.principal, k.id, w.CreatedAt.UnixMicro())
		if err := changed(res, err, noWebhook(k.id)); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM deliveries WHERE tenant = $1 AND principal = $2 AND name = $3", k.tenant, k.principal, k.id)
		return err
	}
}

// signed are the header fields of a message to a webhook, as Standard Webhooks says.
func (w *webhook) signed(id string, at time.Time, body []byte) map[string]string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, w.secret)
	_, _ = mac.Write([]byte(strings.Join([]string{id, seconds, string(body)}, "."))) // which does not fail
	return map[string]string{
		"Content-Type": "application/json", "Webhook-Id": id, "Webhook-Timestamp": seconds,
		"Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	}
}
