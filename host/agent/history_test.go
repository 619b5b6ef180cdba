package agent

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"openskill/host/agent/llm"
)

// valid holds messages to what vendors want: a user's first, and behind each call's
// message the answers to all of its calls and nothing else.
func valid(t testing.TB, list []llm.Message) {
	t.Helper()
	for i := 0; i < len(list); i++ {
		m := list[i]
		if i == 0 && m.Role != llm.User {
			t.Fatalf("the first message is of %s", m.Role)
		}
		if m.Role == llm.Tool {
			t.Fatalf("message %d answers nothing: %q", i, inLines(list))
		}
		for range m.Calls {
			if i++; i >= len(list) || list[i].Role != llm.Tool {
				t.Fatalf("a call is not answered: %q", inLines(list))
			}
		}
		answered := map[string]bool{}
		for _, a := range list[i-len(m.Calls)+1 : i+1] {
			answered[a.CallID] = true
		}
		for _, c := range m.Calls {
			if !answered[c.ID] {
				t.Fatalf("the call %s is not answered: %q", c.ID, inLines(list))
			}
		}
	}
}

// conversation makes messages of a text like "u a2 t1 t2": a user's, an assistant's with
// so many calls, an answer to the call of that number.
func conversation(s string) []llm.Message {
	var list []llm.Message
	made := 0
	for i, f := range strings.Fields(s) {
		n, _ := strconv.Atoi(f[1:])
		switch f[0] {
		case 'u':
			list = append(list, llm.Message{Role: llm.User, Text: "u" + strconv.Itoa(i)})
		case 'a':
			m := llm.Message{Role: llm.Assistant, Text: "a" + strconv.Itoa(i)}
			for range n {
				made++
				m.Calls = append(m.Calls, llm.Call{ID: "c" + strconv.Itoa(made), Name: "f"})
			}
			list = append(list, m)
		case 't':
			list = append(list, llm.Message{Role: llm.Tool, CallID: "c" + strconv.Itoa(n), Text: "r"})
		}
	}
	return list
}

func TestHistory(t *testing.T) {
	for _, c := range []struct {
		kept string
		most int
		want string // first letters, with - for an answer that the host made up
	}{
		{"", 20, ""},
		{"u a", 20, "ua"},
		{"u a u a u a", 4, "uaua"},
		{"u a u a u a", 3, "ua"},
		{"a u a", 20, "ua"},
		{"t9 a u a", 20, "ua"},
		{"u a2 t1 t2 a u a", 20, "uattaua"},
		{"u a2 t2 t1 a", 20, "uatta"},
		{"u a2 t1 u a", 20, "uat-ua"},
		{"u a2 u a", 20, "ua--ua"},
		{"u a1 t1 t9 t1 a", 20, "uata"},
		{strings.Repeat("u ", 3), 2, "uu"},
		{"u a1 t1 a2 t2 t3 a u a", 4, "ua"},         // an exchange that does not fit is left out whole
		{"u a1 t1 a2 t2 t3 a1 t4 a", 4, "ua"},       // the last one is told in short
		{"u a1 t1 a2 t2 t3 a1 t4", 4, "u"},          // and has no answer
		{"u a u a1 t1 a2 t2 t3 a1 t4 a", 4, "uaua"}, // which leaves room for the one before
		{"a1 t1 a2 t2 t3 a1 t4 a", 4, ""},
		{"u a", 0, ""},
	} {
		got := lastOf(conversation(c.kept), c.most)
		valid(t, got)
		var short []string
		for _, m := range got {
			if m.Text == lostCall {
				short = append(short, "-")
				continue
			}
			short = append(short, string(m.Role)[:1])
		}
		same(t, c.kept, strings.Join(short, ""), c.want)
	}
}

// Whatever is kept, what is shown is as vendors want it and not longer than it may be.
func TestHistoryOfAnything(t *testing.T) {
	words := []string{"u", "a", "a1", "a2", "a3", "t1", "t2", "t3", "t4", "t5"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var list []string
		for range r.IntN(15) {
			list = append(list, words[r.IntN(len(words))])
		}
		kept, most := conversation(strings.Join(list, " ")), r.IntN(12)
		got := lastOf(kept, most)
		valid(t, got)
		if len(got) > most {
			t.Fatalf("%d messages of at most %d: %v", len(got), most, list)
		}
	}
}

func TestFit(t *testing.T) {
	add := func(p *history, s string) {
		for _, m := range conversation(s) {
			p.add(m, 10)
		}
	}
	p := &history{fixed: 5}
	add(p, "u a u a1 t1 a")
	p.turn = len(p.messages)
	add(p, "u a1 t2")
	for _, c := range []struct {
		most, takes, messages int
		fits                  bool
	}{
		{95, 95, 9, true}, {94, 75, 7, true}, {75, 75, 7, true}, {74, 35, 3, true}, {35, 35, 3, true}, {34, 0, 3, false}, {-1, 0, 3, false},
	} {
		takes, fits := p.fit(c.most)
		same(t, "fits", fits, c.fits)
		same(t, "takes", takes, c.takes)
		same(t, "messages", len(p.messages), c.messages)
		same(t, "counts", len(p.tokens), c.messages)
	}
	// What was shown stays as it was.
	shown := p.shown()
	_ = append(shown, llm.Message{Text: "a provider's"})
	p.add(llm.Message{Text: "ours"}, 1)
	same(t, "added", p.messages[3].Text, "ours")
	same(t, "shown", len(shown), 3)
}

// Old messages are left out where the budget of tokens has no room for them.
func TestOldMessagesMakeRoom(t *testing.T) {
	model := scripted(says("one"), says("two"), says("three"))
	b := newBench(t, model)
	long := strings.Repeat("word ", 800) // 1000 tokens
	id := b.turn(t, ChatRequest{Message: long}, nil).Conversation
	b.turn(t, ChatRequest{Message: long, Conversation: id}, nil)
	same(t, "shown where there is room", len(model.asked[1].Messages), 3)
	a := b.turn(t, ChatRequest{Message: "And?", Conversation: id, MaxTokens: 2000}, nil)
	same(t, "answer", a.Answer, "three")
	sameLines(t, "shown", inLines(model.asked[2].Messages), []string{"u:" + long, "a:two", "u:And?"})
	if r := model.asked[2]; r.MaxTokens < leastReply || r.MaxTokens > 2000-1000 {
		t.Errorf("the answer may have %d tokens", r.MaxTokens)
	}
}
