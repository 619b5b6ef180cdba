package sandbox

import (
	"sync"

	"openskill/sdk/skill"
)

// Gate counts the runs of a runner, so that closing it can wait for them. The zero
// value is open.
type Gate struct {
	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

// Enter begins a run, which ends with Leave. After Close it is a *skill.Error of
// the operation op.
func (g *Gate) Enter(op string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return &skill.Error{Op: op, Code: skill.Internal, Message: "the runner is closed"}
	}
	g.runs.Add(1)
	return nil
}

// Leave ends what Enter began.
func (g *Gate) Leave() { g.runs.Done() }

// Close refuses further runs and waits for those under way. It may be called twice.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.runs.Wait()
}
