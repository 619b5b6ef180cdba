package api

import (
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

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

// enter waits for the turn of a request's tenant. A client that leaves waits no more.
func (s *Server) enter(ctx *fasthttp.RequestCtx) (leave func(), err error) {
	c := callerOf(ctx)
	if c.kind.gate == nil {
		return func() {}, nil
	}
	g, parts := c.kind.gate(s)
	run, done := s.calling(ctx)
	defer done()
	if leave, err = g.Enter(run, c.principal.Tenant, parts...); err != nil {
		return nil, gate.Refusal(err, "api.enter", "too many requests are in progress")
	}
	return leave, nil
}
