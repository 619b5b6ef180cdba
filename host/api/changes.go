package api

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Changes lists who changed keys, skills, approvals and settings, newest first.
type Changes func(ctx context.Context, q records.ChangeQuery) ([]records.Change, error)

// listChanges answers GET /audit/changes.
func (s *Server) listChanges(c *fiber.Ctx) error {
	if s.opt.Changes == nil {
		return &skill.Error{Op: "api.changes", Code: skill.NotFound, Message: "change records are disabled on this host"}
	}
	q, err := changeQuery(c)
	if err != nil {
		return err
	}
	most := q.Limit
	q.Limit++ // to see whether there are more
	list, err := s.opt.Changes(c.UserContext(), q)
	if err != nil {
		return &skill.Error{Op: "api.changes", Code: skill.AuditUnavailable, Err: err, Message: "the records are unavailable; retry"}
	}
	next := ""
	if len(list) > most {
		next = list[most-1].ID
	}
	return s.json(c, listOf(list[:min(len(list), most)], next), nil)
}

func changeQuery(c *fiber.Ctx) (q records.ChangeQuery, err error) {
	if q.After, q.Limit, err = page(c); err != nil {
		return q, err
	}
	if q.After != "" && !records.ValidID(q.After) {
		return q, invalidField("cursor", "must be the next value of the previous page")
	}
	var since, until string
	for name, to := range map[string]*string{"tenant": &q.Tenant, "since": &since, "until": &until} {
		if *to, err = query(c, name, maxTenant); err != nil {
			return q, err
		}
	}
	if q.Since, err = queryTime("since", since); err != nil {
		return q, err
	}
	q.Until, err = queryTime("until", until)
	return q, err
}
