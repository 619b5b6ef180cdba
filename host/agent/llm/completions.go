package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// completionReader reads one answer in the form of OpenAI's Chat Completions, which many
// servers speak, each with an accent of its own. It bears with content that is null or a
// list of parts, members that are missing, mistyped or unknown, calls of tools in the many
// ways that [callBuilder] knows, an answer that ends without a reason, and a usage that
// comes late, early, twice, or never.
type completionReader struct {
	client *client
	hear   func(string)

	text    strings.Builder
	thought thought
	calls   *callBuilder
	usage   Usage
	finish  string
	chosen  bool // there was a choice
	refused bool
	done    bool // the stream said that it is over
}

// newCompletions begins to read the answer to r. text, if it is not nil, is told each part of the
// reply's text.
func newCompletions(c *client, r *Request, text func(string)) *completionReader {
	return &completionReader{client: c, hear: text, calls: newCalls(r)}
}

// whole reads an answer that is no stream.
func (r *completionReader) whole(body []byte) error {
	var a completion
	if err := decode(body, &a); err != nil {
		return r.client.unreadable("it is no JSON object", err)
	}
	r.done = true
	return r.take(&a)
}

// stream reads the chunks of a stream.
func (r *completionReader) stream(a *answer) error {
	events := a.events()
	for !r.done {
		e, err := events.Next()
		if err != nil && r.finish != "" { // all has come that matters
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.chunk(e.Name, e.Data); err != nil {
			return err
		}
		if r.finish != "" {
			a.within(afterwards)
		}
	}
	return nil
}

// chunk reads one event of a stream; name is its kind, which matters for errors alone.
func (r *completionReader) chunk(name string, data []byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return nil
	case bytes.HasPrefix(data, []byte("[DONE]")):
		r.done = true
		return nil
	case name == "error":
		return r.failed(data)
	}
	var a completion
	if err := decode(data, &a); err != nil {
		return r.client.unreadable("an event of its stream is no JSON object", err)
	}
	return r.take(&a)
}

func (r *completionReader) take(a *completion) error {
	switch string(a.Error) {
	case "", "null", "{}", `""`, "false":
	default:
		return r.failed(a.Error)
	}
	if a.Usage != nil {
		if u := a.Usage.tokens(); u.Total() > 0 {
			r.usage = u
		}
	}
	for i := range a.Choices {
		if c := &a.Choices[i]; c.Index == 0 { // one was asked for
			if err := r.choose(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *completionReader) choose(c *completionChoice) error {
	r.chosen = true
	for _, m := range []*completionMessage{&c.Message, &c.Delta} {
		r.content(string(m.Content))
		if m.Refusal != "" {
			r.refused = true
			r.say(string(m.Refusal))
		}
		for i := range m.Calls {
			if err := r.call(&m.Calls[i], m == &c.Message); err != nil {
				return r.client.unreadable(err.Error(), nil)
			}
		}
	}
	if c.Finish != "" {
		r.finish = string(c.Finish)
	}
	return nil
}

// content takes a part of the text that is not a refusal.
func (r *completionReader) content(text string) { r.say(r.thought.add(text)) }

func (r *completionReader) say(text string) {
	if text == "" {
		return
	}
	r.text.WriteString(text)
	if r.hear != nil {
		r.hear(text)
	}
}

func (r *completionReader) call(c *completionCall, whole bool) error {
	id, name, arguments := string(c.ID), string(c.Function.Name), string(c.Function.Arguments)
	if whole {
		return r.calls.whole(id, name, arguments)
	}
	p := callPart{ID: id, Name: name, Arguments: arguments}
	if c.Index != nil {
		p.Index, p.Indexed = *c.Index, true
	}
	return r.calls.add(p)
}

// tokens gives the usage. What the total has beyond both parts is counted as completion:
// some servers leave out there what the model thought, and some give the total alone.
func (u *completionUsage) tokens() Usage {
	return Usage{Prompt: int(u.Prompt), Completion: int(max(u.Completion, u.Total-u.Prompt))}
}

// failed is the error of an answer in which the server says that it failed.
func (r *completionReader) failed(said []byte) error {
	return r.client.failed(completionStatus(said), said)
}

// completionStatus guesses the status that an error within a stream would have had.
func completionStatus(said []byte) int { return status(said, true) }

func status(said []byte, within bool) int {
	var e struct {
		Error  json.RawMessage `json:"error"`
		Status tokenCount      `json:"status"`
		Code   word            `json:"code"`
		Type   word            `json:"type"`
	}
	if err := decode(said, &e); err != nil {
		return 500
	}
	if within && len(e.Error) > 0 && e.Error[0] == '{' {
		return status(e.Error, false)
	}
	var code tokenCount
	_ = code.UnmarshalJSON([]byte(e.Code)) // it never fails
	for _, n := range []tokenCount{code, e.Status} {
		if n >= 400 && n < 600 {
			return int(n)
		}
	}
	kind := strings.ToLower(string(e.Type + " " + e.Code))
	for _, k := range []struct {
		part   string
		status int
	}{
		{"rate_limit", 429},
		{"quota", 429},
		{"overloaded", 503},
		{"unavailable", 503},
		{"authentication", 401},
		{"api_key", 401},
		{"permission", 403},
		{"not_found", 404},
		{"invalid", 400},
	} {
		if strings.Contains(kind, k.part) {
			return k.status
		}
	}
	return 500
}

var errNoChoice = errors.New("there is no choice in it")

// reply gives what was read.
func (r *completionReader) reply() (*Reply, error) {
	switch r.finish {
	case "insufficient_system_resource": // so DeepSeek says that it gave up
		return nil, r.client.failed(503, nil)
	case "error": // and so do brokers of models, without a word more
		return nil, r.client.failed(500, nil)
	}
	asked, err := r.calls.list()
	if err == nil && !r.chosen {
		err = errNoChoice
	}
	if err != nil {
		return nil, r.client.unreadable(err.Error(), nil)
	}
	r.say(r.thought.end())
	reply := &Reply{Text: r.text.String(), Calls: asked, Stop: StopEnd, Usage: r.usage}
	switch {
	case r.refused || r.finish == "content_filter":
		reply.Stop, reply.Calls = StopRefused, nil
	case r.finish == "length" || r.finish == "max_tokens" || r.finish == "model_length":
		reply.Stop = StopLength // the last call may be half of one
	case len(asked) > 0: // whatever the reason is said to be
		reply.Stop = StopCalls
	}
	return reply, nil
}
