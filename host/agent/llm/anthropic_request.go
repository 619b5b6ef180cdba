package llm

import (
	"encoding/json"
	"strings"
)

// The form of a request, of which only what is sent here.
type (
	anthropicRequest struct {
		MaxTokens   int                `json:"max_tokens"`
		Messages    []anthropicMessage `json:"messages"`
		Model       string             `json:"model"`
		Temperature *float64           `json:"temperature,omitempty"`
		System      []textBlock        `json:"system,omitempty"`
		Choice      *toolChoice        `json:"tool_choice,omitempty"`
		Tools       []json.RawMessage  `json:"tools,omitempty"`
		Stream      bool               `json:"stream,omitempty"`
	}
	toolChoice struct {
		Type string `json:"type"`
	}
	anthropicMessage struct {
		Content []any `json:"content"` // textBlock, toolUse, toolResult
		Role    Role  `json:"role"`
	}
	textBlock struct {
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
		ID      string      `json:"tool_use_id"`
		IsError bool        `json:"is_error,omitempty"`
		Content []textBlock `json:"content,omitempty"`
		Type    string      `json:"type"` // "tool_result"
	}
)

func (p *anthropic) request(r *Request, stream bool) (*anthropicRequest, error) {
	out := &anthropicRequest{Model: r.Model, MaxTokens: r.MaxTokens, Messages: anthropicMessages(r.Messages), System: textBlocks(r.System), Stream: stream}
	if r.Temperature != nil {
		warm := min(*r.Temperature, 1)
		out.Temperature = &warm
	}
	var err error
	if out.Tools, err = p.http.tools.write(r.Tools); err != nil {
		return nil, err
	}
	if len(out.Tools) == 0 {
		for _, name := range calledNames(r.Messages) { // which are letters, digits, _ and -
			out.Tools = append(out.Tools, json.RawMessage(`{"name":"`+name+`"}`))
			out.Choice = &toolChoice{"none"}
		}
	}
	return out, nil
}

func anthropicMessages(list []Message) []anthropicMessage {
	var out []anthropicMessage
	for i := range list {
		m := &list[i]
		role := User
		if m.Role == Assistant {
			role = Assistant
		}
		said := anthropicBlocks(m)
		switch last := len(out) - 1; {
		case len(said) == 0:
		case last >= 0 && out[last].Role == role:
			out[last].Content = append(out[last].Content, said...)
		default:
			out = append(out, anthropicMessage{Role: role, Content: said})
		}
	}
	return out
}

func anthropicBlocks(m *Message) (out []any) {
	if m.Role == Tool {
		return []any{toolResult{Type: "tool_result", ID: plainID(m.CallID), IsError: m.Failed, Content: textBlocks(m.Text)}}
	}
	for _, t := range textBlocks(m.Text) {
		out = append(out, t)
	}
	for _, c := range m.Calls {
		out = append(out, toolUse{Type: "tool_use", ID: plainID(c.ID), Input: object(c.Arguments), Name: plainName(c.Name)})
	}
	return out
}

// textBlocks is a text as a list of blocks, which is empty if the vendor would refuse the text
// for having nothing in it.
func textBlocks(s string) []textBlock {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []textBlock{{Type: "text", Text: s}}
}
