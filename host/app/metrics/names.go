package metrics

import "sync"

// names gives skills their labels: their own id to the first, "other" to the rest. What
// has a label keeps it, or rates would break.
type names struct {
	mu      sync.RWMutex
	known   map[place]bool
	uploads int
}

// place names a skill: two tenants may have uploads of one id, which share a label.
type place struct{ owner, id string }

// label gives that of a skill that exists. owner is the tenant that uploaded it; "": the
// operator's own.
func (n *names) label(id, owner string) string {
	p := place{owner, id}
	n.mu.RLock()
	known, full := n.known[p], len(n.known) >= mostSkills || owner != "" && n.uploads >= mostUploads
	n.mu.RUnlock()
	switch {
	case known:
		return id
	case full:
		return otherSkill
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[p] {
		return id
	}
	if len(n.known) >= mostSkills || owner != "" && n.uploads >= mostUploads {
		return otherSkill
	}
	if n.known == nil {
		n.known = map[place]bool{}
	}
	n.known[p] = true
	if owner != "" {
		n.uploads++
	}
	return id
}

func (n *names) count() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.known)
}
