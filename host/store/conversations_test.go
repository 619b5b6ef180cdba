package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/records"
	"openskill/host/records/replay"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
)

func TestConversations(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Conversations(t, func(t *testing.T) (conversations.Store, conversations.Store) {
			t.Helper()
			open := fresh(t)
			return conversations.NewStore(open()), conversations.NewStore(open())
		})
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, fresh func(t *testing.T) func() *store.DB) {
		storetest.Sessions(t, func(t *testing.T) (conversations.Sessions, conversations.Sessions) {
			t.Helper()
			open := fresh(t)
			return conversations.NewStore(open()), conversations.NewStore(open())
		})
	})
}

// However many conversations, results and recordings are written at once, records and
// quotas find few of them before them where they wait for a connection.
func TestWhatMayWaitWaitsItsTurn(t *testing.T) {
	t.Parallel()
	const number = 100
	id := func(i int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", i) }
	for name, do := range map[string]func(ctx context.Context, d *store.DB, i int) error{
		"conversations": func(ctx context.Context, d *store.DB, i int) error {
			c := &conversations.Conversation{ID: id(i), Owner: conversations.Owner{Tenant: "acme", Principal: "p"}, CreatedAt: when, UpdatedAt: when}
			return errors.Join(conversations.NewStore(d).Create(ctx, c), conversations.NewStore(d).Append(ctx, c, []llm.Message{{Text: "hello"}}, 1))
		},
		"sessions": func(ctx context.Context, d *store.DB, i int) error {
			one := &conversations.Session{ID: id(i), Owner: conversations.Owner{Tenant: "acme", Principal: "p"}, PrincipalType: "agent", Status: "failed", CreatedAt: when, EndsBy: when}
			return errors.Join(conversations.NewStore(d).Begin(ctx, one), conversations.NewStore(d).End(ctx, one))
		},
		"results": func(ctx context.Context, d *store.DB, i int) error {
			return records.NewResults(d).Put(ctx, &records.Kept{Tenant: "acme", ExecutionID: id(i), Items: []records.Item{{Name: "x"}}, At: when, Until: when}, records.Room{Bytes: 1000, Items: 10})
		},
		"recordings": func(ctx context.Context, d *store.DB, i int) error {
			return replay.NewStore(d).Keep(ctx, &replay.Row{Tenant: "acme", ExecutionID: id(i), Created: when})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := storetest.Open(t, "sqlite:"+t.TempDir()+"/test.db")
			var all sync.WaitGroup
			err := d.Within(t.Context(), func() error { // who has the connection
				for i := range number {
					all.Go(func() {
						if err := do(context.Background(), d, i); err != nil {
							t.Error(err)
						}
					})
				}
				for range 10_000 {
					runtime.Gosched()
				}
				if n := d.Waiting(); n > 1 {
					t.Errorf("%d wait for the connection", n)
				}
				return nil
			})
			musttest.Do(t, err)
			all.Wait()
		})
	}
}

// What the database cannot now is said as that, and works again when it can.
func TestConversationsOfADatabaseThatIsGone(t *testing.T) {
	t.Parallel()
	d, file := sqliteOf(t)
	s, owner := conversations.NewStore(d), conversations.Owner{Tenant: "acme", Principal: "p"}
	c := &conversations.Conversation{ID: "00000000-0000-7000-8000-000000000001", Owner: owner, CreatedAt: when, UpdatedAt: when}
	musttest.Do(t, s.Create(t.Context(), c))
	say := func() error { return s.Append(t.Context(), c, []llm.Message{{Role: llm.User, Text: "hello"}}, 10) }
	for range 2 { // before its statements are prepared, and afterwards
		musttest.Do(t, os.Rename(file, file+".away"))
		if err := say(); store.ReasonOf(err) != store.Gone {
			t.Errorf("appended to a file that is gone: %v", err)
		}
		if _, err := s.Get(t.Context(), owner, c.ID); !store.Unavailable(err) {
			t.Errorf("read of a file that is gone: %v", err)
		}
		musttest.Do(t, os.Rename(file+".away", file))
		if err := say(); err != nil {
			t.Error(err)
		}
	}
	if list, err := s.Messages(t.Context(), owner, c.ID, 10); err != nil || len(list) != 2 || c.Messages != 2 {
		t.Errorf("%+v, %+v, %v", list, c, err)
	}
}
