package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/records"
	"openskill/host/records/replay"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// withQuotas opens a database in which little may be stored.
func withQuotas(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, fresh func(t *testing.T) string) {
		db, err := store.Open(t.Context(), store.Options{
			URL: fresh(t), Recordings: store.Quota{Bytes: 10_000, Items: 8}, Conversations: store.Quota{Bytes: 20_000, Items: 5}, Records: store.Quota{Bytes: 5000},
		})
		musttest.Do(t, err)
		defer db.Close()
		test(t, db)
	})
}

// has gives what a tenant has stored of a kind.
func has(t *testing.T, db *store.DB, tenant, kind string) store.Quota {
	t.Helper()
	list := musttest.Get(db.Stored(t.Context(), tenant))(t)
	for _, one := range list {
		if one.Kind == kind {
			return one.Has
		}
	}
	t.Fatalf("%s is not counted", kind)
	return store.Quota{}
}

// Recordings of a tenant beyond its quota, in bytes or in number, drop its own oldest and
// nobody else's.
func TestRecordingsWithinQuota(t *testing.T) {
	t.Parallel()
	withQuotas(t, func(t *testing.T, db *store.DB) {
		s := replay.NewStore(db)
		row := func(tenant string, n, size int) *replay.Row {
			return &replay.Row{
				ExecutionID: fmt.Sprintf("0190a1b2-%04d-7000-8000-%012d", len(tenant), n), Tenant: tenant, Size: 1,
				Created: time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC), Body: bytes.Repeat([]byte{7}, size),
			}
		}
		keep := func(rows ...*replay.Row) {
			t.Helper()
			for _, r := range rows {
				musttest.Do(t, s.Keep(t.Context(), r))
			}
		}
		keep(row("beta", 0, 9000))
		for n := range 6 {
			keep(row("acme", n, 3000))
		}
		keep(row("acme", 5, 3000)) // twice counts once
		if got := has(t, db, "acme", "recordings"); got != (store.Quota{Bytes: 9000, Items: 3}) {
			t.Errorf("%+v", got)
		}
		for n := range 6 {
			if got, err := s.Get(t.Context(), "acme", row("acme", n, 1).ExecutionID); err != nil || (got != nil) != (n >= 3) {
				t.Errorf("%d: %v, %v", n, got != nil, err)
			}
		}
		for n := range 12 {
			keep(row("acme", 100+n, 1))
		}
		if got := has(t, db, "acme", "recordings"); got.Items != 8 || got.Bytes > 10_000 {
			t.Errorf("%+v", got)
		}
		if got := has(t, db, "beta", "recordings"); got != (store.Quota{Bytes: 9000, Items: 1}) {
			t.Errorf("another tenant has %+v", got)
		}
		musttest.Get(s.Prune(t.Context(), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 100))(t)
		for _, tenant := range []string{"acme", "beta"} {
			if got := has(t, db, tenant, "recordings"); got != (store.Quota{}) {
				t.Errorf("after all were removed %s has %+v", tenant, got)
			}
		}
	})
}

// Conversations of a tenant, whosever they are, are within its quota; one that would not
// fit alone is refused.
func TestConversationsWithinQuota(t *testing.T) {
	t.Parallel()
	withQuotas(t, func(t *testing.T, db *store.DB) {
		s := conversations.NewStore(db)
		n := 0
		begin := func(tenant, principal string) *conversations.Conversation {
			t.Helper()
			n++
			when := time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC)
			c := &conversations.Conversation{ID: uuid.NewString(), Owner: conversations.Owner{Tenant: tenant, Principal: principal}, CreatedAt: when, UpdatedAt: when}
			musttest.Do(t, s.Create(t.Context(), c))
			return c
		}
		say := func(c *conversations.Conversation, size int) error {
			return s.Append(t.Context(), c, []llm.Message{{Role: llm.User, Text: strings.Repeat("é", size/2)}}, 3)
		}
		other := begin("beta", "bob")
		musttest.Do(t, say(other, 15_000))
		first := begin("acme", "alice")
		for range 6 { // of which three are kept
			musttest.Do(t, say(first, 4000))
		}
		if got := has(t, db, "acme", "conversations"); got.Items != 1 || got.Bytes < 12_000 || got.Bytes > 12_500 {
			t.Errorf("%+v", got)
		}
		second := begin("acme", "carol")
		second.Pending = bytes.Repeat([]byte("7"), 1000)
		musttest.Do(t, say(second, 9000))
		if _, err := s.Get(t.Context(), first.Owner, first.ID); err == nil {
			t.Error("the tenant's oldest conversation is kept beyond the quota")
		}
		if got := has(t, db, "acme", "conversations"); got.Items != 1 || got.Bytes < 10_000 || got.Bytes > 10_500 {
			t.Errorf("%+v", got)
		}
		if err := say(second, 15_000); skill.CodeOf(err) != skill.PayloadTooLarge {
			t.Errorf("a conversation that is larger than all may be: %v", err)
		}
		for range 9 {
			begin("acme", "dave")
		}
		if got := has(t, db, "acme", "conversations"); got.Items != 5 {
			t.Errorf("%+v", got)
		}
		if _, err := s.Get(t.Context(), other.Owner, other.ID); err != nil {
			t.Errorf("another tenant's: %v", err)
		}
		musttest.Get(s.Prune(t.Context(), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 1))(t)
		for _, tenant := range []string{"acme", "beta"} {
			if got := has(t, db, tenant, "conversations"); got != (store.Quota{}) {
				t.Errorf("after all were removed %s has %+v", tenant, got)
			}
		}
	})
}

// Many who write and drop at once leave the sums right.
func TestStoredSumsAreRight(t *testing.T) {
	t.Parallel()
	withQuotas(t, func(t *testing.T, db *store.DB) {
		s := conversations.NewStore(db)
		var all sync.WaitGroup
		for w := range 6 {
			all.Go(func() {
				for i := range 8 {
					when := time.Date(2026, 1, 1, w, i, 0, 0, time.UTC)
					c := &conversations.Conversation{ID: uuid.NewString(), Owner: conversations.Owner{Tenant: "acme", Principal: fmt.Sprint("p", w)}, CreatedAt: when, UpdatedAt: when}
					if err := s.Create(t.Context(), c); err != nil {
						t.Error(err)
						return
					}
					// Another one's conversation may have made room for itself meanwhile.
					_ = s.Append(t.Context(), c, []llm.Message{{Role: llm.User, Text: strings.Repeat("x", 1000)}}, 3)
				}
			})
		}
		all.Wait()
		got := has(t, db, "acme", "conversations")
		var list []*conversations.Conversation
		bytes := int64(0)
		for w := range 6 {
			o := conversations.Owner{Tenant: "acme", Principal: fmt.Sprint("p", w)}
			page, _, err := s.List(t.Context(), o, conversations.Query{Limit: 100})
			musttest.Do(t, err)
			for _, c := range page {
				messages := musttest.Get(s.Messages(t.Context(), o, c.ID, 10))(t)
				bytes += int64(len(messages)) * int64(len(`{"role":"user","text":""}`)+1000)
			}
			list = append(list, page...)
		}
		if int64(len(list)) != got.Items || bytes != got.Bytes || got.Items > 5 {
			t.Errorf("counted %+v, there are %d of %d bytes", got, len(list), bytes)
		}
	})
}

// The records of a tenant are counted with every one that is written and removed. At the
// quota nothing of the tenant begins, but what runs ends, what is changed is on record, and
// other tenants go on.
func TestRecordsWithinQuota(t *testing.T) {
	t.Parallel()
	withQuotas(t, func(t *testing.T, db *store.DB) {
		s := records.NewStore(db)
		when := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		entry := func(tenant string) *records.Entry {
			when = when.Add(time.Second)
			id := uuid.NewString()
			b := &records.Started{ExecutionID: id, Tenant: tenant, Principal: "p", PrincipalType: skill.Agent, Session: id, Skill: "echo", Time: when}
			return &records.Entry{Started: b, Record: records.Record{Tenant: tenant, Kind: records.KindStarted, ExecutionID: id, Time: when, Body: bytes.Repeat([]byte("1"), 300)}}
		}
		end := func(e *records.Entry) *records.Entry {
			f := &records.Finished{ExecutionID: e.ExecutionID, Status: records.Success, Time: when}
			return &records.Entry{Finished: f, Of: e.Started, Record: records.Record{Tenant: e.Tenant, Kind: records.KindFinished, ExecutionID: e.ExecutionID, Time: when, Body: bytes.Repeat([]byte("2"), 100)}}
		}
		write := func(all ...*records.Entry) {
			t.Helper()
			musttest.Do(t, s.Append(t.Context(), all))
		}
		var begun []*records.Entry
		for n := range 12 {
			e := entry("acme")
			write(e, entry("beta"+fmt.Sprint(n)))
			if n >= 10 {
				if !errors.Is(e.Left, records.ErrFull) || e.Seq != 0 {
					t.Errorf("call %d begins: %+v", n, e)
				}
				continue
			}
			if e.Left != nil || e.Seq == 0 {
				t.Fatalf("call %d does not begin: %v", n, e.Left)
			}
			begun = append(begun, e)
		}
		if got := has(t, db, "acme", "records"); got != (store.Quota{Bytes: 5000, Items: 10}) {
			t.Errorf("%+v", got)
		}
		id := uuid.NewString()
		c := &records.Change{ID: id, Tenant: "acme", Action: "key.revoke", Time: when}
		change := &records.Entry{Change: c, Record: records.Record{Tenant: "acme", Kind: records.KindChange, ExecutionID: id, Time: when, Body: []byte("{}")}}
		last := end(begun[9])
		write(change, last)
		if change.Seq == 0 || last.Seq == 0 {
			t.Errorf("a change: %v; an end: %v", change.Left, last.Left)
		}
		for _, e := range begun[:9] {
			write(end(e))
		}
		if got := has(t, db, "acme", "records"); got != (store.Quota{Bytes: 5000 + 202 + 10*300, Items: 21}) {
			t.Errorf("%+v", got)
		}
		if n, err := s.Prune(t.Context(), "acme", when.Add(time.Hour), 20); err != nil || n != 20 {
			t.Errorf("%d were removed, %v", n, err)
		}
		got, sum := has(t, db, "acme", "records"), int64(0)
		for r, err := range records.Records(t.Context(), s, "acme", 1) {
			musttest.Do(t, err)
			sum += records.RecordSize(len(r.Body))
		}
		if got != (store.Quota{Bytes: sum, Items: 2}) {
			t.Errorf("%+v after old ones were removed, and there are %d bytes", got, sum)
		}
		e := entry("acme")
		if write(e); e.Left != nil || e.Seq == 0 {
			t.Errorf("with room again: %v", e.Left)
		}
	})
}

// What a tenant changes by itself is on record too, and bounded: it could go on for ever. The
// operator's changes are always taken.
func TestRecordsOfOwnChangesAreBounded(t *testing.T) {
	t.Parallel()
	withQuotas(t, func(t *testing.T, db *store.DB) {
		s, failed := records.NewStore(db), &skill.Error{Code: skill.Conflict}
		by := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeUpload}}
		change := records.Change{Tenant: "acme", Action: "skill.disable", Subject: "echo"}
		for n := 0; ; n++ {
			made := false
			err := records.Around(t.Context(), s, by, change, func() error { made = true; return failed })
			if skill.CodeOf(err) == skill.RateLimited {
				if made {
					t.Error("a change that is not on record is made")
				}
				break
			}
			if skill.CodeOf(err) != skill.Conflict || n > 100 {
				t.Fatalf("change %d: %v", n, err)
			}
		}
		if got := has(t, db, "acme", "records"); got.Bytes < 5000 || got.Bytes > 6500 {
			t.Errorf("%+v, want about 5312 bytes", got)
		}
		if err := records.Around(t.Context(), s, skill.Local(), change, func() error { return nil }); err != nil {
			t.Errorf("the operator's change: %v", err)
		}
		by.Tenant, change.Tenant = "beta", "beta"
		if err := records.Around(t.Context(), s, by, change, func() error { return nil }); err != nil {
			t.Errorf("another tenant's change: %v", err)
		}
	})
}
