package openai

import (
	"regexp"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"openskill/host/llm"
	"openskill/host/llm/internal/calls"
)

// thinks matches those of OpenAI's models that think before they answer.
var thinks = regexp.MustCompile(`^(ft:)?(o[1-9]|gpt-[5-9])([-.:]|$)`)

// chats matches those of the same families that do not.
var chats = regexp.MustCompile(`^gpt-[0-9.]+-chat`)

func (p *provider) params(r *llm.Request) (*sdk.ChatCompletionNewParams, error) {
	out := &sdk.ChatCompletionNewParams{Model: r.Model, Messages: messages(r)}
	switch {
	case p.openAI && thinks.MatchString(r.Model) && !chats.MatchString(r.Model):
		out.MaxCompletionTokens = sdk.Int(int64(r.MaxTokens))
	default:
		out.MaxTokens = sdk.Int(int64(r.MaxTokens))
		if r.Temperature != nil {
			out.Temperature = sdk.Float(*r.Temperature)
		}
	}
	if r.JSON {
		out.ResponseFormat.OfJSONObject = &sdk.ResponseFormatJSONObjectParam{}
	}
	written, err := p.tools.Write(r.Tools)
	if err != nil {
		return nil, err
	}
	for _, t := range written {
		out.Tools = append(out.Tools, param.Override[sdk.ChatCompletionToolUnionParam](t))
	}
	return out, nil
}

func messages(r *llm.Request) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	if r.System != "" {
		out = append(out, sdk.SystemMessage(r.System))
	}
	for i := range r.Messages {
		switch m := &r.Messages[i]; m.Role {
		case llm.User:
			out = append(out, sdk.UserMessage(m.Text))
		case llm.Tool: // that it failed is what its text says
			out = append(out, sdk.ToolMessage(m.Text, calls.ShortID(m.CallID)))
		case llm.Assistant:
			out = append(out, assistant(m))
		}
	}
	return out
}

func assistant(m *llm.Message) sdk.ChatCompletionMessageParamUnion {
	var said sdk.ChatCompletionAssistantMessageParam
	if m.Text != "" || len(m.Calls) == 0 {
		said.Content.OfString = sdk.String(m.Text)
	}
	for _, c := range m.Calls {
		said.ToolCalls = append(said.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: calls.ShortID(c.ID),
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: calls.Name(c.Name), Arguments: string(calls.Object(c.Arguments)),
				},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &said}
}
