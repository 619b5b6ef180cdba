package api

import (
	"runtime"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/access"
	"openskill/host/internal/gate"
)

// The bounds of requests that read or decide. Both wait for the database, and SQLite has four
// connections that read; what is read is work of the processor too.
const (
	recordPlaces = 4
	readQueue    = 256
	readWait     = 10 * time.Second
)

// NewReads makes the gate for requests that read the catalogue: one for each processor, so
// that calls and the health of the host are left alone. alone says that all callers are one
// tenant.
func NewReads(alone bool) *gate.Gate {
	return gate.New(gate.Options{Places: readPlaces(), Queue: readQueue, Wait: readWait, Retry: time.Second, Alone: alone})
}

func readPlaces() int { return max(runtime.NumCPU(), 2) }

func newRecords(alone bool) *gate.Gate {
	return gate.New(gate.Options{Places: recordPlaces, Queue: readQueue, Wait: readWait, Retry: time.Second, Alone: alone})
}

// ownGate lists the routes whose handlers pass a gate of their own, or start something that
// does: calls, uploads and reports, turns of the agent, MCP.
var ownGate = map[string]bool{
	"POST " + pathInvoke: true, "POST " + pathRun: true, "POST /skills": true, "GET /skills/{id}/versions/{version}": true,
	"POST /executions/{id}:replay": true, "POST /agent/chat": true, "POST /agent/conversations/{id}:approve": true, "POST /api/agent/execute": true,
	"GET " + pathMCP: true, "POST " + pathMCP: true, "DELETE " + pathMCP: true,
}

// gateOf is the gate of a route, and the part of it; nil: it has its own, or needs none.
func (s *Server) gateOf(r *access.Route) (*gate.Gate, []gate.Part) {
	switch {
	case r.Open, ownGate[r.Method+" "+r.Path]:
		return nil, nil
	case r.Method != fiber.MethodGet:
		return s.records, nil // a decision
	}
	for _, of := range []string{"/executions", "/audit/", "/agent/", "/approvals", "/usage", "/api/agent/executions"} {
		if strings.HasPrefix(r.Path, of) {
			return s.records, []gate.Part{{Key: "read", Places: readPlaces()}}
		}
	}
	return s.reads, nil
}

// enter waits for the turn of a request's tenant. A client that leaves waits no more.
func (s *Server) enter(ctx *fasthttp.RequestCtx) (leave func(), err error) {
	c := callerOf(ctx)
	g, parts := s.gateOf(c.route)
	if g == nil {
		return func() {}, nil
	}
	run, done := s.calling(ctx)
	defer done()
	if leave, err = g.Enter(run, c.principal.Tenant, parts...); err != nil {
		return nil, gate.Refusal(err, "httpapi.enter", "too many requests are in progress")
	}
	return leave, nil
}
