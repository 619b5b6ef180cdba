package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"path"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/dispatch/allow"
	"openskill/host/records"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// AgentSkills is where the edge finds Agent Skills, each caller what it may find. It is
// safe for concurrent use; its errors are *skill.Error.
type AgentSkills interface {
	// List gives all of them, in order of name.
	List(ctx context.Context, p skill.Principal) ([]skill.AgentSkill, error)
	// Load gives one and the text of its SKILL.md, frontmatter included.
	Load(ctx context.Context, p skill.Principal, name string) (skill.AgentSkill, string, error)
	// ReadResource gives a resource by the name that the skill lists.
	ReadResource(ctx context.Context, p skill.Principal, name, resource string) (skill.AgentResource, error)
	// RunScript runs a script. It authorizes, never returns nil, and returns soon after
	// ctx has ended.
	RunScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest) *skill.Result
}

// maxName is how long the name of a resource or script may be, in bytes.
const maxName = 1024

// calling gives a context that ends when the client leaves, or the host stops. done is
// called when the answer is made.
func (s *Server) calling(ctx *fasthttp.RequestCtx) (run context.Context, done func()) {
	run, cancel := context.WithCancelCause(spanOf(ctx).In(s.base))
	conn := connOf(ctx)
	if conn != nil {
		s.watches.add(conn, func() { cancel(errClientLeft) })
	}
	stop := s.endsWith(callerOf(ctx), cancel)
	return run, func() {
		if conn != nil {
			s.watches.remove(conn)
		}
		stop()
		cancel(nil)
	}
}

// listAgentSkills answers GET /agent-skills.
func (s *Server) listAgentSkills(c *fiber.Ctx) error {
	cursor, limit, err := page(c)
	if err != nil {
		return err
	}
	if s.opt.AgentSkills == nil {
		return s.json(c, listOf[skill.AgentSkill](nil, ""), nil)
	}
	p := principalOf(c.Context())
	all, err := s.opt.AgentSkills.List(c.UserContext(), p)
	if err != nil {
		return err
	}
	var allowed allow.Digests
	decides := s.opt.Grants != nil && p.May(skill.ScopeAdmin)
	if decides {
		if allowed, err = s.opt.Grants.Digests(c.UserContext(), p); err != nil {
			return err
		}
	}
	from := sort.Search(len(all), func(i int) bool { return all[i].Name > cursor })
	to, next := min(from+limit, len(all)), ""
	if to < len(all) {
		next = all[to-1].Name
	}
	var list []skill.AgentSkill
	for _, a := range all[from:to] {
		if decides {
			a.Grant = string(allowed.State(cmp.Or(a.GrantName, a.Name), a.Digest))
		}
		list = append(list, listed(a))
	}
	return s.json(c, listOf(list, next), nil)
}

// listed makes sure that lists are lists.
func listed(a skill.AgentSkill) skill.AgentSkill {
	if a.Resources == nil {
		a.Resources = []skill.AgentFile{}
	}
	if a.Scripts == nil {
		a.Scripts = []skill.AgentFile{}
	}
	return a
}

// loadedSkill is an Agent Skill with its instructions.
type loadedSkill struct {
	skill.AgentSkill
	Content string `json:"content"`
}

// loadAgentSkill answers GET /agent-skills/{name}.
func (s *Server) loadAgentSkill(c *fiber.Ctx) error {
	skills, err := s.agentSkills(c.Params("name"))
	if err != nil {
		return err
	}
	ctx := c.Context()
	a, content, err := skills.Load(c.UserContext(), principalOf(ctx), c.Params("name"))
	if err != nil {
		return err
	}
	ctx.Response.Header.Set("Vary", "Accept")
	if wantsMarkdown(string(ctx.Request.Header.Peek("Accept"))) {
		ctx.SetContentType("text/markdown; charset=utf-8")
		return s.setBody(ctx, []byte(content))
	}
	return s.json(c, loadedSkill{listed(a), content}, nil)
}

// agentSkills gives the Agent Skills, unless there are none or the name cannot be one
// of them.
func (s *Server) agentSkills(name string) (AgentSkills, error) {
	switch {
	case !skill.ValidAgentSkillName(name):
		return nil, &skill.Error{
			Op: "api.agentskills", Code: skill.InvalidArgument, Subject: skill.CleanText(name, 80),
			Message: "invalid Agent Skill name: use 1 to 64 of a-z, 0-9 and single -, with a letter or digit at both ends",
		}
	case s.opt.AgentSkills == nil:
		return nil, &skill.Error{Op: "api.agentskills", Code: skill.NotFound, Message: "this host has no Agent Skills"}
	}
	return s.opt.AgentSkills, nil
}

// wantsMarkdown reports whether a header Accept names text/markdown, and JSON not more
// eagerly.
func wantsMarkdown(accept string) bool {
	markdown, plainJSON := 0.0, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		switch mediaType {
		case "text/markdown":
			markdown = max(markdown, q)
		case jsonType:
			plainJSON = max(plainJSON, q)
		}
	}
	return markdown > 0 && markdown >= plainJSON
}

// partOf takes a path of the form /agent-skills/{name}/{kind}/{rest} apart. It decodes
// it itself: the path that fiber matches has spaces for plus signs, and names of files
// may have either.
func partOf(ctx *fasthttp.RequestCtx, kind string) (name, rest string, err error) {
	plain, err := url.PathUnescape(string(ctx.URI().PathOriginal()))
	if err != nil {
		return "", "", invalid("the path is not valid percent-encoding")
	}
	rest, ok := strings.CutPrefix(plain, "/agent-skills/")
	if !ok {
		return "", "", fiber.ErrNotFound
	}
	name, rest, _ = strings.Cut(rest, "/")
	if rest, ok = strings.CutPrefix(rest, kind+"/"); !ok || rest == "" {
		return "", "", fiber.ErrNotFound
	}
	return name, rest, nil
}

// checkFileName refuses names that no file of a skill has, before anything is looked
// for. what says whose name it is.
func checkFileName(what, name string) error {
	forbidden := strings.ContainsRune(name, '\\') || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name)
	for part := range strings.SplitSeq(name, "/") {
		forbidden = forbidden || part == "" || part == "." || part == ".."
	}
	switch {
	case forbidden:
		return &skill.Error{
			Op: "api.agentskills", Code: skill.ForbiddenPath, Subject: skill.CleanText(name, 80),
			Message: "invalid " + what + " name: use a name that the skill lists: a relative path separated by /, without empty, . or .. parts, backslashes or control characters",
		}
	case len(name) > maxName:
		return invalidField(what, "must be at most "+strconv.Itoa(maxName)+" bytes long")
	}
	return nil
}

// readResource answers GET /agent-skills/{name}/resources/{path}.
func (s *Server) readResource(c *fiber.Ctx) error {
	ctx := c.Context()
	name, resource, err := partOf(ctx, "resources")
	if err != nil {
		return err
	}
	if err := checkFileName("resource", resource); err != nil {
		return err
	}
	skills, err := s.agentSkills(name)
	if err != nil {
		return err
	}
	r, err := skills.ReadResource(c.UserContext(), principalOf(ctx), name, resource)
	if err != nil {
		return err
	}
	mediaType, disposition := shownAs(resource, r.MediaType, r.Data)
	if disposition != "" {
		ctx.Response.Header.Set("Content-Disposition", disposition)
	}
	ctx.SetContentType(mediaType)
	return s.setBody(ctx, r.Data)
}

// plainTypes are what browsers show as text and nothing else, beside text/plain.
var plainTypes = map[string]bool{
	"text/markdown": true, "text/csv": true, "text/tab-separated-values": true, jsonType: true, "application/yaml": true, "text/yaml": true, "application/toml": true,
}

// shownAs gives the type of an answer and what a browser is to do with it: a stranger's
// page or picture is saved, not shown as one of this host's.
func shownAs(name, given string, data []byte) (mediaType, disposition string) {
	mediaType, params, err := mime.ParseMediaType(given)
	if err != nil {
		mediaType, params = "application/octet-stream", nil
	}
	text := strings.HasPrefix(mediaType, "text/") || plainTypes[mediaType]
	if text && params["charset"] == "" && mediaType != jsonType && utf8.Valid(data) {
		params = map[string]string{"charset": "utf-8"}
	}
	full := mime.FormatMediaType(mediaType, params)
	if full == "" {
		full = "application/octet-stream"
	}
	if mediaType == "text/plain" || plainTypes[mediaType] {
		return full, ""
	}
	if disposition = mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}); disposition == "" {
		disposition = "attachment"
	}
	return full, disposition
}

// runScript answers POST /agent-skills/{name}/scripts/{script}:run.
func (s *Server) runScript(c *fiber.Ctx) error {
	ctx := c.Context()
	name, script, err := partOf(ctx, "scripts")
	if err != nil {
		return err
	}
	script = strings.TrimSuffix(strings.TrimSuffix(script, "/"), ":run")
	if err := checkFileName("script", script); err != nil {
		return err
	}
	skills, err := s.agentSkills(name)
	if err != nil {
		return err
	}
	req := skill.ScriptRequest{Skill: name, Script: script, TraceID: traceOf(ctx)}
	if err := s.decodeRun(ctx.Request.Body(), &req); err != nil {
		return err
	}
	p := principalOf(ctx)
	return s.call(c, func(run context.Context, started func(string)) *skill.Result {
		if started != nil {
			return s.opt.Starter.StartScript(run, p, req, started)
		}
		return s.whenApproved(ctx, run, func() *skill.Result { return skills.RunScript(run, p, req) })
	}, &records.QueuedCall{Script: &req})
}

// decodeRun reads the body of a run, which may be missing.
func (s *Server) decodeRun(b []byte, to *skill.ScriptRequest) error {
	if len(b) == 0 {
		return nil
	}
	return readMembers(b, "", append([]member{
		{"files", filesOf(&to.Files)},
		{"args", func(_ string, value []byte) error { return s.decodeArgs(value, to) }},
		{"input", func(field string, value []byte) error {
			var given string
			if value[0] != '"' || json.Unmarshal(value, &given) != nil {
				return invalidField(field, "must be a string: the text for standard input")
			}
			to.Stdin = []byte(given)
			return nil
		}},
		{"limits", limits(&to.Asked)},
	}, workspaceOf(&to.Workspace)...))
}

// syntaxError makes an error of a request of one that strictjson found.
func syntaxError(err error) error {
	var syntax *strictjson.Error
	if !errors.As(err, &syntax) {
		return err
	}
	field := syntax.Path
	if field == "" {
		field = "body"
	}
	return invalidField(field, syntax.Problem+" (byte "+strconv.Itoa(syntax.Offset)+")")
}

func (s *Server) decodeArgs(value []byte, to *skill.ScriptRequest) error {
	if value[0] != '[' && value[0] != '{' && string(value) != "null" {
		return invalidField("args", "must be a list of strings, or an object whose keys become options")
	}
	args, err := s.opt.ScriptArgs(value)
	if _, ok := errors.AsType[*skill.Error](err); err != nil && !ok {
		return invalidField("args", err.Error())
	}
	to.Args = args
	return err
}

// stringArgs is what Options.ScriptArgs is by default.
func stringArgs(raw json.RawMessage) ([]string, error) {
	var args []string
	if json.Unmarshal(raw, &args) != nil {
		return nil, invalidField("args", "must be a list of strings")
	}
	return args, nil
}
