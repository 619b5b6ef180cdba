package records_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// host is a manager on a real database, with a door.
type host struct {
	*records.Manager
	door *storetest.Door
}

func openHost(t *testing.T, db *store.DB, calls *house) host {
	t.Helper()
	m := musttest.Get(records.NewManager(records.ManagerOptions{Records: records.NewStore(db), Results: records.NewResults(db), AskEvery: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}))(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Tend(ctx)
	}()
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		stop()
		<-done
	})
	return host{m, &storetest.Door{Inner: calls, Store: records.NewStore(db), Manager: m}}
}

// Two hosts on one database: what runs on one is seen, read and ended on the other, and
// found by nobody else.
func TestTwoHostsOnOneDatabase(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		open := fresh(t)
		calls := &house{held: make(chan struct{})}
		one, two := openHost(t, open(), calls), openHost(t, open(), calls)
		begin := func(id skill.ID, input string) string {
			t.Helper()
			execution, r, err := one.Start(t.Context(), ann, func(ctx context.Context, started func(string)) *skill.Result {
				return one.door.Start(ctx, ann, skill.Request{SkillID: id, TraceID: "t-1", Input: json.RawMessage(input)}, started)
			})
			if err != nil || execution == "" {
				t.Fatalf("%+v, %v", r, err)
			}
			return execution
		}
		ended := func(id string) *records.View {
			t.Helper()
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				v := musttest.Get(two.Get(t.Context(), ann, id, records.WholeResult))(t)
				if v.Status != records.Running {
					return v
				}
				if time.Now().After(end) {
					t.Fatalf("%s does not end", id)
				}
			}
		}

		held := begin("held", "{}")
		if list, _, err := two.List(t.Context(), ann, records.Query{Status: records.Running, Limit: 10}); err != nil || len(list) != 1 || list[0].ID != held {
			t.Fatalf("running: %+v, %v", list, err)
		}
		for _, p := range []skill.Principal{bob, amy, {}} {
			if _, err := two.Cancel(t.Context(), p, held); code(err) != skill.NotFound {
				t.Errorf("%s may end it: %v", p.ID, err)
			}
		}
		musttest.Get(two.Cancel(t.Context(), ann, held))(t)
		if v := ended(held); v.Status != records.Terminated || !strings.Contains(string(v.Result), "CANCELLED") {
			t.Errorf("%+v %s", v, v.Result)
		}

		files := begin("files", `[{"name":"a b.csv","size":1000},{"name":"é","size":0}]`)
		if v := ended(files); v.Status != records.Success || len(v.Artifacts) != 2 || !*v.Artifacts[0].Kept || !*v.Artifacts[1].Kept || v.Result == nil {
			t.Errorf("%+v", v)
		}
		if b, err := two.File(t.Context(), chief, files, "a b.csv"); err != nil || len(b) != 1000 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		for _, p := range []skill.Principal{bob, amy} {
			_, byID := two.Get(t.Context(), p, files, records.WholeResult)
			_, file := two.File(t.Context(), p, files, "a b.csv")
			_, session := two.Session(t.Context(), p, files)
			list, _, err := two.List(t.Context(), p, records.Query{TraceID: "t-1", Session: files, Limit: 10})
			if code(byID) != skill.NotFound || code(file) != skill.NotFound || code(session) != skill.NotFound || err != nil || len(list) > 0 {
				t.Errorf("%s finds %v, %v, %v, %d, %v", p.ID, byID, file, session, len(list), err)
			}
		}
		if views, err := two.Session(t.Context(), ann, files); err != nil || len(views) != 1 {
			t.Errorf("%d, %v", len(views), err)
		}
		for _, cursor := range []string{"x", "0", strings.Repeat("A", 200)} {
			if _, _, err := two.List(t.Context(), ann, records.Query{Limit: 1, Cursor: cursor}); code(err) != skill.InvalidArgument {
				t.Errorf("cursor %q: %v", cursor, err)
			}
		}
		for _, text := range []string{"a\x00b", "\xff", strings.Repeat("x", 300)} {
			if list, _, err := two.List(t.Context(), operator, records.Query{Limit: 1, Tenant: text, Skill: text, TraceID: text, Code: text}); err != nil || len(list) > 0 {
				t.Errorf("%.10q: %d, %v", text, len(list), err)
			}
		}
	})
}
