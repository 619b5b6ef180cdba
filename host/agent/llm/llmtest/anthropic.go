package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"regexp"

	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// anthropic is the wire form of Messages.
type anthropic struct{}

func (anthropic) name() string { return "anthropic" }

// key implements wire. Newer clients show it as others do.
func (anthropic) key(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	return openAI{}.key(h)
}

type (
	anthropicAsk struct {
		Model       string             `json:"model"`
		MaxTokens   *int               `json:"max_tokens"`
		System      words              `json:"system"`
		Messages    []anthropicMessage `json:"messages"`
		Tools       []anthropicTool    `json:"tools"`
		Stream      bool               `json:"stream"`
		Temperature *float64           `json:"temperature"`
	}
	anthropicMessage struct {
		Role    string `json:"role"`
		Content blocks `json:"content"`
	}
	block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   words           `json:"content"`
		IsError   bool            `json:"is_error"`
	}
	anthropicTool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
)

// blocks is content: blocks, or a text that is one.
type blocks []block

// UnmarshalJSON implements json.Unmarshaler.
func (c *blocks) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = blocks{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(b, (*[]block)(c))
}

var (
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// read implements wire. What it refuses is what the vendor refuses.
func (anthropic) read(h http.Header, body []byte) (*asked, error) {
	if h.Get("Anthropic-Version") == "" {
		return nil, bad("anthropic-version: header is required")
	}
	var in anthropicAsk
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, bad("The request body is not valid JSON: " + skill.CleanText(err.Error(), 200))
	}
	switch {
	case in.Model == "":
		return nil, bad("model: Field required")
	case in.MaxTokens == nil:
		return nil, bad("max_tokens: Field required")
	case *in.MaxTokens < 1:
		return nil, bad("max_tokens: Input should be greater than or equal to 1")
	case len(in.Messages) == 0:
		return nil, bad("messages: at least one message is required")
	case in.Messages[0].Role != "user":
		return nil, bad("messages: first message must use the \"user\" role")
	case in.Temperature != nil && (*in.Temperature < 0 || *in.Temperature > 1):
		return nil, bad("temperature: it must be from 0 to 1")
	}
	for _, p := range in.System.parts {
		if p == "" {
			return nil, bad("system: text content blocks must be non-empty")
		}
	}
	q := &asked{stream: in.Stream, usage: true}
	q.Model, q.MaxTokens, q.Temperature, q.System = in.Model, *in.MaxTokens, in.Temperature, in.System.text
	names := map[string]bool{}
	for i, t := range in.Tools {
		switch {
		case !anthropicName.MatchString(t.Name):
			return nil, bad(fmt.Sprintf("tools.%d.name: String should match pattern '%s'", i, anthropicName))
		case names[t.Name]:
			return nil, bad("tools: Tool names must be unique.")
		case !isObject(t.InputSchema):
			return nil, bad(fmt.Sprintf("tools.%d.input_schema.type: Input should be 'object'", i))
		}
		names[t.Name] = true
		q.Tools = append(q.Tools, skill.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return q, readAnthropic(in.Messages, &q.Request)
}

// readAnthropic checks that calls and their results belong together, and makes one
// message of each result.
func readAnthropic(list []anthropicMessage, to *llm.Request) error {
	var open map[string]bool // calls of the message before
	for i := range list {
		m := &list[i]
		where := fmt.Sprintf("messages.%d", i)
		if m.Role != "user" && m.Role != "assistant" {
			return bad(where + ".role: Input should be 'user' or 'assistant'")
		}
		if len(m.Content) == 0 {
			return bad(where + ": all messages must have non-empty content")
		}
		said := llm.Message{Role: llm.Role(m.Role)}
		now := map[string]bool{}
		for j := range m.Content {
			switch b := &m.Content[j]; {
			case b.Type == "text" && b.Text == "":
				return bad(where + ": text content blocks must be non-empty")
			case b.Type == "text":
				said.Text += b.Text
			case b.Type == "tool_use" && m.Role == "assistant":
				if !anthropicID.MatchString(b.ID) || now[b.ID] || !anthropicName.MatchString(b.Name) || !bytes.HasPrefix(b.Input, []byte("{")) {
					return bad(where + ": `tool_use` blocks need an id of their own, a name, and an object as input")
				}
				now[b.ID] = true
				said.Calls = append(said.Calls, llm.Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case b.Type == "tool_result" && m.Role == "user":
				if !open[b.ToolUseID] {
					return bad(where + ": unexpected `tool_use_id` found in `tool_result` blocks: " + skill.CleanText(b.ToolUseID, 80))
				}
				if said.Text != "" {
					return bad(where + ": `tool_result` blocks come first in a message")
				}
				delete(open, b.ToolUseID)
				to.Messages = append(to.Messages, llm.Message{Role: llm.Tool, Text: b.Content.text, CallID: b.ToolUseID, Failed: b.IsError})
			default:
				return bad(where + ": a block of type " + skill.CleanText(b.Type, 40) + " is not accepted here")
			}
		}
		if len(open) > 0 {
			return bad(where + ": `tool_use` ids were found without `tool_result` blocks immediately after")
		}
		if open = now; said.Text != "" || len(said.Calls) > 0 {
			to.Messages = append(to.Messages, said)
		}
	}
	if len(open) > 0 {
		return bad("messages: `tool_use` ids were found without `tool_result` blocks immediately after")
	}
	return nil
}

func anthropicStop(s llm.Stop) string {
	switch s {
	case llm.StopCalls:
		return "tool_use"
	case llm.StopLength:
		return "max_tokens"
	case llm.StopRefused:
		return "refusal"
	default:
		return "end_turn"
	}
}

// envelope is the message around content. What an answer took has no way to be left out
// here: it is 0.
func (anthropic) envelope(q *asked, stop any, content []object, in, out int) object {
	return object{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": q.Model, "content": content,
		"stop_reason": stop, "stop_sequence": nil, "usage": object{"input_tokens": in, "output_tokens": out},
	}
}

// whole implements wire. Arguments that are no JSON cannot be said here but as a text.
func (w anthropic) whole(q *asked, a *answer) any {
	content := []object{}
	if a.reply.Text != "" {
		content = append(content, object{"type": "text", "text": a.reply.Text})
	}
	for _, c := range a.reply.Calls {
		input := any(c.Arguments)
		switch {
		case c.Arguments == "":
			input = object{}
		case json.Valid([]byte(c.Arguments)):
			input = json.RawMessage(c.Arguments)
		}
		content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": input})
	}
	return w.envelope(q, anthropicStop(a.reply.Stop), content, a.reply.Usage.Prompt, a.reply.Usage.Completion)
}

// stream implements wire.
func (w anthropic) stream(q *asked, a *answer) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		send := func(kind string, v object) bool {
			v["type"] = kind
			return yield(event(kind, v))
		}
		index := 0
		block := func(begin object, kind, field, whole string) bool {
			ok := send("content_block_start", object{"index": index, "content_block": begin})
			for part := range pieces(whole, a.chunk()) {
				ok = ok && send("content_block_delta", object{"index": index, "delta": object{"type": kind, field: part}})
			}
			ok = ok && send("content_block_stop", object{"index": index})
			index++
			return ok
		}
		ok := send("message_start", object{"message": w.envelope(q, nil, []object{}, a.reply.Usage.Prompt, min(1, a.reply.Usage.Completion))}) && send("ping", object{})
		if ok && a.reply.Text != "" {
			ok = block(object{"type": "text", "text": ""}, "text_delta", "text", a.reply.Text)
		}
		for _, c := range a.reply.Calls {
			ok = ok && block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, "input_json_delta", "partial_json", c.Arguments)
		}
		_ = ok && send("message_delta", object{
			"delta": object{"stop_reason": anthropicStop(a.reply.Stop), "stop_sequence": nil}, "usage": object{"output_tokens": a.reply.Usage.Completion},
		}) && send("message_stop", object{})
	}
}

// fail implements wire.
func (anthropic) fail(status int, message string) any {
	kind := "invalid_request_error"
	switch status {
	case http.StatusUnauthorized:
		kind = "authentication_error"
	case http.StatusForbidden:
		kind = "permission_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case 529:
		kind = "overloaded_error"
	default:
		if status >= http.StatusInternalServerError {
			kind = "api_error"
		}
	}
	return object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_anthropic"}
}

func (anthropic) models(names []string) any {
	list := []object{}
	for _, n := range names {
		list = append(list, object{"type": "model", "id": n, "display_name": n, "created_at": "2026-01-01T00:00:00Z"})
	}
	first, last := any(nil), any(nil)
	if len(names) > 0 {
		first, last = names[0], names[len(names)-1]
	}
	return object{"data": list, "has_more": false, "first_id": first, "last_id": last}
}
