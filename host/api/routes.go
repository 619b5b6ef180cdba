package api

import (
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"openskill/host/catalogue"
	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// Route is one row of the table: a method and a path, who may use it, and what answers. The
// zero value is closed to everybody.
type Route struct {
	Method string
	Path   string // as openapi.yaml writes it: {id} is one segment, but see restParams
	// Scopes open the route to callers who hold one of them; none, to nobody. In
	// skills:invoke:{id} the first parameter of the path is meant, and skills:invoke:* is any
	// scope that allows calls of one skill.
	Scopes []string
	kind   *kind
	handle fiber.Handler
}

// kind is what the routes of one kind have in common.
type kind struct {
	open   bool                                    // everybody is let in, known or not
	health bool                                    // constant answers, which no rate bounds
	json   bool                                    // a body must be JSON, which its headers show before it is read
	stream bool                                    // the handler reads the body while it comes in
	call   bool                                    // what it starts has a rate of its own
	own    bool                                    // the handler watches its client itself, since its answer outlasts it
	gate   func(*Server) (*gate.Gate, []gate.Part) // whose turn a request waits for; nil: what it starts passes gates
}

// The kinds of routes.
var (
	kindOpen    = &kind{open: true, own: true}
	kindHealth  = &kind{open: true, own: true, health: true}
	kindForm    = &kind{open: true, own: true, stream: true} // of the console, with an upload
	kindCall    = &kind{json: true, call: true}
	kindWork    = &kind{json: true}            // tasks, replays and reviews
	kindTurn    = &kind{json: true, own: true} // of the agent
	kindUpload  = &kind{own: true, stream: true}
	kindFile    = &kind{own: true, stream: true}             // an upload with its own size limit
	kindNone    = &kind{open: true, own: true, stream: true} // no route
	kindReport  = &kind{}
	kindStream  = &kind{own: true}             // of MCP
	kindMessage = &kind{own: true, call: true} // of MCP
	kindFigures = &kind{own: true, gate: readGate}
	kindList    = &kind{gate: readGate}
	kindRecord  = &kind{gate: func(s *Server) (*gate.Gate, []gate.Part) {
		return s.records, []gate.Part{{Key: "read", Places: readPlaces()}}
	}}
	kindDecide = &kind{json: true, gate: func(s *Server) (*gate.Gate, []gate.Part) { return s.records, nil }}
)

func readGate(s *Server) (*gate.Gate, []gate.Part) { return s.reads, nil }

// Scopes as the table has them beside those of package skill.
const (
	invokeThis  = skill.ScopeInvoke + ":{id}"
	invokeNamed = skill.ScopeInvoke + ":{name}"
	invokeSome  = skill.ScopeInvoke + ":*"
)

// MCPScopes are those that a client of MCP has use for.
func MCPScopes() []string { return []string{skill.ScopeRead, skill.ScopeInvoke} }

// Paths of the table that are asked for by name.
const (
	pathInvoke   = "/skills/{id}:invoke"
	pathCode     = "/code:run"
	pathRun      = "/agent-skills/{name}/scripts/{script}:run"
	pathMCP      = "/mcp"
	pathConsole  = "/console"
	pathResource = "/.well-known/oauth-protected-resource" // where RFC 9728 has the metadata of a resource without a path
)

// table is every route of the host. A new one is a row here and an operation in openapi.yaml;
// tests hold the two together. What is behind a colon comes before the path without it.
func (s *Server) table() []Route {
	const get, post, patch, remove = fiber.MethodGet, fiber.MethodPost, fiber.MethodPatch, fiber.MethodDelete
	var (
		read     = []string{skill.ScopeRead}
		admin    = []string{skill.ScopeAdmin}
		uploader = []string{skill.ScopeUpload, skill.ScopeAdmin} // whose uploads they are is the store's to know
		either   = []string{skill.ScopeRead, skill.ScopeAdmin}
		invoker  = []string{skill.ScopeInvoke, invokeThis}
		runner   = []string{skill.ScopeInvoke, invokeNamed}
		filer    = []string{skill.ScopeInvoke, invokeSome} // of files and workspaces, which belong to calls
		coder    = []string{skill.ScopeInvoke, skill.ScopeInvoke + ":" + skill.RunCode}
		ends     = []string{skill.ScopeInvoke, invokeSome, skill.ScopeHost}
		// Whose records one sees is what the scopes say: executions:read of one's own calls,
		// executions:read:all of one's tenant's, admin of all.
		reader = []string{skill.ScopeExecutions, skill.ScopeAllExecutions, skill.ScopeHost}
		agent  = []string{skill.ScopeAgent} // it acts as its caller, who may do through it what its other scopes allow
		client = []string{skill.ScopeRead, skill.ScopeInvoke, invokeSome}
		host   = []string{skill.ScopeHost}
	)
	o := &s.opt
	up := func(h fiber.Handler) fiber.Handler { return only(o.Uploads != nil, errUploadsOff, h) }
	approvals := func(h fiber.Handler) fiber.Handler { return only(o.Approvals != nil, errNoApprovals, h) }
	grants := func(h fiber.Handler) fiber.Handler { return only(o.Grants != nil, errNoGrants, h) }
	executions := func(h fiber.Handler) fiber.Handler { return only(o.Executions != nil, errNoExecutions, h) }
	files := func(h fiber.Handler) fiber.Handler { return only(o.Files != nil, errNoFiles, h) }
	spaces := func(h fiber.Handler) fiber.Handler { return only(o.Workspaces != nil, errNoWorkspaces, h) }
	schedules := func(h fiber.Handler) fiber.Handler { return only(o.Schedules != nil, errNoSchedules, h) }
	hooks := func(h fiber.Handler) fiber.Handler { return only(o.Webhooks != nil, errNoWebhooks, h) }
	sessions := func(h fiber.Handler) fiber.Handler { return only(o.Sessions != nil, errNoSessions, h) }
	chat := func(h fiber.Handler) fiber.Handler { return only(o.Chat != nil, errAgentOff, h) }
	changes := func(h fiber.Handler) fiber.Handler { return only(o.Definitions != nil, errDefinitionsOff, h) }
	mcp, console, metrics := s.mounted(o.MCP), s.mounted(s.console), s.mounted(o.Metrics)
	rows := []Route{
		{post, pathInvoke, invoker, kindCall, s.invoke},
		{post, pathCode, coder, kindCall, s.runCode},
		{get, "/skills", read, kindList, s.listSkills},
		{get, "/skills/{id}", read, kindList, s.getSkill},
		{get, "/skills/{id}/versions", read, kindList, s.listVersions},
		{get, "/skills/{id}/versions/{version}", read, kindReport, up(s.getReport)},
		{get, "/skills/{id}/versions/{version}/sbom", read, kindReport, up(s.getBill)},
		{get, "/skills/{id}/versions/{version}/file", read, kindList, up(s.getSkillFile)},
		{post, "/skills/{id}/versions/{version}/packages", admin, kindWork, up(s.addPackages)},
		{remove, "/skills/{id}/versions/{version}/packages", admin, kindDecide, up(s.removePackages)},
		{get, "/tools", read, kindList, s.listTools},
		{get, "/search", read, kindList, only(o.Search != nil, errNoSearch, s.search)},
		{patch, "/skills/{id}", admin, kindDecide, changes(s.updateSkill)},
		{remove, "/skills/{id}", admin, kindDecide, changes(s.deleteSkill)},
		// With JSON, POST /skills is a definition of the operator's, whose keeper looks for skills:admin.
		{post, "/skills", uploader, kindUpload, s.postSkill},
		{post, "/skills/{id}:enable", uploader, kindDecide, s.decide(catalogue.Enable)},
		{post, "/skills/{id}:disable", uploader, kindDecide, s.decide(catalogue.Disable)},
		{post, "/skills/{id}:rollback", uploader, kindDecide, s.decide(catalogue.Rollback)},
		{remove, "/skills/{id}/versions/{version}", uploader, kindDecide, s.deleteVersion},
		{post, "/skills/{id}:approve", admin, kindDecide, s.decide(catalogue.Approve)},

		{get, pathDiscovery + "index.json", read, kindList, only(o.SkillArchive != nil, errNoDiscovery, s.discovery)},
		{get, pathDiscovery + "{name}/skill.zip", read, kindList, only(o.SkillArchive != nil, errNoDiscovery, s.skillArchive)},
		{get, "/agent-skills", read, kindList, s.listAgentSkills},
		{get, "/agent-skills/{name}", read, kindList, s.loadAgentSkill},
		{get, "/agent-skills/{name}/resources/{path}", read, kindList, s.readResource},
		{post, pathRun, runner, kindCall, s.runScript},
		{get, "/agent-skills/{name}/grant", admin, kindReport, grants(s.getGrant)},
		{post, "/agent-skills/{name}:allow", admin, kindWork, grants(s.allowScripts)},
		{post, "/agent-skills/{name}:revoke", admin, kindDecide, grants(s.revokeScripts)},
		{get, "/approvals", either, kindRecord, s.listApprovals},
		{get, "/approvals/{id}", either, kindRecord, approvals(s.getApproval)},
		{post, "/approvals/{id}:approve", uploader, kindDecide, approvals(s.decideApproval(true))},
		{post, "/approvals/{id}:deny", uploader, kindDecide, approvals(s.decideApproval(false))},

		{post, pathFiles, filer, kindFile, files(s.postFile)},
		{get, pathFiles, filer, kindRecord, files(s.listFiles)},
		{get, pathFiles + "/{id}", filer, kindRecord, files(s.getFile)},
		{get, pathFiles + "/{id}/content", filer, kindRecord, files(s.getFileContent)},
		{remove, pathFiles + "/{id}", filer, kindDecide, files(s.deleteFile)},

		// In the words of the SDKs of Anthropic and OpenAI.
		{post, pathVendorSkills, uploader, kindUpload, up(s.vendorUpload)},
		{get, pathVendorSkills, read, kindList, up(s.vendorListSkills)},
		{get, pathVendorSkills + "/{id}", read, kindList, up(s.vendorGet)},
		{post, pathVendorSkills + "/{id}", uploader, kindDecide, up(s.vendorUpdate)},
		{remove, pathVendorSkills + "/{id}", uploader, kindDecide, up(s.vendorDelete)},
		{get, pathVendorSkills + "/{id}/content", read, kindList, up(s.vendorContent)},
		{post, pathVendorSkills + "/{id}/versions", uploader, kindUpload, up(s.vendorUpload)},
		{get, pathVendorSkills + "/{id}/versions", read, kindList, up(s.vendorListVersions)},
		{get, pathVendorSkills + "/{id}/versions/{version}", read, kindList, up(s.vendorGet)},
		{remove, pathVendorSkills + "/{id}/versions/{version}", uploader, kindDecide, up(s.vendorDelete)},
		{get, pathVendorSkills + "/{id}/versions/{version}/content", read, kindList, up(s.vendorContent)},
		{post, pathVendorFiles, filer, kindFile, files(s.vendorCreateFile)},
		{get, pathVendorFiles, filer, kindRecord, files(s.vendorListFiles)},
		{get, pathVendorFiles + "/{id}", filer, kindRecord, files(s.vendorGetFile)},
		{get, pathVendorFiles + "/{id}/content", filer, kindRecord, files(s.vendorFileContent)},
		{remove, pathVendorFiles + "/{id}", filer, kindDecide, files(s.vendorDeleteFile)},

		{get, pathWorkspaces, filer, kindRecord, spaces(listOwn(s, o.Workspaces))},
		{get, pathWorkspaces + "/{id}", filer, kindRecord, spaces(getOwn(s, o.Workspaces, "id"))},
		{post, pathWorkspaces + "/{id}:fork", filer, kindDecide, spaces(s.forkWorkspace)},
		{remove, pathWorkspaces + "/{id}", filer, kindDecide, spaces(deleteOwn(o.Workspaces, "id"))},
		{get, pathSessions, filer, kindRecord, sessions(listOwn(s, o.Sessions))},
		{post, pathSessions, coder, kindDecide, sessions(s.createSession)},
		{get, pathSessions + "/{id}", filer, kindRecord, sessions(getOwn(s, o.Sessions, "id"))},
		{remove, pathSessions + "/{id}", filer, kindDecide, sessions(deleteOwn(o.Sessions, "id"))},
		{post, pathSessions + "/{id}:run", coder, kindCall, sessions(s.runInSession)},
		{post, pathSessions + "/{id}:fork", coder, kindDecide, sessions(s.forkSession)},
		{post, pathSessions + "/{id}:freeze", filer, kindDecide, sessions(s.freezeSession)},
		{get, pathSchedules, filer, kindRecord, schedules(listOwn(s, o.Schedules))},
		{post, pathSchedules, filer, kindDecide, schedules(s.createSchedule)},
		{get, pathSchedules + "/{name}", filer, kindRecord, schedules(getOwn(s, o.Schedules, "name"))},
		{remove, pathSchedules + "/{name}", filer, kindDecide, schedules(deleteOwn(o.Schedules, "name"))},
		{get, pathWebhooks, filer, kindRecord, hooks(listOwn(s, o.Webhooks))},
		{post, pathWebhooks, filer, kindDecide, hooks(s.createWebhook)},
		{get, pathWebhooks + "/{name}", filer, kindRecord, hooks(getOwn(s, o.Webhooks, "name"))},
		{remove, pathWebhooks + "/{name}", filer, kindDecide, hooks(deleteOwn(o.Webhooks, "name"))},
		{get, "/executions", reader, kindRecord, executions(s.listExecutions)},
		{get, "/executions/{id}", reader, kindRecord, executions(s.getExecution)},
		{get, "/executions/{id}/artifacts/{artifact}", reader, kindRecord, executions(s.getArtifact)},
		{post, "/executions/{id}:replay", reader, kindWork, executions(s.replay)},
		{remove, "/executions/{id}", ends, kindDecide, executions(s.cancelExecution)},
		{get, "/audit/changes", host, kindRecord, s.listChanges},
		{get, "/usage", []string{skill.ScopeRead, skill.ScopeAllExecutions, skill.ScopeHost}, kindRecord, s.getUsage},

		{post, "/agent/chat", agent, kindTurn, chat(s.postChat)},
		{get, "/agent/conversations", agent, kindRecord, chat(s.listConversations)},
		{get, "/agent/conversations/{id}", agent, kindRecord, chat(s.getConversation)},
		{remove, "/agent/conversations/{id}", agent, kindDecide, chat(s.deleteConversation)},
		{post, "/agent/conversations/{id}:approve", agent, kindTurn, chat(s.approveCall)},
		// In the words of the agent-service documents.
		{post, "/api/agent/execute", agent, kindWork, only(o.React != nil, errAgentOff, s.executeTask)},
		{get, "/api/agent/skills", read, kindList, s.agentCatalogue},
		{get, "/api/agent/executions/{session_id}", reader, kindRecord, s.agentSession},

		{get, pathMCP, client, kindStream, mcp},
		{post, pathMCP, client, kindMessage, mcp},
		{remove, pathMCP, client, kindStream, mcp},
		{get, "/metrics", []string{skill.ScopeMetrics, skill.ScopeHost}, kindFigures, metrics},
		// The console knows its callers by sessions, and asks this table for them.
		{get, pathConsole, nil, kindOpen, console},
		{get, pathConsole + "/{path}", nil, kindOpen, console},
		{post, pathUpload, nil, kindForm, console},
		{post, pathConsole + "/{path}", nil, kindOpen, console},

		{get, pathResource, nil, kindOpen, s.resourceMetadata},
		{get, pathResource + "/{path}", nil, kindOpen, s.resourceMetadata},
		{get, "/health", nil, kindHealth, s.alive},
		{get, "/healthz", nil, kindHealth, s.alive},
		{get, "/readyz", nil, kindHealth, s.ready},
		{get, "/openapi.json", nil, kindOpen, s.openapi},
		{get, "/docs", nil, kindOpen, s.docs},
	}
	for _, asset := range slices.Sorted(maps.Keys(docsAssets)) {
		rows = append(rows, Route{get, "/docs/" + asset, nil, kindOpen, s.docsAsset(asset)})
	}
	return rows
}

// pathUpload takes uploads by a form of the console, as POST /skills does without one.
const pathUpload = pathConsole + "/upload"

// isUploadPath reports whether a POST to the path is an upload.
func isUploadPath(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return path == "/skills" || path == pathUpload || path == pathVendorSkills ||
		strings.HasPrefix(path, pathVendorSkills+"/") && strings.HasSuffix(path, "/versions")
}

// isFilePath reports whether a POST to the path is an upload of a file.
func isFilePath(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return path == pathFiles || path == pathVendorFiles
}

// only is h where the part of the host that it needs is there, and else answers with an error.
func only(there bool, missing error, h fiber.Handler) fiber.Handler {
	if there {
		return h
	}
	return func(*fiber.Ctx) error { return missing }
}

// Routes gives the table, for those who look at it.
func Routes() []Route {
	return new(Server).table()
}

// register gives the router every row whose part of the host is there, and to all else what
// says that there is no such path.
func (s *Server) register(app *fiber.App) {
	for _, r := range s.table() {
		switch h := s.chain(&r); {
		case r.handle == nil: // the host has no such part
		case r.Method == fiber.MethodGet && r.Path != pathMCP: // a stream without an end has no answer to HEAD
			app.Get(fiberPath(r.Path), h)
		default:
			app.Add(r.Method, fiberPath(r.Path), h)
		}
	}
	app.Use(s.chain(&Route{kind: kindNone, handle: func(c *fiber.Ctx) error { return c.Next() }})) // whose error says what there is
}

// restParams stand for all that is left of a path: names of files, which may have slashes.
var restParams = []string{"path", "script", "artifact"}

// fiberPath is a path of the table in fiber's words. A colon in a parameter at the end of a
// path begins an action that there is not, but in names of files and in versions.
func fiberPath(path string) string {
	var out strings.Builder
	parts := strings.Split(path[1:], "/")
	for i, part := range parts {
		out.WriteByte('/')
		name, action, isParam := strings.Cut(strings.TrimPrefix(part, "{"), "}")
		action = strings.ReplaceAll(action, ":", `\:`)
		switch {
		case !isParam:
			out.WriteString(part)
		case slices.Contains(restParams, name):
			out.WriteString("+" + action)
		case action == "" && i == len(parts)-1 && name != "version":
			out.WriteString(":" + name + `<regex(^[^\x3a]+$)>`)
		default:
			out.WriteString(":" + name + action)
		}
	}
	return out.String()
}

// subject is the first parameter of the path that a route matched.
func (r *Route) subject(c *fiber.Ctx) string {
	_, rest, ok := strings.Cut(r.Path, "{")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "}")
	return c.Params(name)
}

// Open reports whether everybody is let in.
func (r *Route) Open() bool { return r.kind != nil && r.kind.open }

// LetsIn reports whether the caller holds one of the scopes of r. subject is the first
// parameter of the path.
func (r *Route) LetsIn(p skill.Principal, subject string) bool {
	if r.Open() {
		return true
	}
	for _, scope := range r.Scopes {
		switch scope {
		case invokeThis, invokeNamed:
			if subject != "" && p.May(skill.ScopeInvoke+":"+subject) {
				return true
			}
		case invokeSome:
			if p.MayInvokeSome() {
				return true
			}
		default:
			if p.May(scope) {
				return true
			}
		}
	}
	return false
}

// asks are the scopes that a client should ask for to be let in. None of them has a part
// of the path in it.
func (r *Route) asks() []string {
	if r.Path == pathMCP {
		return MCPScopes()
	}
	return r.Scopes[:min(1, len(r.Scopes))]
}

// needs says which scopes open r, for the caller who has none of them.
func (r *Route) needs(subject string) string {
	if len(r.Scopes) == 0 {
		return "access is denied to everyone"
	}
	names := slices.Clone(r.Scopes)
	for i, scope := range names {
		if scope == invokeThis || scope == invokeNamed {
			names[i] = skill.ScopeInvoke + ":" + skill.CleanText(subject, 64)
		}
	}
	last := len(names) - 1
	if last == 0 {
		return "missing scope " + names[0]
	}
	return "missing scope " + strings.Join(names[:last], ", ") + " or " + names[last]
}
