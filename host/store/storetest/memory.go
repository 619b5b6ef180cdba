package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// Memory keeps conversations and tasks in memory: a [conversations.Store] and [conversations.Sessions] for tests,
// which forgets when the process ends. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	all      map[string]*heldConversation
	sessions map[string]*conversations.Session
}

// heldConversation is a conversation with its messages, which are JSON so that nobody shares memory
// with who gave them.
type heldConversation struct {
	head     conversations.Conversation
	messages []heldMessage
}

type heldMessage struct {
	seq  int
	at   time.Time
	body []byte
}

var (
	_ conversations.Store    = (*Memory)(nil)
	_ conversations.Sessions = (*Memory)(nil)
)

// NewMemory makes one that is empty.
func NewMemory() *Memory {
	return &Memory{all: map[string]*heldConversation{}, sessions: map[string]*conversations.Session{}}
}

// Create implements [conversations.Store].
func (m *Memory) Create(ctx context.Context, c *conversations.Conversation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !isUUID(c.ID) || !owns(c.Owner) {
		return malformed("a conversation needs a UUID and an owner")
	}
	if len(c.Pending) > conversations.MostMessage {
		return tooLarge()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := strings.ToLower(c.ID)
	if m.all[id] != nil {
		return errTaken
	}
	c.Revision, c.Messages = 1, 0
	k := &heldConversation{head: *c}
	k.head.ID, k.head.Title, k.head.Pending = id, first(c.Title, 80), copied(c.Pending)
	m.all[id] = k
	return nil
}

// Get implements [conversations.Store].
func (m *Memory) Get(ctx context.Context, o conversations.Owner, id string) (*conversations.Conversation, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(o, id)
	if k == nil {
		return nil, conversations.ErrNotFound
	}
	c := k.head
	c.Pending = copied(c.Pending)
	return &c, nil
}

// of finds a conversation of an owner's; mu is held.
func (m *Memory) of(o conversations.Owner, id string) *heldConversation {
	if k := m.all[strings.ToLower(id)]; k != nil && owns(o) && k.head.Owner == o {
		return k
	}
	return nil
}

// Messages implements [conversations.Store].
func (m *Memory) Messages(_ context.Context, o conversations.Owner, id string, most int) ([]conversations.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(o, id)
	if k == nil {
		return nil, conversations.ErrNotFound
	}
	tail := k.messages[max(len(k.messages)-max(most, 0), 0):]
	list := make([]conversations.Message, len(tail))
	for i, t := range tail {
		list[i].Seq, list[i].At = t.seq, t.at
		if err := json.Unmarshal(t.body, &list[i].Body); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Append implements [conversations.Store].
func (m *Memory) Append(ctx context.Context, c *conversations.Conversation, add []llm.Message, keep int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if keep < 1 {
		return malformed("of a conversation at least one message is heldConversation")
	}
	bodies := make([][]byte, len(add))
	for i := range add {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // as databases keep it, which is what has the bound
		if err := e.Encode(&add[i]); err != nil {
			return err
		}
		if bodies[i] = b.Bytes(); len(bodies[i]) > conversations.MostMessage {
			return tooLarge()
		}
	}
	if len(c.Pending) > conversations.MostMessage {
		return tooLarge()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(c.Owner, c.ID)
	switch {
	case k == nil:
		return conversations.ErrNotFound
	case k.head.Revision != c.Revision:
		return conversations.ErrChanged
	}
	for _, b := range bodies {
		k.messages = append(k.messages, heldMessage{k.head.Messages, c.UpdatedAt, b})
		k.head.Messages++
	}
	if n := len(k.messages) - keep; n > 0 {
		k.messages = slices.Delete(k.messages, 0, n)
	}
	k.head.UpdatedAt, k.head.Iterations, k.head.Tokens, k.head.Pending = c.UpdatedAt, c.Iterations, c.Tokens, copied(c.Pending)
	k.head.Revision++
	c.Revision, c.Messages = k.head.Revision, k.head.Messages
	return nil
}

// List implements [conversations.Store].
func (m *Memory) List(_ context.Context, o conversations.Owner, q conversations.Query) ([]*conversations.Conversation, string, error) {
	var after *conversations.Conversation
	if q.Cursor != "" {
		if after = parseCursor(q.Cursor); after == nil {
			return nil, "", &skill.Error{
				Op: "conversations.List", Code: skill.InvalidArgument, Subject: "cursor",
				Message: "invalid cursor: use the next value of the previous page, or omit it for the first page",
			}
		}
	}
	limit := min(max(q.Limit, 1), 100)
	m.mu.Lock()
	defer m.mu.Unlock()
	page := []*conversations.Conversation{}
	for _, k := range m.sorted(o) {
		if after != nil && newerFirst(&k.head, after) <= 0 {
			continue
		}
		if len(page) == limit {
			return page, cursorOf(page[limit-1]), nil
		}
		c := k.head
		c.Pending = nil
		page = append(page, &c)
	}
	return page, "", nil
}

// sorted are an owner's, the one that changed last first; mu is held.
func (m *Memory) sorted(o conversations.Owner) []*heldConversation {
	var list []*heldConversation
	for _, k := range m.all {
		if k.head.Owner == o {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *heldConversation) int { return newerFirst(&a.head, &b.head) })
	return list
}

func newerFirst(a, b *conversations.Conversation) int {
	return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(b.ID, a.ID))
}

func cursorOf(c *conversations.Conversation) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.UpdatedAt.UnixNano(), 10) + " " + c.ID))
}

// parseCursor gives what newerFirst looks at, nil where s is no cursor.
func parseCursor(s string) *conversations.Conversation {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	nanos, id, ok := strings.Cut(string(b), " ")
	n, numErr := strconv.ParseInt(nanos, 10, 64)
	if err != nil || !ok || numErr != nil || !isUUID(id) {
		return nil
	}
	return &conversations.Conversation{UpdatedAt: time.Unix(0, n), ID: id}
}

// Delete implements [conversations.Store].
func (m *Memory) Delete(ctx context.Context, o conversations.Owner, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.of(o, id)
	if k == nil {
		return conversations.ErrNotFound
	}
	delete(m.all, k.head.ID)
	return nil
}

// Prune implements [conversations.Store].
func (m *Memory) Prune(_ context.Context, before time.Time, most int) (int, error) {
	if most < 1 {
		return 0, malformed("of an owner's conversations at least one is heldConversation")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	owners := map[conversations.Owner]bool{}
	for id, k := range m.all {
		if k.head.UpdatedAt.Before(before) {
			delete(m.all, id)
			n++
			continue
		}
		owners[k.head.Owner] = true
	}
	for o := range owners {
		list := m.sorted(o)
		for _, k := range list[min(most, len(list)):] {
			delete(m.all, k.head.ID)
			n++
		}
	}
	return n, nil
}

// stillRunning is the status of a session that has not ended.
const stillRunning = "running"

// Begin implements [conversations.Sessions].
func (m *Memory) Begin(ctx context.Context, s *conversations.Session) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !isUUID(s.ID) || !owns(s.Owner) {
		return malformed("a session needs a UUID and an owner")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	one := *s
	one.ID, one.Status, one.Task = strings.ToLower(s.ID), stillRunning, first(s.Task, 200)
	if m.sessions[one.ID] != nil {
		return errTaken
	}
	m.sessions[one.ID] = &one
	return nil
}

// End implements [conversations.Sessions].
func (m *Memory) End(_ context.Context, s *conversations.Session) error {
	switch s.Status {
	case "completed", "terminated", "timeout", "failed":
	default:
		return malformed("a session ends as completed, terminated, timeout or failed")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.sessions[strings.ToLower(s.ID)]; one != nil && one.Owner == s.Owner && one.Status == stillRunning {
		one.Status, one.Iterations, one.Tokens, one.DurationMS = s.Status, s.Iterations, s.Tokens, s.DurationMS
	}
	return nil
}

// Session implements [conversations.Sessions].
func (m *Memory) Session(_ context.Context, o conversations.Owner, id string) (*conversations.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.sessions[strings.ToLower(id)]
	if one == nil || o.Tenant != "" && one.Owner.Tenant != o.Tenant || o.Principal != "" && one.Owner.Principal != o.Principal {
		return nil, conversations.ErrNotFound
	}
	s := *one
	return &s, nil
}

// PruneSessions implements [conversations.Sessions].
func (m *Memory) PruneSessions(_ context.Context, before time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for id, s := range m.sessions {
		if s.CreatedAt.Before(before) {
			delete(m.sessions, id)
			n++
		}
	}
	return n, nil
}

var errTaken = errors.New("conversations: there is one with this id")

func owns(o conversations.Owner) bool {
	plain := func(s string) bool { return s != "" && utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
	return plain(o.Tenant) && plain(o.Principal)
}

func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// first is the beginning of a text, most characters of it.
func first(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	for i := range s {
		if most == 0 {
			return s[:i]
		}
		most--
	}
	return s
}

// copied is b in memory of its own; nil where it is empty.
func copied(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return slices.Clone(b)
}

func malformed(message string) error {
	return &skill.Error{Op: "conversations", Code: skill.InvalidArgument, Message: message}
}

func tooLarge() error {
	return &skill.Error{
		Op: "conversations", Code: skill.PayloadTooLarge,
		Message: "a message of the conversation, or what waits for an approval, is longer than " + strconv.Itoa(conversations.MostMessage) + " bytes as JSON",
	}
}
