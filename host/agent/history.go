package agent

import (
	"strings"

	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
)

// history is what a model is shown in a turn: what was said before, as much of it as there
// is room for, and all that belongs to the turn.
type history struct {
	fixed    int // tokens of the instructions and the tools
	messages []llm.Message
	tokens   []int // of each message
	sum      int   // of them
	turn     int   // where the turn begins; what is before may be left out
}

func (h *history) add(m llm.Message, tokens int) {
	h.messages, h.tokens = append(h.messages, m), append(h.tokens, tokens)
	h.sum += tokens
}

// fit leaves out what is oldest, from one user's message to the next, until all takes at
// most so many tokens, and says how many it takes; false if the turn alone takes more.
func (h *history) fit(most int) (int, bool) {
	for h.fixed+h.sum > most {
		if h.turn == 0 {
			return 0, false
		}
		n := 1
		for n < h.turn && h.messages[n].Role != llm.User {
			n++
		}
		for _, t := range h.tokens[:n] {
			h.sum -= t
		}
		h.messages, h.tokens, h.turn = h.messages[n:], h.tokens[n:], h.turn-n
	}
	return h.fixed + h.sum, true
}

// shown are the messages. Who gets them may keep them: what is added later is behind them.
func (h *history) shown() []llm.Message { return h.messages[:len(h.messages):len(h.messages)] }

// lastOf gives those messages that were kept which a model is shown again: the last
// most of them, in whole exchanges that each begin with a user's message. Of the last
// exchange, if it is longer than that, there are the question and the answer alone.
func lastOf(kept []llm.Message, most int) []llm.Message {
	ends := len(kept)
	var out [][]llm.Message
	for i := len(kept) - 1; i >= 0 && most > 0; i-- {
		if kept[i].Role != llm.User {
			continue
		}
		one := repaired(kept[i:ends])
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

// lostCall is what a model is told of a call whose answer was never kept.
const lostCall = "The host stopped before the result of this call was stored. Its outcome is unknown."

// repaired is an exchange as every vendor takes it: each call has one answer, which follows
// it, and nothing else is one. A host that was killed, or another one that had the same
// conversation, leaves others.
func repaired(exchange []llm.Message) []llm.Message {
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
	return llm.Message{Role: llm.Tool, CallID: id, Text: lostCall, Failed: true}
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

func bodies(kept []conversations.Message) []llm.Message {
	list := make([]llm.Message, len(kept))
	for i := range kept {
		list[i] = kept[i].Body
	}
	return list
}
