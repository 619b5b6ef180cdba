//go:build !linux

package selftest

import "time"

// Tree is a process and those that it started. Nothing is known of it here.
type Tree struct{ PID int }

// Children gives none.
func (t *Tree) Children() []int { return nil }

// Memory is not known.
func (t *Tree) Memory() int64 { return 0 }

// CPU is not known.
func (t *Tree) CPU() time.Duration { return 0 }

// Busiest gives none.
func (t *Tree) Busiest([]int) int { return 0 }

// Busy gives none.
func (t *Tree) Busy() []int { return nil }

// Usage knows the process alone.
func (t *Tree) Usage() Usage {
	return Usage{PID: t.PID, Goroutines: -1, Threads: -1, Descriptors: -1, Memory: -1}
}
