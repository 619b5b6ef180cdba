package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/dispatch"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// invoke answers POST /skills/{id}:invoke.
func (s *Server) invoke(c *fiber.Ctx) error {
	ctx := c.Context()
	id, err := skill.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	req := skill.Request{SkillID: id, TraceID: traceOf(ctx)}
	if err := decodeInvoke(ctx.Request.Body(), &req); err != nil {
		return err
	}
	return s.callSkill(c, req)
}

// callSkill answers with what a call of a skill comes to.
func (s *Server) callSkill(c *fiber.Ctx, req skill.Request) error {
	p := principalOf(c.Context())
	if req.Webhook != "" && (s.opt.Webhooks == nil || s.opt.Executions == nil || s.opt.Starter == nil) {
		return errNoWebhooks
	}
	return s.call(c, func(run context.Context, started func(string)) *skill.Result {
		if started == nil {
			return s.opt.Door.Invoke(run, p, req)
		}
		return s.opt.Starter.Start(run, p, req, started)
	}, &records.QueuedCall{Request: &req})
}

// runCode answers POST /code:run, a call of run_code whose input is the body.
func (s *Server) runCode(c *fiber.Ctx) error { return s.code(c, []string{"language", "session"}, nil) }

// code calls run_code with the members of the body, those of more included, and the given texts as its input.
func (s *Server) code(c *fiber.Ctx, more []string, texts map[string]string) error {
	ctx := c.Context()
	req := skill.Request{SkillID: skill.RunCode, TraceID: traceOf(ctx)}
	input := []byte{'{'}
	given := func(field string, value []byte) error {
		if len(input) > 1 {
			input = append(input, ',')
		}
		input = append(append(append(append(input, '"'), field...), `":`...), value...)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		value, err := json.Marshal(texts[name])
		if err != nil {
			return err
		}
		_ = given(name, value) // which cannot fail
	}
	members := []member{{"limits", func(field string, value []byte) error {
		var asked skill.Limits
		if err := limits(&asked)(field, value); err != nil {
			return err
		}
		value, err := json.Marshal(asked.JSON())
		if err != nil {
			return err
		}
		return given(field, value)
	}}}
	for _, name := range append([]string{"code", "files", "workspace", "commit", "busy", "agent_skills", "packages", "skills"}, more...) {
		members = append(members, member{name, given})
	}
	if err := readMembers(ctx.Request.Body(), "", members); err != nil {
		return err
	}
	req.Input = append(input, '}')
	return s.callSkill(c, req)
}

// call answers with what a call comes to, or with where to ask for it.
func (s *Server) call(c *fiber.Ctx, call records.Run, later *records.QueuedCall) error {
	ctx := c.Context()
	if s.wantsLong(ctx) || later.Request != nil && later.Request.Webhook != "" {
		return s.begin(c, call, later)
	}
	r := call(c.UserContext(), nil)
	if r == nil {
		return errors.New("the dispatcher returned no result")
	}
	callerOf(ctx).ran = r.Meta.Ran
	return s.writeResult(ctx, r)
}

// checkBodyHeaders refuses bodies that are not plain JSON text. A form's content
// type passes, because it is what curl -d sends unless told otherwise; that is
// safe because pages of other origins are refused before (see sameOrigin).
func checkBodyHeaders(h *fasthttp.RequestHeader) error {
	if enc := h.Peek("Content-Encoding"); len(enc) > 0 {
		return &skill.Error{
			Op: "api.request", Code: skill.UnsupportedEncoding,
			Message: "compressed bodies are not supported; send the JSON without Content-Encoding",
		}
	}
	mediaType, _, _ := strings.Cut(string(h.ContentType()), ";")
	switch mediaType = strings.ToLower(strings.TrimSpace(mediaType)); mediaType {
	case "", jsonType, "application/x-www-form-urlencoded":
		return nil
	}
	return &skill.Error{
		Op: "api.request", Code: skill.UnsupportedEncoding,
		Message: "the body must be JSON, declared as Content-Type: application/json",
	}
}

// decodeInvoke reads the body of a call, to which the request refers from then on. It is parsed
// once; only the values of a long one are made later, when the dispatcher has a place for that.
func decodeInvoke(b []byte, to *skill.Request) error {
	if len(b) == 0 {
		return invalidField("body", `is empty; send {"input": {…}}`)
	}
	members := append([]member{
		{"input", object(&to.Input)},
		{"version", text(&to.Version, 64)},
		{"files", filesOf(&to.Files)},
		{"limits", limits(&to.Limits)},
		webhook(&to.Webhook),
	}, workspaceOf(&to.Workspace)...)
	var err error
	if len(b) > dispatch.HeavyInput {
		err = readMembers(b, "", members)
	} else {
		var all map[string]any
		all, err = parseMembers(b, dispatch.MaxInputDepth+1, members)
		to.Value, _ = all["input"].(map[string]any)
	}
	if err == nil && to.Input == nil {
		err = invalidField("input", "is missing; send {\"input\": {…}}")
	}
	return err
}

// object reads an object as it is written.
func object(to *json.RawMessage) func(string, []byte) error {
	return func(field string, value []byte) error {
		if value[0] != '{' {
			return invalidField(field, "must be an object")
		}
		*to = value
		return nil
	}
}

// limits reads the limits of a call.
func limits(to *skill.Limits) func(string, []byte) error {
	return func(field string, value []byte) error {
		if value[0] != '{' {
			return invalidField(field, "must be an object")
		}
		var l skill.LimitsJSON
		var members []member
		for _, f := range l.Fields() {
			members = append(members, member{f.Name, func(field string, value []byte) error {
				n, ok := wholeNumber(value)
				if !ok {
					return invalidField(field, "must be a whole number from 0 to "+strconv.Itoa(maxWhole))
				}
				*f.Value = n
				return nil
			}})
		}
		err := readMembers(value, field+".", members)
		*to = l.Limits()
		return err
	}
}

// maxWhole is the largest whole number that every JSON reader keeps exactly.
const maxWhole = 1<<53 - 1

// wholeNumber reads a JSON value that is a whole number, in any spelling (12,
// 12.0 and 1.2e1 are the same number).
func wholeNumber(b []byte) (uint64, bool) {
	if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		return n, n <= maxWhole
	}
	if c := b[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || f < 0 || f > maxWhole || f != math.Trunc(f) {
		return 0, false
	}
	return uint64(f), true
}
