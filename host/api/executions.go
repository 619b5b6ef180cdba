package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/api/internal/wire"
	"openskill/host/records"
	"openskill/host/records/executions"
	"openskill/sdk/skill"
)

// Executions are the records of calls, each caller what it may see, and the calls that
// outlive their requests; *executions.Manager is one. It authorizes: the edge only says
// who asks. Its errors are *skill.Error; it is safe for concurrent use.
type Executions interface {
	// Start runs a call that goes on when its caller leaves, and gives the id of its
	// execution as soon as that is on record, or the result of a call that ended before.
	Start(ctx context.Context, p skill.Principal, run executions.Run) (id string, r *skill.Result, err error)
	// List gives a page, newest first, and the cursor of the next one or "".
	List(ctx context.Context, p skill.Principal, q executions.Query) ([]*executions.View, string, error)
	// Get gives an execution with its result, or the beginning of one that is longer than most bytes.
	Get(ctx context.Context, p skill.Principal, id string, most int) (*executions.View, error)
	// Cancel ends an execution, and gives it as it is then.
	Cancel(ctx context.Context, p skill.Principal, id string) (*executions.View, error)
	// File gives a file that an execution left.
	File(ctx context.Context, p skill.Principal, id, name string) ([]byte, error)
	// Session gives the executions of a session in their order.
	Session(ctx context.Context, p skill.Principal, session string) ([]*executions.View, error)
	// Replay runs an execution again, and gives what came of it, for package json.
	Replay(ctx context.Context, p skill.Principal, id string) (any, error)
}

// Starter is the door for calls that outlive their requests: it calls started once the
// run is on record, and not at all if it is refused before. It never returns nil.
type Starter interface {
	Start(ctx context.Context, p skill.Principal, r skill.Request, started func(executionID string)) *skill.Result
	StartScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest, started func(executionID string)) *skill.Result
}

// wantsLong reports whether a call is to be answered before it has ended: where its
// caller prefers that, and could read afterwards what came of it. Else it is answered as
// all are; a preference is no order.
func (s *Server) wantsLong(ctx *fasthttp.RequestCtx) bool {
	return s.opt.Executions != nil && s.opt.Starter != nil && prefersAsync(ctx) && executions.MayRead(who(ctx))
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
// it was refused for before it began.
func (s *Server) begin(ctx *fasthttp.RequestCtx, call executions.Run) error {
	run, done := s.calling(ctx)
	defer done()
	if span := spanOf(ctx); span != nil { // it outlives the request, and is a part of it all the same
		inner := call
		call = func(run context.Context, started func(string)) *skill.Result { return inner(span.In(run), started) }
	}
	id, r, err := s.opt.Executions.Start(run, who(ctx), s.whileLetIn(callerOf(ctx), call))
	switch {
	case err != nil:
		return err
	case id == "" && r == nil:
		return errors.New("the dispatcher returned no result")
	case id == "":
		s.writeResult(ctx, r)
		return nil
	}
	callerOf(ctx).ran = true
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderLocation, "/executions/"+id)
	h.Set("Preference-Applied", respondAsync)
	s.writeJSON(ctx, fasthttp.StatusAccepted, wire.Accepted{Id: id, Status: wire.AcceptedStatusRunning, TraceId: traceOf(ctx)})
	return nil
}

// executions gives the records, unless there are none.
func (s *Server) executions() (Executions, error) {
	if s.opt.Executions == nil {
		return nil, &skill.Error{Op: "httpapi.executions", Code: skill.NotFound, Message: "call records are disabled on this host"}
	}
	return s.opt.Executions, nil
}

// listExecutions answers GET /executions.
func (s *Server) listExecutions(c *fiber.Ctx) error {
	all, err := s.executions()
	if err != nil {
		return err
	}
	q, err := executionQuery(c)
	if err != nil {
		return err
	}
	ctx, done := s.calling(c.Context())
	defer done()
	list, next, err := all.List(ctx, who(c.Context()), q)
	if err != nil {
		return err
	}
	l := wire.ExecutionList{Data: []executions.View{}}
	for _, v := range list {
		l.Data = append(l.Data, *v)
	}
	if next != "" {
		l.Next = &next
	}
	s.writeJSON(c.Context(), fasthttp.StatusOK, l)
	return nil
}

// statuses are those that executions are asked for by.
var statuses = []records.Status{records.Running, records.Success, records.Failed, records.Terminated, records.TimedOut}

// executionQuery reads which executions are asked for.
func executionQuery(c *fiber.Ctx) (q executions.Query, err error) {
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
		given, err := query(c, f.name, f.most)
		if err != nil {
			return q, err
		}
		if given == nil {
			continue
		}
		if strings.ContainsFunc(*given, unicode.IsControl) {
			return q, invalidField(f.name, "has control characters")
		}
		*f.to = *given
	}
	if q.Status = records.Status(status); status != "" && !slices.Contains(statuses, q.Status) {
		return q, invalidField("status", "must be running, success, failed, terminated or timeout")
	}
	if q.Session != "" && !executions.ValidID(q.Session) {
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
	most := executions.Whole
	switch given, err := query(c, "result", 8); {
	case err != nil:
		return err
	case given == nil || *given == "full":
	case *given == "head":
		most = executions.Head
	default:
		return invalidField("result", "must be full or head")
	}
	return s.execution(c, func(all Executions, ctx context.Context, p skill.Principal, id string) (*executions.View, error) {
		return all.Get(ctx, p, id, most)
	})
}

// cancelExecution answers DELETE /executions/{id}: 202 while it still runs.
func (s *Server) cancelExecution(c *fiber.Ctx) error {
	return s.execution(c, Executions.Cancel)
}

// resultCopies is how many times a result is in memory while its answer is made.
const resultCopies = 2

func (s *Server) execution(c *fiber.Ctx, ask func(Executions, context.Context, skill.Principal, string) (*executions.View, error)) error {
	all, err := s.executions()
	if err != nil {
		return err
	}
	ctx, done := s.calling(c.Context())
	defer done()
	ctx = executions.WithRoom(ctx, func(size int) error { return s.reserve(c.Context(), resultCopies*size) })
	v, err := ask(all, ctx, who(c.Context()), c.Params("id"))
	if err != nil {
		return err
	}
	status := fasthttp.StatusOK
	if v.Status == records.Running && !c.Context().IsGet() && !c.Context().IsHead() {
		status = fasthttp.StatusAccepted
	}
	return s.writeExecution(c.Context(), status, v)
}

// writeExecution answers with an execution. A long result is not read: it was written as JSON
// when it was stored.
func (s *Server) writeExecution(ctx *fasthttp.RequestCtx, status int, v *executions.View) error {
	if len(v.Result) <= smallAnswer {
		s.writeJSON(ctx, status, v)
		return nil
	}
	plain := *v
	plain.Result = nil
	head, err := json.Marshal(&plain)
	if err != nil {
		return err
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType(jsonType)
	return s.setBody(ctx, bytes.Join([][]byte{bytes.TrimSuffix(head, []byte("}")), []byte(`,"result":`), v.Result, []byte("}\n")}, nil))
}

// replay answers POST /executions/{id}:replay.
func (s *Server) replay(c *fiber.Ctx) error {
	ctx := c.Context()
	all, err := s.executions()
	if err != nil {
		return err
	}
	if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
		return err
	}
	if b := bytes.TrimSpace(ctx.Request.Body()); len(b) > 0 && string(b) != "{}" {
		return invalidField("body", "is not allowed here; remove it")
	}
	run, done := s.calling(ctx)
	defer done()
	report, err := all.Replay(run, who(ctx), c.Params("id"))
	if err != nil {
		return err
	}
	s.writeJSON(ctx, fasthttp.StatusOK, report)
	return nil
}

// getArtifact answers GET /executions/{id}/artifacts/{artifact}. The name is looked up as
// it is: it is no path of this host, and leads nowhere else.
func (s *Server) getArtifact(c *fiber.Ctx) error {
	ctx := c.Context()
	all, err := s.executions()
	if err != nil {
		return err
	}
	plain, err := url.PathUnescape(string(ctx.URI().PathOriginal()))
	if err != nil {
		return invalid("the path is not valid percent-encoding")
	}
	id, name, ok := strings.Cut(strings.TrimPrefix(plain, "/executions/"), "/artifacts/")
	if !ok || id != callerOf(ctx).subject {
		return fiber.ErrNotFound
	}
	run, done := s.calling(ctx)
	defer done()
	run = executions.WithRoom(run, func(size int) error { return s.reserve(ctx, 2*size) }) // the database's copy and ours
	data, err := all.File(run, who(ctx), id, name)
	if err != nil {
		return err
	}
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)})
	if disposition == "" {
		disposition = "attachment"
	}
	ctx.Response.Header.Set(fasthttp.HeaderContentDisposition, disposition)
	ctx.SetContentType("application/octet-stream") // a stranger's file is nothing that is shown
	return s.setBody(ctx, data)
}
