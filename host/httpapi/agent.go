package httpapi

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/audit"
	"openskill/host/executions"
	"openskill/host/httpapi/internal/wire"
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

// agentCatalogue answers GET /api/agent/skills: every skill that the caller can find and
// that is enabled.
func (s *Server) agentCatalogue(c *fiber.Ctx) error {
	out := wire.AgentCatalogue{Data: []wire.AgentDefinition{}, Meta: s.envelopeMeta(c.Context())}
	for cursor := ""; ; {
		page, next, err := s.opt.Catalogue.List(who(c.Context()), cursor, 100)
		if err != nil {
			return err
		}
		for i := range page {
			if page[i].Enabled {
				out.Data = append(out.Data, definition(&page[i]))
			}
		}
		if next == "" || next == cursor {
			break
		}
		cursor = next
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, out)
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

// agentSession answers GET /api/agent/executions/{session_id}.
func (s *Server) agentSession(c *fiber.Ctx) error {
	all, err := s.executions()
	if err != nil {
		return err
	}
	id := strings.ToLower(c.Params("session_id"))
	if !executions.ValidID(id) {
		return invalidField("session_id", "must be a UUID")
	}
	run, done := s.calling(c.Context())
	defer done()
	views, err := all.Session(run, who(c.Context()), id)
	if err != nil {
		return err
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, wire.AgentSessionAnswer{Data: session(id, views), Meta: s.envelopeMeta(c.Context())})
	return nil
}

// ends are the words of a session for how its last execution ended.
var ends = map[audit.Status]wire.AgentSessionStatus{
	audit.Running: wire.AgentSessionStatusRunning, audit.Success: wire.AgentSessionStatusCompleted, audit.Failed: wire.AgentSessionStatusFailed,
	audit.Terminated: wire.AgentSessionStatusTerminated, audit.TimedOut: wire.AgentSessionStatusTimeout,
}

// session is what the records of its executions tell of a session. It has one at least.
func session(id string, views []*executions.View) wire.AgentSession {
	first, last := views[0], views[len(views)-1]
	out := wire.AgentSession{
		SessionId: id, PrincipalId: first.Principal, PrincipalType: string(first.PrincipalType), Status: ends[last.Status],
		Iterations: []wire.AgentIteration{}, CreatedAt: first.StartedAt,
	}
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
	return out
}
