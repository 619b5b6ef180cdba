package api

import (
	"context"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/api/internal/wire"
	"openskill/host/records"
	"openskill/host/records/executions"
	"openskill/sdk/skill"
)

// Changes lists who changed keys, skills, approvals and settings, newest first.
type Changes func(ctx context.Context, q records.ChangeQuery) ([]records.Change, error)

// listChanges answers GET /audit/changes.
func (s *Server) listChanges(c *fiber.Ctx) error {
	if s.opt.Changes == nil {
		return &skill.Error{Op: "httpapi.changes", Code: skill.NotFound, Message: "change records are disabled on this host"}
	}
	q, err := changeQuery(c)
	if err != nil {
		return err
	}
	run, done := s.calling(c.Context())
	defer done()
	most := q.Limit
	q.Limit++ // to see whether there are more
	list, err := s.opt.Changes(run, q)
	if err != nil {
		return &skill.Error{Op: "httpapi.changes", Code: skill.AuditUnavailable, Err: err, Message: "the records are unavailable; retry"}
	}
	l := wire.ChangeList{Data: append([]records.Change{}, list[:min(len(list), most)]...)}
	if len(list) > most {
		l.Next = &list[most-1].ID
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, l)
	return nil
}

func changeQuery(c *fiber.Ctx) (q records.ChangeQuery, err error) {
	if q.After, q.Limit, err = page(c); err != nil {
		return q, err
	}
	if q.After != "" && !executions.ValidID(q.After) {
		return q, invalidField("cursor", "must be the next value of the previous page")
	}
	var since, until string
	for name, to := range map[string]*string{"tenant": &q.Tenant, "since": &since, "until": &until} {
		given, err := query(c, name, maxTenant)
		if err != nil {
			return q, err
		}
		if given != nil {
			*to = *given
		}
	}
	if q.Since, err = queryTime("since", since); err != nil {
		return q, err
	}
	q.Until, err = queryTime("until", until)
	return q, err
}
