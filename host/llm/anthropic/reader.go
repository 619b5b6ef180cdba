package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"openskill/host/llm"
	"openskill/host/llm/internal/calls"
	"openskill/host/llm/internal/transport"
)

// reader puts together one reply.
type reader struct {
	client *transport.Client
	hear   func(string)

	text   strings.Builder
	calls  *calls.Builder
	given  map[int64]bool // calls whose input came whole, at their start
	prompt counts
	output int64
	stop   sdk.StopReason
	done   bool
}

// counts are the tokens of a prompt: those that were read from a cache, and those that
// went into one, are counted apart.
type counts struct{ input, created, read int64 }

func newReader(c *transport.Client, r *llm.Request, text func(string)) *reader {
	return &reader{client: c, hear: text, calls: calls.New(r), given: map[int64]bool{}}
}

// whole reads an answer that is no stream.
func (r *reader) whole(body []byte) error {
	var m sdk.Message
	if err := json.Unmarshal(body, &m); err != nil {
		return r.client.Unreadable("it is no JSON object", err)
	}
	switch {
	case m.Type == "error":
		return r.client.Failed(statusOf(body), body)
	case m.StopReason == "":
		return r.client.Unreadable("it is no message", nil)
	}
	r.prompt = counts{m.Usage.InputTokens, m.Usage.CacheCreationInputTokens, m.Usage.CacheReadInputTokens}
	r.output, r.stop = m.Usage.OutputTokens, m.StopReason
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case "text":
			r.say(b.Text)
		case "tool_use":
			if err := r.calls.Whole(b.ID, b.Name, arguments(b.JSON.Input.Raw())); err != nil {
				return r.client.Unreadable(err.Error(), nil)
			}
		}
	}
	return nil
}

// take reads one event of a stream.
func (r *reader) take(e *sdk.MessageStreamEventUnion, data []byte) error {
	switch e.Type {
	case "message_start":
		u := &e.Message.Usage
		r.prompt = counts{u.InputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens}
		r.output = u.OutputTokens
	case "content_block_start":
		return r.open(e)
	case "content_block_delta":
		return r.delta(e)
	case "message_delta":
		r.finish(e)
	case "message_stop":
		r.done = true
	case "error": // from a server that does not name its events
		return r.client.Failed(statusOf(data), data)
	}
	return nil
}

func (r *reader) open(e *sdk.MessageStreamEventUnion) error {
	switch b := &e.ContentBlock; b.Type {
	case "text":
		r.say(b.Text)
	case "tool_use":
		input := arguments(b.JSON.Input.Raw())
		r.given[e.Index] = input != ""
		return r.call(calls.Part{Index: int(e.Index), Indexed: true, ID: b.ID, Name: b.Name, Arguments: input})
	}
	return nil
}

func (r *reader) delta(e *sdk.MessageStreamEventUnion) error {
	switch d := &e.Delta; d.Type {
	case "text_delta":
		r.say(d.Text)
	case "input_json_delta":
		if d.PartialJSON != "" && !r.given[e.Index] {
			return r.call(calls.Part{Index: int(e.Index), Indexed: true, Arguments: d.PartialJSON})
		}
	}
	return nil
}

// finish takes how the message ended, and its usage, whose counts are of the whole message.
// Those that are missing are as at its start.
func (r *reader) finish(e *sdk.MessageStreamEventUnion) {
	if e.Delta.StopReason != "" {
		r.stop = e.Delta.StopReason
	}
	u := &e.Usage
	for _, c := range []struct {
		into  *int64
		count int64
	}{
		{&r.output, u.OutputTokens},
		{&r.prompt.input, u.InputTokens},
		{&r.prompt.created, u.CacheCreationInputTokens},
		{&r.prompt.read, u.CacheReadInputTokens},
	} {
		if c.count > 0 {
			*c.into = c.count
		}
	}
}

func (r *reader) call(p calls.Part) error {
	if err := r.calls.Add(p); err != nil {
		return r.client.Unreadable(err.Error(), nil)
	}
	return nil
}

func (r *reader) say(text string) {
	if text == "" {
		return
	}
	r.text.WriteString(text)
	if r.hear != nil {
		r.hear(text)
	}
}

// reply gives what was read.
func (r *reader) reply() (*llm.Reply, error) {
	asked, err := r.calls.Calls()
	if err != nil {
		return nil, r.client.Unreadable(err.Error(), nil)
	}
	out := &llm.Reply{
		Text: r.text.String(), Calls: asked, Stop: llm.StopEnd,
		Usage: llm.Usage{
			Prompt:     tokens(r.prompt.input) + tokens(r.prompt.created) + tokens(r.prompt.read),
			Completion: tokens(r.output),
		},
	}
	switch r.stop {
	case sdk.StopReasonRefusal:
		out.Stop, out.Calls = llm.StopRefused, nil
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded, sdk.StopReasonPauseTurn:
		out.Stop = llm.StopLength // the last call may be half of one
	default:
		if len(asked) > 0 {
			out.Stop = llm.StopCalls
		}
	}
	return out, nil
}

// arguments is the input of a call that came whole; a stream begins with an empty one.
func arguments(raw string) string {
	if raw == "{}" || raw == "null" {
		return ""
	}
	return raw
}

// mostTokens is more than a model can reach; a count beyond is cut, for the sake of what is
// computed of it.
const mostTokens = 1e9

func tokens(n int64) int { return int(min(max(n, 0), mostTokens)) }

// statuses are those that the vendor's kinds of errors have outside of streams.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504, "overloaded_error": 529,
}

func statusOf(data []byte) int {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &e) == nil {
		if status, ok := statuses[e.Error.Type]; ok {
			return status
		}
	}
	return 500
}
