package python

import (
	"sync"
	"time"

	"openskill/plugins/python/runtimes"
	"openskill/plugins/wasi/sandbox"
)

// choices remember which runtime a script needs, by what its file looked like.
type choices struct {
	catalogue catalogue

	mu  sync.Mutex
	all map[choiceKey]choice
}

type choiceKey struct{ folder, entry, digest string }

type choice struct {
	stamp   sandbox.Stamp
	imports []string
	name    string
	at      time.Time
}

const (
	// maxScript is the size in bytes up to which a script is looked through for imports.
	maxScript = 4 << 20
	// maxChoices bounds the memory of what is known; beyond it all is forgotten.
	maxChoices = 10_000
	// fresh is how long a choice holds: a runtime may be installed meanwhile.
	fresh = 2 * time.Second
)

// runtime chooses one for a call. The error is a *skill.Error.
func (c *choices) runtime(p *sandbox.Pending, stamp sandbox.Stamp) (choice, error) {
	key := choiceKey{p.Call.Folder, p.Entry, p.Digest}
	now := time.Now()
	c.mu.Lock()
	k, seen := c.all[key]
	c.mu.Unlock()
	if seen && k.stamp == stamp && now.Sub(k.at) < fresh {
		return k, nil
	}
	if !seen || k.stamp != stamp || !stamp.Settled(k.at) {
		script, read, err := p.Folder.Read(p.Entry, hint, maxScript)
		if err != nil {
			return choice{}, err
		}
		k = choice{stamp: read, imports: runtimes.Imports(script)}
	}
	name, err := c.catalogue.For(p.Requires, k.imports)
	if err != nil {
		return choice{}, err
	}
	k.name, k.at = name, now
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= maxChoices {
		c.all = map[choiceKey]choice{}
	}
	c.all[key] = k
	return k, nil
}
