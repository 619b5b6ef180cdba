package openai

import (
	"encoding/json"
	"regexp"

	"openskill/host/llm"
	"openskill/host/llm/internal/calls"
)

// The form of a request, of which only what is sent here.
type (
	request struct {
		Messages      []message         `json:"messages"`
		Model         string            `json:"model"`
		MaxCompletion *int              `json:"max_completion_tokens,omitempty"`
		Max           *int              `json:"max_tokens,omitempty"`
		Temperature   *float64          `json:"temperature,omitempty"`
		Format        *kind             `json:"response_format,omitempty"`
		Options       *streamOptions    `json:"stream_options,omitempty"`
		Tools         []json.RawMessage `json:"tools,omitempty"`
		Stream        bool              `json:"stream,omitempty"`
	}
	kind struct {
		Type string `json:"type"`
	}
	streamOptions struct {
		Usage bool `json:"include_usage"`
	}
	message struct {
		Content *string  `json:"content,omitempty"` // nil: it has calls alone
		Calls   []call   `json:"tool_calls,omitempty"`
		CallID  string   `json:"tool_call_id,omitempty"`
		Role    llm.Role `json:"role"`
	}
	call struct {
		ID       string   `json:"id"`
		Function function `json:"function"`
		Type     string   `json:"type"`
	}
	function struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	}
)

// thinks matches those of OpenAI's models that think before they answer.
var thinks = regexp.MustCompile(`^(ft:)?(o[1-9]|gpt-[5-9])([-.:]|$)`)

// chats matches those of the same families that do not.
var chats = regexp.MustCompile(`^gpt-[0-9.]+-chat`)

func (p *provider) request(r *llm.Request) (*request, error) {
	out := &request{Model: r.Model, Messages: messages(r)}
	if p.openAI && thinks.MatchString(r.Model) && !chats.MatchString(r.Model) {
		out.MaxCompletion = &r.MaxTokens
	} else {
		out.Max, out.Temperature = &r.MaxTokens, r.Temperature
	}
	if r.JSON {
		out.Format = &kind{"json_object"}
	}
	var err error
	out.Tools, err = p.tools.Write(r.Tools)
	return out, err
}

func messages(r *llm.Request) []message {
	var out []message
	if r.System != "" {
		out = append(out, message{Role: "system", Content: &r.System})
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		said := message{Role: m.Role, Content: &m.Text}
		if m.Role == llm.Tool { // that it failed is what its text says
			said.CallID = calls.ShortID(m.CallID)
		}
		if m.Text == "" && len(m.Calls) > 0 {
			said.Content = nil
		}
		for _, c := range m.Calls {
			said.Calls = append(said.Calls, call{
				ID: calls.ShortID(c.ID), Type: "function",
				Function: function{Name: calls.Name(c.Name), Arguments: string(calls.Object(c.Arguments))},
			})
		}
		out = append(out, said)
	}
	return out
}
