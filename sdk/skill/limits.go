package skill

import (
	"cmp"
	"time"
)

// Limits bound one run. In a manifest or a request zero means "the host's
// default"; in a [Call] every field is resolved and not zero.
type Limits struct {
	Timeout time.Duration // wall time, from when the skill is ready to run to the last byte
	Memory  uint64        // bytes of linear memory, and of files in scratch space
	Fuel    uint64        // units, about one an instruction; see docs/security.md
	Output  uint64        // bytes of standard output, and the same again of standard error
	Scratch uint64        // bytes of files below /work
}

// Preparing is how long a call waits for what its run needs: that the skill is compiled, and
// a process is there. That is the host's work, and does not count against Limits.Timeout.
const Preparing = 2 * time.Minute

// Lower gives the smaller of l and o, field by field, where zero in either one
// means "no opinion".
func (l Limits) Lower(o Limits) Limits {
	return Limits{
		Timeout: lower(l.Timeout, o.Timeout),
		Memory:  lower(l.Memory, o.Memory),
		Fuel:    lower(l.Fuel, o.Fuel),
		Output:  lower(l.Output, o.Output),
		Scratch: lower(l.Scratch, o.Scratch),
	}
}

// Or gives l with the fields that are zero taken from d.
func (l Limits) Or(d Limits) Limits {
	return Limits{
		Timeout: cmp.Or(l.Timeout, d.Timeout),
		Memory:  cmp.Or(l.Memory, d.Memory),
		Fuel:    cmp.Or(l.Fuel, d.Fuel),
		Output:  cmp.Or(l.Output, d.Output),
		Scratch: cmp.Or(l.Scratch, d.Scratch),
	}
}

// Unset names the first field that is not set, as manifests do, and is "" where every
// one is: limits that a run may be given.
func (l Limits) Unset() string {
	switch {
	case l.Timeout <= 0:
		return "timeout_ms"
	case l.Memory == 0:
		return "memory_mb"
	case l.Fuel == 0:
		return "fuel"
	case l.Output == 0:
		return "output_kb"
	case l.Scratch == 0:
		return "scratch_mb"
	}
	return ""
}

func lower[T time.Duration | uint64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// LimitsJSON is [Limits] in the units of manifests and requests.
type LimitsJSON struct { //nolint:recvcheck // only Fields needs its address
	TimeoutMS uint64 `json:"timeout_ms,omitempty" yaml:"timeout_ms"`
	MemoryMB  uint64 `json:"memory_mb,omitempty" yaml:"memory_mb"`
	Fuel      uint64 `json:"fuel,omitempty" yaml:"fuel"`
	OutputKB  uint64 `json:"output_kb,omitempty" yaml:"output_kb"`
	ScratchMB uint64 `json:"scratch_mb,omitempty" yaml:"scratch_mb"`
}

// LimitField is one limit as manifests and requests name it.
type LimitField struct {
	Name  string // of its key
	Value *uint64
	Most  uint64 // the largest value that a manifest may have
}

// Fields gives every limit, in the order of documents. Readers, checks and messages
// go by it.
func (j *LimitsJSON) Fields() []LimitField {
	return []LimitField{
		{"timeout_ms", &j.TimeoutMS, 24 * 60 * 60 * 1000},
		{"memory_mb", &j.MemoryMB, 1 << 20},
		{"fuel", &j.Fuel, 1 << 62},
		{"output_kb", &j.OutputKB, 1 << 30},
		{"scratch_mb", &j.ScratchMB, 1 << 20},
	}
}

// Limits converts the units; values beyond the largest one count as that, so that
// no conversion overflows.
func (j LimitsJSON) Limits() Limits {
	for _, f := range j.Fields() {
		*f.Value = min(*f.Value, f.Most)
	}
	return Limits{
		Timeout: time.Duration(j.TimeoutMS) * time.Millisecond, // at most a day
		Memory:  j.MemoryMB << 20,
		Fuel:    j.Fuel,
		Output:  j.OutputKB << 10,
		Scratch: j.ScratchMB << 20,
	}
}

// JSON converts the units back, rounding up.
func (l Limits) JSON() LimitsJSON {
	up := func(n, unit uint64) uint64 { return n/unit + min(n%unit, 1) }
	return LimitsJSON{
		TimeoutMS: up(uint64(max(l.Timeout, 0)), uint64(time.Millisecond)), // not negative any more
		MemoryMB:  up(l.Memory, 1<<20),
		Fuel:      l.Fuel,
		OutputKB:  up(l.Output, 1<<10),
		ScratchMB: up(l.Scratch, 1<<20),
	}
}
