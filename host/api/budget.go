package api

import (
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// The memory in bytes that the bodies of requests under way have: of all callers that are
// not known together, and of all that are.
const (
	openBodies  = 4 << 20
	knownBodies = 256 << 20
)

// opRoom is where a request is refused for which there is no room.
const opRoom = "api.room"

// budget shares bytes between holders. One that holds some may take as much as it leaves
// free, so that none can have all.
type budget struct {
	most  int
	alone bool                // one holder may have all
	wide  func(string) string // what holders are a part of, which is held to the same; nil: of nothing

	mu   sync.Mutex
	used int
	held map[string]int
	owed map[string]int // of held: what there was no room for. It is not in used, and keeps nobody else from room
}

func newBudget(most int, alone bool) *budget {
	return &budget{most: most, alone: alone, held: map[string]int{}, owed: map[string]int{}}
}

func (b *budget) take(holder string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.most - b.used - n
	if free < 0 || b.over(holder, n, free) || b.wide != nil && b.over(b.wide(holder), n, free) {
		return false
	}
	b.used += n
	b.add(holder, n)
	return true
}

// over reports whether a holder that has some would have more than is free.
func (b *budget) over(holder string, n, free int) bool {
	return !b.alone && b.held[holder] > 0 && b.held[holder]+n > free
}

func (b *budget) add(holder string, n int) {
	if b.wide != nil {
		b.held[b.wide(holder)] += n
		if b.held[b.wide(holder)] == 0 {
			delete(b.held, b.wide(holder))
		}
	}
	if b.held[holder] += n; b.held[holder] == 0 {
		delete(b.held, holder)
	}
}

// owe counts n bytes that are there already. Where there is no room for them, the holder gets
// no more until it has given so much back.
func (b *budget) owe(holder string, n int) {
	if b.take(holder, n) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(holder, n)
	b.owed[holder] += n
}

// mayOwe reports whether a holder may begin what it may come to owe for: it holds nothing, or
// less than it leaves free.
func (b *budget) mayOwe(holder string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, free := b.held[holder], b.most-b.used
	if b.alone {
		free = b.most
	}
	return held == 0 || held < free
}

func (b *budget) give(holder string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	paid := min(n, b.owed[holder])
	if b.owed[holder] -= paid; b.owed[holder] == 0 {
		delete(b.owed, holder)
	}
	b.used -= n - paid
	b.add(holder, -n)
}

// hold counts a buffer of size bytes for the body of a request, which takes the place of
// the one before, until release. The first one of a caller that is not known is not counted,
// so that nobody's stalled bodies keep a sign-in with an API key out: connections bound them.
func (s *Server) hold(ctx *fasthttp.RequestCtx, size int) error {
	c := callerOf(ctx)
	if insideOf(ctx) != nil || size <= c.held || c.principal.ID == "" && size <= firstOpen {
		return nil
	}
	if !s.budgetOf(c).take(s.holder(ctx), size-c.held) {
		return errNoRoom("too many request bodies are being received")
	}
	c.held = size
	return nil
}

func (s *Server) budgetOf(c *caller) *budget {
	if c.principal.ID == "" {
		return s.open
	}
	return s.bodies
}

// release gives back what hold has counted.
func (s *Server) release(ctx *fasthttp.RequestCtx) {
	if c := callerOf(ctx); c.held > 0 {
		s.budgetOf(c).give(c.holder, c.held)
		c.held = 0
	}
}

func errNoRoom(what string) error {
	const retry = 1000
	return &skill.Error{
		Op: opRoom, Code: skill.RateLimited, Message: what + ", or try again in " + strconv.Itoa(retry) + " ms",
		Details: map[string]any{"retry_after_ms": retry},
	}
}
