package selftest

import (
	"context"
	"encoding/json"
	"time"

	"openskill/examples/hostile"
	"openskill/sdk/skill"
)

// Target is a host under test. It is safe for concurrent use.
type Target interface {
	// Add uploads a skill for a tenant and enables it. The error is a *skill.Error
	// with the code that the host gave; what it cannot do itself it tells by another
	// error.
	Add(ctx context.Context, tenant string, u *hostile.Upload) (skill.ID, error)
	// Remove deletes what Add added; what cannot be removed stays.
	Remove(ctx context.Context, tenant string, id skill.ID)
	// Invoke calls a skill, and leaves when ctx ends. The result is never nil.
	Invoke(ctx context.Context, tenant string, id skill.ID, input json.RawMessage) *skill.Result
	// Health asks for the host's health over HTTP, as a load balancer does.
	Health(ctx context.Context) error
	// Usage counts what the host has taken, after it has given back what it can.
	Usage(ctx context.Context) Usage
	// CPU is the processor time that the host and the processes that it started have
	// used. It must be quick.
	CPU() time.Duration
	// Memory is the resident memory, in bytes, of the host and the processes that it
	// started, now; 0 where that cannot be known. It must be quick.
	Memory() int64
	// State is a digest of what no case may change: the data folder byte by byte, and
	// the catalogue as another tenant sees it.
	State(ctx context.Context) (string, error)
	// Secrets are texts that no answer may hold, such as paths of the host.
	Secrets() []string
	// Planted is the data folder, which package hostile has planted; "" where the
	// target cannot reach it.
	Planted() string
	// Address is where the host listens for HTTP, as host:port.
	Address() string
	// Busy are the worker processes that run something now.
	Busy() []int
	// Crash kills a worker process, as the kernel may, that is busy by now and is none of
	// those. It reports whether there was one.
	Crash(but []int) bool
}

// Usage is what a host has taken. A field below zero is not known.
type Usage struct {
	PID                              int
	Goroutines, Threads, Descriptors int
	Memory                           int64 // resident bytes of the host's own process
	Processes                        int   // that it started and that are there
}

// Protection is a layer that the settings or the machine may lack.
type Protection struct {
	Name   string `json:"name"`
	On     bool   `json:"on"`
	Detail string `json:"detail"` // by what, or what is missing
	// Optional says that a host does without where the machine lacks it: its row is
	// skipped then, and does not fail.
	Optional bool `json:"-"`
}
