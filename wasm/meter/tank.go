package meter

import "errors"

// What [Tank.Refuel] ends a run with.
var (
	ErrFuel  = errors.New("fuel exhausted")
	ErrStack = errors.New("call stack exhausted")
	ErrTable = errors.New("table grown beyond its cap")
)

// Tank is the host's side of the counter of one instance. It is not safe for
// concurrent use; an instance runs on one goroutine.
type Tank struct {
	Budget  uint64 // units that the run may use in all
	Slice   uint64 // units that are handed out at once
	Granted uint64 // units that were handed out
}

// Refuel answers a call of the guest: state is the counter, need what a failed
// test would have taken from it, or 0. It gives the counter to go on with.
func (t *Tank) Refuel(state, need int64) (int64, error) {
	if need == needTable {
		return 0, ErrTable
	}
	wanted := state - need
	if wanted&stackBit != 0 {
		return 0, ErrStack
	}
	missing := -(wanted >> fuelShift)
	if missing <= 0 {
		return state, nil
	}
	grant := min(max(t.Slice, uint64(missing)), t.Budget-t.Granted)
	if grant < uint64(missing) {
		return 0, ErrFuel
	}
	t.Granted += grant
	return state + int64(grant)<<fuelShift, nil //nolint:gosec // at most what is missing or a slice, both far below 2^43
}

// Used gives the fuel that was used, from the counter's value.
func (t *Tank) Used(state int64) uint64 {
	left := state >> fuelShift
	if left < 0 {
		return t.Granted + uint64(-left)
	}
	return t.Granted - min(uint64(left), t.Granted)
}

// Unwound gives the counter of an instance in which no function runs any more,
// after a trap left some without returning. The fuel stays as it is.
func Unwound(state int64) int64 {
	return state>>fuelShift<<fuelShift + stackBit - StackBudget
}
