package llm

import (
	"cmp"
	"encoding/json"
	"strings"
)

// The form of an answer, of which only what is read here. What has another type than it
// should is as if it were not there.
type (
	anthropicWhole struct {
		Type    word             `json:"type"`
		Stop    word             `json:"stop_reason"`
		Content []anthropicBlock `json:"content"`
		Usage   anthropicUsage   `json:"usage"`
	}
	anthropicEvent struct { // of a stream
		Type    word `json:"type"`
		Index   int  `json:"index"`
		Message struct {
			Usage anthropicUsage `json:"usage"`
		} `json:"message"`
		Block anthropicBlock `json:"content_block"`
		Delta struct {
			Type  word `json:"type"`
			Text  word `json:"text"`
			Input word `json:"partial_json"`
			Stop  word `json:"stop_reason"`
		} `json:"delta"`
		Usage anthropicUsage `json:"usage"`
	}
	anthropicBlock struct {
		Type  word            `json:"type"`
		Text  word            `json:"text"`
		ID    word            `json:"id"`
		Name  word            `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	// anthropicUsage counts tokens: those of the prompt that were read from a cache, and those that
	// went into one, are counted apart.
	anthropicUsage struct {
		Input   tokenCount `json:"input_tokens"`
		Created tokenCount `json:"cache_creation_input_tokens"`
		Read    tokenCount `json:"cache_read_input_tokens"`
		Output  tokenCount `json:"output_tokens"`
	}
)

// anthropicReader puts together one reply.
type anthropicReader struct {
	client *client
	hear   func(string)

	text  strings.Builder
	calls *callBuilder
	given map[int]bool // calls whose input came whole, at their start
	usage anthropicUsage
	stop  string
	done  bool
}

func newAnthropicReader(c *client, r *Request, text func(string)) *anthropicReader {
	return &anthropicReader{client: c, hear: text, calls: newCalls(r), given: map[int]bool{}}
}

// whole reads an answer that is no stream.
func (r *anthropicReader) whole(body []byte) error {
	var m anthropicWhole
	if err := decode(body, &m); err != nil {
		return r.client.unreadable("it is no JSON object", err)
	}
	switch {
	case m.Type == "error":
		return r.client.failed(anthropicStatus(body), body)
	case m.Stop == "":
		return r.client.unreadable("it is no message", nil)
	}
	r.usage, r.stop = m.Usage, string(m.Stop)
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case "text":
			r.say(string(b.Text))
		case "tool_use":
			if err := r.calls.whole(string(b.ID), string(b.Name), wholeArguments(b.Input)); err != nil {
				return r.client.unreadable(err.Error(), nil)
			}
		}
	}
	return nil
}

// take reads one event of a stream.
func (r *anthropicReader) take(e *anthropicEvent, data []byte) error {
	switch e.Type {
	case "message_start":
		r.usage = e.Message.Usage
	case "content_block_start":
		return r.open(e)
	case "content_block_delta":
		return r.delta(e)
	case "message_delta":
		r.finish(e)
	case "message_stop":
		r.done = true
	case "error": // from a server that does not name its events
		return r.client.failed(anthropicStatus(data), data)
	}
	return nil
}

func (r *anthropicReader) open(e *anthropicEvent) error {
	switch b := &e.Block; b.Type {
	case "text":
		r.say(string(b.Text))
	case "tool_use":
		input := wholeArguments(b.Input)
		r.given[e.Index] = input != ""
		return r.call(callPart{Index: e.Index, Indexed: true, ID: string(b.ID), Name: string(b.Name), Arguments: input})
	}
	return nil
}

func (r *anthropicReader) delta(e *anthropicEvent) error {
	switch d := &e.Delta; d.Type {
	case "text_delta":
		r.say(string(d.Text))
	case "input_json_delta":
		if d.Input != "" && !r.given[e.Index] {
			return r.call(callPart{Index: e.Index, Indexed: true, Arguments: string(d.Input)})
		}
	}
	return nil
}

// finish takes how the message ended, and its usage, whose counts are of the whole message.
// Those that are missing are as at its start.
func (r *anthropicReader) finish(e *anthropicEvent) {
	r.stop = cmp.Or(string(e.Delta.Stop), r.stop)
	r.usage = anthropicUsage{
		Input:   cmp.Or(e.Usage.Input, r.usage.Input),
		Created: cmp.Or(e.Usage.Created, r.usage.Created),
		Read:    cmp.Or(e.Usage.Read, r.usage.Read),
		Output:  cmp.Or(e.Usage.Output, r.usage.Output),
	}
}

func (r *anthropicReader) call(p callPart) error {
	if err := r.calls.add(p); err != nil {
		return r.client.unreadable(err.Error(), nil)
	}
	return nil
}

func (r *anthropicReader) say(text string) {
	if text == "" {
		return
	}
	r.text.WriteString(text)
	if r.hear != nil {
		r.hear(text)
	}
}

// reply gives what was read.
func (r *anthropicReader) reply() (*Reply, error) {
	asked, err := r.calls.list()
	if err != nil {
		return nil, r.client.unreadable(err.Error(), nil)
	}
	out := &Reply{
		Text: r.text.String(), Calls: asked, Stop: StopEnd,
		Usage: Usage{
			Prompt:     int(r.usage.Input + r.usage.Created + r.usage.Read),
			Completion: int(r.usage.Output),
		},
	}
	switch r.stop {
	case "refusal":
		out.Stop, out.Calls = StopRefused, nil
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		out.Stop = StopLength // the last call may be half of one
	default:
		if len(asked) > 0 {
			out.Stop = StopCalls
		}
	}
	return out, nil
}

// wholeArguments is the input of a call that came whole; a stream begins with an empty one.
func wholeArguments(raw json.RawMessage) string {
	if text := string(raw); text != "{}" && text != "null" {
		return text
	}
	return ""
}

// anthropicStatuses are those that the vendor's kinds of errors have outside of streams.
var anthropicStatuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504, "overloaded_error": 529,
}

func anthropicStatus(data []byte) int {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(data, &e) == nil {
		if status, ok := anthropicStatuses[e.Error.Type]; ok {
			return status
		}
	}
	return 500
}
