package api

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"openskill/host/access"
)

// allowed gives the methods of a path of this server, "" if there is no such path.
func (s *Server) allowed(path string) string {
	switch strings.TrimSuffix(path, "/") {
	case pathMCP:
		if s.opt.MCP == nil {
			return ""
		}
	case pathMetrics:
		if s.opt.Metrics == nil {
			return ""
		}
	case pathConsole:
		if s.opt.Console == nil {
			return ""
		}
	}
	if s.opt.Console == nil && strings.HasPrefix(path, pathConsole+"/") {
		return ""
	}
	return access.Allow(path)
}

// isUploadPath reports whether a POST to the path is an upload.
func isUploadPath(path string) bool {
	return path == "/skills" || path == "/skills/" || path == pathConsole+"/upload"
}

// runPath gives the id or name of a path that is answered with a Normalized Skill
// Result: /skills/{id}:invoke or /agent-skills/{name}/scripts/{script}:run. It may be
// anything but empty or of several segments.
func runPath(path string) (id string, ok bool) {
	r, id := access.Find(fiber.MethodPost, path)
	return id, r != nil && (r.Path == pathInvoke || r.Path == pathRun)
}

// Paths of the table that are asked for by name.
const (
	pathInvoke = "/skills/{id}:invoke"
	pathRun    = "/agent-skills/{name}/scripts/{script}:run"
	pathMCP    = "/mcp"

	pathMetrics = "/metrics"
	pathConsole = "/console"
)

// routes gives every row of the table its handler. What is behind a colon comes before
// the path without it, which fiber would take for the same.
func (s *Server) routes(app *fiber.App) {
	get := func(path string, h fiber.Handler) { on(app, fiber.MethodGet, path, h) }
	post := func(path string, h fiber.Handler) { on(app, fiber.MethodPost, path, h) }
	patch := func(path string, h fiber.Handler) { on(app, fiber.MethodPatch, path, h) }
	remove := func(path string, h fiber.Handler) { on(app, fiber.MethodDelete, path, h) }

	post(pathInvoke, s.invoke)
	post("/skills", s.postSkill)
	patch("/skills/{id}", s.updateSkill)
	remove("/skills/{id}", s.deleteSkill)
	post("/skills/{id}:enable", s.decidingOwn(Definitions.Enable, s.deciding(Uploads.Enable)))
	post("/skills/{id}:disable", s.decidingOwn(Definitions.Disable, s.deciding(Uploads.Disable)))
	post("/skills/{id}:approve", s.deciding(Uploads.Approve))
	post("/skills/{id}:rollback", s.deciding(Uploads.Rollback))
	remove("/skills/{id}/versions/{version}", s.deleteVersion)
	get("/skills", s.listSkills)
	get("/skills/{id}", s.getSkill)
	get("/skills/{id}/versions", s.listVersions)
	get("/skills/{id}/versions/{version}", s.getReport)
	get(pathResource, s.resourceMetadata)
	get(pathResource+"/{path}", s.resourceMetadata)
	get("/agent-skills", s.listAgentSkills)
	get("/agent-skills/{name}", s.loadAgentSkill)
	get("/agent-skills/{name}/resources/{path}", s.readResource)
	post(pathRun, s.runScript)
	get("/tools", s.listTools)
	get("/approvals", s.listApprovals)
	get("/approvals/{id}", s.getApproval)
	post("/approvals/{id}:approve", s.decideApproval(true))
	post("/approvals/{id}:deny", s.decideApproval(false))
	post("/executions/{id}:replay", s.replay)
	get("/executions", s.listExecutions)
	get("/executions/{id}", s.getExecution)
	remove("/executions/{id}", s.cancelExecution)
	get("/executions/{id}/artifacts/{artifact}", s.getArtifact)
	get("/usage", s.getUsage)
	post("/agent/chat", s.postChat)
	post("/agent/conversations/{id}:approve", s.approveCall)
	get("/audit/changes", s.listChanges)
	get("/agent/conversations", s.listConversations)
	get("/agent/conversations/{id}", s.getConversation)
	remove("/agent/conversations/{id}", s.deleteConversation)
	get("/api/agent/skills", s.agentCatalogue)
	post("/api/agent/execute", s.executeTask)
	get("/api/agent/executions/{session_id}", s.agentSession)
	get(pathMetrics, s.getMetrics)
	mcp := s.mounted(s.opt.MCP)
	get(pathMCP, mcp)
	post(pathMCP, mcp)
	remove(pathMCP, mcp)
	console := s.mounted(s.opt.Console)
	get(pathConsole, console)
	get(pathConsole+"/{path}", console)
	post(pathConsole+"/{path}", console)
	get("/health", s.alive)
	get("/healthz", s.alive)
	get("/readyz", s.ready)
	get("/openapi.json", s.openapi)
	get("/docs", s.docs)
	for asset := range docsAssets {
		get("/docs/"+asset, s.docsAsset(asset))
	}
}
