package records

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a database of time zones; all hosts know the same ones

	cron "github.com/netresearch/go-cron"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// Limits of schedules.
const (
	mostSchedules          = 1000 // of a tenant
	mostSchedulesOfOne     = 100  // of a principal
	mostScheduledInput     = 64 << 10
	mostCron, mostTimeZone = 256, 64
)

// Schedules stores calls that hosts make again and again; the hosts that run queued calls make them. Errors are *skill.Error.
// Schedules is safe for concurrent use.
type Schedules struct {
	m    *Manager
	door Door
}

// Schedules returns the schedules of a host that queues calls, and nil for one that does not.
func (m *Manager) Schedules(door Door) *Schedules {
	if m.o.Queue == nil {
		return nil
	}
	return &Schedules{m, door}
}

// schedule is a row.
type schedule struct {
	skill.Schedule
	principal skill.Principal // that the calls are made as
	request   *skill.Request
	key       ownKey
	damaged   bool // what the calls are cannot be read
}

const scheduleColumns = "tenant, principal, name, cron, time_zone, missed, body, created_at, next_at, last_at, last_id, skipped"

func scanSchedule(rows *sql.Rows) (*schedule, error) {
	s := &schedule{}
	var created, next, last int64
	var body []byte
	err := rows.Scan(&s.key.tenant, &s.key.principal, &s.key.id, &s.Cron, &s.TimeZone, &s.Missed, &body, &created, &next, &last, &s.LastID, &s.Skipped)
	if err != nil {
		return nil, err
	}
	s.Name, s.CreatedAt, s.NextAt = s.key.id, time.UnixMicro(created).UTC(), time.UnixMicro(next).UTC()
	if last > 0 {
		at := time.UnixMicro(last).UTC()
		s.LastAt = &at
	}
	var b queuedBody
	if json.Unmarshal(body, &b) != nil || b.Request == nil || keyOf(b.Principal, s.Name) != s.key {
		s.damaged, s.Input = true, json.RawMessage("{}")
		return s, nil
	}
	b.Request.Input = b.Input
	s.principal, s.request, s.Skill, s.Version, s.Input = b.Principal, b.Request, b.Request.SkillID, b.Request.Version, b.Input
	return s, nil
}

// starBit is set in a field of a parsed expression that has a star.
const starBit = 1 << 63

// next gives the first time of a schedule after a time. Of an hour that comes twice when clocks are put back, expressions
// that name hours have the first one only.
func next(expression, zone string, after time.Time) (time.Time, error) {
	if len(expression) > mostCron || strings.Contains(expression, "=") {
		return time.Time{}, badSchedule("cron", "use five fields: minute, hour, day of month, month and day of week")
	}
	parsed, err := cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom).Parse(expression)
	spec, _ := parsed.(*cron.SpecSchedule)
	if err != nil || spec == nil {
		return time.Time{}, badSchedule("cron", "use five fields: minute, hour, day of month, month and day of week, or @hourly, @daily, @weekly, @monthly or @yearly")
	}
	at, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" || len(zone) > mostTimeZone {
		return time.Time{}, badSchedule("time_zone", "use a name of the IANA database such as UTC or Europe/Berlin")
	}
	t := spec.Next(after.In(at))
	for spec.Hour&starBit == 0 && !t.IsZero() && t.Add(-time.Hour).Hour() == t.Hour() {
		t = spec.Next(t)
	}
	if t.IsZero() {
		return t, badSchedule("cron", "it has no time in the next years")
	}
	return t.UTC(), nil
}

func badSchedule(field, message string) error {
	return &skill.Error{Op: "schedules.Create", Code: skill.InvalidArgument, Subject: field, Message: "invalid " + field + ": " + message}
}

// Create adds a schedule of calls as the principal makes them; r is such a call.
func (s *Schedules) Create(ctx context.Context, p skill.Principal, n *skill.Schedule, r *skill.Request) (*skill.Schedule, error) {
	now := s.m.o.Now().UTC().Truncate(time.Microsecond)
	at, err := next(n.Cron, n.TimeZone, now)
	switch {
	case !skill.ValidWorkspace(n.Name):
		return nil, badSchedule("name", "use 1 to 64 of a-z, A-Z, 0-9, _ and -")
	case n.Missed != skill.RunMissed && n.Missed != skill.SkipMissed:
		return nil, badSchedule("missed", "use run or skip")
	case len(r.Input) > mostScheduledInput:
		return nil, badSchedule("input", fmt.Sprintf("it has %d bytes, at most %d", len(r.Input), mostScheduledInput))
	case err != nil:
		return nil, err
	case r.Webhook != "" && (s.m.o.Queue.Post == nil || !skill.ValidWorkspace(r.Webhook)):
		return nil, noWebhook(r.Webhook)
	}
	if err := keepable(p); err != nil {
		return nil, err
	}
	c := &QueuedCall{Principal: p, Request: r}
	if refused := s.door.Check(ctx, c); refused != nil && refused.Error != nil {
		e := refused.Error
		return nil, &skill.Error{Op: "schedules.Create", Code: e.Code, Message: e.Message, Details: e.Details}
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	k := keyOf(p, n.Name)
	err = s.m.changeOwn(ctx, p, "schedule.create", n.Name, map[string]string{"skill": string(r.SkillID), "cron": n.Cron, "time_zone": n.TimeZone}, func(tx *sql.Tx) error {
		if r.Webhook != "" {
			var one int
			if err := tx.QueryRowContext(ctx, "SELECT 1 FROM webhooks WHERE tenant = $1 AND principal = $2 AND name = $3", k.tenant, k.principal, r.Webhook).Scan(&one); errors.Is(err, sql.ErrNoRows) {
				return noWebhook(r.Webhook)
			} else if err != nil {
				return err
			}
		}
		res, err := tx.ExecContext(ctx, "INSERT INTO schedules (tenant, principal, name, cron, time_zone, missed, body, created_at, next_at, last_at, last_id, skipped)"+
			" SELECT $1, $2, $3, $4, $5, $6, $7, CAST($8 AS BIGINT), CAST($9 AS BIGINT), 0, '', ''"+
			" WHERE (SELECT COUNT(*) FROM schedules WHERE tenant = $1) < $10 AND (SELECT COUNT(*) FROM schedules WHERE tenant = $1 AND principal = $2) < $11 ON CONFLICT (tenant, principal, name) DO NOTHING",
			k.tenant, k.principal, k.id, n.Cron, n.TimeZone, string(n.Missed), body, now.UnixMicro(), at.UnixMicro(), mostSchedules, mostSchedulesOfOne)
		return changed(res, err, &skill.Error{
			Op: "schedules.Create", Code: skill.Conflict, Subject: n.Name,
			Message: fmt.Sprintf("a schedule of this name exists, or there are too many: at most %d of a caller, %d of a tenant; delete one first", mostSchedulesOfOne, mostSchedules),
		})
	})
	if err != nil {
		return nil, err
	}
	return s.Get(ctx, p, n.Name)
}

// keepable returns an error if the credentials of a principal expire by themselves, or if it has none.
func keepable(p skill.Principal) error {
	if p.Type == skill.Human || p.Type == skill.Anonymous {
		return &skill.Error{Op: "records.Create", Code: skill.Forbidden, Message: "schedules and webhooks end with the credentials that make them; use an API key"}
	}
	return nil
}

// changed is an error where a statement changed nothing.
func changed(res sql.Result, err, none error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n > 0 {
		return err
	}
	return none
}

// changeOwn puts a change of what belongs to a principal on record, and makes it.
func (m *Manager) changeOwn(ctx context.Context, by skill.Principal, action, name string, details map[string]string, do func(tx *sql.Tx) error) error {
	db := m.o.Queue.DB
	return Around(ctx, NewStore(db), by, Change{Tenant: by.Tenant, Action: action, Subject: name, Details: details}, func() error {
		if err := db.InTurn(ctx, by.Tenant, func() error { return db.InTx(ctx, do) }); err != nil {
			return cannotKeep(action, err)
		}
		return nil
	})
}

// Get returns a schedule of the principal.
func (s *Schedules) Get(ctx context.Context, p skill.Principal, name string) (*skill.Schedule, error) {
	k := keyOf(p, name)
	list, err := store.All(ctx, s.m.o.Queue.DB.Read, scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE tenant = $1 AND principal = $2 AND name = $3", k.tenant, k.principal, k.id)
	if err == nil && len(list) == 0 {
		return nil, noSchedule(name)
	}
	if err != nil {
		return nil, cannotKeep("schedules.Get", err)
	}
	return &list[0].Schedule, nil
}

func noSchedule(name string) error {
	return &skill.Error{Op: "schedules.Get", Code: skill.NotFound, Subject: skill.CleanText(name, 64), Message: "schedule not found; it ends with the credentials that made it"}
}

// List returns a page of the principal's schedules in the order of their names, and the cursor of the next page or "".
func (s *Schedules) List(ctx context.Context, p skill.Principal, cursor string, limit int) (page []*skill.Schedule, more string, err error) {
	k := keyOf(p, cursor)
	list, err := store.All(ctx, s.m.o.Queue.DB.Read, scanSchedule, "SELECT "+scheduleColumns+" FROM schedules WHERE tenant = $1 AND principal = $2 AND name > $3 ORDER BY name LIMIT $4", k.tenant, k.principal, k.id, limit+1)
	if err != nil {
		return nil, "", cannotKeep("schedules.Get", err)
	}
	if len(list) > limit {
		list, more = list[:limit], list[limit-1].Name
	}
	for _, one := range list {
		page = append(page, &one.Schedule)
	}
	return page, more, nil
}

// Delete removes a schedule of the principal. Calls that it has made go on.
func (s *Schedules) Delete(ctx context.Context, p skill.Principal, name string) error {
	if _, err := s.Get(ctx, p, name); err != nil {
		return err
	}
	k := keyOf(p, name)
	return s.m.changeOwn(ctx, p, "schedule.delete", name, nil, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "DELETE FROM schedules WHERE tenant = $1 AND principal = $2 AND name = $3", k.tenant, k.principal, k.id)
		return changed(res, err, noSchedule(name))
	})
}
