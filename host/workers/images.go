package workers

// Images are what a worker's images are, or those of all: programs that were started once,
// whose memory calls begin with.
type Images struct {
	Bytes    uint64 // that they and idle instances hold
	Made     uint64 // ever
	Dropped  uint64 // ever; that many less than were made are there
	Restored uint64 // calls after which an instance was put back, ever
}

// mostImages bounds what is believed of a counter of one worker: more than a process could
// count, and so little that sums over all workers have room.
const mostImages = 1 << 40

// imagesAre notes what a worker says of its images. It says so with the end of each call,
// since they change by calls; what it lets go while nobody calls is known at the next one. A
// worker is not believed what cannot be: that a counter goes back, or that more was dropped than made.
func (w *process) imagesAre(now Images) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := &w.images
	was.Bytes = min(now.Bytes, w.memory)
	was.Made = max(was.Made, min(now.Made, mostImages))
	was.Dropped = min(max(was.Dropped, now.Dropped), was.Made)
	was.Restored = max(was.Restored, min(now.Restored, mostImages))
}

// count adds those of a worker. Of one that has ended nothing is left.
func (s *Images) count(w *process, ended bool) {
	w.mu.Lock()
	of := w.images
	w.mu.Unlock()
	if ended {
		of.Bytes, of.Dropped = 0, of.Made
	}
	s.Bytes += of.Bytes
	s.Made += of.Made
	s.Dropped += of.Dropped
	s.Restored += of.Restored
}
