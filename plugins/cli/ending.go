package cli

import (
	"fmt"
	"io"
	"sync"
	"syscall"

	"openskill/sdk/skill"
)

// ending is how a job ended, from the host's own point of view.
type ending struct {
	stopped        skill.Code // why the host ended it; "" when it did not
	reported       bool       // the supervisor told status and peak
	status         syscall.WaitStatus
	peak           uint64 // bytes, of the largest process
	least          uint64 // peak below which memory cannot have been what was missing
	stdout, stderr *capped
}

// stoppable is a reply that may still turn out to be a failure.
type stoppable struct{ *skill.Reply }

func (s stoppable) stop(c skill.Code, message string) {
	if s.Code == "" {
		s.Code, s.Message, s.ExitCode = c, message, 0
	}
}

func scratchMessage(l skill.Limits) string {
	return fmt.Sprintf("the files below ./work are more than %d bytes or %d files, or more than %d folders deep", l.Scratch, maxFiles, maxDepth)
}

// reply turns an ending into what the caller gets. MEMORY_LIMIT is told by the
// kernel's count of resident memory, never by what the script printed: a script
// that failed with at least nine tenths of its limit resident ran out of
// memory. A single request far over the limit is refused without ever being
// resident; that is a failure of the script (exit code 1, MemoryError on its
// standard error) and cannot be told from others.
func (e *ending) reply(l skill.Limits) stoppable {
	r := stoppable{&skill.Reply{
		Stdout: e.stdout.bytes(), Stderr: e.stderr.bytes(),
		Usage: skill.Usage{MemoryPeak: e.peak},
	}}
	failed := !e.reported || !e.status.Exited() || e.status.ExitStatus() != 0
	switch {
	case e.stdout.over || e.stderr.over:
		r.stop(skill.OutputLimit, fmt.Sprintf("the script printed more than %d bytes; the first part is kept", l.Output))
	case e.stopped == skill.OutputLimit:
		r.stop(skill.OutputLimit, scratchMessage(l))
	case e.stopped == skill.Timeout:
		r.stop(skill.Timeout, fmt.Sprintf("the script did not finish within %d ms", l.Timeout.Milliseconds()))
	case e.stopped == skill.Cancelled:
		r.stop(skill.Cancelled, cancelled)
	case failed && e.peak >= max(l.Memory/10*9, e.least):
		r.stop(skill.MemoryLimit, fmt.Sprintf("the script failed with its memory, %d MiB, used up", l.Memory>>20))
	case !e.reported:
		r.stop(skill.WorkerCrashed, "the interpreter exited without reporting the script's result")
	case e.status.Signaled() && e.status.Signal() == sigXCPU:
		r.stop(skill.Timeout, "the script used more processor time than its timeout allows")
	case e.status.Signaled():
		r.stop(skill.Trap, fmt.Sprintf("the script was killed by signal %d (%v)", int(e.status.Signal()), e.status.Signal()))
	default:
		r.ExitCode = uint32(e.status.ExitStatus())
	}
	return r
}

// capped keeps the first bytes that are written to it and calls full once when
// there are more.
type capped struct {
	mu   sync.Mutex
	buf  []byte
	max  uint64
	over bool
	full func()
}

// Write implements io.Writer. It fails once the cap is exceeded, which ends the
// copying.
func (c *capped) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := c.max - uint64(len(c.buf)); uint64(len(b)) > room {
		c.buf = append(c.buf, b[:room]...)
		if !c.over {
			c.over = true
			c.full()
		}
		return int(room), io.ErrShortWrite // below len(b)
	}
	c.buf = append(c.buf, b...)
	return len(b), nil
}

func (c *capped) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf
}
