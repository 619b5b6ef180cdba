package llm

import (
	"encoding/json"
	"regexp"
)

// The form of a request, of which only what is sent here.
type (
	openAIRequest struct {
		Messages      []openAIMessage   `json:"messages"`
		Model         string            `json:"model"`
		MaxCompletion *int              `json:"max_completion_tokens,omitempty"`
		Max           *int              `json:"max_tokens,omitempty"`
		Temperature   *float64          `json:"temperature,omitempty"`
		Format        *openAIFormat     `json:"response_format,omitempty"`
		Options       *streamOptions    `json:"stream_options,omitempty"`
		Tools         []json.RawMessage `json:"tools,omitempty"`
		Stream        bool              `json:"stream,omitempty"`
	}
	openAIFormat struct {
		Type string `json:"type"`
	}
	streamOptions struct {
		Usage bool `json:"include_usage"`
	}
	openAIMessage struct {
		Content *string      `json:"content,omitempty"` // nil: it has calls alone
		Calls   []openAICall `json:"tool_calls,omitempty"`
		CallID  string       `json:"tool_call_id,omitempty"`
		Role    Role         `json:"role"`
	}
	openAICall struct {
		ID       string         `json:"id"`
		Function openAIFunction `json:"function"`
		Type     string         `json:"type"`
	}
	openAIFunction struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	}
)

// thinks matches those of OpenAI's models that think before they answer.
var thinks = regexp.MustCompile(`^(ft:)?(o[1-9]|gpt-[5-9])([-.:]|$)`)

// chats matches those of the same families that do not.
var chats = regexp.MustCompile(`^gpt-[0-9.]+-chat`)

func (p *openAI) request(r *Request) (*openAIRequest, error) {
	out := &openAIRequest{Model: r.Model, Messages: openAIMessages(r)}
	if p.thinks && thinks.MatchString(r.Model) && !chats.MatchString(r.Model) {
		out.MaxCompletion = &r.MaxTokens
	} else {
		out.Max, out.Temperature = &r.MaxTokens, r.Temperature
	}
	if r.JSON {
		out.Format = &openAIFormat{"json_object"}
	}
	var err error
	out.Tools, err = p.http.tools.write(r.Tools)
	return out, err
}

func openAIMessages(r *Request) []openAIMessage {
	var out []openAIMessage
	if r.System != "" {
		out = append(out, openAIMessage{Role: "system", Content: &r.System})
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		said := openAIMessage{Role: m.Role, Content: &m.Text}
		if m.Role == Tool { // that it failed is what its text says
			said.CallID = shortID(m.CallID)
		}
		if m.Text == "" && len(m.Calls) > 0 {
			said.Content = nil
		}
		for _, c := range m.Calls {
			said.Calls = append(said.Calls, openAICall{
				ID: shortID(c.ID), Type: "function",
				Function: openAIFunction{Name: plainName(c.Name), Arguments: string(object(c.Arguments))},
			})
		}
		out = append(out, said)
	}
	return out
}
