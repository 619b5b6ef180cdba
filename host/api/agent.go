package api

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent/conversations"
	"openskill/host/api/internal/wire"
	"openskill/host/records"
	"openskill/host/records/executions"
	"openskill/sdk/skill"
)

// The paths below /api/agent speak as the agent-service documents do: what is answered is
// {"data", "meta"}, a failure {"error", "meta"}, and some codes have names of their own.

// agentPath is where they are.
const agentPath = "/api/agent/"

func (s *Server) envelopeMeta(ctx *fasthttp.RequestCtx) wire.EnvelopeMeta {
	return wire.EnvelopeMeta{RequestId: traceOf(ctx), Timestamp: s.opt.Now().UTC().Truncate(time.Millisecond)}
}

// failAgent answers a failure in the envelope.
func (s *Server) failAgent(ctx *fasthttp.RequestCtx, status int, e skill.ResultError) {
	switch {
	case e.Code == skill.Unauthorized:
		e.Code = skill.SharedUnauthorized
	case e.Code == skill.InvalidArgument && status == skill.InvalidArgument.Status():
		e.Code = skill.AgentValidationError
		status = e.Code.Status()
	}
	e.Status = status
	s.writeJSON(ctx, status, wire.AgentProblem{Error: e, Meta: s.envelopeMeta(ctx)})
}

// agentCatalogue answers GET /api/agent/skills: a page of the skills that the caller can find
// and that are enabled.
func (s *Server) agentCatalogue(c *fiber.Ctx) error {
	ctx := c.Context()
	cursor, limit, err := pageOf(c, mostTools, mostTools)
	if err != nil {
		return err
	}
	out := wire.AgentCatalogue{Data: []wire.AgentDefinition{}, Meta: s.envelopeMeta(ctx)}
	for {
		page, next, err := s.opt.Catalogue.List(who(ctx), cursor, 100)
		if err != nil {
			return err
		}
		for i := range page {
			if !page[i].Enabled {
				continue
			}
			if len(out.Data) == limit {
				linkNext(ctx, out.Data[limit-1].Name, limit)
				next = ""
				break
			}
			out.Data = append(out.Data, definition(&page[i]))
		}
		if next == "" || next == cursor {
			break
		}
		cursor = next
	}
	s.writeJSON(ctx, fasthttp.StatusOK, out)
	return nil
}

func definition(d *skill.Descriptor) wire.AgentDefinition {
	out := wire.AgentDefinition{
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
	if !executions.ValidID(id) {
		return invalidField("session_id", "must be a UUID")
	}
	run, done := s.calling(c.Context())
	defer done()
	task, err := s.task(run, who(c.Context()), id)
	if err != nil {
		return err
	}
	views, err := s.recordsOf(run, who(c.Context()), id)
	if err != nil && (task == nil || skill.CodeOf(err) != skill.NotFound) {
		return err
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, wire.AgentSessionAnswer{Data: session(id, task, views), Meta: s.envelopeMeta(c.Context())})
	return nil
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

func (s *Server) recordsOf(ctx context.Context, p skill.Principal, id string) ([]*executions.View, error) {
	all, err := s.executions()
	if err != nil {
		return nil, err
	}
	return all.Session(ctx, p, id)
}

// ends are the words of a session for how its last execution ended.
var ends = map[records.Status]wire.AgentSessionStatus{
	records.Running: wire.AgentSessionStatusRunning, records.Success: wire.AgentSessionStatusCompleted, records.Failed: wire.AgentSessionStatusFailed,
	records.Terminated: wire.AgentSessionStatusTerminated, records.TimedOut: wire.AgentSessionStatusTimeout,
}

// session is what the records of its executions tell of a session, and for a task what
// is kept of it besides. There is one of them at least. While a task works, the records
// are all that there is to count.
func session(id string, task *conversations.Session, views []*executions.View) wire.AgentSession {
	out := wire.AgentSession{SessionId: id, Iterations: []wire.AgentIteration{}}
	if len(views) > 0 {
		ofRecords(&out, views)
	}
	if task == nil {
		return out
	}
	out.PrincipalId, out.PrincipalType, out.CreatedAt = task.Owner.Principal, task.PrincipalType, task.CreatedAt
	if out.Status = wire.AgentSessionStatus(task.Status); out.Status != wire.AgentSessionStatusRunning {
		out.TotalTokenUsage, out.TotalDurationMs = task.Tokens, task.DurationMS
	}
	return out
}

// ofRecords fills in what the executions of a session tell of it, in their order.
func ofRecords(out *wire.AgentSession, views []*executions.View) {
	first, last := views[0], views[len(views)-1]
	out.PrincipalId, out.PrincipalType, out.Status, out.CreatedAt = first.Principal, string(first.PrincipalType), ends[last.Status], first.StartedAt
	begun, ended := first.StartedAt, first.StartedAt
	for _, v := range views {
		it := wire.AgentIteration{
			Index: v.Iteration, SkillName: v.Skill, InputParams: v.Input.JSON, Status: wire.AgentIterationStatus(v.Status), CreatedAt: v.StartedAt,
		}
		if v.StartedAt.Before(begun) {
			begun = v.StartedAt
		}
		if v.FinishedAt == nil {
			out.Status = wire.AgentSessionStatusRunning
		} else {
			it.OutputResult, it.TokenUsage, it.DurationMs = v.Output.JSON, *v.Tokens, v.DurationMS
			out.TotalTokenUsage += *v.Tokens
			if v.FinishedAt.After(ended) {
				ended = *v.FinishedAt
			}
		}
		out.Iterations = append(out.Iterations, it)
	}
	out.TotalDurationMs = ended.Sub(begun).Milliseconds()
}
