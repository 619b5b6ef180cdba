package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/conversations"
)

// What Conversations asks of callers who leave.

func conversationsContext(t *testing.T, s, another conversations.Store) {
	t.Helper()
	c := aConversation(1)
	begin(t, s, c)
	before := *c
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Create(ctx, aConversation(2)); err == nil {
		t.Error("created after the end")
	}
	if err := s.Append(ctx, c, said("late"), 10); err == nil || errors.Is(err, conversations.ErrChanged) || errors.Is(err, conversations.ErrNotFound) {
		t.Errorf("appended after the end: %v", err)
	}
	if err := s.Delete(ctx, acme, c.ID); err == nil || errors.Is(err, conversations.ErrNotFound) {
		t.Errorf("deleted after the end: %v", err)
	}
	if _, err := s.Get(ctx, acme, c.ID); err == nil || errors.Is(err, conversations.ErrNotFound) {
		t.Errorf("read after the end: %v", err)
	}
	if diff := cmp.Diff(&before, c); diff != "" {
		t.Error(diff)
	}
	holds(t, another, c)
	nothingOf(t, another, aConversation(2))
	say(t, s, c, 10, "in time")
	holds(t, another, c)
}

// Wherever its caller leaves, a round is there as a whole or not at all: it may be that it
// comes to be there a moment later.
func conversationsLeft(t *testing.T, s, another conversations.Store) {
	t.Helper()
	c := aConversation(1)
	begin(t, s, c)
	left := false
	round := func(within time.Duration) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), within)
		defer stop()
		c.Tokens++
		err := s.Append(ctx, c, said("a", "b"), 1000)
		if errors.Is(err, conversations.ErrNotFound) || errors.Is(err, conversations.ErrChanged) && !left {
			t.Error(err)
		}
		left = err != nil
		if c, err = another.Get(t.Context(), acme, c.ID); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(texts(t, s, c, 1000), ":"); n%2 != 0 {
			t.Errorf("a part is there: %d messages", n)
		}
	}
	for i := range 60 {
		round(time.Duration(i) * 50 * time.Microsecond)
	}
	for left = true; left; {
		round(time.Minute)
	}
	changes := int(c.Revision) - 1
	if n := strings.Count(texts(t, another, c, 1000), ":"); n != 2*changes || c.Messages != 2*changes || c.Tokens != changes {
		t.Errorf("there are %d messages, and %+v", n, c)
	}
}
