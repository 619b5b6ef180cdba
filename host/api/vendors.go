package api

import (
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// pathVendors is the prefix of the calls of the SDKs of Anthropic and OpenAI. Both use the same paths; requests of
// Anthropic's have a header that begins with "anthropic-".
const pathVendors = "/v1"

const (
	pathVendorSkills = pathVendors + "/skills"
	pathVendorFiles  = pathVendors + "/files"
)

// vendorObject is a JSON object of a vendor.
type vendorObject map[string]any

// ofAnthropic reports whether a request is of Anthropic's SDK; all others are answered as OpenAI does.
func ofAnthropic(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	return len(h.Peek("Anthropic-Version")) > 0 || len(h.Peek("Anthropic-Beta")) > 0
}

// anthropicErrors are the types of errors by status; other statuses are api_error from 500, else invalid_request_error.
var anthropicErrors = map[int]string{
	401: "authentication_error", 403: "permission_error", 404: "not_found_error", 408: "timeout_error",
	409: "conflict_error", 429: "rate_limit_error", 503: "overloaded_error",
}

// vendorProblem is an error of both vendors.
type vendorProblem struct {
	skill.ResultError

	Type  string  `json:"type"`
	Param *string `json:"param"`
}

// failVendor answers with an error in the shape of the vendor.
func (s *Server) failVendor(ctx *fasthttp.RequestCtx, e skill.ResultError) error {
	if e.Status == fasthttp.StatusConflict { // the SDKs retry it
		ctx.Response.Header.Set("X-Should-Retry", "false")
	}
	p := vendorProblem{ResultError: e, Type: "invalid_request_error"}
	if fields, ok := e.Details["fields"].([]map[string]string); ok && len(fields) > 0 {
		field := fields[0]["field"]
		p.Param = &field
	}
	if !ofAnthropic(ctx) {
		switch {
		case e.Status >= 500:
			p.Type = "server_error"
		case e.Status == fasthttp.StatusTooManyRequests:
			p.Type = "rate_limit_error"
		}
		return s.writeJSON(ctx, e.Status, vendorObject{"error": p})
	}
	if e.Status >= 500 {
		p.Type = "api_error"
	}
	if known, ok := anthropicErrors[e.Status]; ok {
		p.Type = known
	}
	return s.writeJSON(ctx, e.Status, vendorObject{"type": "error", "error": p, "request_id": traceOf(ctx)})
}

// vendorPage is the page that a list of a vendor is asked for.
type vendorPage struct {
	after  string // the last id of the page before; "": none
	limit  int
	oldest bool // first
}

// maxVendorPage bounds the entries of a page. OpenAI's clients may ask for more, and get the rest in further pages.
const maxVendorPage = 1000

// vendorPageOf reads the parameters of a list: limit and page, or limit, after and order. most is the maximum limit of
// OpenAI.
func vendorPageOf(c *fiber.Ctx, most int) (p vendorPage, err error) {
	after, usual := "after", min(most, 20)
	if ofAnthropic(c.Context()) {
		after, usual, most = "page", 20, maxVendorPage
	} else if most > maxVendorPage {
		usual = most // of files
	}
	if p.after, err = query(c, after, 256); err != nil {
		return p, err
	}
	order, err := query(c, "order", 8)
	if err == nil && order != "" && order != "asc" && order != "desc" {
		err = invalidField("order", "must be asc or desc")
	}
	if err != nil {
		return p, err
	}
	_, limit, err := pageOf(c, usual, most)
	return vendorPage{strings.TrimPrefix(p.after, "page_"), min(limit, maxVendorPage), order == "asc"}, err
}

// vendorListOf answers with a page of a whole list, which is in the order of its time, oldest first.
func vendorListOf[T any](s *Server, c *fiber.Ctx, all []T, id func(*T) string, shape func(*T) vendorObject) error {
	p, err := vendorPageOf(c, 100)
	if err != nil {
		return err
	}
	if !p.oldest {
		slices.Reverse(all)
	}
	if p.after != "" {
		i := slices.IndexFunc(all, func(e T) bool { return id(&e) == p.after })
		if i < 0 {
			return invalidField("after", "is not the id of an entry of this list")
		}
		all = all[i+1:]
	}
	var data []vendorObject
	next := ""
	for i := range all[:min(p.limit, len(all))] {
		data, next = append(data, shape(&all[i])), id(&all[i])
	}
	if len(data) == len(all) {
		next = ""
	}
	return s.vendorList(c, data, next)
}

// vendorList answers with a page. Its entries have ids; next is where the next page begins, "" on the last page.
func (s *Server) vendorList(c *fiber.Ctx, data []vendorObject, next string) error {
	if data == nil {
		data = []vendorObject{}
	}
	list := vendorObject{"data": data, "has_more": next != ""}
	if ofAnthropic(c.Context()) {
		if list["next_page"] = nil; next != "" {
			list["next_page"] = "page_" + next
		}
		return s.json(c, list, nil)
	}
	list["object"], list["first_id"], list["last_id"] = "list", nil, nil
	if n := len(data); n > 0 {
		list["first_id"], list["last_id"] = data[0]["id"], data[n-1]["id"]
	}
	return s.json(c, list, nil)
}

// vendorDeleted answers a deletion of a thing: a skill, its version, or a file.
func (s *Server) vendorDeleted(c *fiber.Ctx, id any, thing string, more vendorObject, err error) error {
	answer := vendorObject{"id": id}
	if ofAnthropic(c.Context()) {
		answer["type"] = strings.ReplaceAll(thing, ".", "_") + "_deleted"
		return s.json(c, answer, err)
	}
	maps.Copy(answer, more)
	if answer["object"], answer["deleted"] = thing, true; thing != "file" {
		answer["object"] = thing + ".deleted"
	}
	return s.json(c, answer, err)
}
