package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Conversations holds a store of conversations to its contract. open gives a new, empty
// one for each call; another gives the same one as another process would open it.
func Conversations(t *testing.T, open func(t *testing.T) (store, another conversations.Store)) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s, another conversations.Store){
		"what is kept is read":        conversationsRoundTrip,
		"of one owner":                conversationsOwners,
		"the last ones stay":          conversationsKeep,
		"whoever comes second":        conversationsChanged,
		"pages":                       conversationsPages,
		"pages while others change":   conversationsPagesMeanwhile,
		"deleted while it goes on":    conversationsDeleted,
		"old ones go":                 conversationsPruneOld,
		"of each owner some stay":     conversationsPruneMany,
		"what changes is not removed": conversationsPruneMeanwhile,
		"messages have a bound":       conversationsBound,
		"hostile text":                conversationsHostile,
		"many at once":                conversationsAtOnce,
		"contexts that have ended":    conversationsContext,
		"contexts that end":           conversationsLeft,
	} {
		t.Run(name, func(t *testing.T) {
			s, another := open(t)
			test(t, s, another)
		})
	}
}

var acme = owner("acme", "key:ci")

func owner(tenant, principal string) conversations.Owner {
	return conversations.Owner{Tenant: tenant, Principal: principal}
}

// aConversation is the nth, which changed n minutes after day.
func aConversation(n int) *conversations.Conversation {
	when := day.Add(time.Duration(n) * time.Minute)
	return &conversations.Conversation{ID: runID(n), Owner: acme, Title: fmt.Sprint("question ", n), CreatedAt: when, UpdatedAt: when}
}

func begin(t *testing.T, s conversations.Store, all ...*conversations.Conversation) {
	t.Helper()
	for _, c := range all {
		musttest.Do(t, s.Create(t.Context(), c))
	}
}

func said(texts ...string) (all []llm.Message) {
	for _, text := range texts {
		all = append(all, llm.Message{Role: llm.User, Text: text})
	}
	return all
}

func say(t *testing.T, s conversations.Store, c *conversations.Conversation, keep int, texts ...string) {
	t.Helper()
	musttest.Do(t, s.Append(t.Context(), c, said(texts...), keep))
}

// holds says that a store has c as it is.
func holds(t *testing.T, s conversations.Store, c *conversations.Conversation) {
	t.Helper()
	got := musttest.Get(s.Get(t.Context(), c.Owner, c.ID))(t)
	if diff := cmp.Diff(c, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Error(diff)
	}
}

// texts are the last messages with their numbers.
func texts(t *testing.T, s conversations.Store, c *conversations.Conversation, most int) string {
	t.Helper()
	list := musttest.Get(s.Messages(t.Context(), c.Owner, c.ID, most))(t)
	var all []string
	for _, m := range list {
		all = append(all, fmt.Sprintf("%d:%s", m.Seq, m.Body.Text))
	}
	return strings.Join(all, " ")
}

func conversationsRoundTrip(t *testing.T, s, another conversations.Store) {
	t.Helper()
	c := aConversation(1)
	c.Iterations, c.Tokens, c.Pending = 3, 4, []byte(`{"waits": true}`)
	bare := aConversation(2)
	bare.Title = ""
	begin(t, s, c, bare)
	if c.Revision != 1 || bare.Revision != 1 {
		t.Errorf("new ones have the revisions %d, %d", c.Revision, bare.Revision)
	}
	holds(t, another, c)
	holds(t, another, bare)
	if got := texts(t, another, c, 10); got != "" {
		t.Errorf("a new one has messages: %s", got)
	}
	first := []llm.Message{
		{Role: llm.User, Text: "what is <1 & 2>?"},
		{Role: llm.Assistant, Text: "I shall see", Calls: []llm.Call{{ID: "c1", Name: "echo", Arguments: `{"a": 1}`}, {ID: "c2", Name: "no", Arguments: "{"}}},
		{Role: llm.Tool, CallID: "c1", Text: "1"},
		{Role: llm.Tool, CallID: "c2", Text: "that is no JSON", Failed: true},
	}
	began := c.UpdatedAt.Add(time.Second)
	c.UpdatedAt, c.Iterations, c.Tokens, c.Pending = began, 4, 1000, nil
	musttest.Do(t, s.Append(t.Context(), c, first, 100))
	if c.Revision != 2 || c.Messages != 4 {
		t.Errorf("after the first round: %+v", c)
	}
	holds(t, another, c)
	c.UpdatedAt, c.Pending = began.Add(time.Second), []byte("null")
	musttest.Do(t, another.Append(t.Context(), c, []llm.Message{{Role: llm.Assistant, Text: "3"}}, 100))
	holds(t, s, c)
	want := make([]conversations.Message, 0, 5)
	for i, m := range first {
		want = append(want, conversations.Message{Seq: i, At: began, Body: m})
	}
	want = append(want, conversations.Message{Seq: 4, At: c.UpdatedAt, Body: llm.Message{Role: llm.Assistant, Text: "3"}})
	for most := 1; most < 7; most++ {
		got, err := s.Messages(t.Context(), c.Owner, c.ID, most)
		if diff := cmp.Diff(want[max(5-most, 0):], got); err != nil || diff != "" {
			t.Errorf("the last %d: %v\n%s", most, err, diff)
		}
	}
	if got := texts(t, s, c, 0) + texts(t, s, c, -1); got != "" {
		t.Errorf("of no messages: %s", got)
	}
	// A change without messages is one too.
	c.Pending = nil
	if err := s.Append(t.Context(), c, nil, 100); err != nil || c.Revision != 4 || c.Messages != 5 {
		t.Errorf("%v, %+v", err, c)
	}
	holds(t, another, c)
	if got := texts(t, another, c, 2); got != "3:that is no JSON 4:3" {
		t.Errorf("the last ones are %s", got)
	}
	if err := another.Create(t.Context(), aConversation(1)); err == nil {
		t.Error("an id was taken twice")
	}
	holds(t, s, c)
	musttest.Do(t, s.Delete(t.Context(), c.Owner, c.ID))
	nothingOf(t, another, c)
	begin(t, s, aConversation(1)) // and nothing of the one before is in it
	if got := texts(t, s, c, 10); got != "" {
		t.Errorf("it was deleted, and has %s", got)
	}
	holds(t, another, bare)
}

// nothingOf holds that c is not there, by no method.
func nothingOf(t *testing.T, s conversations.Store, c *conversations.Conversation) {
	t.Helper()
	if got, err := s.Get(t.Context(), c.Owner, c.ID); !errors.Is(err, conversations.ErrNotFound) {
		t.Errorf("%q gets %+v, %v", c.Owner, got, err)
	}
	if got, err := s.Messages(t.Context(), c.Owner, c.ID, 10); !errors.Is(err, conversations.ErrNotFound) {
		t.Errorf("%q reads %+v, %v", c.Owner, got, err)
	}
	mine := *c
	if err := s.Append(t.Context(), &mine, said("mine now"), 10); !errors.Is(err, conversations.ErrNotFound) {
		t.Errorf("%q appends: %v", c.Owner, err)
	}
	if diff := cmp.Diff(c, &mine); diff != "" {
		t.Errorf("what could not be changed was: %s", diff)
	}
	if err := s.Delete(t.Context(), c.Owner, c.ID); !errors.Is(err, conversations.ErrNotFound) {
		t.Errorf("%q deletes: %v", c.Owner, err)
	}
	list, _, err := s.List(t.Context(), c.Owner, conversations.Query{Limit: 100})
	if err != nil || slices.ContainsFunc(list, func(l *conversations.Conversation) bool { return l.ID == c.ID }) {
		t.Errorf("%q lists %+v, %v", c.Owner, list, err)
	}
}

func conversationsOwners(t *testing.T, s, another conversations.Store) {
	t.Helper()
	c := aConversation(1)
	begin(t, s, c)
	say(t, s, c, 10, "secret")
	for _, o := range []conversations.Owner{
		{},
		{Tenant: acme.Tenant},
		{Principal: acme.Principal},
		owner("acme", "key:other"),
		owner("other", "key:ci"),
		owner("ACME", "key:ci"),
		owner("acme", "KEY:ci"),
		owner("acme ", "key:ci"),
		owner("acme", "key:ci\x00"),
		owner("acme\x00", "key:ci"),
		owner("acme", "key:c\xff"),
		owner("%", "%"),
		owner("key:ci", "acme"),
		owner("acmekey:", "ci"),
		owner("acme", "key:ci' OR '1'='1"),
	} {
		theirs := *c
		theirs.Owner = o
		nothingOf(t, another, &theirs)
	}
	for _, id := range []string{"", "x", "\x00", "' OR 1=1", "{" + runID(1) + "}", "urn:uuid:" + runID(1), runID(2)} {
		other := *c
		other.ID = id
		nothingOf(t, s, &other)
	}
	holds(t, another, c)
	if got := texts(t, another, c, 10); got != "0:secret" {
		t.Errorf("it has %s", got)
	}
	for _, o := range []conversations.Owner{{}, {Tenant: "acme"}, {Principal: "key:ci"}} {
		nobodys := aConversation(3)
		nobodys.Owner = o
		if err := s.Create(t.Context(), nobodys); err == nil {
			t.Errorf("%q owns something", o)
		}
	}
}

func conversationsKeep(t *testing.T, s, another conversations.Store) {
	t.Helper()
	c := aConversation(1)
	begin(t, s, c)
	for _, step := range []struct {
		keep int
		add  string
		want string
	}{
		{3, "a b", "0:a 1:b"},
		{3, "c", "0:a 1:b 2:c"},
		{3, "d e", "2:c 3:d 4:e"},
		{3, "f g h i j", "7:h 8:i 9:j"},
		{5, "k", "7:h 8:i 9:j 10:k"}, // what is gone does not come back
		{1, "", "10:k"},
		{1, "l", "11:l"},
	} {
		say(t, s, c, step.keep, strings.Fields(step.add)...)
		if got := texts(t, another, c, 100); got != step.want {
			t.Errorf("after %q with %d kept: %s, want %s", step.add, step.keep, got, step.want)
		}
	}
	if c.Messages != 12 {
		t.Errorf("there were %d messages in all", c.Messages)
	}
	for _, keep := range []int{0, -1} {
		if err := s.Append(t.Context(), c, said("m"), keep); err == nil {
			t.Errorf("with %d kept it was appended to", keep)
		}
	}
	holds(t, another, c)
	many := make([]string, 1234) // more than one statement takes
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	say(t, s, c, 1000, many...)
	if got, want := texts(t, another, c, 2), "1244:1232 1245:1233"; got != want {
		t.Errorf("the last ones are %s, want %s", got, want)
	}
	if list, err := another.Messages(t.Context(), acme, c.ID, 5000); err != nil || len(list) != 1000 || list[0].Seq != 246 || list[0].Body.Text != "234" {
		t.Errorf("%d messages, %v", len(list), err)
	}
}

func conversationsChanged(t *testing.T, s, another conversations.Store) {
	t.Helper()
	c := aConversation(1)
	begin(t, s, c)
	old := *c
	say(t, s, c, 10, "first")
	before := old
	old.Tokens = 99
	if err := another.Append(t.Context(), &old, said("second"), 10); !errors.Is(err, conversations.ErrChanged) {
		t.Errorf("from what was so before: %v", err)
	}
	if old.Revision != before.Revision || old.Messages != before.Messages {
		t.Errorf("it was told of a change that was not made: %+v", old)
	}
	ahead := *c
	ahead.Revision++
	if err := another.Append(t.Context(), &ahead, said("third"), 10); !errors.Is(err, conversations.ErrChanged) {
		t.Errorf("from what was never so: %v", err)
	}
	holds(t, another, c)
	if got := texts(t, another, c, 10); got != "0:first" {
		t.Errorf("it has %s", got)
	}

	// Of many at once, from the same state, one does it.
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 40 {
		to, mine := s, *c
		if i%2 == 1 {
			to = another
		}
		all.Go(func() {
			switch err := to.Append(context.Background(), &mine, said(fmt.Sprint("a", i), fmt.Sprint("b", i)), 10); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, conversations.ErrChanged):
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := s.Get(t.Context(), acme, c.ID)
	if err != nil || won.Load() != 1 || got.Revision != 3 || got.Messages != 3 {
		t.Errorf("%d have won; %+v, %v", won.Load(), got, err)
	}
	var i, j int
	if has := texts(t, s, c, 10); !scanned(has, "0:first 1:a%d 2:b%d", &i, &j) || i != j {
		t.Errorf("it has %s", has)
	}
}

func scanned(text, format string, to ...any) bool {
	n, err := fmt.Sscanf(text, format, to...)
	return err == nil && n == len(to)
}

func conversationsBound(t *testing.T, s, another conversations.Store) {
	t.Helper()
	c := aConversation(1)
	begin(t, s, c)
	large := strings.Repeat("<", conversations.MostMessage-100)
	say(t, s, c, 10, "a", large)
	list, err := another.Messages(t.Context(), acme, c.ID, 1)
	if err != nil || len(list) != 1 || list[0].Body.Text != large {
		t.Fatalf("%d messages, %v", len(list), err)
	}
	before := *c
	if err := s.Append(t.Context(), c, said("b", large+strings.Repeat("x", 200), "c"), 10); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("one that is too large: %.200v", err)
	}
	// What is not kept anyway is held to it all the same.
	if err := s.Append(t.Context(), c, said(large+large, "c"), 1); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("one that is too large, and would go at once: %.200v", err)
	}
	c.Pending = []byte(large + large)
	if err := s.Append(t.Context(), c, said("d"), 10); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("what waits is too large: %.200v", err)
	}
	waits := aConversation(2)
	waits.Pending = c.Pending
	if err := s.Create(t.Context(), waits); skill.CodeOf(err) != skill.PayloadTooLarge {
		t.Errorf("what waits at first is too large: %.200v", err)
	}
	*c = before
	holds(t, another, c)
	if got := texts(t, another, c, 10); !strings.HasPrefix(got, "0:a 1:<<<") || strings.Count(got, " ") != 1 {
		t.Errorf("it has %.100s", got)
	}
	c.Pending = []byte(large)
	say(t, s, c, 1, "e")
	holds(t, another, c)
}

func conversationsHostile(t *testing.T, s, another conversations.Store) {
	t.Helper()
	for n, text := range []string{
		"'; DROP TABLE conversations; --", `a"b\c`, "?", "??", "?0", "$1", "%s", "\\", "☃\u202e\u2028", "\u00e9\ufffd\U0010ffff", "a\x00b", `\u0000`, "\x1b[2J\r\n\t",
	} {
		c := aConversation(n)
		c.Pending = []byte(text)
		begin(t, s, c)
		m := llm.Message{Role: llm.Role(text), Text: text, CallID: text, Calls: []llm.Call{{ID: text, Name: text, Arguments: text}}}
		if err := s.Append(t.Context(), c, []llm.Message{m}, 10); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		holds(t, another, c)
		list, err := another.Messages(t.Context(), acme, c.ID, 10)
		if diff := cmp.Diff([]conversations.Message{{At: c.UpdatedAt, Body: m}}, list); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", text, err, diff)
		}
		if strings.Contains(text, "\x00") {
			continue // no name has that
		}
		theirs := aConversation(100 + n)
		theirs.Owner, theirs.Title = owner(text, text), text
		begin(t, s, theirs)
		holds(t, another, theirs)
		if got := pagesOf(t, another, theirs.Owner, 1, func() {}); len(got) != 1 || got[0].ID != theirs.ID {
			t.Errorf("%q has %v", text, idsOf(got))
		}
	}
	// What is no text is kept as what comes closest, and spoils nothing beside it.
	c := aConversation(50)
	c.Title = "a\x00b\xff" + strings.Repeat("é", 200)
	begin(t, s, c)
	musttest.Do(t, s.Append(t.Context(), c, append(said("a\xff\xfeb"), said("after")...), 10))
	got, err := another.Messages(t.Context(), acme, c.ID, 10)
	if err != nil || len(got) != 2 || !strings.HasPrefix(got[0].Body.Text, "a") || !strings.HasSuffix(got[0].Body.Text, "b") || got[1].Body.Text != "after" {
		t.Errorf("%+v, %v", got, err)
	}
	kept, err := another.Get(t.Context(), acme, c.ID)
	if err != nil || !utf8.ValidString(kept.Title) || !strings.HasPrefix(kept.Title, "a") || utf8.RuneCountInString(kept.Title) > 80 {
		t.Errorf("%+v, %v", kept, err)
	}
}
