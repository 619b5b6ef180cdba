package anthropic

import (
	"cmp"
	"encoding/json"
	"strings"

	"openskill/host/llm"
	"openskill/host/llm/internal/calls"
	"openskill/host/llm/internal/completions"
	"openskill/host/llm/internal/transport"
)

// The form of an answer, of which only what is read here. What has another type than it
// should is as if it were not there.
type (
	whole struct {
		Type    completions.Word `json:"type"`
		Stop    completions.Word `json:"stop_reason"`
		Content []block          `json:"content"`
		Usage   usage            `json:"usage"`
	}
	event struct { // of a stream
		Type    completions.Word `json:"type"`
		Index   int              `json:"index"`
		Message struct {
			Usage usage `json:"usage"`
		} `json:"message"`
		Block block `json:"content_block"`
		Delta struct {
			Type  completions.Word `json:"type"`
			Text  completions.Word `json:"text"`
			Input completions.Word `json:"partial_json"`
			Stop  completions.Word `json:"stop_reason"`
		} `json:"delta"`
		Usage usage `json:"usage"`
	}
	block struct {
		Type  completions.Word `json:"type"`
		Text  completions.Word `json:"text"`
		ID    completions.Word `json:"id"`
		Name  completions.Word `json:"name"`
		Input json.RawMessage  `json:"input"`
	}
	// usage counts tokens: those of the prompt that were read from a cache, and those that
	// went into one, are counted apart.
	usage struct {
		Input   completions.Tokens `json:"input_tokens"`
		Created completions.Tokens `json:"cache_creation_input_tokens"`
		Read    completions.Tokens `json:"cache_read_input_tokens"`
		Output  completions.Tokens `json:"output_tokens"`
	}
)

// reader puts together one reply.
type reader struct {
	client *transport.Client
	hear   func(string)

	text  strings.Builder
	calls *calls.Builder
	given map[int]bool // calls whose input came whole, at their start
	usage usage
	stop  string
	done  bool
}

func newReader(c *transport.Client, r *llm.Request, text func(string)) *reader {
	return &reader{client: c, hear: text, calls: calls.New(r), given: map[int]bool{}}
}

// whole reads an answer that is no stream.
func (r *reader) whole(body []byte) error {
	var m whole
	if err := completions.Decode(body, &m); err != nil {
		return r.client.Unreadable("it is no JSON object", err)
	}
	switch {
	case m.Type == "error":
		return r.client.Failed(statusOf(body), body)
	case m.Stop == "":
		return r.client.Unreadable("it is no message", nil)
	}
	r.usage, r.stop = m.Usage, string(m.Stop)
	for i := range m.Content {
		switch b := &m.Content[i]; b.Type {
		case "text":
			r.say(string(b.Text))
		case "tool_use":
			if err := r.calls.Whole(string(b.ID), string(b.Name), arguments(b.Input)); err != nil {
				return r.client.Unreadable(err.Error(), nil)
			}
		}
	}
	return nil
}

// take reads one event of a stream.
func (r *reader) take(e *event, data []byte) error {
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
		return r.client.Failed(statusOf(data), data)
	}
	return nil
}

func (r *reader) open(e *event) error {
	switch b := &e.Block; b.Type {
	case "text":
		r.say(string(b.Text))
	case "tool_use":
		input := arguments(b.Input)
		r.given[e.Index] = input != ""
		return r.call(calls.Part{Index: e.Index, Indexed: true, ID: string(b.ID), Name: string(b.Name), Arguments: input})
	}
	return nil
}

func (r *reader) delta(e *event) error {
	switch d := &e.Delta; d.Type {
	case "text_delta":
		r.say(string(d.Text))
	case "input_json_delta":
		if d.Input != "" && !r.given[e.Index] {
			return r.call(calls.Part{Index: e.Index, Indexed: true, Arguments: string(d.Input)})
		}
	}
	return nil
}

// finish takes how the message ended, and its usage, whose counts are of the whole message.
// Those that are missing are as at its start.
func (r *reader) finish(e *event) {
	r.stop = cmp.Or(string(e.Delta.Stop), r.stop)
	r.usage = usage{
		Input:   cmp.Or(e.Usage.Input, r.usage.Input),
		Created: cmp.Or(e.Usage.Created, r.usage.Created),
		Read:    cmp.Or(e.Usage.Read, r.usage.Read),
		Output:  cmp.Or(e.Usage.Output, r.usage.Output),
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
			Prompt:     int(r.usage.Input + r.usage.Created + r.usage.Read),
			Completion: int(r.usage.Output),
		},
	}
	switch r.stop {
	case "refusal":
		out.Stop, out.Calls = llm.StopRefused, nil
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		out.Stop = llm.StopLength // the last call may be half of one
	default:
		if len(asked) > 0 {
			out.Stop = llm.StopCalls
		}
	}
	return out, nil
}

// arguments is the input of a call that came whole; a stream begins with an empty one.
func arguments(raw json.RawMessage) string {
	if text := string(raw); text != "{}" && text != "null" {
		return text
	}
	return ""
}

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
