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
	Own[skill.Schedule]
	// Create adds a schedule of calls like r.
	Create(ctx context.Context, p skill.Principal, s *skill.Schedule, r *skill.Request) (*skill.Schedule, error)
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
