package api

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/api/internal/wire"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// invoke answers POST /skills/{id}:invoke.
func (s *Server) invoke(c *fiber.Ctx) error {
	ctx := c.Context()
	id, err := skill.ParseID(c.Params("id"))
	if err != nil {
		return err
	}
	if err := checkBodyHeaders(&ctx.Request.Header); err != nil {
		return err
	}
	// What takeBody has read: it is not unpacked, and stays when the buffers of the
	// connection are used again.
	in, err := decodeInvoke(ctx.Request.Body())
	if err != nil {
		return err
	}
	req := skill.Request{SkillID: id, Input: in.Input, TraceID: traceOf(ctx)}
	if in.Version != nil {
		req.Version = *in.Version
	}
	if in.Limits != nil {
		req.Limits = in.Limits.Limits()
	}

	p := who(ctx)
	if s.wantsLong(ctx) {
		return s.begin(ctx, func(run context.Context, started func(string)) *skill.Result {
			return s.opt.Starter.Start(run, p, req, started)
		})
	}
	run, done := s.calling(ctx)
	defer done()
	r := s.opt.Door.Invoke(run, p, req)
	if r == nil {
		return errors.New("the dispatcher returned no result")
	}
	callerOf(ctx).ran = r.Meta.Ran
	s.writeResult(ctx, r)
	return nil
}

// checkBodyHeaders refuses bodies that are not plain JSON text. A form's content
// type passes, because it is what curl -d sends unless told otherwise; that is
// safe because pages of other origins are refused before (see sameOrigin).
func checkBodyHeaders(h *fasthttp.RequestHeader) error {
	if enc := h.Peek("Content-Encoding"); len(enc) > 0 {
		return &skill.Error{
			Op: "httpapi.request", Code: skill.UnsupportedEncoding,
			Message: "compressed bodies are not supported; send the JSON without Content-Encoding",
		}
	}
	mediaType, _, _ := strings.Cut(string(h.ContentType()), ";")
	switch mediaType = strings.ToLower(strings.TrimSpace(mediaType)); mediaType {
	case "", jsonType, "application/x-www-form-urlencoded":
		return nil
	}
	return &skill.Error{
		Op: "httpapi.request", Code: skill.UnsupportedEncoding,
		Message: "the body must be JSON, declared as Content-Type: application/json",
	}
}

// decodeInvoke reads the body of a call. The result refers to b.
func decodeInvoke(b []byte) (wire.InvokeRequest, error) {
	var in wire.InvokeRequest
	if len(b) == 0 {
		return in, invalidField("body", `is empty; send {"input": {…}}`)
	}
	err := strictjson.Object(b, func(key, value []byte) error {
		switch string(key) {
		case "input":
			if value[0] != '{' {
				return invalidField("input", "must be an object")
			}
			in.Input = value
		case "version":
			var v string
			if json.Unmarshal(value, &v) != nil || value[0] != '"' {
				return invalidField("version", "must be a string")
			}
			if v == "" || utf8.RuneCountInString(v) > 64 {
				return invalidField("version", "must be 1 to 64 characters long")
			}
			in.Version = &v
		case "limits":
			if value[0] != '{' {
				return invalidField("limits", "must be an object")
			}
			l, err := decodeLimits(value)
			if err != nil {
				return err
			}
			in.Limits = &l
		default:
			return invalidField(string(key), "is not a known key; input, version and limits are")
		}
		return nil
	})
	err = syntaxError(err)
	if err == nil && in.Input == nil {
		err = invalidField("input", "is missing; send {\"input\": {…}}")
	}
	return in, err
}

func decodeLimits(b []byte) (skill.LimitsJSON, error) {
	var l skill.LimitsJSON
	fields := l.Fields()
	err := strictjson.Object(b, func(key, value []byte) error {
		i := slices.IndexFunc(fields, func(f skill.LimitField) bool { return f.Name == string(key) })
		if i < 0 {
			return invalidField("limits."+string(key), "is not a known key; "+limitNames+" are")
		}
		n, ok := wholeNumber(value)
		if !ok {
			return invalidField("limits."+string(key), "must be a whole number from 0 to "+strconv.Itoa(maxWhole))
		}
		*fields[i].Value = n
		return nil
	})
	return l, err
}

var limitNames = func() string {
	fields := new(skill.LimitsJSON).Fields()
	names := fields[0].Name
	for _, f := range fields[1 : len(fields)-1] {
		names += ", " + f.Name
	}
	return names + " and " + fields[len(fields)-1].Name
}()

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
