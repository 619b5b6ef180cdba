package workers

import (
	"testing"
	"time"
)

// LowerPatience shortens the time that a worker may take to read, for a test.
func LowerPatience(t *testing.T, d time.Duration) {
	t.Helper()
	before := patience
	patience = d
	t.Cleanup(func() { patience = before })
}

// Look looks at what workers do, over the time since the last look.
func (p *Pool) Look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.live {
		w.watch(time.Now(), 0, p.o.Memory)
	}
}

// Unheld is why no control group holds compilers; "" if one does.
func (m *Modules) Unheld() string {
	if m.held.held() {
		return ""
	}
	return m.held.protection(0).Detail
}
