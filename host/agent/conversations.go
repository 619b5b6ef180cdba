package agent

import (
	"context"
	"log/slog"

	"openskill/host/agent/conversations"
	"openskill/sdk/skill"
)

// MaxPage is the longest page of [Agent.List].
const MaxPage = 100

// List gives a page of the caller's conversations, the one that changed last first, and
// the cursor of the next page or "". limit is 1 to [MaxPage].
func (a *Agent) List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]Summary, string, error) {
	if err := authorize(p); err != nil {
		return nil, "", err
	}
	if limit < 1 || limit > MaxPage {
		return nil, "", invalid("limit", "must be a whole number from 1 to 100")
	}
	list, next, err := a.o.Store.List(ctx, ownerOf(p), conversations.Query{Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", unlisted(ctx, err)
	}
	page := make([]Summary, len(list))
	for i, conv := range list {
		page[i] = Summary{ID: conv.ID, Title: conv.Title, CreatedAt: conv.CreatedAt, UpdatedAt: conv.UpdatedAt, Messages: conv.Messages}
	}
	return page, next, nil
}

// Get gives one of the caller's conversations, with the messages that are kept of it.
func (a *Agent) Get(ctx context.Context, p skill.Principal, id string) (*View, error) {
	if err := authorize(p); err != nil {
		return nil, err
	}
	conv, err := a.o.Store.Get(ctx, ownerOf(p), id)
	if err != nil {
		return nil, unlisted(ctx, err)
	}
	list, err := a.o.Store.Messages(ctx, ownerOf(p), id, a.o.Chat.Keep)
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
		a.o.Log.LogAttrs(ctx, slog.LevelWarn, "cannot read the pending approvals of a conversation",
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
func (a *Agent) Delete(ctx context.Context, p skill.Principal, id string) error {
	if err := authorize(p); err != nil {
		return err
	}
	if err := a.o.Store.Delete(ctx, ownerOf(p), id); err != nil {
		return unlisted(ctx, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if end := a.running[placeOf(p, id)]; end != nil {
		end(errDeleted)
	}
	return nil
}

// unlisted is the error of a store that was asked outside of a turn.
func unlisted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &skill.Error{Op: "agent.read", Code: skill.Cancelled, Message: "the client disconnected before the conversations were read", Err: err}
	}
	return conversationError(err, "conversations unavailable: the database does not respond; retry")
}

// oneMore counts a new conversation.
func (a *Agent) oneMore() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.made++; a.made < pruneAfter {
		return
	}
	a.made = 0
	select {
	case a.many <- struct{}{}:
	default:
	}
}
