package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/conversations"
	"openskill/internal/musttest"
)

// What Conversations asks of conversations that go.

func conversationsDeleted(t *testing.T, s, another conversations.Store) {
	t.Helper()
	for n := range 20 {
		c := aConversation(n)
		begin(t, s, c)
		var both sync.WaitGroup
		both.Go(func() {
			for range 100 { // mostly it is gone before
				if err := s.Append(context.Background(), c, said("more", "and more"), 5); err != nil {
					if !errors.Is(err, conversations.ErrNotFound) {
						t.Error(err)
					}
					return
				}
			}
		})
		both.Go(func() {
			for range n % 4 { // while it has some messages, and while it has none
				if _, err := another.Get(context.Background(), acme, runID(n)); err != nil {
					t.Error(err)
				}
			}
			if err := another.Delete(context.Background(), acme, runID(n)); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		nothingOf(t, another, c)
		begin(t, s, aConversation(n)) // where messages without a conversation would come up again
		if got := texts(t, s, c, 10); got != "" {
			t.Errorf("it was deleted, and has %s", got)
		}
	}
}

func conversationsPruneOld(t *testing.T, s, another conversations.Store) {
	t.Helper()
	for n := range 250 {
		c := aConversation(n)
		if n%2 == 1 {
			c.Owner = conversations.Owner{Tenant: "other", Principal: "p"}
		}
		begin(t, s, c)
		if n%50 == 0 {
			say(t, s, c, 10, "a", "b")
		}
	}
	prune := func(n, want int) {
		t.Helper()
		if got, err := another.Prune(t.Context(), aConversation(n).UpdatedAt, 1000); got != want || err != nil {
			t.Errorf("%d were removed, want %d; %v", got, want, err)
		}
	}
	prune(0, 0)
	prune(230, 230)
	prune(230, 0)
	if a, b := pagesOf(t, s, acme, 100, func() {}), pagesOf(t, s, owner("other", "p"), 100, func() {}); len(a) != 10 || len(b) != 10 || a[9].ID != runID(230) {
		t.Errorf("left are %v and %v", idsOf(a), idsOf(b))
	}
	nothingOf(t, s, aConversation(50))
	if _, err := s.Prune(t.Context(), day, 0); err == nil {
		t.Error("all of everybody's were to go, and that was done")
	}
}

func conversationsPruneMany(t *testing.T, s, another conversations.Store) {
	t.Helper()
	const owners = 5
	of := func(i int) conversations.Owner {
		return conversations.Owner{Tenant: fmt.Sprint("t", i%2), Principal: fmt.Sprint("p", i)}
	}
	for i := range owners { // 0, 30, 60 … of each
		for n := range 30 * i {
			c := aConversation(1000*i + n)
			c.Owner, c.UpdatedAt = of(i), day.Add(time.Duration(n/3)*time.Minute)
			begin(t, s, c)
		}
	}
	for _, step := range []struct{ most, removed int }{{1000, 0}, {120, 0}, {90, 30}, {60, 60}, {7, 3*53 + 23}, {7, 0}, {1, 24}} {
		if n, err := another.Prune(t.Context(), day.Add(-time.Hour), step.most); n != step.removed || err != nil {
			t.Errorf("of each owner %d: %d were removed, want %d; %v", step.most, n, step.removed, err)
		}
		for i := range owners {
			var want []string
			for n := 30*i - 1; n >= max(30*i-step.most, 0); n-- {
				want = append(want, runID(1000*i+n))
			}
			if diff := cmp.Diff(want, idsOf(pagesOf(t, s, of(i), 100, func() {}))); diff != "" {
				t.Errorf("of owner %d, %d: %s", i, step.most, diff)
			}
		}
	}
}

// A conversation that goes on while old ones are removed is there afterwards, or was
// removed before it went on: never is it told that it did, and gone.
func conversationsPruneMeanwhile(t *testing.T, s, another conversations.Store) {
	t.Helper()
	const number, most = 60, 5
	all := make([]*conversations.Conversation, number)
	for n := range all {
		all[n] = aConversation(n)
		begin(t, s, all[n])
	}
	later := day.Add(24 * time.Hour)
	went := make([]bool, number)
	var both sync.WaitGroup
	both.Go(func() {
		for n, c := range all {
			if n%2 == 0 {
				continue
			}
			c.UpdatedAt = later
			switch err := s.Append(context.Background(), c, said("on"), 5); {
			case err == nil:
				went[n] = true
			case !errors.Is(err, conversations.ErrNotFound):
				t.Error(err)
			}
		}
	})
	both.Go(func() {
		for range 10 {
			if _, err := another.Prune(context.Background(), later, number); err != nil {
				t.Error(err)
			}
		}
	})
	both.Wait()
	musttest.Get(another.Prune(t.Context(), later, number))(t)
	for n, c := range all {
		_, err := s.Get(t.Context(), acme, c.ID)
		if there := err == nil; there != went[n] {
			t.Errorf("the %dth went on: %v; it is there: %v (%v)", n, went[n], there, err)
		}
	}
}
