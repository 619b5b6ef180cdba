package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/conversations"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// pagesOf reads all pages; between is called after each one but the last.
func pagesOf(t *testing.T, s conversations.Store, o conversations.Owner, limit int, between func()) (all []*conversations.Conversation) {
	t.Helper()
	q := conversations.Query{Limit: limit}
	for {
		list, next, err := s.List(t.Context(), o, q)
		if err != nil || len(list) > max(limit, 1) || len(all) > 1000 {
			t.Fatalf("%d after %d, %v", len(list), len(all), err)
		}
		all = append(all, list...)
		if q.Cursor = next; next == "" {
			return all
		}
		between()
	}
}

func idsOf(list []*conversations.Conversation) (ids []string) {
	for _, c := range list {
		ids = append(ids, c.ID)
	}
	return ids
}

func conversationsPages(t *testing.T, s, another conversations.Store) {
	t.Helper()
	var want []string
	for n := range 12 {
		c := aConversation(n)
		c.UpdatedAt = day.Add(time.Duration(n/4) * time.Hour) // four at a time
		if n%3 == 2 {
			c.Owner.Principal = "key:other"
		} else {
			want = append(want, c.ID)
		}
		c.Pending = []byte("{}")
		begin(t, s, c)
	}
	slices.Reverse(want)
	for limit := 1; limit < 10; limit++ {
		if diff := cmp.Diff(want, idsOf(pagesOf(t, another, acme, limit, func() {}))); diff != "" {
			t.Errorf("in pages of %d: %s", limit, diff)
		}
	}
	if got := pagesOf(t, s, owner("acme", "key:other"), 3, func() {}); len(got) != 4 {
		t.Errorf("of another one: %v", idsOf(got))
	}
	if got := pagesOf(t, s, acme, 0, func() {}); len(got) != 8 {
		t.Errorf("without a limit: %v", idsOf(got))
	}
	// All but what waits is in a list.
	list, _, err := s.List(t.Context(), acme, conversations.Query{Limit: 1})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	whole := musttest.Get(s.Get(t.Context(), acme, list[0].ID))(t)
	whole.Pending = nil
	if diff := cmp.Diff(whole, list[0]); diff != "" {
		t.Error(diff)
	}
	for _, cursor := range []string{"x", "\x00", strings.Repeat("A", 59), strings.Repeat("A", 1<<16), "' OR 1=1 --"} {
		if list, _, err := s.List(t.Context(), acme, conversations.Query{Cursor: cursor, Limit: 3}); skill.CodeOf(err) != skill.InvalidArgument {
			t.Errorf("with the cursor %.20q: %v, %v", cursor, idsOf(list), err)
		}
	}
}

// Whoever reads pages while others change gets each one that stayed as it was once, and
// none twice.
func conversationsPagesMeanwhile(t *testing.T, s, another conversations.Store) {
	t.Helper()
	const number = 30
	stay := map[string]bool{}
	var all []*conversations.Conversation
	for n := range number {
		c := aConversation(n)
		c.UpdatedAt = day.Add(time.Duration(n/4) * time.Minute)
		begin(t, s, c)
		all = append(all, c)
		stay[c.ID] = true
	}
	late, page := day.Add(time.Hour), 0
	change := func(n int) {
		c := all[n]
		c.UpdatedAt = late
		say(t, another, c, 10, "again")
		delete(stay, c.ID)
	}
	seen := map[string]int{}
	for _, c := range pagesOf(t, s, acme, 4, func() {
		page++
		change(number - 4*page + 1)                                              // it was in this page
		change(page)                                                             // it will not be in any: it came to the front
		musttest.Do(t, another.Delete(t.Context(), acme, all[number-4*page].ID)) // the one that the cursor was made of
		fresh := aConversation(number + page)
		fresh.UpdatedAt = late
		begin(t, another, fresh)
	}) {
		seen[c.ID]++
		if seen[c.ID] > 1 {
			t.Errorf("%s came twice", c.ID)
		}
	}
	for id := range stay {
		if seen[id] == 0 {
			t.Errorf("%s never came", id)
		}
	}
	if page < 5 || len(stay) < number/2-1 {
		t.Errorf("%d pages, of which %d stayed: the test tests nothing", page, len(stay))
	}
}

// 200 callers, each with a conversation of its own, by two processes.
func conversationsAtOnce(t *testing.T, s, another conversations.Store) {
	t.Helper()
	const callers, rounds = 200, 3
	var all sync.WaitGroup
	for n := range callers {
		to, from := s, another
		if n%2 == 1 {
			to, from = another, s
		}
		all.Go(func() {
			ctx := context.Background()
			c := aConversation(n)
			c.Owner.Principal = fmt.Sprint("p", n%10)
			if err := to.Create(ctx, c); err != nil {
				t.Error(err)
				return
			}
			for i := range rounds {
				c.Tokens += 10
				if err := to.Append(ctx, c, said(fmt.Sprint(n), fmt.Sprint(i)), 4); err != nil {
					t.Error(err)
					return
				}
				if list, err := from.Messages(ctx, c.Owner, c.ID, 2); err != nil || len(list) != 2 || list[0].Body.Text != fmt.Sprint(n) || list[1].Body.Text != fmt.Sprint(i) {
					t.Errorf("%+v, %v", list, err)
				}
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for p := range 10 {
		for _, c := range pagesOf(t, s, owner("acme", fmt.Sprint("p", p)), 7, func() {}) {
			seen[c.ID] = true
			if c.Revision != 1+rounds || c.Messages != 2*rounds || c.Tokens != 10*rounds {
				t.Errorf("%+v", c)
			}
			if got := strings.Count(texts(t, another, c, 10), ":"); got != 4 {
				t.Errorf("%d messages are kept", got)
			}
		}
	}
	if len(seen) != callers {
		t.Errorf("there are %d: %v", len(seen), slices.Sorted(maps.Keys(seen)))
	}
}
