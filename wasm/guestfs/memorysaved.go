package guestfs

import (
	"maps"
	"slices"
)

// MemorySaved is the content of a [Memory] at one moment.
type MemorySaved struct {
	root  *node
	used  int64
	files int
	links int
	inode uint64
}

// Save keeps what is there now. It reports false if a file or directory but the
// root is open: a handle has an identity that a copy cannot have.
func (m *Memory) Save() (*MemorySaved, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &MemorySaved{used: m.used, files: m.files, links: m.links, inode: m.inode}
	n := 0
	s.root = m.root.copy(&n, map[*node]*node{})
	// Nodes that are unlinked but open are counted and not found.
	ok := n-1 == m.files && !m.root.opened()
	if ok {
		m.same = s
	}
	return s, ok
}

// Restore puts the content back that was saved, as [Memory.Reset] puts back none:
// handles on anything but the root are dead.
func (m *Memory) Restore(s *MemorySaved) {
	if m.stays(s) {
		return
	}
	m.Reset()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.same = s
	n := 0
	root := s.root.copy(&n, map[*node]*node{})
	m.root.children, m.root.mtime, m.root.atime = root.children, root.mtime, root.atime
	m.used, m.files, m.links, m.inode = s.used, s.files, s.links, s.inode
}

// opened reports whether a node below this one is open.
func (n *node) opened() bool {
	for _, c := range n.children {
		if c.open > 0 || c.opened() {
			return true
		}
	}
	return false
}

// copy copies a tree and counts its names. A file with several names is copied once:
// linked has the copies of those.
func (n *node) copy(count *int, linked map[*node]*node) *node {
	*count++
	if c := linked[n]; c != nil {
		return c
	}
	c := *n
	c.open = 0
	c.children = maps.Clone(n.children)
	for name, child := range c.children {
		c.children[name] = child.copy(count, linked)
	}
	c.pages = slices.Clone(n.pages)
	for i, p := range c.pages {
		c.pages[i] = slices.Clone(p) // a hole stays nil
	}
	if c.names > 1 {
		linked[n] = &c
	}
	return &c
}

// stays is Restore where nothing was changed since: most runs write nothing.
func (m *Memory) stays(s *MemorySaved) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.same != s {
		return false
	}
	m.epoch++
	return true
}
