package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Executions are the records of calls, each caller what it may see, and the calls that
// outlive their requests; *records.Manager is one. It authorizes: the edge only says
// who asks. Its errors are *skill.Error; it is safe for concurrent use.
type Executions interface {
	// Accept runs a call that goes on when its caller leaves, and gives the id and status of its
	// execution as soon as that is on record or queued, or the result of a call that ended before.
	Accept(ctx context.Context, c *records.QueuedCall, run records.Run, door records.Door) (id string, status records.Status, r *skill.Result, err error)
	// List gives a page, newest first, and the cursor of the next one or "".
	List(ctx context.Context, p skill.Principal, q records.Query) ([]*records.View, string, error)
	// Get gives an execution with its result, or the beginning of one that is longer than most bytes.
	Get(ctx context.Context, p skill.Principal, id string, most int) (*records.View, error)
	// Cancel ends an execution, and gives it as it is then.
	Cancel(ctx context.Context, p skill.Principal, id string) (*records.View, error)
	// File gives a file that an execution left.
	File(ctx context.Context, p skill.Principal, id, name string) ([]byte, error)
	// Session gives the executions of a session in their order.
	Session(ctx context.Context, p skill.Principal, session string) ([]*records.View, error)
	// Replay runs an execution again, and gives what came of it, for package json.
	Replay(ctx context.Context, p skill.Principal, id string) (any, error)
}

// Starter is the door for calls that outlive their requests: it calls started once the
// run is on record, and not at all if it is refused before. It never returns nil.
type Starter interface {
	Start(ctx context.Context, p skill.Principal, r skill.Request, started func(executionID string)) *skill.Result
	StartScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest, started func(executionID string)) *skill.Result
	records.Door
}

// wantsLong reports whether a call is to be answered before it has ended: where its
// caller prefers that, and could read afterwards what came of it. Else it is answered as
// all are; a preference is no order.
func (s *Server) wantsLong(ctx *fasthttp.RequestCtx) bool {
	return s.opt.Executions != nil && s.opt.Starter != nil && prefersAsync(ctx) && records.MayRead(principalOf(ctx))
}

// prefersAsync looks for respond-async among the preferences of a request.
func prefersAsync(ctx *fasthttp.RequestCtx) bool {
	_, ok := preference(ctx, respondAsync)
	return ok
}

// preference gives the value of a preference of RFC 7240, and whether the request has it.
func preference(ctx *fasthttp.RequestCtx, wanted string) (value string, ok bool) {
	for _, line := range ctx.Request.Header.PeekAll("Prefer") {
		for part := range strings.SplitSeq(string(line), ",") {
			part, _, _ = strings.Cut(part, ";")
			name, value, _ := strings.Cut(part, "=")
			if strings.EqualFold(strings.TrimSpace(name), wanted) {
				return strings.Trim(strings.TrimSpace(value), `"`), true
			}
		}
	}
	return "", false
}

const respondAsync = "respond-async"

// begin answers a call that outlives this request: 202 and where to ask for it, or what
// it was refused for before it began. A call that finds no place is queued.
func (s *Server) begin(c *fiber.Ctx, call records.Run, later *records.QueuedCall) error {
	ctx := c.Context()
	later.Principal = principalOf(ctx)
	id, status, r, err := s.opt.Executions.Accept(c.UserContext(), later, s.outliving(ctx)(call), s.opt.Starter)
	switch {
	case err != nil:
		return err
	case id == "" && r == nil:
		return errors.New("the dispatcher returned no result")
	case id == "":
		return s.writeResult(ctx, r)
	}
	callerOf(ctx).ran = true
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderLocation, "/executions/"+id)
	if prefersAsync(ctx) {
		h.Set("Preference-Applied", respondAsync)
	}
	return s.writeJSON(ctx, fasthttp.StatusAccepted, skill.Accepted{ID: id, Status: string(status), TraceID: traceOf(ctx)})
}

var errNoExecutions = &skill.Error{Op: "api.executions", Code: skill.NotFound, Message: "call records are disabled on this host"}

// listExecutions answers GET /executions.
func (s *Server) listExecutions(c *fiber.Ctx) error {
	q, err := executionQuery(c)
	if err != nil {
		return err
	}
	list, next, err := s.opt.Executions.List(c.UserContext(), principalOf(c.Context()), q)
	return s.json(c, listOf(list, next), err)
}

// statuses are those that executions are asked for by.
var statuses = []records.Status{records.Queued, records.Running, records.Success, records.Failed, records.Terminated, records.TimedOut}

// executionQuery reads which executions are asked for.
func executionQuery(c *fiber.Ctx) (q records.Query, err error) {
	if q.Cursor, q.Limit, err = page(c); err != nil {
		return q, err
	}
	var status, since, until string
	for _, f := range []struct {
		name string
		most int
		to   *string
	}{
		{"tenant", maxTenant, &q.Tenant},
		{"principal", 256, &q.Principal},
		{"skill", 64, &q.Skill},
		{"status", 16, &status},
		{"code", 64, &q.Code},
		{"session", 36, &q.Session},
		{"trace", 64, &q.TraceID},
		{"since", 40, &since},
		{"until", 40, &until},
	} {
		if *f.to, err = query(c, f.name, f.most); err != nil {
			return q, err
		}
		if strings.ContainsFunc(*f.to, unicode.IsControl) {
			return q, invalidField(f.name, "has control characters")
		}
	}
	if q.Status = records.Status(status); status != "" && !slices.Contains(statuses, q.Status) {
		return q, invalidField("status", "must be queued, running, success, failed, terminated or timeout")
	}
	if q.Session != "" && !records.ValidID(q.Session) {
		return q, invalidField("session", "must be a UUID in lower case")
	}
	if q.Since, err = queryTime("since", since); err != nil {
		return q, err
	}
	q.Until, err = queryTime("until", until)
	return q, err
}

// queryTime reads a time of a query. The plus sign of a zone, which a query that was not
// encoded has lost, is put back.
func queryTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(text, " ", "+"))
	if err != nil {
		return time.Time{}, invalidField(name, "must be an RFC 3339 time such as 2026-11-22T10:00:00Z")
	}
	if first := time.Unix(0, 0); t.Before(first) { // there were no records before, and no time is none
		t = first
	}
	return t.UTC(), nil
}

// getExecution answers GET /executions/{id}.
func (s *Server) getExecution(c *fiber.Ctx) error {
	most := records.WholeResult
	switch given, err := query(c, "result", 8); {
	case err != nil:
		return err
	case given == "" || given == "full":
	case given == "head":
		most = records.FirstPart
	default:
		return invalidField("result", "must be full or head")
	}
	return s.execution(c, func(ctx context.Context, p skill.Principal, id string) (*records.View, error) {
		return s.opt.Executions.Get(ctx, p, id, most)
	})
}

// cancelExecution answers DELETE /executions/{id}: 202 while it still runs.
func (s *Server) cancelExecution(c *fiber.Ctx) error {
	return s.execution(c, s.opt.Executions.Cancel)
}

// resultCopies is how many times a result or file is in memory while its answer is made.
const resultCopies = 2

func (s *Server) execution(c *fiber.Ctx, ask func(context.Context, skill.Principal, string) (*records.View, error)) error {
	ctx := c.Context()
	v, err := ask(s.withRoom(c), principalOf(ctx), c.Params("id"))
	if err != nil {
		return err
	}
	status := fasthttp.StatusOK
	if (v.Status == records.Running || v.Status == records.Queued) && !ctx.IsGet() && !ctx.IsHead() {
		status = fasthttp.StatusAccepted
	}
	if len(v.Result) <= smallAnswer {
		return s.writeJSON(ctx, status, v)
	}
	// A long result is not read: it was written as JSON when it was stored.
	plain := *v
	plain.Result = nil
	head, err := json.Marshal(&plain)
	if err != nil {
		return err
	}
	return s.setJSON(ctx, status, bytes.Join([][]byte{bytes.TrimSuffix(head, []byte("}")), []byte(`,"result":`), v.Result, []byte("}\n")}, nil))
}

// withRoom has what is read of stored results counted before it is read.
func (s *Server) withRoom(c *fiber.Ctx) context.Context {
	return records.WithRoom(c.UserContext(), func(size int) error { return s.reserve(c.Context(), resultCopies*size) })
}

// replay answers POST /executions/{id}:replay.
func (s *Server) replay(c *fiber.Ctx) error {
	if err := noBody(c); err != nil {
		return err
	}
	report, err := s.opt.Executions.Replay(c.UserContext(), principalOf(c.Context()), c.Params("id"))
	return s.json(c, report, err)
}

// getArtifact answers GET /executions/{id}/artifacts/{artifact}. The name is looked up as
// it is: it is no path of this host, and leads nowhere else.
func (s *Server) getArtifact(c *fiber.Ctx) error {
	ctx := c.Context()
	plain, err := url.PathUnescape(string(ctx.URI().PathOriginal()))
	if err != nil {
		return invalid("the path is not valid percent-encoding")
	}
	id, name, ok := strings.Cut(strings.TrimPrefix(plain, "/executions/"), "/artifacts/")
	if !ok || id != c.Params("id") {
		return fiber.ErrNotFound
	}
	data, err := s.opt.Executions.File(s.withRoom(c), principalOf(ctx), id, name)
	if err != nil {
		return err
	}
	s.attached(ctx, path.Base(name))
	return s.setBody(ctx, data)
}
