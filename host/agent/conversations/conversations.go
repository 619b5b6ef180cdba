// Package conversations is what is kept of conversations with an agent, and of the tasks
// that one worked on. Each belongs to one principal of one tenant, and exists for nobody
// else.
package conversations

import (
	"context"
	"errors"
	"time"

	"openskill/host/agent/llm"
)

// ErrNotFound says that there is no such conversation or session, or that it is another
// principal's.
var ErrNotFound = errors.New("conversations: there is none")

// ErrChanged says that the conversation is no more as it was when it was read.
var ErrChanged = errors.New("conversations: it has changed meanwhile")

// Owner is whose a conversation is. The zero value owns nothing.
type Owner struct{ Tenant, Principal string }

// Conversation is one, without its messages.
type Conversation struct {
	ID         string // UUID version 7; the session of the executions that it led to
	Owner      Owner
	Title      string // the beginning of its first message, 80 characters at most
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Messages   int    // how many there were in all, also those that are no longer kept
	Iterations int    // rounds so far: the next one's number
	Tokens     int    // that models took
	Pending    []byte // JSON of what waits for an approval; nil: nothing does
	Revision   int64  // counts changes, from 1
}

// Message is one of a conversation.
type Message struct {
	Seq  int // from 0, in order, without gaps but at the beginning
	At   time.Time
	Body llm.Message
}

// MostMessage is how many bytes a message, and what waits for an approval, may have as
// JSON. A [Store] refuses more, as PAYLOAD_TOO_LARGE.
const MostMessage = 4 << 20

// Query asks for conversations.
type Query struct {
	Cursor string // "" for the first page
	Limit  int    // 1 to 100
}

// Store keeps conversations. Its errors are [ErrNotFound], [ErrChanged], or the
// database's own.
type Store interface {
	// Create adds one, whose Revision becomes 1.
	Create(ctx context.Context, c *Conversation) error
	// Get reads one of the owner's.
	Get(ctx context.Context, o Owner, id string) (*Conversation, error)
	// Messages reads the last most (above 0) messages, in their order.
	Messages(ctx context.Context, o Owner, id string, most int) ([]Message, error)
	// Append adds messages behind those that there are, and what else became of the
	// conversation: UpdatedAt, Iterations, Tokens and Pending. Of all messages the last
	// keep (above 0) stay. It is one transaction, and changes nothing where c.Revision is
	// not that of the database; c.Revision and c.Messages are as they are then.
	Append(ctx context.Context, c *Conversation, add []llm.Message, keep int) error
	// List gives a page of the owner's, the one that changed last first, without what
	// waits (Pending), and the cursor of the next page or "".
	List(ctx context.Context, o Owner, q Query) ([]*Conversation, string, error)
	// Delete removes one of the owner's with its messages.
	Delete(ctx context.Context, o Owner, id string) error
	// Prune removes those that have not changed since before, at most some thousand at
	// once, and of each owner all but the most that changed last. It says how many.
	Prune(ctx context.Context, before time.Time, most int) (int, error)
}

// Session is one task that an agent worked on.
type Session struct {
	ID            string // UUID version 7
	Owner         Owner
	PrincipalType string
	Task          string // its beginning, 200 characters at most
	Status        string // running, completed, terminated, timeout or failed
	Iterations    int
	Tokens        int
	DurationMS    int64
	CreatedAt     time.Time
	EndsBy        time.Time // when it is over at the latest: a session that is said to run after that was cut off
}

// Sessions keeps tasks.
type Sessions interface {
	// Begin adds one, as running.
	Begin(ctx context.Context, s *Session) error
	// End says how one ended: Status, Iterations, Tokens and DurationMS. One that is not
	// there, or has ended, is left as it is.
	End(ctx context.Context, s *Session) error
	// Session reads one of a tenant; "" for the principal is any of the tenant's, "" for
	// the tenant any at all.
	Session(ctx context.Context, o Owner, id string) (*Session, error)
	// PruneSessions removes those that began before. It says how many.
	PruneSessions(ctx context.Context, before time.Time) (int, error)
}
