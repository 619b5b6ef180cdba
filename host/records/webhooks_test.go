package records_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// message is what a webhook got.
type message struct {
	url, id, body string
	signed        bool
}

// receiver is where webhooks send. A status of 0 is that of a connection that fails.
type receiver struct {
	mu       sync.Mutex
	statuses []int // of the next answers; then 204
	got      []message
	secret   string
}

func (r *receiver) post() *records.Post {
	return &records.Post{
		Permits: func(url string) error {
			if strings.Contains(url, "private") {
				return &skill.Error{Code: skill.NetworkDenied, Message: "not permitted"}
			}
			return nil
		},
		Send: func(_ context.Context, url string, header map[string]string, body []byte) (int, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.secret, "whsec_"))
			mac := hmac.New(sha256.New, key)
			_, _ = fmt.Fprintf(mac, "%s.%s.%s", header["Webhook-Id"], header["Webhook-Timestamp"], body)
			r.got = append(r.got, message{url, header["Webhook-Id"], string(body), header["Webhook-Signature"] == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))})
			status := 204
			if len(r.statuses) > 0 {
				status, r.statuses = r.statuses[0], r.statuses[1:]
			}
			if status == 0 {
				return 0, errors.New("connection refused")
			}
			return status, nil
		},
	}
}

// has waits until the receiver has n messages.
func (r *receiver) has(t testing.TB, n int) []message {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		got := append([]message(nil), r.got...)
		r.mu.Unlock()
		if len(got) >= n {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages, not %d: %+v", len(got), n, got)
		}
	}
}

// hook adds a webhook of a principal.
func (q *queuing) hook(t testing.TB, r *receiver, p skill.Principal, name string) {
	t.Helper()
	w, err := q.Webhooks().Create(t.Context(), p, name, "https://hooks.example.com/"+name)
	if err != nil || !strings.HasPrefix(w.Secret, "whsec_") || len(w.Secret) != 50 {
		t.Fatalf("%+v, %v", w, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secret = w.Secret
}

// telling has a call accepted whose end a webhook is told.
func (q *queuing) telling(t testing.TB, p skill.Principal, id skill.ID, webhook string) (string, error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		execution, status, r, err := q.Accept(t.Context(), &records.QueuedCall{Principal: p, Request: &skill.Request{SkillID: id, TraceID: "t-1", Input: json.RawMessage(`{"secret":1}`), Webhook: webhook}},
			func(context.Context, func(string)) *skill.Result { panic("it is not queued") }, door{})
		if err != nil && strings.Contains(err.Error(), "does not run queued calls now") && time.Now().Before(end) {
			continue // until the host works
		}
		if r != nil || err == nil && status != records.Queued {
			t.Fatalf("%s, %+v", status, r)
		}
		return execution, err
	}
}

// A webhook is told of the end of each call that names it, signed and once, whichever host has it.
func TestWebhooksAreTold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open, r, to := fresh(t), newRuns(), &receiver{}
		db := open()
		with := func(o *records.ManagerOptions, _ *queuing) { o.Queue.Post = to.post() }
		one, two := newQueuing(t, db, r, 4, with), newQueuing(t, open(), r, 4, with)
		one.hook(t, to, ann, "done")
		want := map[string]records.Status{}
		for i := range 20 {
			id, status := skill.ID("echo"), records.Success
			if i%4 == 0 {
				id, status = "panics", records.Failed
			}
			want[musttest.Get([]*queuing{one, two}[i%2].telling(t, ann, id, "done"))(t)] = status
		}
		got := to.has(t, 20)
		for _, m := range got {
			var said struct {
				Type      string
				Timestamp time.Time
				Data      struct {
					ID, Skill, Code string
					Status          records.Status
				}
			}
			musttest.Do(t, json.Unmarshal([]byte(m.body), &said))
			if status := want[m.id]; said.Data.ID != m.id || said.Data.Status != status || said.Type != "execution.ended" || said.Timestamp.IsZero() || (said.Data.Code == "") != (status == records.Success) || !m.signed || m.url != "https://hooks.example.com/done" {
				t.Errorf("%+v, want %s", m, status)
			}
			if strings.Contains(m.body, "secret") {
				t.Errorf("it has the input: %s", m.body)
			}
			delete(want, m.id)
		}
		if len(want) > 0 {
			t.Errorf("not told of %v", want)
		}
		drained(t, db)
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			w := musttest.Get(two.Webhooks().Get(t.Context(), ann, "done"))(t)
			if w.Waiting == 0 {
				if w.LastStatus != 204 || w.LastAt == nil || w.Secret != "" {
					t.Errorf("%+v", w)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%+v", w)
			}
		}
		if n := len(to.has(t, 20)); n != 20 {
			t.Errorf("%d messages", n)
		}
	})
}

// A message that was not taken is sent again, with longer pauses, and is given up at last. So is one of a call whose host is gone.
func TestWebhooksAreToldAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		r, to, c := newRuns(), &receiver{statuses: []int{500, 0, 302, 204}}, clockAt(six)
		db := fresh(t)()
		q := newQueuing(t, db, r, 4, func(o *records.ManagerOptions, _ *queuing) { o.Now, o.Queue.Post = c.now, to.post() })
		q.hook(t, to, ann, "done")
		id := musttest.Get(q.telling(t, ann, "echo", "done"))(t)
		pauses := []time.Duration{5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour}
		for n := range 4 {
			if got := to.has(t, n+1); got[n].id != id || !got[n].signed {
				t.Errorf("%+v", got)
			}
			if n < 3 {
				waits(t, db, c.now().Add(pauses[n]))
				c.set(c.now().Add(pauses[n]))
			}
		}
		q.tells(t, 0)
		to.statuses = slices.Repeat([]int{500}, 8)
		musttest.Get(q.telling(t, ann, "echo", "done"))(t)
		for n := range 8 {
			to.has(t, 5+n)
			if n < 7 {
				waits(t, db, c.now().Add(pauses[n]))
				c.set(c.now().Add(pauses[n]))
			}
		}
		q.tells(t, 0)
		lost := musttest.Get(q.telling(t, ann, "held", "done"))(t)
		q.ended(t, ann, lost, records.Running)
		musttest.Get(db.Exec(t.Context(), "UPDATE deliveries SET next_at = 1"))(t) // looked at, and it has not ended
		waits(t, db, time.Time{})                                                  // by the age of the call
		q.tells(t, 1)
		close(r.hold)
		q.ended(t, ann, lost, records.Success)
		if got := to.has(t, 13); got[12].id != lost {
			t.Errorf("%+v", got)
		}
	})
}

// waits returns when the next time of the only message is at; zero: another one than 1 µs.
func waits(t *testing.T, db *store.DB, at time.Time) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var next int64
		musttest.Do(t, db.Read.QueryRowContext(t.Context(), "SELECT next_at FROM deliveries").Scan(&next))
		if next == at.UnixMicro() || at.IsZero() && next > 1 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("at %s, not %s", time.UnixMicro(next).UTC(), at)
		}
	}
}

// tells waits until a webhook has so many messages to take.
func (q *queuing) tells(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w := musttest.Get(q.Webhooks().Get(t.Context(), ann, "done"))(t)
		if w.Waiting == n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, not %d", w, n)
		}
	}
}

// What may not be a webhook is refused, as are calls that name none, and too many messages; a webhook ends, on record, with its credentials.
func TestWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		r, to := newRuns(), &receiver{}
		db := fresh(t)()
		var revoked sync.Map
		q := newQueuing(t, db, r, 1, func(o *records.ManagerOptions, q *queuing) {
			o.Queue.Post = to.post()
			q.admit = func(p skill.Principal) error {
				if _, is := revoked.Load(p.ID); is {
					return &skill.Error{Code: skill.Unauthorized, Message: "revoked"}
				}
				return nil
			}
		})
		for name, tc := range map[string]struct {
			p         skill.Principal
			name, url string
			want      skill.Code
		}{
			"no name":           {ann, "", "https://a.example/", skill.InvalidArgument},
			"a long name":       {ann, strings.Repeat("n", 65), "https://a.example/", skill.InvalidArgument},
			"a long address":    {ann, "a", "https://a.example/" + strings.Repeat("x", 2048), skill.InvalidArgument},
			"one not permitted": {ann, "a", "https://private.example/", skill.NetworkDenied},
			"with a token":      {skill.Principal{ID: "who", Tenant: "a", Type: skill.Human}, "a", "https://a.example/", skill.Forbidden},
		} {
			if _, err := q.Webhooks().Create(t.Context(), tc.p, tc.name, tc.url); code(err) != tc.want {
				t.Errorf("%s: %v", name, err)
			}
		}
		for i := range 100 {
			q.hook(t, to, ann, fmt.Sprintf("%03d", i))
		}
		for _, name := range []string{"007", "100"} {
			if _, err := q.Webhooks().Create(t.Context(), ann, name, "https://a.example/"); code(err) != skill.Conflict {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range []skill.Principal{amy, bob} {
			if _, err := q.Webhooks().Get(t.Context(), p, "007"); code(err) != skill.NotFound {
				t.Errorf("%s: %v", p.ID, err)
			}
			if err := q.Webhooks().Delete(t.Context(), p, "007"); code(err) != skill.NotFound {
				t.Errorf("%s: %v", p.ID, err)
			}
			if _, err := q.telling(t, p, "echo", "007"); code(err) != skill.NotFound {
				t.Errorf("%s: %v", p.ID, err)
			}
		}
		page, next, err := q.Webhooks().List(t.Context(), ann, "097", 1)
		if err != nil || next != "098" || len(page) != 1 || page[0].Name != "098" {
			t.Errorf("%+v, %q, %v", page, next, err)
		}
		musttest.Do(t, q.Webhooks().Delete(t.Context(), ann, "007"))
		if _, err := q.telling(t, ann, "echo", "007"); code(err) != skill.NotFound {
			t.Errorf("%v", err)
		}
		insert := "INSERT INTO deliveries (id, tenant, principal, name, attempts, next_at) VALUES ($1, 'a', 'ann', 'x', 1, 9000000000000000)"
		musttest.Do(t, db.InTx(t.Context(), func(tx *sql.Tx) error {
			for i := range 10_000 {
				if _, err := tx.ExecContext(t.Context(), insert, storetest.ExecutionID(i)); err != nil {
					return err
				}
			}
			return nil
		}))
		if _, err := q.telling(t, ann, "echo", "008"); code(err) != skill.RateLimited {
			t.Errorf("%v", err)
		}
		musttest.Get(db.Exec(t.Context(), "DELETE FROM deliveries"))(t)
		q.hook(t, to, amy, "of-amy")
		id := musttest.Get(q.telling(t, amy, "held", "of-amy"))(t)
		q.ended(t, amy, id, records.Running)
		revoked.Store("amy", true)
		close(r.hold)
		q.ended(t, amy, id, records.Success)
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if _, err := q.Webhooks().Get(t.Context(), amy, "of-amy"); code(err) == skill.NotFound {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the webhook goes on")
			}
		}
		list := musttest.Get(records.NewStore(db).Changes(t.Context(), records.ChangeQuery{Limit: 1000}))(t)
		if said := fmt.Sprintf("%+v", list); !strings.Contains(said, "webhook.end") || !strings.Contains(said, "webhook.delete") || strings.Contains(said, "whsec_") {
			t.Error("the changes are not on record, or have a secret")
		}
		if len(to.got) > 0 {
			t.Errorf("%+v", to.got)
		}
		sound(t, db)
	})
}
