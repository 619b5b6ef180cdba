package llmtest

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// Model answers by a script. It is safe for concurrent use.
type Model struct {
	rules []*rule
	used  []atomic.Int64 // of the rules that have Times
	asked atomic.Int64

	mu   sync.Mutex
	kept []Request
	size int
}

var _ llm.Provider = (*Model)(nil)

// Request is one that was asked.
type Request struct {
	Wire   string      // openai, anthropic, llm-service; "" where it came without HTTP
	Header http.Header // nil without HTTP
	Body   []byte      // nil without HTTP, and of more than 1 MiB
	Stream bool        // parts were wanted
	Ask    llm.Request // as it was understood
	Rule   int         // that answered, from 0; -1: none
}

// What is kept of requests: the last ones.
const (
	maxKept      = 4096
	maxKeptBytes = 64 << 20
	maxKeptBody  = 1 << 20
)

// New checks a script. The error is a *skill.Error of INVALID_ARGUMENT that names the
// rule, from 1.
func New(s Script) (*Model, error) {
	if len(s.Rules) == 0 {
		return nil, wrong("it has no rules")
	}
	m := &Model{used: make([]atomic.Int64, len(s.Rules))}
	for i, r := range s.Rules {
		c, err := r.compile()
		if err != nil {
			return nil, wrong("rule %d: %s", i+1, skill.CleanText(err.Error(), 300))
		}
		m.rules = append(m.rules, c)
	}
	return m, nil
}

// Provider is [New] for scripts that stand in the code of tests; it panics on a wrong one.
func Provider(s Script) *Model {
	m, err := New(s)
	if err != nil {
		panic(err)
	}
	return m
}

// Requests gives the last requests, in the order in which they came: at most 4,096, and
// 64 MiB of them.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.kept)
}

// Asked is how many requests there were.
func (m *Model) Asked() int { return int(m.asked.Load()) }

func (m *Model) keep(r Request) {
	if len(r.Body) > maxKeptBody {
		r.Body = nil
	}
	r.Ask.Messages, r.Ask.Tools = slices.Clone(r.Ask.Messages), slices.Clone(r.Ask.Tools)
	m.asked.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept, m.size = append(m.kept, r), m.size+r.bytes()
	drop := 0
	for ; m.size > maxKeptBytes && drop < len(m.kept)-1; drop++ {
		m.size -= m.kept[drop].bytes()
	}
	if len(m.kept) > maxKept+maxKept/4 { // some at once, for each time moves all
		for ; len(m.kept)-drop > maxKept; drop++ {
			m.size -= m.kept[drop].bytes()
		}
	}
	m.kept = slices.Delete(m.kept, 0, drop)
}

// bytes is about what it takes to keep r.
func (r *Request) bytes() int {
	n := 1024 + len(r.Body) + len(r.Ask.System)
	for i := range r.Ask.Messages {
		msg := &r.Ask.Messages[i]
		n += 128 + len(msg.Text)
		for _, c := range msg.Calls {
			n += 64 + len(c.Arguments)
		}
	}
	for i := range r.Ask.Tools {
		n += 128 + len(r.Ask.Tools[i].Description) + len(r.Ask.Tools[i].InputSchema)
	}
	return n
}

// answer is what a rule makes of a request.
type answer struct {
	rule  *Rule
	reply llm.Reply
	usage bool // it says what it took
}

// answer finds the first rule that fits; nil and -1 for none.
func (m *Model) answer(r Request) (*answer, int) {
	at := see(&r.Ask)
	for i, c := range m.rules {
		found, ok := c.fits(at)
		if !ok || c.Times > 0 && m.used[i].Add(1) > int64(c.Times) {
			continue
		}
		r.Rule = i
		m.keep(r)
		return c.reply(at, found), i
	}
	r.Rule = -1
	m.keep(r)
	return nil, -1
}

// point is where in a conversation the model is asked.
type point struct {
	ask    *llm.Request
	user   string // the user's last text
	tool   string // whose result is the last message; "" for none
	last   string // the text of the last message
	byTool bool   // it is a tool's
	step   int
}

func see(r *llm.Request) *point {
	at := &point{ask: r}
	names := map[string]string{}
	for i := range r.Messages {
		msg := &r.Messages[i]
		at.last, at.byTool, at.tool = msg.Text, false, ""
		switch msg.Role {
		case llm.User:
			at.user, at.step = msg.Text, 0
		case llm.Assistant:
			at.step++
			for _, c := range msg.Calls {
				names[c.ID] = c.Name
			}
		case llm.Tool:
			at.byTool, at.tool = true, names[msg.CallID]
		}
	}
	return at
}

// expander puts in what was found for what stands for it.
type expander func(text string) string

// fits reports whether the rule is for this request, whatever its Times.
func (c *rule) fits(at *point) (expander, bool) {
	w := &c.When
	later := w.AfterTool != "" || c.result != nil || w.Step != nil
	switch {
	case w.AfterTool != "" && w.AfterTool != at.tool,
		c.result != nil && !at.byTool,
		w.Step != nil && *w.Step != at.step,
		w.Model != "" && w.Model != at.ask.Model,
		w.JSON != nil && *w.JSON != at.ask.JSON,
		c.system != nil && !c.system.MatchString(at.ask.System),
		c.user != nil && !later && at.byTool:
		return nil, false
	}
	expand := func(text string) string { return text }
	if c.user != nil {
		match := c.user.FindStringSubmatchIndex(at.user)
		if match == nil {
			return nil, false
		}
		expand = func(text string) string { return string(c.user.ExpandString(nil, text, at.user, match)) }
	}
	if c.result != nil {
		match := c.result.FindStringSubmatchIndex(at.last)
		if match == nil {
			return nil, false
		}
		expand = func(text string) string { return string(c.result.ExpandString(nil, text, at.last, match)) }
	}
	return expand, true
}

func (c *rule) reply(at *point, expand expander) *answer {
	a := &answer{rule: &c.Rule, usage: true}
	a.reply.Text, a.reply.Stop = expand(c.Say), llm.StopEnd
	round := rounds(at.ask)
	for _, call := range c.Calls {
		arguments := call.Arguments.expand(expand)
		for range max(call.Repeat, 1) {
			id := "call_" + strconv.Itoa(round) + "_" + strconv.Itoa(len(a.reply.Calls))
			a.reply.Calls = append(a.reply.Calls, llm.Call{ID: id, Name: call.Name, Arguments: arguments})
		}
	}
	if len(a.reply.Calls) > 0 {
		a.reply.Stop = llm.StopCalls
	}
	if c.Stop != "" {
		a.reply.Stop = c.Stop
	}
	switch u := c.Usage; {
	case u == nil:
		a.reply.Usage = estimate(at.ask, &a.reply)
	case u.Unsaid:
		a.usage = false
	default:
		a.reply.Usage = llm.Usage{Prompt: u.Prompt, Completion: u.Completion}
	}
	return a
}

// rounds is a number that the ids of this answer's calls are made of: one above those
// that are in the request, so that they are unique in what the model sees.
func rounds(r *llm.Request) int {
	most := 0
	for i := range r.Messages {
		for _, c := range r.Messages[i].Calls {
			rest, _ := strings.CutPrefix(c.ID, "call_")
			rest, _, _ = strings.Cut(rest, "_")
			if n, err := strconv.Atoi(rest); err == nil && n < 1<<30 {
				most = max(most, n)
			}
		}
	}
	return most + 1
}

// expand puts in what was found: as text of JSON strings where the arguments are an
// object, so that no text can leave its string; as it is where they are none.
func (a Arguments) expand(f expander) string {
	s := string(a)
	if !strings.HasPrefix(s, "{") || !json.Valid([]byte(s)) {
		return f(s)
	}
	var out strings.Builder
	for s != "" {
		before, rest, more := strings.Cut(s, `"`)
		out.WriteString(before)
		if !more {
			break
		}
		end := 0
		for ; rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		var text string
		_ = json.Unmarshal([]byte(`"`+rest[:end+1]), &text) // it is valid
		out.Write(encoded(f(text)))
		s = rest[end+1:]
	}
	return out.String()
}

// estimate counts as vendors would, about.
func estimate(r *llm.Request, reply *llm.Reply) llm.Usage {
	u := llm.Usage{Prompt: llm.Rough.Count(r.System), Completion: llm.Rough.Count(reply.Text)}
	for i := range r.Messages {
		msg := &r.Messages[i]
		u.Prompt += 4 + llm.Rough.Count(msg.Text)
		for _, c := range msg.Calls {
			u.Prompt += llm.Rough.Count(c.Name) + llm.Rough.Count(c.Arguments)
		}
	}
	for i := range r.Tools {
		u.Prompt += 4 + llm.Rough.Count(r.Tools[i].Name) + llm.Rough.Count(r.Tools[i].Description) + llm.Rough.Count(string(r.Tools[i].InputSchema))
	}
	for _, c := range reply.Calls {
		u.Completion += llm.Rough.Count(c.Name) + llm.Rough.Count(c.Arguments)
	}
	return u
}

// Chat implements [llm.Provider], and behaves as an adapter that speaks with a [Server]
// of the same script.
func (m *Model) Chat(ctx context.Context, r *llm.Request, text func(part string)) (*llm.Reply, error) {
	if ctx.Err() != nil {
		return nil, llm.Ended(ctx)
	}
	a, _ := m.answer(Request{Ask: *r, Stream: text != nil})
	if a == nil {
		return nil, llm.Unavailable(vendor, http.StatusBadRequest, unscripted(r), 0, nil)
	}
	if !wait(ctx, a.rule.DelayMS) {
		return nil, llm.Ended(ctx)
	}
	if a.rule.Status >= 400 {
		return nil, llm.Unavailable(vendor, a.rule.Status, a.reply.Text, time.Duration(a.rule.RetryAfter)*time.Second, nil)
	}
	switch {
	case a.rule.Raw != "":
		return nil, llm.Unreadable(vendor, "it is not what was agreed on", nil)
	case a.rule.CutAfter < 0:
		return nil, llm.Unavailable(vendor, 0, "", 0, nil)
	}
	whole := a.reply.Text
	if a.short() {
		whole = whole[:min(len(whole), a.rule.CutAfter)]
	}
	first := true
	for part := range pieces(whole, a.chunk()) {
		if !first && !wait(ctx, a.rule.PauseMS) {
			return nil, llm.Ended(ctx)
		}
		if first = false; text != nil {
			text(part)
		}
	}
	if a.short() {
		return nil, llm.Unavailable(vendor, 0, "its answer was cut off", 0, nil)
	}
	return &a.reply, nil
}

// short reports whether a reply without HTTP is cut off.
func (a *answer) short() bool {
	size := len(a.reply.Text)
	for _, c := range a.reply.Calls {
		size += len(c.Arguments)
	}
	return a.rule.CutAfter > 0 && size > a.rule.CutAfter
}

const vendor = "scripted"

// unscripted says that there is no answer.
func unscripted(r *llm.Request) string {
	at := see(r)
	by := "the user"
	if at.byTool {
		by = "the tool " + at.tool
	}
	return "the script has no rule that fits; the last message is of " + by + ": " + skill.CleanText(at.last, 80)
}

func (a *answer) chunk() int {
	if a.rule.Chunk > 0 {
		return a.rule.Chunk
	}
	return 16
}

// pieces are those of s, each of n characters; none of "".
func pieces(s string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		begin, left := 0, n
		for i := range s {
			if left == 0 {
				if !yield(s[begin:i]) {
					return
				}
				begin, left = i, n
			}
			left--
		}
		if begin < len(s) {
			yield(s[begin:])
		}
	}
}

// wait reports false when ctx ended first.
func wait(ctx context.Context, ms int) bool {
	if ms <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
