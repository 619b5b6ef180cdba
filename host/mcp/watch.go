package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/sdk/skill"
)

// sight is what a principal sees, in little: two are equal when the lists are.
type sight struct{ tools, skills [sha256.Size]byte }

// add has a caller told of changes until remove. The first one begins the watch.
func (s *Server) add(c *caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers[c] = true
	if s.watching == nil && !s.closed {
		s.watching = make(chan struct{})
		go s.watch(s.watching)
	}
}

func (s *Server) remove(c *caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.callers, c)
}

// watch looks at the catalogue as each principal that has a session sees it.
func (s *Server) watch(done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(s.opt.PollEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.base.Done():
			return
		case <-tick.C:
			s.Refresh(s.base)
			s.web.endOver()
			s.web.forget()
		}
	}
}

// Refresh looks at the catalogue now, and tells sessions whose lists have changed. It
// is done anyway every now and then.
func (s *Server) Refresh(ctx context.Context) {
	s.mu.Lock()
	list := make([]*caller, 0, len(s.callers))
	for c := range s.callers {
		list = append(list, c)
	}
	s.mu.Unlock()
	for _, c := range list {
		for range c.server.Sessions() {
			c.look(ctx)
			break
		}
	}
}

// look compares what the caller sees with what it saw, and tells its sessions.
func (c *caller) look(ctx context.Context) {
	c.looking.Lock()
	defer c.looking.Unlock()
	tools, skills := c.changed(ctx)
	// The SDK tells of what is registered with it, and of nothing else; what is
	// registered here is never listed, and gone at once.
	if tools {
		c.server.AddTool(&mcp.Tool{Name: "changed", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		c.server.RemoveTools("changed")
	}
	if skills {
		c.server.AddPrompt(&mcp.Prompt{Name: "changed"}, nil)
		c.server.RemovePrompts("changed")
		c.server.AddResource(&mcp.Resource{Name: "changed", URI: "skill://changed"}, nil)
		c.server.RemoveResources("skill://changed")
	}
}

// changed reports whether the tools or the skills that the caller sees are others than at the
// last time. c.looking is held.
func (c *caller) changed(ctx context.Context) (tools, skills bool) {
	at := c.revision(ctx) // before it is read
	if at != nil && at == c.at && c.seen != nil {
		return false, false
	}
	now, err := c.sight(ctx, at)
	if err != nil {
		return false, false // a request for the list returns the error
	}
	before := c.seen
	c.seen, c.at = now, at
	if before == nil {
		return false, false
	}
	return now.tools != before.tools, now.skills != before.skills
}

func (c *caller) sight(ctx context.Context, at any) (*sight, error) {
	var seen sight
	if !c.p.May(skill.ScopeRead) {
		return &seen, nil
	}
	of, err := c.catalogue(at)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	h.Write(of[:]) // a hash does not fail
	enc := json.NewEncoder(h)
	three, err := c.agentTools(ctx)
	if err != nil {
		return nil, err
	}
	_ = enc.Encode(three)
	h.Sum(seen.tools[:0])
	if c.s.opt.AgentSkills != nil {
		list, err := c.s.opt.AgentSkills.List(ctx, c.p)
		if err != nil {
			return nil, err
		}
		h.Reset()
		for i := range list {
			_ = enc.Encode([]string{list[i].Name, list[i].Digest})
		}
		h.Sum(seen.skills[:0])
	}
	return &seen, nil
}

// catalogue is a digest of the tools of all skills. Callers of a tenant share it.
func (c *caller) catalogue(at any) (sum stamp, err error) {
	const key = "mcp digest"
	if v, ok := c.s.opt.Lists.Get(c.p.Tenant, key, at); ok {
		sum, _ = v.(stamp) // of this kind of key
		return sum, nil
	}
	h := sha256.New()
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := c.s.opt.Catalogue.List(c.p, cursor, pageSize)
		if err != nil {
			return sum, err
		}
		for i := range page {
			if d := &page[i]; d.Callable() {
				of := stampOf(d)
				h.Write(of[:]) // a hash does not fail
			}
		}
		cursor = next
	}
	h.Sum(sum[:0])
	c.s.opt.Lists.Put(c.p.Tenant, key, at, sum, len(sum))
	return sum, nil
}
