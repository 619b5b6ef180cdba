package agentskills

import "time"

// stamp is what a look at a file tells about it. A file that was written, replaced or
// linked has another one, and a folder to which a file was added, or from which one
// was taken.
type stamp struct {
	path    string // absolute
	mode    uint32 // as the system has it
	size    int64
	written int64
	changed int64 // cannot be set by the file's owner; 0 where the system has none
	node    uint64
}

// unchanged reports whether everything is as it was stamped. It costs a look at each,
// and reads nothing.
func unchanged(stamps []stamp) bool {
	for i := range stamps {
		now, err := stampAt(stamps[i].path)
		if err != nil || now != stamps[i] {
			return false
		}
	}
	return len(stamps) > 0
}

// tick is more than the steps in which file systems count time: what was written so
// short before it was read may be written again without another stamp.
const tick = 50 * time.Millisecond

// fresh reports whether one of the stamps is so young, at a time, that it proves
// nothing.
func fresh(stamps []stamp, at time.Time) bool {
	edge := at.Add(-tick).UnixNano()
	for i := range stamps {
		if max(stamps[i].written, stamps[i].changed) > edge {
			return true
		}
	}
	return false
}
