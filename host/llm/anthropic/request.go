package anthropic

import (
	"encoding/json"
	"strings"

	"openskill/host/llm"
	"openskill/host/llm/internal/calls"
)

// The form of a request, of which only what is sent here.
type (
	request struct {
		MaxTokens   int               `json:"max_tokens"`
		Messages    []message         `json:"messages"`
		Model       string            `json:"model"`
		Temperature *float64          `json:"temperature,omitempty"`
		System      []text            `json:"system,omitempty"`
		Choice      *choice           `json:"tool_choice,omitempty"`
		Tools       []json.RawMessage `json:"tools,omitempty"`
		Stream      bool              `json:"stream,omitempty"`
	}
	choice struct {
		Type string `json:"type"`
	}
	message struct {
		Content []any    `json:"content"` // text, toolUse, toolResult
		Role    llm.Role `json:"role"`
	}
	text struct {
		Text string `json:"text"`
		Type string `json:"type"` // "text"
	}
	toolUse struct {
		ID    string          `json:"id"`
		Input json.RawMessage `json:"input"`
		Name  string          `json:"name"`
		Type  string          `json:"type"` // "tool_use"
	}
	toolResult struct {
		ID      string `json:"tool_use_id"`
		IsError bool   `json:"is_error,omitempty"`
		Content []text `json:"content,omitempty"`
		Type    string `json:"type"` // "tool_result"
	}
)

func (p *provider) request(r *llm.Request, stream bool) (*request, error) {
	out := &request{Model: r.Model, MaxTokens: r.MaxTokens, Messages: messages(r.Messages), System: texts(r.System), Stream: stream}
	if r.Temperature != nil {
		warm := min(*r.Temperature, 1)
		out.Temperature = &warm
	}
	var err error
	if out.Tools, err = p.tools.Write(r.Tools); err != nil {
		return nil, err
	}
	if len(out.Tools) == 0 {
		for _, name := range calls.Names(r.Messages) { // which are letters, digits, _ and -
			out.Tools = append(out.Tools, json.RawMessage(`{"name":"`+name+`"}`))
			out.Choice = &choice{"none"}
		}
	}
	return out, nil
}

func messages(list []llm.Message) []message {
	var out []message
	for i := range list {
		m := &list[i]
		role := llm.User
		if m.Role == llm.Assistant {
			role = llm.Assistant
		}
		said := blocks(m)
		switch last := len(out) - 1; {
		case len(said) == 0:
		case last >= 0 && out[last].Role == role:
			out[last].Content = append(out[last].Content, said...)
		default:
			out = append(out, message{Role: role, Content: said})
		}
	}
	return out
}

func blocks(m *llm.Message) (out []any) {
	if m.Role == llm.Tool {
		return []any{toolResult{Type: "tool_result", ID: calls.PlainID(m.CallID), IsError: m.Failed, Content: texts(m.Text)}}
	}
	for _, t := range texts(m.Text) {
		out = append(out, t)
	}
	for _, c := range m.Calls {
		out = append(out, toolUse{Type: "tool_use", ID: calls.PlainID(c.ID), Input: calls.Object(c.Arguments), Name: calls.Name(c.Name)})
	}
	return out
}

// texts is a text as a list of blocks, which is empty if the vendor would refuse the text
// for having nothing in it.
func texts(s string) []text {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []text{{Type: "text", Text: s}}
}
