package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"strings"

	"openskill/host/agent/llm"
	"openskill/sdk/skill"
)

// openAI is the wire form of Chat Completions.
type openAI struct{}

func (openAI) name() string { return "openai" }

func (openAI) key(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}

// The parts of a request that are looked at; clients may send others.
type (
	openAIAsk struct {
		Model               string          `json:"model"`
		Messages            []openAIMessage `json:"messages"`
		Tools               []openAITool    `json:"tools"`
		Stream              bool            `json:"stream"`
		StreamOptions       *streamOptions  `json:"stream_options"`
		MaxTokens           *int            `json:"max_tokens"`
		MaxCompletionTokens *int            `json:"max_completion_tokens"`
		Temperature         *float64        `json:"temperature"`
		ResponseFormat      *format         `json:"response_format"`
		ToolChoice          json.RawMessage `json:"tool_choice"`
	}
	streamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	format struct {
		Type string `json:"type"`
	}
	openAIMessage struct {
		Role       string       `json:"role"`
		Content    words        `json:"content"`
		ToolCalls  []openAICall `json:"tool_calls"`
		ToolCallID string       `json:"tool_call_id"`
	}
	openAICall struct {
		ID       string         `json:"id"`
		Type     string         `json:"type"`
		Function openAIFunction `json:"function"`
	}
	openAIFunction struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	}
	openAITool struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
)

// words are content: a string, null, or parts that are texts.
type words struct {
	text  string
	parts []string // of a list
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *words) UnmarshalJSON(b []byte) error {
	switch {
	case bytes.Equal(b, []byte("null")):
		return nil
	case b[0] == '"':
		return json.Unmarshal(b, &c.text)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return bad("content must be a string or a list of parts")
	}
	c.parts = []string{}
	for _, p := range parts {
		if p.Type != "text" && p.Type != "refusal" {
			return bad("a scripted model reads text alone, and a part is " + skill.CleanText(p.Type, 40))
		}
		c.parts = append(c.parts, p.Text)
		c.text += p.Text
	}
	return nil
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

const maxTools = 128 // that OpenAI takes

// read implements wire. What it refuses is what the vendor refuses.
func (openAI) read(_ http.Header, body []byte) (*asked, error) {
	var in openAIAsk
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, bad("We could not parse the JSON body of your request: " + skill.CleanText(err.Error(), 200))
	}
	q := &asked{stream: in.Stream, usage: in.StreamOptions != nil && in.StreamOptions.IncludeUsage}
	q.Model, q.Temperature = in.Model, in.Temperature
	q.JSON = in.ResponseFormat != nil && in.ResponseFormat.Type == "json_object"
	for _, n := range []*int{in.MaxTokens, in.MaxCompletionTokens} {
		if n != nil {
			q.MaxTokens = *n
		}
	}
	switch {
	case in.Model == "":
		return nil, bad("you must provide a model parameter")
	case len(in.Messages) == 0:
		return nil, bad("messages: it must have at least one")
	case in.StreamOptions != nil && !in.Stream:
		return nil, bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case in.MaxTokens != nil && in.MaxCompletionTokens != nil:
		return nil, bad("max_tokens and max_completion_tokens exclude each other")
	case (in.MaxTokens != nil || in.MaxCompletionTokens != nil) && q.MaxTokens < 1:
		return nil, bad("max_tokens: it must be at least 1")
	case in.Temperature != nil && (*in.Temperature < 0 || *in.Temperature > 2):
		return nil, bad("temperature: it must be from 0 to 2")
	case in.Tools != nil && (len(in.Tools) == 0 || len(in.Tools) > maxTools):
		return nil, bad(fmt.Sprintf("tools: it must have 1 to %d, and has %d", maxTools, len(in.Tools)))
	case in.ToolChoice != nil && in.Tools == nil:
		return nil, bad("'tool_choice' is only allowed when 'tools' are specified.")
	case q.JSON && !mentionsJSON(in.Messages):
		return nil, bad("'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
	}
	return q, in.talk(&q.Request)
}

// talk reads the tools and the messages.
func (in *openAIAsk) talk(to *llm.Request) error {
	for i, t := range in.Tools {
		if t.Type != "function" || !toolName.MatchString(t.Function.Name) {
			return bad(fmt.Sprintf("tools[%d]: want a function with a name of 1 to 64 of a-z, A-Z, 0-9, _ and -", i))
		}
		if len(t.Function.Parameters) > 0 && !isObject(t.Function.Parameters) {
			return bad(fmt.Sprintf("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'", t.Function.Name))
		}
		to.Tools = append(to.Tools, skill.Tool{Name: t.Function.Name, Description: t.Function.Description, InputSchema: t.Function.Parameters})
	}
	return readOpenAI(in.Messages, to)
}

func mentionsJSON(list []openAIMessage) bool {
	for i := range list {
		if strings.Contains(strings.ToLower(list[i].Content.text), "json") {
			return true
		}
	}
	return false
}

// isObject reports whether a schema is one of an object.
func isObject(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// readOpenAI checks that calls and their results belong together.
func readOpenAI(list []openAIMessage, to *llm.Request) error {
	var open map[string]bool // calls that have no result yet
	for i := range list {
		m := &list[i]
		where := fmt.Sprintf("messages[%d]: ", i)
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				return bad(where + "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
			}
			delete(open, m.ToolCallID)
			to.Messages = append(to.Messages, llm.Message{Role: llm.Tool, Text: m.Content.text, CallID: m.ToolCallID})
			continue
		}
		if len(open) > 0 {
			return bad(where + "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
		}
		switch m.Role {
		case "system", "developer":
			to.System = strings.TrimPrefix(to.System+"\n"+m.Content.text, "\n")
		case "user":
			to.Messages = append(to.Messages, llm.Message{Role: llm.User, Text: m.Content.text})
		case "assistant":
			said := llm.Message{Role: llm.Assistant, Text: m.Content.text}
			open = map[string]bool{}
			for _, c := range m.ToolCalls {
				if c.ID == "" || open[c.ID] || c.Type != "function" || !toolName.MatchString(c.Function.Name) || c.Function.Arguments == nil {
					return bad(where + "each of tool_calls needs an id of its own, the type function, a name, and arguments as a string")
				}
				open[c.ID] = true
				said.Calls = append(said.Calls, llm.Call{ID: c.ID, Name: c.Function.Name, Arguments: *c.Function.Arguments})
			}
			if m.Content.text == "" && len(said.Calls) == 0 {
				return bad(where + "an assistant's message needs content or tool_calls")
			}
			to.Messages = append(to.Messages, said)
		default:
			return bad(where + "the role " + skill.CleanText(m.Role, 40) + " is none of system, developer, user, assistant and tool")
		}
	}
	if len(open) > 0 {
		return bad("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

// object is a JSON object whose members are sorted by their names.
type object = map[string]any

func openAIUsage(a *answer) object {
	u := a.reply.Usage
	return object{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Total()}
}

func openAIStop(s llm.Stop) string {
	switch s {
	case llm.StopCalls:
		return "tool_calls"
	case llm.StopLength:
		return "length"
	case llm.StopRefused:
		return "content_filter"
	default:
		return "stop"
	}
}

// message is an assistant's message as a value for JSON.
func (openAI) message(a *answer) object {
	m := object{"role": "assistant", "content": nil, "refusal": nil}
	if a.reply.Text != "" || len(a.reply.Calls) == 0 {
		m["content"] = a.reply.Text
	}
	var calls []object
	for _, c := range a.reply.Calls {
		calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return m
}

// whole implements wire.
func (w openAI) whole(q *asked, a *answer) any {
	out := object{
		"id": "chatcmpl-scripted", "object": "chat.completion", "created": created, "model": q.Model, "system_fingerprint": nil,
		"choices": []object{{"index": 0, "message": w.message(a), "logprobs": nil, "finish_reason": openAIStop(a.reply.Stop)}},
	}
	if a.usage {
		out["usage"] = openAIUsage(a)
	}
	return out
}

// stream implements wire.
func (openAI) stream(q *asked, a *answer) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		chunk := func(choices []object, usage any) bool {
			v := object{
				"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": created, "model": q.Model, "system_fingerprint": nil,
				"choices": choices,
			}
			if q.usage && a.usage { // null in all but the last
				v["usage"] = usage
			}
			return yield(event("", v))
		}
		delta := func(d object, finish any) bool {
			return chunk([]object{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
		}
		if !delta(object{"role": "assistant", "content": "", "refusal": nil}, nil) {
			return
		}
		for part := range pieces(a.reply.Text, a.chunk()) {
			if !delta(object{"content": part}, nil) {
				return
			}
		}
		for i, c := range a.reply.Calls {
			begin := object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}
			if !delta(object{"tool_calls": []object{begin}}, nil) {
				return
			}
			for part := range pieces(c.Arguments, a.chunk()) {
				if !delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": part}}}}, nil) {
					return
				}
			}
		}
		if !delta(object{}, openAIStop(a.reply.Stop)) {
			return
		}
		if q.usage && a.usage && !chunk([]object{}, openAIUsage(a)) {
			return
		}
		yield([]byte("data: [DONE]\n\n"))
	}
}

// event is one of a stream; name may be "".
func event(name string, v any) []byte {
	var b bytes.Buffer
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(encoded(v))
	b.WriteString("\n\n")
	return b.Bytes()
}

// fail implements wire.
func (openAI) fail(status int, message string) any {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case status == http.StatusUnauthorized:
		code = "invalid_api_key"
	case status == http.StatusTooManyRequests:
		kind, code = "requests", "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	return object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}
}

func (openAI) models(names []string) any {
	list := []object{}
	for _, n := range names {
		list = append(list, object{"id": n, "object": "model", "created": created, "owned_by": "scripted"})
	}
	return object{"object": "list", "data": list}
}
