package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Schedules stores calls that hosts make again and again; *records.Schedules implements it. Errors are *skill.Error. It
// is safe for concurrent use.
type Schedules interface {
	// Create adds a schedule of calls like r.
	Create(ctx context.Context, p skill.Principal, s *skill.Schedule, r *skill.Request) (*skill.Schedule, error)
	Get(ctx context.Context, p skill.Principal, name string) (*skill.Schedule, error)
	// List returns a page in the order of names, and the cursor of the next page or "".
	List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]*skill.Schedule, string, error)
	Delete(ctx context.Context, p skill.Principal, name string) error
}

const pathSchedules = "/schedules"

var errNoSchedules = &skill.Error{Op: "api.schedules", Code: skill.NotFound, Message: "schedules are not supported by this host: it keeps no records in a database"}

// createSchedule answers POST /schedules.
func (s *Server) createSchedule(c *fiber.Ctx) error {
	ctx := c.Context()
	n, r := &skill.Schedule{TimeZone: "UTC", Missed: skill.RunMissed}, &skill.Request{TraceID: traceOf(ctx)}
	var id, missed string
	members := append([]member{
		{"name", text(&n.Name, 64)},
		{"skill", text(&id, 64)},
		{"cron", text(&n.Cron, 256)},
		{"time_zone", text(&n.TimeZone, 64)},
		{"missed", text(&missed, 8)},
		{"input", object(&r.Input)},
		{"version", text(&r.Version, 64)},
		{"limits", limits(&r.Limits)},
		webhook(&r.Webhook),
	}, workspaceOf(&r.Workspace)...)
	err := readMembers(ctx.Request.Body(), "", members)
	if err != nil {
		return err
	}
	if r.SkillID, err = skill.ParseID(id); err != nil {
		return err
	}
	if missed != "" {
		n.Missed = skill.Missed(missed)
	}
	if r.Input == nil {
		r.Input = []byte("{}")
	}
	made, err := s.opt.Schedules.Create(c.UserContext(), principalOf(ctx), n, r)
	if err != nil {
		return err
	}
	ctx.Response.Header.Set(fasthttp.HeaderLocation, pathSchedules+"/"+made.Name)
	return s.writeJSON(ctx, fasthttp.StatusCreated, made)
}

// listSchedules answers GET /schedules.
func (s *Server) listSchedules(c *fiber.Ctx) error {
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	list, next, err := s.opt.Schedules.List(c.UserContext(), principalOf(c.Context()), cursor, limit)
	return s.json(c, listOf(list, next), err)
}

// getSchedule answers GET /schedules/{name}.
func (s *Server) getSchedule(c *fiber.Ctx) error {
	one, err := s.opt.Schedules.Get(c.UserContext(), principalOf(c.Context()), c.Params("name"))
	return s.json(c, one, err)
}

// deleteSchedule answers DELETE /schedules/{name}.
func (s *Server) deleteSchedule(c *fiber.Ctx) error {
	ctx := c.Context()
	if err := s.opt.Schedules.Delete(c.UserContext(), principalOf(ctx), c.Params("name")); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}
