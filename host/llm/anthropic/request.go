package anthropic

import (
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"openskill/host/llm"
	"openskill/host/llm/internal/calls"
)

func (p *provider) params(r *llm.Request) (*sdk.MessageNewParams, error) {
	out := &sdk.MessageNewParams{Model: r.Model, MaxTokens: int64(r.MaxTokens), Messages: messages(r.Messages)}
	if !blank(r.System) {
		out.System = []sdk.TextBlockParam{{Text: r.System}}
	}
	if r.Temperature != nil {
		out.Temperature = sdk.Float(min(*r.Temperature, 1))
	}
	written, err := p.tools.Write(r.Tools)
	if err != nil {
		return nil, err
	}
	for _, t := range written {
		out.Tools = append(out.Tools, param.Override[sdk.ToolUnionParam](t))
	}
	if len(out.Tools) == 0 {
		for _, name := range calls.Names(r.Messages) {
			out.Tools = append(out.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{Name: name}})
		}
		if len(out.Tools) > 0 {
			out.ToolChoice.OfNone = &sdk.ToolChoiceNoneParam{}
		}
	}
	return out, nil
}

func messages(list []llm.Message) []sdk.MessageParam {
	var out []sdk.MessageParam
	for i := range list {
		m := &list[i]
		role := sdk.MessageParamRoleUser
		if m.Role == llm.Assistant {
			role = sdk.MessageParamRoleAssistant
		}
		said := blocks(m)
		switch last := len(out) - 1; {
		case len(said) == 0:
		case last >= 0 && out[last].Role == role:
			out[last].Content = append(out[last].Content, said...)
		default:
			out = append(out, sdk.MessageParam{Role: role, Content: said})
		}
	}
	return out
}

func blocks(m *llm.Message) (out []sdk.ContentBlockParamUnion) {
	if m.Role == llm.Tool {
		return append(out, result(m))
	}
	if !blank(m.Text) {
		out = append(out, sdk.NewTextBlock(m.Text))
	}
	for _, c := range m.Calls {
		out = append(out, sdk.NewToolUseBlock(calls.PlainID(c.ID), calls.Object(c.Arguments), calls.Name(c.Name)))
	}
	return out
}

func result(m *llm.Message) sdk.ContentBlockParamUnion {
	r := &sdk.ToolResultBlockParam{ToolUseID: calls.PlainID(m.CallID)}
	if !blank(m.Text) {
		r.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: m.Text}}}
	}
	if m.Failed {
		r.IsError = sdk.Bool(true)
	}
	return sdk.ContentBlockParamUnion{OfToolResult: r}
}

// blank reports whether the vendor would refuse text for having nothing in it.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
