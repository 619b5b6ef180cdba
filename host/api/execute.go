package api

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent"
	"openskill/host/agent/conversations"
	"openskill/sdk/skill"
)

// React is the agent that works on tasks by itself; *agent.Agent is one. It authorizes:
// the edge only says who asks. Its errors are *skill.Error; it is safe for concurrent use.
type React interface {
	// Execute works on one task until it ends; an error is one of the request, of which
	// nothing was begun.
	Execute(ctx context.Context, p skill.Principal, t agent.Task) (*agent.Outcome, error)
	// Session gives what is kept of a task.
	Session(ctx context.Context, p skill.Principal, id string) (*conversations.Session, error)
}

// executeTask answers POST /api/agent/execute. What went wrong in a task is answered with what
// it reached before; the agent has put it into the log.
func (s *Server) executeTask(c *fiber.Ctx) error {
	ctx := c.Context()
	task, err := decodeTask(ctx.Request.Body())
	if err != nil {
		return err
	}
	task.Trace = traceOf(ctx)
	out, err := s.opt.React.Execute(c.UserContext(), principalOf(ctx), task)
	if err == nil && out == nil {
		err = errNoAnswer
	}
	if err != nil {
		s.turned("task", "", err)
		return err
	}
	s.turned("task", string(out.Status), nil)
	switch {
	case out.Err != nil:
		e := skill.Failure("", traceOf(ctx), skill.Meta{}, out.Err).Error
		e.Message = cleanMessage(e.Message)
		s.hints(ctx, e)
		return s.writeJSON(ctx, e.Status, skill.EnvelopeProblem{Error: *e, Data: out, Meta: s.envelopeMeta(ctx)})
	}
	return s.writeJSON(ctx, fasthttp.StatusOK, envelope(s, ctx, out))
}

// decodeTask reads a task. What it refers to stays with the body, which is this request's
// own. Whether the task is one, and the numbers are in range, is for the agent to say.
func decodeTask(b []byte) (t agent.Task, err error) {
	if len(b) == 0 {
		return t, invalidField("body", `is empty; send {"task": "…"}`)
	}
	said := false
	err = readMembers(b, "", []member{
		{"task", func(field string, value []byte) error {
			said = true
			return text(&t.Text, 0)(field, value)
		}},
		{"context", orNull(func(field string, value []byte) error {
			if value[0] != '{' {
				return invalidField(field, "must be an object")
			}
			t.Context = value
			return nil
		})},
		{"options", orNull(func(field string, value []byte) error {
			if value[0] != '{' {
				return invalidField(field, "must be an object")
			}
			return readMembers(value, field+".", []member{
				{"max_iterations", orNull(count(&t.Options.MaxIterations))},
				{"timeout_seconds", orNull(count(&t.Options.TimeoutSeconds))},
				{"skills", orNull(ids(&t.Options.Skills))},
				{"kind", orNull(text(&t.Options.Kind, 64))},
			})
		})},
	})
	if err == nil && !said {
		err = invalidField("task", `is missing; send {"task": "…"}`)
	}
	return t, err
}

// ids reads a list of ids of skills. An empty list stays one: it is not all of them.
func ids(to *[]string) func(string, []byte) error {
	return func(field string, value []byte) error {
		var list []*string // null is no string
		if value[0] != '[' || json.Unmarshal(value, &list) != nil || slices.Contains(list, nil) {
			return invalidField(field, "must be a list of skill ids")
		}
		*to = make([]string, 0, len(list))
		for _, id := range list {
			*to = append(*to, *id)
		}
		return nil
	}
}
