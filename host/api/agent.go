package api

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent/conversations"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// The paths below /api/agent speak as the agent-service documents do: what is answered is
// {"data", "meta"}, a failure {"error", "meta"}, and some codes have names of their own.

// agentPath is where they are.
const agentPath = "/api/agent/"

func (s *Server) envelopeMeta(ctx *fasthttp.RequestCtx) skill.EnvelopeMeta {
	return skill.EnvelopeMeta{RequestID: traceOf(ctx), Timestamp: s.opt.Now().UTC().Truncate(time.Millisecond)}
}

func envelope[T any](s *Server, ctx *fasthttp.RequestCtx, data T) skill.Envelope[T] {
	return skill.Envelope[T]{Data: data, Meta: s.envelopeMeta(ctx)}
}

// failAgent answers a failure in the envelope.
func (s *Server) failAgent(ctx *fasthttp.RequestCtx, e skill.ResultError) error {
	switch {
	case e.Code == skill.Unauthorized:
		e.Code = skill.SharedUnauthorized
	case e.Code == skill.InvalidArgument && e.Status == skill.InvalidArgument.Status():
		e.Code = skill.AgentValidationError
		e.Status = e.Code.Status()
	}
	return s.writeJSON(ctx, e.Status, skill.EnvelopeProblem{Error: e, Meta: s.envelopeMeta(ctx)})
}

// agentCatalogue answers GET /api/agent/skills: a page of the skills that the caller can find
// and that are enabled.
func (s *Server) agentCatalogue(c *fiber.Ctx) error {
	ctx := c.Context()
	cursor, limit, err := pageOf(c, mostTools, mostTools)
	if err != nil {
		return err
	}
	out := []skill.AgentDefinition{}
	for {
		page, next, err := s.opt.Catalogue.List(principalOf(ctx), cursor, 100)
		if err != nil {
			return err
		}
		for i := range page {
			if !page[i].Callable() {
				continue
			}
			if len(out) == limit {
				linkNext(ctx, out[limit-1].Name, limit)
				next = ""
				break
			}
			out = append(out, definition(&page[i]))
		}
		if next == "" || next == cursor {
			break
		}
		cursor = next
	}
	return s.json(c, envelope(s, ctx, out), nil)
}

func definition(d *skill.Descriptor) skill.AgentDefinition {
	out := skill.AgentDefinition{
		Name: string(d.ID), Description: d.Description, IsEnabled: d.Enabled,
		InputSchema: orEmpty(d.InputSchema), OutputSchema: orEmpty(d.OutputSchema), CostMetadata: json.RawMessage("{}"),
	}
	if d.Cost != nil {
		out.CostMetadata, _ = json.Marshal(d.Cost) // three numbers
	}
	return out
}

// orEmpty makes sure that a schema is one: the empty one takes everything.
func orEmpty(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 || string(schema) == "null" {
		return json.RawMessage("{}")
	}
	return schema
}

// agentSession answers GET /api/agent/executions/{session_id}: of a task what is kept of
// it and the records of its calls, if it made any; of all others the records alone.
func (s *Server) agentSession(c *fiber.Ctx) error {
	id := strings.ToLower(c.Params("session_id"))
	if !records.ValidID(id) {
		return invalidField("session_id", "must be a UUID")
	}
	ctx := c.Context()
	task, err := s.task(c.UserContext(), principalOf(ctx), id)
	if err != nil {
		return err
	}
	views, err := s.recordsOf(c.UserContext(), principalOf(ctx), id)
	if err != nil && (task == nil || skill.CodeOf(err) != skill.NotFound) {
		return err
	}
	return s.json(c, envelope(s, ctx, session(id, task, views)), nil)
}

// task gives what is kept of a task, nil if there is none of this id.
func (s *Server) task(ctx context.Context, p skill.Principal, id string) (*conversations.Session, error) {
	if s.opt.React == nil {
		return nil, nil
	}
	kept, err := s.opt.React.Session(ctx, p, id)
	if skill.CodeOf(err) == skill.NotFound {
		return nil, nil
	}
	return kept, err
}

func (s *Server) recordsOf(ctx context.Context, p skill.Principal, id string) ([]*records.View, error) {
	if s.opt.Executions == nil {
		return nil, errNoExecutions
	}
	return s.opt.Executions.Session(ctx, p, id)
}

const running = "running"

// ends are the words of a session for how its last execution ended.
var ends = map[records.Status]string{
	records.Running: running, records.Success: "completed", records.Failed: "failed", records.Terminated: "terminated", records.TimedOut: "timeout",
}

// session is what the records of its executions tell of a session, and for a task what
// is kept of it besides. There is one of them at least. While a task works, the records
// are all that there is to count.
func session(id string, task *conversations.Session, views []*records.View) skill.AgentSession {
	out := skill.AgentSession{SessionID: id, Iterations: []skill.AgentIteration{}}
	if len(views) > 0 {
		ofRecords(&out, views)
	}
	if task == nil {
		return out
	}
	out.PrincipalID, out.PrincipalType, out.CreatedAt = task.Owner.Principal, task.PrincipalType, task.CreatedAt
	if out.Status = task.Status; out.Status != running {
		out.TotalTokenUsage, out.TotalDurationMS = task.Tokens, task.DurationMS
	}
	return out
}

// ofRecords fills in what the executions of a session tell of it, in their order.
func ofRecords(out *skill.AgentSession, views []*records.View) {
	first, last := views[0], views[len(views)-1]
	out.PrincipalID, out.PrincipalType, out.Status, out.CreatedAt = first.Principal, string(first.PrincipalType), ends[last.Status], first.StartedAt
	begun, ended := first.StartedAt, first.StartedAt
	for _, v := range views {
		it := skill.AgentIteration{
			Index: v.Iteration, SkillName: v.Skill, InputParams: v.Input.JSON, Status: string(v.Status), CreatedAt: v.StartedAt,
		}
		if v.StartedAt.Before(begun) {
			begun = v.StartedAt
		}
		if v.FinishedAt == nil {
			out.Status = running
		} else {
			it.OutputResult, it.TokenUsage, it.DurationMS = v.Output.JSON, *v.Tokens, v.DurationMS
			out.TotalTokenUsage += *v.Tokens
			if v.FinishedAt.After(ended) {
				ended = *v.FinishedAt
			}
		}
		out.Iterations = append(out.Iterations, it)
	}
	out.TotalDurationMS = ended.Sub(begun).Milliseconds()
}
