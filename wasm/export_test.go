package wasm

import "time"

// Left names a step of putting an instance back, for tests that leave one out: a
// test that does not notice proves nothing.
type Left = leftOut

// The steps.
const (
	LeaveMemory      = leaveMemory
	LeaveGlobals     = leaveGlobals
	LeaveTouched     = leaveTouched
	LeaveGrown       = leaveGrown
	LeaveStack       = leaveStack
	LeaveDescriptors = leaveDescriptors
	LeaveScratch     = leaveScratch
	LeaveChance      = leaveChance
)

// Leave leaves out steps from now on.
func (im *Image) Leave(l Left) { im.left = l }

// Instances tells how many exist, and how many wait for a run.
func (im *Image) Instances() (live, idle int) {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.live, len(im.idle)
}

// Starts tells how many instances were ever started.
func (im *Image) Starts() int {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.starts
}

// Others tells how many instances have a memory of their own.
func (im *Image) Others() int {
	im.mu.Lock()
	defer im.mu.Unlock()
	return im.others
}

// Held is the memory that the image holds, in bytes.
func (im *Image) Held() uint64 { return im.held() }

// Sweep does what the engine does once in a while.
func (e *Engine) Sweep(now time.Time) { e.images.sweep(now) }

// IdleTime is how long an image keeps what nobody uses.
const IdleTime = idleTime

// LikeStart has an image start as another does: with its chance and its time.
func (im *Image) LikeStart(other *Image) { im.begin = other.begin }
