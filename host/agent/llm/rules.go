package llm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"unicode"

	"openskill/sdk/skill"
)

// Rules makes the provider that answers without a model: a table of words says which of the
// four skills that come with openSkill a message is for. It is what hosts have that were
// given no model, and the routing of the skill-host documents.
//
// It asks for one call, with arguments that it finds in the message, and then tells a
// person in the message's language what the skill gave. Words beyond the table mean
// nothing to it. What a skill gave is data: it is shown, and nothing in it is obeyed. Its
// replies have no usage, since nothing is counted. The log has a line for each message:
// what was chosen, and why.
func Rules(log *slog.Logger) Provider { return &rules{log} }

type rules struct{ log *slog.Logger }

// Chat implements [Provider].
func (p *rules) Chat(ctx context.Context, r *Request, text func(part string)) (*Reply, error) {
	if ctx.Err() != nil {
		return nil, Ended(ctx)
	}
	if r.JSON { // a task, which rules cannot work on
		return nil, &skill.Error{
			Op: "rules.Chat", Code: skill.AgentLLMUnavailable, Details: map[string]any{"provider": "rules"},
			Message: "no model is configured: rules answer messages, and cannot work on tasks; the operator can set OPENAI_API_KEY, or see openskill doctor",
		}
	}
	asked := ""
	calls := map[string]string{}
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == User {
			asked = m.Text
		}
		for _, c := range m.Calls {
			calls[c.ID] = c.Name
		}
	}
	in := languageOf(asked)
	reply := &Reply{Stop: StopEnd}
	switch last := len(r.Messages) - 1; {
	case last >= 0 && r.Messages[last].Role == Tool:
		reply.Text = in.result(calls[r.Messages[last].CallID], &r.Messages[last])
		if choose(asked).reason == byDefault {
			reply.Text += "\n" + hint
		}
	default:
		p.route(ctx, r, asked, in, reply)
	}
	if text != nil && reply.Text != "" {
		text(reply.Text)
	}
	return reply, nil
}

// route chooses a skill for a message, and asks for a call of it, or says why it cannot.
func (p *rules) route(ctx context.Context, r *Request, asked string, in language, reply *Reply) {
	to := choose(asked)
	p.log.LogAttrs(ctx, slog.LevelInfo, "a skill was chosen by rules", slog.String("trace_id", string(r.Trace)),
		slog.String("selected_skill_id", to.skill), slog.String("routing_reason", to.reason))
	if !slices.ContainsFunc(r.Tools, func(t skill.Tool) bool { return t.Name == to.skill }) {
		reply.Text = in.missing(to.skill)
		if to.reason == byDefault {
			reply.Text += "\n" + hint
		}
		return
	}
	arguments, problem := to.arguments(asked, to)
	b, err := json.Marshal(arguments)
	if problem == nil && err != nil { // numbers were read as such, and texts always can be written
		problem = noNumbers
	}
	if problem != nil {
		reply.Text = in.say("%[1]s", "%[2]s", problem.zh, problem.en) + "\n" + hint
		return
	}
	reply.Calls = []Call{{ID: "call_" + rand.Text(), Name: to.skill, Arguments: string(b)}}
	reply.Stop = StopCalls
}

// route is what a message is for.
type route struct {
	*rule
	reason string
	begin  int // of the word that decided
	end    int
}

// The reasons beside "word …".
const (
	byPrefix  = "prefix echo:"
	byDefault = "default"
)

// rule says which messages a skill is for, and how it is called and told of.
type rule struct {
	skill     string
	words     []string
	arguments func(text string, to route) (any, *sentence)
	tell      func(in language, data string) string
}

// table is the one of the documents, in its order: the first row that has a word in the
// message is taken, and the last one where none has. "compare" is 比较 and "logs" is log,
// which the documents leave out.
var table = []rule{
	{"file_search", []string{"搜索", "find", "grep", "检索"}, searching, language.matches},
	{"calculator", []string{"平均", "均值", "mean", "中位数", "median", "min", "max", "比较", "compare"}, calculating, language.calculated},
	{"log_transform", []string{"日志", "log", "logs", "转换", "parse", "jsonl"}, transforming, language.records},
	{"echo", nil, echoing, language.echoed},
}

// choose looks a message up in the table.
func choose(text string) route {
	const echo = "echo"
	last := &table[len(table)-1]
	if begin := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace)); len(text) >= begin+len(echo) && strings.EqualFold(text[begin:begin+len(echo)], echo) {
		end := begin + len(echo)
		for _, colon := range []string{":", "："} {
			if strings.HasPrefix(text[end:], colon) {
				return route{last, byPrefix, begin, end + len(colon)}
			}
		}
	}
	low := lower(text)
	for i := range table {
		found := route{rule: &table[i], begin: -1}
		for _, word := range table[i].words {
			if i := find(low, word); i >= 0 && (found.begin < 0 || i < found.begin) {
				found.reason, found.begin, found.end = "word "+word, i, i+len(word)
			}
		}
		if found.begin >= 0 {
			return found
		}
	}
	return route{last, byDefault, 0, 0}
}
