package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/sdk/skill"
)

// taskArgument is what a person wants done by a skill whose prompt is taken.
const taskArgument = "task"

// listPrompts gives one prompt for each Agent Skill, of its name.
func (c *caller) listPrompts(ctx context.Context, r *mcp.ListPromptsRequest) (*mcp.ListPromptsResult, error) {
	cursor := ""
	if r.Params != nil {
		cursor = r.Params.Cursor
	}
	last, err := decodeCursor("prompts", cursor)
	if err != nil {
		return nil, err
	}
	list, err := c.visible(ctx)
	if err != nil {
		return nil, err
	}
	page, next := pageOf(list, func(s skill.AgentSkill) string { return s.Name }, last, pageSize)
	res := &mcp.ListPromptsResult{Prompts: make([]*mcp.Prompt, len(page)), Cacheable: uncached}
	if r.ProtocolVersion() >= stateless {
		res.ResultType = complete
	}
	for i := range page {
		res.Prompts[i] = &mcp.Prompt{
			Name: page[i].Name, Description: page[i].Description,
			Arguments: []*mcp.PromptArgument{{Name: taskArgument, Description: "The task for the skill."}},
		}
	}
	res.NextCursor = encodeCursor("prompts", next)
	return res, nil
}

// getPrompt gives the instructions of a skill, and after them the task if there is one.
func (c *caller) getPrompt(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	s, text, err := c.load(ctx, r.Params.Name)
	if skill.CodeOf(err) == skill.NotFound || err == nil && s.Name != r.Params.Name {
		return nil, invalid("mcpserver.getPrompt", r.Params.Name, "prompt not found; prompts/list names all")
	}
	if err != nil {
		return nil, err
	}
	out := c.outgoing(r)
	out.holding(len(text))
	res := &mcp.GetPromptResult{Description: s.Description, Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uriOf(s.Name, skillFile), MIMEType: markdown, Text: out.content([]byte(text))}}},
	}}
	task := strings.TrimSpace(r.Params.Arguments[taskArgument])
	words := "Follow the instructions of the Agent Skill " + s.Name + " above"
	if task != "" {
		words += " for this task: " + task
	}
	res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: out.text([]byte(words))}})
	return res, nil
}
