package httpapi

import "runtime"

// ReadPlaces is how many lists are made at once.
func ReadPlaces() int { return max(runtime.NumCPU(), 2) }
