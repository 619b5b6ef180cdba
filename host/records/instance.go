package records

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
)

// NewInstance names a host, unlike all others that ever were: by machine, process and
// chance. Where the machine can tell (Linux), the name also says which process it is, so
// that another host there sees at once when it is gone: INSTANCE@MACHINE, the boot, the
// process id namespace, the process id, and the clock tick in which it started.
func NewInstance() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	name = name[:min(len(name), 32)]
	id := strings.ToLower(rand.Text())[:10] + "@" + name
	if p, ok := thisProcess(); ok {
		id += p.String()
	}
	return id
}

// process is one process of one boot of one machine.
type process struct {
	boot  string // names the boot, and so the machine
	space uint64 // namespace of process ids: a number means nothing in another one
	pid   int
	start uint64 // clock ticks after the boot: numbers of processes come again
}

func (p process) String() string {
	return fmt.Sprintf("/%s/%d/%d/%d", p.boot, p.space, p.pid, p.start)
}

// processOf reads what String wrote behind the name of a host.
func processOf(instance string) (p process, ok bool) {
	_, place, ok := strings.Cut(instance, "/")
	if !ok {
		return process{}, false
	}
	f := strings.Split(place, "/")
	if len(f) != 4 || f[0] == "" {
		return process{}, false
	}
	p.boot = f[0]
	_, err := fmt.Sscanf(strings.Join(f[1:], " "), "%d %d %d", &p.space, &p.pid, &p.start)
	return p, err == nil && p.pid > 0 && p.String() == "/"+place
}

// instanceDead reports whether a host is known to be gone: it was a process of this boot
// of this machine, seen from here by the same number, and there is no such process. Of
// all others nothing is known.
func instanceDead(instance string) bool {
	p, ok := processOf(instance)
	if !ok {
		return false
	}
	here, ok := thisProcess()
	return ok && p.boot == here.boot && p.space == here.space && gone(p)
}
