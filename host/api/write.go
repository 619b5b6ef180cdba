package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/identity"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// maxMessage is the longest message in bytes that leaves the edge.
const maxMessage = 512

// invalid is an error of the request as a whole.
func invalid(message string) *skill.Error {
	return &skill.Error{Op: "api.request", Code: skill.InvalidArgument, Message: message}
}

// invalidField is an error of one part of the request.
func invalidField(field, problem string) *skill.Error {
	field, problem = skill.CleanText(field, 200), skill.CleanText(problem, 200)
	return &skill.Error{
		Op: "api.request", Code: skill.InvalidArgument, Subject: field,
		Message: field + ": " + problem,
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": problem}}},
	}
}

// fail answers err with the status of its code, as a Normalized Skill Result
// where the path asks for one. Whatever failed because the caller is no longer let in, that is
// the answer.
func (s *Server) fail(ctx *fasthttp.RequestCtx, err error) {
	if asker := callerOf(ctx).asker; asker != nil {
		err = cmp.Or(identity.Refused(asker), err)
	}
	s.failAs(ctx, skill.CodeOf(err).Status(), err)
}

// failAs is fail with a status that differs from the code's own.
func (s *Server) failAs(ctx *fasthttp.RequestCtx, status int, err error) {
	path := plainPath(ctx)
	given, isRun := runPath(path)
	id, _ := skill.ParseID(given) // "" if it is not one
	r := skill.Failure(id, traceOf(ctx), skill.Meta{}, err)
	r.Error.Status = status
	s.refused(reasonOf(err, status))
	if status >= 500 {
		s.log.LogAttrs(spanOf(ctx).In(context.Background()), slog.LevelError, "request failed",
			slog.String("trace_id", string(r.TraceID)), slog.Int("status", status), slog.String("error", err.Error()))
	}
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Op == opScope {
		s.challenge(ctx, status)
	}
	r.Error.Message = cleanMessage(r.Error.Message)
	s.hints(ctx, r.Error)
	switch {
	case isRun:
		err = s.writeJSON(ctx, status, r)
	case strings.HasPrefix(path, agentPath):
		err = s.failAgent(ctx, *r.Error)
	case strings.HasPrefix(path, pathVendors+"/"):
		err = s.failVendor(ctx, *r.Error)
	default:
		err = s.writeJSON(ctx, status, skill.Problem{Error: *r.Error})
	}
	if err != nil { // it has no room, which is an answer too
		ctx.SetStatusCode(skill.CodeOf(err).Status())
	}
}

// runPath gives the id or name of a path that is answered with a Normalized Skill Result:
// /skills/{id}:invoke, /code:run, /sessions/{id}:run or /agent-skills/{name}/scripts/{script}:run, whatever its method.
func runPath(path string) (id string, ok bool) {
	path = strings.TrimSuffix(path, "/")
	session, inSession := strings.CutSuffix(path, ":run")
	if session, there := strings.CutPrefix(session, pathSessions+"/"); path == pathCode || inSession && there && session != "" && !strings.Contains(session, "/") {
		return string(skill.RunCode), true
	}
	if rest, isCall := strings.CutPrefix(path, "/skills/"); isCall {
		id, ok = strings.CutSuffix(rest, ":invoke")
		return id, ok && id != "" && !strings.Contains(id, "/")
	}
	rest, _ := strings.CutPrefix(path, "/agent-skills/")
	id, script, _ := strings.Cut(rest, "/scripts/")
	name, ok := strings.CutSuffix(script, ":run")
	return id, ok && name != "" && id != "" && !strings.Contains(id, "/")
}

// writeResult answers with r, which may belong to the dispatcher and is not changed. Its data
// is written as it is: the dispatcher has made sure that it is JSON.
func (s *Server) writeResult(ctx *fasthttp.RequestCtx, r *skill.Result) error {
	out := *r
	out.TraceID = traceOf(ctx)
	if !out.Success {
		if out.Error == nil {
			out = *skill.Failure(r.SkillID, out.TraceID, r.Meta, errors.New("failed without an error"))
		}
		e := *out.Error
		if !e.Code.Known() {
			e.Code, e.Status = skill.Internal, skill.Internal.Status()
		}
		if e.Status < 400 || e.Status > 599 {
			e.Status = e.Code.Status()
		}
		e.Message = cleanMessage(e.Message)
		out.Data, out.Error = nil, &e
		s.hints(ctx, &e)
		return s.writeJSON(ctx, e.Status, &out)
	}
	out.Error = nil
	b, err := records.Written(&out)
	if err != nil {
		return err
	}
	return s.setJSON(ctx, fasthttp.StatusOK, append(b, '\n'))
}

// hints sets the headers that go with an error: how to show who one is, and, from the
// details of RATE_LIMITED, when to come again and what of which limit is left. Times are
// whole seconds, at least one.
func (s *Server) hints(ctx *fasthttp.RequestCtx, e *skill.ResultError) {
	h := &ctx.Response.Header
	switch e.Code { //nolint:exhaustive // the others say all in the body
	case skill.Unauthorized:
		s.challenge(ctx, fasthttp.StatusUnauthorized)
	case skill.RateLimited:
		ms, _ := number(e.Details["retry_after_ms"])
		h.Set(fasthttp.HeaderRetryAfter, seconds(ms))
		limit, isLimit := number(e.Details["limit"])
		if !isLimit {
			return
		}
		left, _ := number(e.Details["remaining"])
		reset, known := number(e.Details["reset_ms"])
		if !known {
			reset = ms
		}
		h.Set("RateLimit-Limit", strconv.FormatInt(int64(limit), 10))
		h.Set("RateLimit-Remaining", strconv.FormatInt(int64(left), 10))
		h.Set("RateLimit-Reset", seconds(reset))
	}
}

// number reads a detail of an error; what is none, or negative, is 0.
func number(detail any) (n float64, ok bool) {
	switch v := detail.(type) {
	case int:
		n, ok = float64(v), true
	case int64:
		n, ok = float64(v), true
	case uint64:
		n, ok = float64(v), true
	case float64:
		n, ok = v, true
	}
	if !(n >= 0) { // also when it is not a number
		return 0, false
	}
	return min(n, 1<<62), ok
}

// seconds are those of a header: whole ones, from one to a day.
func seconds(ms float64) string {
	return strconv.FormatInt(int64(min(max(math.Ceil(ms/1000), 1), 24*60*60)), 10)
}

// cleanMessage makes sure of what the door has promised: text for a person,
// never empty, without control characters, at most maxMessage bytes.
func cleanMessage(m string) string {
	for i := range len(m) {
		if c := m[i]; c < 0x20 || c >= 0x7f || i >= maxMessage {
			m = skill.CleanText(m, maxMessage)
			break
		}
	}
	if m == "" {
		return "the call failed"
	}
	return m
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// json answers with v, unless err says why there is none.
func (s *Server) json(c *fiber.Ctx, v any, err error) error {
	if err != nil {
		return err
	}
	return s.writeJSON(c.Context(), fasthttp.StatusOK, v)
}

// writeJSON answers with v.
func (s *Server) writeJSON(ctx *fasthttp.RequestCtx, status int, v any) error {
	buf, _ := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false) // a skill's data goes out as the skill wrote it
	if err := enc.Encode(v); err != nil {
		return &skill.Error{Op: "api.write", Code: skill.Internal, Err: err}
	}
	if err := s.made(ctx, buf.Cap()); err != nil {
		return err
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType(jsonType)
	if buf.Cap() > smallAnswer { // it goes with the answer: no copy, and none that stays
		ctx.Response.SetBodyRaw(buf.Bytes())
		return nil
	}
	ctx.SetBody(buf.Bytes())
	buffers.Put(buf)
	return nil
}

// setJSON answers with JSON, which nobody changes, as it is.
func (s *Server) setJSON(ctx *fasthttp.RequestCtx, status int, b []byte) error {
	ctx.SetStatusCode(status)
	ctx.SetContentType(jsonType)
	return s.setBody(ctx, b)
}

// listOf makes a page. next is the cursor of the next page, "" on the last one.
func listOf[T any](data []T, next string) skill.List[T] {
	l := skill.List[T]{Data: data}
	if data == nil {
		l.Data = []T{} // [], not null
	}
	if next != "" {
		l.Next = &next
	}
	return l
}
