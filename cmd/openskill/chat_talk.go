package main

import (
	"context"
	"encoding/json"
	"fmt"

	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// talker is the host that a chat talks to: one in this process, or one over HTTP. Its
// errors are *skill.Error or *client.Error; any other one says that nobody has answered.
type talker interface {
	// Turn and Decide tell hear what happens, and give what the turn came to. hear, which
	// may be nil, is called on the goroutine that called.
	Turn(ctx context.Context, r client.ChatRequest, hear func(client.Event)) (*client.ChatAnswer, error)
	Decide(ctx context.Context, conversation string, d client.Decision, hear func(client.Event)) (*client.ChatAnswer, error)
	// Conversations gives some, most of them at most, the one that changed last first.
	Conversations(ctx context.Context, most int) ([]client.ConversationSummary, error)
	Conversation(ctx context.Context, id string) (*client.Conversation, error)
	Skills(ctx context.Context) ([]skill.Descriptor, []skill.AgentSkill, error)
	// Tools gives what a model may call, in the words of OpenAI.
	Tools(ctx context.Context) (json.RawMessage, error)
	// Approval gives what was asked, to those who may decide.
	Approval(ctx context.Context, id string) (*client.Approval, error)
}

// remoteTalker is a host over HTTP.
type remoteTalker struct{ c *client.Client }

var _ talker = remoteTalker{}

func (t remoteTalker) Turn(ctx context.Context, r client.ChatRequest, hear func(client.Event)) (*client.ChatAnswer, error) {
	if hear == nil {
		return t.c.Chat(ctx, r)
	}
	var answer *client.ChatAnswer
	for e, err := range t.c.ChatStream(ctx, r) {
		if err != nil {
			return nil, err
		}
		hear(e)
		answer = e.Answer
	}
	return answer, nil
}

func (t remoteTalker) Decide(ctx context.Context, conversation string, d client.Decision, hear func(client.Event)) (*client.ChatAnswer, error) {
	if hear == nil {
		return t.c.Approve(ctx, conversation, d)
	}
	var answer *client.ChatAnswer
	for e, err := range t.c.ApproveStream(ctx, conversation, d) {
		if err != nil {
			return nil, err
		}
		hear(e)
		answer = e.Answer
	}
	return answer, nil
}

func (t remoteTalker) Conversations(ctx context.Context, most int) ([]client.ConversationSummary, error) {
	var out []client.ConversationSummary
	for s, err := range t.c.Conversations(ctx) {
		if err != nil {
			return nil, err
		}
		if out = append(out, *s); len(out) >= most {
			break
		}
	}
	return out, nil
}

func (t remoteTalker) Conversation(ctx context.Context, id string) (*client.Conversation, error) {
	return t.c.Conversation(ctx, id)
}

// mostSkills is how many skills a list shows.
const mostSkills = 1000

func (t remoteTalker) Skills(ctx context.Context) (list []skill.Descriptor, agents []skill.AgentSkill, err error) {
	for d, err := range t.c.Skills(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if list = append(list, *d); len(list) >= mostSkills {
			break
		}
	}
	for s, err := range t.c.AgentSkills(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if agents = append(agents, *s); len(agents) >= mostSkills {
			break
		}
	}
	return list, agents, nil
}

func (t remoteTalker) Tools(ctx context.Context) (json.RawMessage, error) {
	return t.c.Tools(ctx, "openai")
}

func (t remoteTalker) Approval(ctx context.Context, id string) (*client.Approval, error) {
	return t.c.Approval(ctx, id)
}

// toolNames reads the names and descriptions of tools in the words of OpenAI.
func toolNames(b json.RawMessage) (out []entry, err error) {
	var list []struct {
		Function entry `json:"function"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, fmt.Errorf("cannot list the tools: %w", err)
	}
	for _, t := range list {
		out = append(out, t.Function)
	}
	return out, nil
}

// entry is something with a name and a description.
type entry struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}
