package httpapi

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"openskill/sdk/skill"
)

// get are the methods of a path that is only read.
const get = "GET, HEAD, OPTIONS"

// allowed gives the methods of a path of this server, "" if there is no such path.
func (s *Server) allowed(path string) string {
	if s.opt.MCP == nil && strings.TrimSuffix(path, "/") == "/mcp" {
		return ""
	}
	return allowed(path)
}

// allowed gives the methods of a path, "" if there is no such path.
func allowed(path string) string {
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	if isUploadPath(path) {
		return "GET, HEAD, POST, OPTIONS"
	}
	switch path {
	case "/health", "/healthz", "/readyz", "/openapi.json", "/docs", "/agent-skills", "/tools", "/approvals":
		return get
	case "/mcp":
		return "GET, POST, DELETE, OPTIONS"
	}
	if rest, ok := strings.CutPrefix(path, "/agent-skills/"); ok {
		return allowedOfAgentSkill(rest)
	}
	if id, ok := strings.CutPrefix(path, "/approvals/"); ok {
		return allowedOfApproval(id)
	}
	if _, ok := actionPath(path); ok {
		return "POST, OPTIONS"
	}
	if name, ok := strings.CutPrefix(path, "/docs/"); ok && isDocsAsset(name) {
		return get
	}
	rest, ok := strings.CutPrefix(path, "/skills/")
	if !ok {
		return ""
	}
	id, tail, deeper := strings.Cut(rest, "/")
	version, one := strings.CutPrefix(tail, "versions/")
	switch {
	case id == "" || strings.Contains(id, ":"): // a colon: an action that there is not
		return ""
	case !deeper || tail == "versions":
		return get
	case one && version != "" && !strings.Contains(version, "/"):
		return "DELETE, OPTIONS"
	}
	return ""
}

// allowedOfAgentSkill is allowed for what comes after /agent-skills/.
func allowedOfAgentSkill(rest string) string {
	name, tail, deeper := strings.Cut(rest, "/")
	kind, file, _ := strings.Cut(tail, "/")
	switch {
	case name == "" || strings.Contains(name, ":"):
		return ""
	case !deeper, kind == "resources" && file != "":
		return get
	case kind == "scripts" && len(file) > len(runSuffix) && strings.HasSuffix(file, runSuffix):
		return "POST, OPTIONS"
	}
	return ""
}

// allowedOfApproval is allowed for what comes after /approvals/.
func allowedOfApproval(id string) string {
	id, action, acts := strings.Cut(id, ":")
	switch {
	case id == "" || strings.Contains(id, "/"):
		return ""
	case !acts:
		return get
	case action == "approve" || action == "deny":
		return "POST, OPTIONS"
	}
	return ""
}

// isUploadPath reports whether a POST to the path is an upload.
func isUploadPath(path string) bool { return path == "/skills" || path == "/skills/" }

// actionPath gives the action of a path of the form /skills/{id}:{action}.
func actionPath(path string) (action string, ok bool) {
	path = strings.TrimSuffix(path, "/")
	for _, action := range actions {
		if id, ok := strings.CutSuffix(path, ":"+action); ok {
			id, ok = strings.CutPrefix(id, "/skills/")
			return action, ok && id != "" && !strings.Contains(id, "/")
		}
	}
	return "", false
}

var actions = [...]string{"invoke", "enable", "disable", "approve", "rollback"}

// runPath gives the id or name of a path that is answered with a Normalized Skill
// Result: /skills/{id}:invoke or /agent-skills/{name}/scripts/{script}:run. It may be
// anything but empty or of several segments.
func runPath(path string) (id string, ok bool) {
	path = strings.TrimSuffix(path, "/")
	if rest, ok := strings.CutPrefix(path, "/agent-skills/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		return name, strings.HasPrefix(allowedOfAgentSkill(rest), "POST")
	}
	id, ok = strings.CutPrefix(path, "/skills/")
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(id, ":invoke")
	return id, ok && id != "" && !strings.Contains(id, "/")
}

func (s *Server) routes(app *fiber.App) {
	app.Post("/skills/:id\\:invoke", s.invoke)
	app.Get("/skills/:id\\:invoke", s.wrongMethod) // or it would be a skill named "x:invoke"
	app.Post("/skills", s.upload)
	app.Post("/skills/:id\\:enable", s.deciding(Uploads.Enable))
	app.Post("/skills/:id\\:disable", s.deciding(Uploads.Disable))
	app.Post("/skills/:id\\:approve", s.deciding(Uploads.Approve))
	app.Post("/skills/:id\\:rollback", s.deciding(Uploads.Rollback))
	app.Delete("/skills/:id/versions/:version", s.deleteVersion)
	app.Get("/skills", s.reading(s.listSkills))
	app.Get("/skills/:id", s.reading(s.getSkill))
	app.Get("/skills/:id/versions", s.reading(s.listVersions))
	app.Get("/agent-skills", s.reading(s.listAgentSkills))
	app.Get("/agent-skills/:name", s.reading(s.loadAgentSkill))
	app.Get("/agent-skills/:name/resources/+", s.reading(s.readResource))
	app.Post("/agent-skills/:name/scripts/+", s.runScript)
	app.Get("/tools", s.reading(s.listTools))
	app.Get("/approvals", s.scoped(s.listApprovals, skill.ScopeRead, skill.ScopeAdmin))
	app.Get("/approvals/:id", s.scoped(s.getApproval, skill.ScopeRead, skill.ScopeAdmin))
	app.Post("/approvals/:id\\:approve", s.decideApproval(true))
	app.Post("/approvals/:id\\:deny", s.decideApproval(false))
	if s.opt.MCP != nil {
		for _, method := range []string{fiber.MethodGet, fiber.MethodPost, fiber.MethodDelete} {
			app.Add(method, "/mcp", s.mounted)
		}
	}
	app.Get("/health", s.alive)
	app.Get("/healthz", s.alive)
	app.Get("/readyz", s.ready)
	app.Get("/openapi.json", s.openapi)
	app.Get("/docs", s.docs)
	app.Get("/docs/:asset", s.docsAsset)
}
