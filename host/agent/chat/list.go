package chat

import (
	"context"
	"log/slog"
	"time"

	"openskill/host/agent/conversations"
	"openskill/sdk/skill"
)

// MaxPage is the longest page of [Chat.List].
const MaxPage = 100

// List gives a page of the caller's conversations, the one that changed last first, and
// the cursor of the next page or "". limit is 1 to [MaxPage].
func (c *Chat) List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]Summary, string, error) {
	if err := mayChat(p); err != nil {
		return nil, "", err
	}
	if limit < 1 || limit > MaxPage {
		return nil, "", invalid("limit", "must be a whole number from 1 to 100")
	}
	list, next, err := c.o.Store.List(ctx, ownerOf(p), conversations.Query{Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", unlisted(ctx, err)
	}
	page := make([]Summary, len(list))
	for i, conv := range list {
		page[i] = Summary{conv.ID, conv.Title, conv.CreatedAt, conv.UpdatedAt, conv.Messages}
	}
	return page, next, nil
}

// Get gives one of the caller's conversations, with the messages that are kept of it.
func (c *Chat) Get(ctx context.Context, p skill.Principal, id string) (*View, error) {
	if err := mayChat(p); err != nil {
		return nil, err
	}
	conv, err := c.o.Store.Get(ctx, ownerOf(p), id)
	if err != nil {
		return nil, unlisted(ctx, err)
	}
	list, err := c.o.Store.Messages(ctx, ownerOf(p), id, c.o.Keep)
	if err != nil {
		return nil, unlisted(ctx, err)
	}
	v := &View{
		ID: conv.ID, Title: conv.Title, CreatedAt: conv.CreatedAt, UpdatedAt: conv.UpdatedAt,
		Iterations: conv.Iterations, TotalTokens: conv.Tokens, Messages: make([]MessageView, len(list)),
	}
	for i, m := range list {
		b := m.Body
		v.Messages[i] = MessageView{Role: b.Role, Text: b.Text, Calls: b.Calls, CallID: b.CallID, Failed: b.Failed, At: m.At}
	}
	waits, err := parsePending(conv.Pending)
	if err != nil {
		c.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot read the pending approvals of a conversation",
			slog.String("conversation", conv.ID), slog.String("cause", err.Error()))
	}
	for i := range waits {
		if waits[i].Decided == "" {
			v.Pending = append(v.Pending, waits[i].awaited())
		}
	}
	return v, nil
}

// Delete removes one of the caller's conversations, and ends the turn in it that is under
// way on this host; one on another host ends when it has something to keep.
func (c *Chat) Delete(ctx context.Context, p skill.Principal, id string) error {
	if err := mayChat(p); err != nil {
		return err
	}
	if err := c.o.Store.Delete(ctx, ownerOf(p), id); err != nil {
		return unlisted(ctx, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if end := c.running[placeOf(p, id)]; end != nil {
		end(errDeleted)
	}
	return nil
}

// unlisted is the error of a store that was asked outside of a turn.
func unlisted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &skill.Error{Op: "chat.read", Code: skill.Cancelled, Message: "the client disconnected before the conversations were read", Err: err}
	}
	return storeError(err, "conversations unavailable: the database does not respond; retry")
}

// How often old conversations are looked for, and after how many new ones at the latest.
const (
	pruneEvery = time.Hour
	pruneAfter = 1000
)

// oneMore counts a new conversation.
func (c *Chat) oneMore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made++; c.made < pruneAfter {
		return
	}
	c.made = 0
	select {
	case c.many <- struct{}{}:
	default:
	}
}

// Tend removes old conversations, and those of which a principal has too many: at once,
// every hour, and when there are many new ones. It returns when ctx ends.
func (c *Chat) Tend(ctx context.Context) {
	again := time.NewTicker(pruneEvery)
	defer again.Stop()
	for {
		c.prune(ctx)
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-c.many:
		}
	}
}

func (c *Chat) prune(ctx context.Context) {
	before := c.o.Now().UTC().AddDate(0, 0, -c.o.Days)
	for ctx.Err() == nil {
		n, err := c.o.Store.Prune(ctx, before, c.o.Conversations)
		if err != nil && ctx.Err() == nil {
			c.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove old conversations", slog.String("cause", err.Error()))
		}
		if err != nil || n == 0 {
			return
		}
		c.o.Log.LogAttrs(ctx, slog.LevelDebug, "removed old conversations", slog.Int("number", n))
	}
}
