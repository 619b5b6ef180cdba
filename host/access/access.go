// Package access is the table of who may do what over HTTP: every route of the host,
// and the scopes of which a caller needs one to be let in.
//
// The edge asks this table before it reads a body, and has no other checks of scopes.
// What lies behind a route checks again what is its own to know: the door whether the
// caller may call this skill, stores whose things are asked for.
package access

import (
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// Route is one row: a method and a path, and who is let in.
type Route struct {
	Method string
	Path   string // as openapi.yaml writes it: {id} is one segment, but see rests
	// Open says that everybody is let in, known or not.
	Open bool
	// Scopes open the route to callers who hold one of them; none, to nobody. In
	// skills:invoke:{id} the parameter of the path is meant, and skills:invoke:* is any
	// scope that allows calls of one skill.
	Scopes []string
	// Ask are the scopes that a client should ask for, if not the first of Scopes alone.
	Ask []string
	// Stream says that a GET has no end, and so no answer to HEAD.
	Stream bool
}

// Scopes as the table has them beside those of package skill.
const (
	invokeThis  = skill.ScopeInvoke + ":{id}"
	invokeNamed = skill.ScopeInvoke + ":{name}"
	invokeSome  = skill.ScopeInvoke + ":*"
)

var mcpScopes = []string{skill.ScopeRead, skill.ScopeInvoke}

// MCPScopes are those that a client of MCP has use for.
func MCPScopes() []string { return slices.Clone(mcpScopes) }

var readExecutions = []string{skill.ScopeExecutions, skill.ScopeAllExecutions, skill.ScopeHost}

// table is the whole of it. A new route is a row here, an operation in openapi.yaml and
// a handler in package httpapi; tests hold the three together.
var table = []Route{
	// Skills: to call them, and to read what there is.
	{Method: "POST", Path: "/skills/{id}:invoke", Scopes: []string{skill.ScopeInvoke, invokeThis}},
	{Method: "GET", Path: "/skills", Scopes: []string{skill.ScopeRead}},
	{Method: "GET", Path: "/skills/{id}", Scopes: []string{skill.ScopeRead}},
	{Method: "GET", Path: "/skills/{id}/versions", Scopes: []string{skill.ScopeRead}},
	{Method: "GET", Path: "/skills/{id}/versions/{version}", Scopes: []string{skill.ScopeRead}},
	{Method: "GET", Path: "/tools", Scopes: []string{skill.ScopeRead}},

	// The operator's own skills: what is so of them.
	{Method: "PATCH", Path: "/skills/{id}", Scopes: []string{skill.ScopeAdmin}},
	{Method: "DELETE", Path: "/skills/{id}", Scopes: []string{skill.ScopeAdmin}},

	// Uploads, and what becomes of them. Whose they are is the store's to know. With JSON,
	// POST /skills is a definition of the operator's, whose keeper looks for skills:admin.
	{Method: "POST", Path: "/skills", Scopes: []string{skill.ScopeUpload, skill.ScopeAdmin}},
	{Method: "POST", Path: "/skills/{id}:enable", Scopes: []string{skill.ScopeUpload, skill.ScopeAdmin}},
	{Method: "POST", Path: "/skills/{id}:disable", Scopes: []string{skill.ScopeUpload, skill.ScopeAdmin}},
	{Method: "POST", Path: "/skills/{id}:rollback", Scopes: []string{skill.ScopeUpload, skill.ScopeAdmin}},
	{Method: "DELETE", Path: "/skills/{id}/versions/{version}", Scopes: []string{skill.ScopeUpload, skill.ScopeAdmin}},
	{Method: "POST", Path: "/skills/{id}:approve", Scopes: []string{skill.ScopeAdmin}},

	// Agent Skills.
	{Method: "GET", Path: "/agent-skills", Scopes: []string{skill.ScopeRead}},
	{Method: "GET", Path: "/agent-skills/{name}", Scopes: []string{skill.ScopeRead}},
	{Method: "GET", Path: "/agent-skills/{name}/resources/{path}", Scopes: []string{skill.ScopeRead}},
	{Method: "POST", Path: "/agent-skills/{name}/scripts/{script}:run", Scopes: []string{skill.ScopeInvoke, invokeNamed}},
	{Method: "GET", Path: "/approvals", Scopes: []string{skill.ScopeRead, skill.ScopeAdmin}},
	{Method: "GET", Path: "/approvals/{id}", Scopes: []string{skill.ScopeRead, skill.ScopeAdmin}},
	{Method: "POST", Path: "/approvals/{id}:approve", Scopes: []string{skill.ScopeAdmin}},
	{Method: "POST", Path: "/approvals/{id}:deny", Scopes: []string{skill.ScopeAdmin}},

	// Records of calls. Whose one sees is what the scopes say: executions:read of one's
	// own calls, executions:read:all of one's tenant's, admin of all. To end a call is for
	// who made it, and so for who may make calls.
	{Method: "GET", Path: "/executions", Scopes: readExecutions},
	{Method: "GET", Path: "/executions/{id}", Scopes: readExecutions},
	{Method: "GET", Path: "/executions/{id}/artifacts/{artifact}", Scopes: readExecutions},
	{Method: "POST", Path: "/executions/{id}:replay", Scopes: readExecutions},
	{Method: "DELETE", Path: "/executions/{id}", Scopes: []string{skill.ScopeInvoke, invokeSome, skill.ScopeHost}},

	// Records of changes: who created keys, published skills, decided.
	{Method: "GET", Path: "/audit/changes", Scopes: []string{skill.ScopeHost}},

	// What a tenant has stored and used: the caller's own, of others for the operator.
	{Method: "GET", Path: "/usage", Scopes: []string{skill.ScopeRead, skill.ScopeAllExecutions, skill.ScopeHost}},

	// The agent. It acts as its caller, who may do through it what its other scopes allow.
	{Method: "POST", Path: "/agent/chat", Scopes: []string{skill.ScopeAgent}},
	{Method: "GET", Path: "/agent/conversations", Scopes: []string{skill.ScopeAgent}},
	{Method: "GET", Path: "/agent/conversations/{id}", Scopes: []string{skill.ScopeAgent}},
	{Method: "DELETE", Path: "/agent/conversations/{id}", Scopes: []string{skill.ScopeAgent}},
	{Method: "POST", Path: "/agent/conversations/{id}:approve", Scopes: []string{skill.ScopeAgent}},

	// The agent, the skills and the records in the words of the agent-service documents.
	{Method: "POST", Path: "/api/agent/execute", Scopes: []string{skill.ScopeAgent}},
	{Method: "GET", Path: "/api/agent/skills", Scopes: []string{skill.ScopeRead}},
	{Method: "GET", Path: "/api/agent/executions/{session_id}", Scopes: readExecutions},

	// The Model Context Protocol, which shows each caller what it may see.
	{Method: "GET", Path: "/mcp", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, invokeSome}, Ask: mcpScopes, Stream: true},
	{Method: "POST", Path: "/mcp", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, invokeSome}, Ask: mcpScopes},
	{Method: "DELETE", Path: "/mcp", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, invokeSome}, Ask: mcpScopes},

	// Of the whole host, and so for whoever its operator lets see that.
	{Method: "GET", Path: "/metrics", Scopes: []string{skill.ScopeMetrics, skill.ScopeHost}},
	// The console, which knows its callers by sessions, and asks this table for them.
	{Method: "GET", Path: "/console", Open: true},
	{Method: "GET", Path: "/console/{path}", Open: true},
	{Method: "POST", Path: "/console/{path}", Open: true},

	// Where clients of MCP get tokens, by RFC 9728.
	{Method: "GET", Path: "/.well-known/oauth-protected-resource", Open: true},
	{Method: "GET", Path: "/.well-known/oauth-protected-resource/{path}", Open: true},

	// For load balancers and people.
	{Method: "GET", Path: "/health", Open: true},
	{Method: "GET", Path: "/healthz", Open: true},
	{Method: "GET", Path: "/readyz", Open: true},
	{Method: "GET", Path: "/openapi.json", Open: true},
	{Method: "GET", Path: "/docs", Open: true},
	{Method: "GET", Path: "/docs/docs.js", Open: true},
	{Method: "GET", Path: "/docs/swagger-ui.css", Open: true},
	{Method: "GET", Path: "/docs/swagger-ui-bundle.js", Open: true},
	{Method: "GET", Path: "/docs/favicon-16x16.png", Open: true},
	{Method: "GET", Path: "/docs/favicon-32x32.png", Open: true},
}

// Routes gives the rows in their order.
func Routes() []Route {
	out := slices.Clone(table)
	for i := range out {
		out[i].Scopes = slices.Clone(out[i].Scopes)
	}
	return out
}

// LetsIn reports whether the caller holds one of the scopes of r. subject is the first
// parameter of the path, as [Find] gives it.
func (r *Route) LetsIn(p skill.Principal, subject string) bool {
	if r.Open {
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

// Asks are the scopes that a client should ask for to be let in. None of them has a part
// of the path in it.
func (r *Route) Asks() []string {
	if r.Ask != nil || len(r.Scopes) == 0 {
		return r.Ask
	}
	return r.Scopes[:1]
}

// Needs says which scopes open r, for the caller who has none of them.
func (r *Route) Needs(subject string) string {
	var names []string
	for _, scope := range r.Scopes {
		if scope == invokeThis || scope == invokeNamed {
			scope = skill.ScopeInvoke + ":" + skill.CleanText(subject, 64)
		}
		names = append(names, scope)
	}
	switch n := len(names); n {
	case 0:
		return "access is denied to everyone"
	case 1:
		return "missing scope " + names[0]
	default:
		return "missing scope " + strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
}
