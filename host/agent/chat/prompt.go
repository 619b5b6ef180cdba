package chat

import (
	"hash/maphash"
	"strings"
	"sync"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// prompt is what a model is shown in a turn: what was said before, as much of it as there
// is room for, and all that belongs to the turn.
type prompt struct {
	fixed    int // tokens of the instructions and the tools
	messages []llm.Message
	tokens   []int // of each message
	sum      int   // of them
	turn     int   // where the turn begins; what is before may be left out
}

func (p *prompt) add(m llm.Message, tokens int) {
	p.messages, p.tokens = append(p.messages, m), append(p.tokens, tokens)
	p.sum += tokens
}

// fit leaves out what is oldest, from one user's message to the next, until all takes at
// most so many tokens, and says how many it takes; false if the turn alone takes more.
func (p *prompt) fit(most int) (int, bool) {
	for p.fixed+p.sum > most {
		if p.turn == 0 {
			return 0, false
		}
		n := 1
		for n < p.turn && p.messages[n].Role != llm.User {
			n++
		}
		for _, t := range p.tokens[:n] {
			p.sum -= t
		}
		p.messages, p.tokens, p.turn = p.messages[n:], p.tokens[n:], p.turn-n
	}
	return p.fixed + p.sum, true
}

// shown are the messages. Who gets them may keep them: what is added later is behind them.
func (p *prompt) shown() []llm.Message { return p.messages[:len(p.messages):len(p.messages)] }

// history gives those messages that were kept which a model is shown again: the last
// most of them, in whole exchanges that each begin with a user's message. Of the last
// exchange, if it is longer than that, there are the question and the answer alone.
func history(kept []llm.Message, most int) []llm.Message {
	ends := len(kept)
	var out [][]llm.Message
	for i := len(kept) - 1; i >= 0 && most > 0; i-- {
		if kept[i].Role != llm.User {
			continue
		}
		one := mended(kept[i:ends])
		ends = i
		if len(one) > most {
			if len(out) > 0 || most < 2 {
				break
			}
			one = inShort(one)
		}
		out = append(out, one)
		most -= len(one)
	}
	var list []llm.Message
	for i := len(out) - 1; i >= 0; i-- {
		list = append(list, out[i]...)
	}
	return list
}

// inShort is the beginning and the end of an exchange, without what was called between.
func inShort(one []llm.Message) []llm.Message {
	if last := one[len(one)-1]; last.Role == llm.Assistant && len(last.Calls) == 0 {
		return []llm.Message{one[0], last}
	}
	return one[:1]
}

// cutOff is what a model is told of a call whose answer was never kept.
const cutOff = "The host stopped before the answer to this call was kept. Nobody knows what became of it."

// mended is an exchange as every vendor takes it: each call has one answer, which follows
// it, and nothing else is one. A host that was killed, or another one that had the same
// conversation, leaves others.
func mended(exchange []llm.Message) []llm.Message {
	out := make([]llm.Message, 0, len(exchange))
	for i := 0; i < len(exchange); {
		m := exchange[i]
		i++
		if m.Role == llm.Tool || m.Role == llm.Assistant && len(m.Calls) == 0 && blank(m.Text) {
			continue
		}
		out = append(out, m)
		begin := i
		for i < len(exchange) && exchange[i].Role == llm.Tool {
			i++
		}
		for _, c := range m.Calls {
			out = append(out, answerTo(c.ID, exchange[begin:i]))
		}
	}
	return out
}

func answerTo(id string, answers []llm.Message) llm.Message {
	for _, a := range answers {
		if a.CallID == id {
			return a
		}
	}
	return llm.Message{Role: llm.Tool, CallID: id, Text: cutOff, Failed: true}
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

func bodies(kept []conversations.Message) []llm.Message {
	list := make([]llm.Message, len(kept))
	for i := range kept {
		list[i] = kept[i].Body
	}
	return list
}

// counts remembers how many tokens texts take, by their hashes: instructions, tools and
// what was said before are the same in each question, and to count takes far longer than
// to hash. When it is full, what was not asked for since it was last full is forgotten.
type counts struct {
	seed maphash.Seed

	mu       sync.Mutex
	now, old map[uint64]int
}

// mostCounts is how many counts are remembered, twice.
const mostCounts = 16 << 10

func newCounts() counts { return counts{seed: maphash.MakeSeed(), now: map[uint64]int{}} }

// message is what a message takes with a model.
func (c *counts) message(m *llm.Model, msg *llm.Message) int {
	h := c.hash('m', m, msg.Text)
	for i := range msg.Calls {
		part(&h, msg.Calls[i].Name)
		part(&h, msg.Calls[i].Arguments)
	}
	return c.of(h.Sum64(), func() int { return m.TokensOf(msg) })
}

// fixed is what instructions and tools take.
func (c *counts) fixed(m *llm.Model, system string, tools []skill.Tool) int {
	h := c.hash('s', m, system)
	n := c.of(h.Sum64(), func() int { return m.Count(system) })
	for i := range tools {
		h := c.hash('t', m, tools[i].Name)
		part(&h, tools[i].Description)
		_, _ = h.Write(tools[i].InputSchema)
		n += c.of(h.Sum64(), func() int { return m.TokensOfTool(&tools[i]) })
	}
	return n
}

// hash begins with what is hashed, since the same text takes more or less as another thing.
func (c *counts) hash(kind byte, m *llm.Model, first string) (h maphash.Hash) {
	h.SetSeed(c.seed)
	_ = h.WriteByte(kind)
	part(&h, m.Provider)
	part(&h, m.Name)
	part(&h, first)
	return h
}

// part adds a text and its length, so that no two lists of texts are hashed alike.
func part(h *maphash.Hash, s string) {
	n := uint64(len(s))
	for range 4 {
		_ = h.WriteByte(byte(n))
		n >>= 8
	}
	_, _ = h.WriteString(s)
}

func (c *counts) of(key uint64, count func() int) int {
	c.mu.Lock()
	n, ok := c.now[key]
	if !ok {
		n, ok = c.old[key]
	}
	c.mu.Unlock()
	if !ok {
		n = count()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.now) >= mostCounts {
		c.old, c.now = c.now, make(map[uint64]int, mostCounts)
	}
	c.now[key] = n
	return n
}
