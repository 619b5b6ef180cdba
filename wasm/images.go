package wasm

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Images are kept within bounds by one goroutine of the engine, which looks at all
// of them once in a while.
const (
	// idleTime is how long an image keeps instances, and its memory, without a run.
	idleTime = 5 * time.Minute
	// settleTime is how long an instance keeps the pages that its last run wrote: a
	// busy one writes the same ones again.
	settleTime = time.Second
	// instanceCost is what an idle instance takes beside pages and tables, in bytes: its
	// stack and its goroutine.
	instanceCost = 256 << 10
)

// images are those of an engine.
type images struct {
	max   int         // idle instances of all images
	bytes uint64      // of memory that images and idle instances hold
	full  atomic.Bool // they held more when they were last looked at

	made, dropped, restored atomic.Uint64 // see ImageStats

	mu     sync.Mutex
	all    map[*Image]struct{}
	idle   int
	closed bool
	stop   chan struct{}
	swept  chan struct{} // closed when the goroutine has ended
}

// ImageStats are what an engine's images are now, and what became of them so far. An
// image that is there is one that was made and not dropped.
type ImageStats struct {
	Bytes    uint64 // of memory that images and idle instances hold, as ImageBytes bounds it
	Made     uint64 // memories of started programs that were kept
	Dropped  uint64 // those that were let go
	Restored uint64 // runs after which an instance was put back to its image
}

// Images tells of the engine's images. It is quick, and safe for concurrent use.
func (e *Engine) Images() ImageStats {
	s := &e.images
	// In this order, or one that is made and dropped meanwhile would be dropped alone.
	st := ImageStats{Dropped: s.dropped.Load(), Restored: s.restored.Load()}
	st.Made = s.made.Load()
	s.mu.Lock()
	all := make([]*Image, 0, len(s.all))
	for im := range s.all {
		all = append(all, im)
	}
	s.mu.Unlock()
	for _, im := range all {
		st.Bytes += im.held()
	}
	return st
}

func (s *images) add(im *Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		im.closed = true
		return
	}
	if s.all == nil {
		s.all = map[*Image]struct{}{}
		s.stop, s.swept = make(chan struct{}), make(chan struct{})
		go s.run(s.stop)
	}
	s.all[im] = struct{}{}
}

func (s *images) remove(im *Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, im)
}

// came is called when an instance became idle; there may be one too many now.
func (s *images) came() {
	s.mu.Lock()
	s.idle++
	over := s.idle - s.max
	s.mu.Unlock()
	if over > 0 {
		s.trim(over)
	}
}

// left is called when n idle instances are not idle any more.
func (s *images) left(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle -= n
}

// list gives the images, the longest unused first.
func (s *images) list() []*Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Image, 0, len(s.all))
	for im := range s.all {
		all = append(all, im)
	}
	return byUse(all)
}

// trim retires n idle instances, of the images that were not used for the longest.
func (s *images) trim(n int) {
	for _, im := range s.list() {
		for n > 0 && im.retire(func(*instance) bool { return true }, 1) > 0 {
			n--
		}
	}
}

func (s *images) run(stop <-chan struct{}) {
	defer close(s.swept)
	tick := time.NewTicker(settleTime)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			s.sweep(now)
		}
	}
}

// sweep gives back what was idle for long, and what is beyond the bound on bytes.
func (s *images) sweep(now time.Time) {
	held := uint64(0)
	all := s.list()
	for _, im := range all {
		im.retire(func(in *instance) bool { return now.Sub(in.since) > idleTime }, im.max)
		held += im.settle(now)
	}
	s.full.Store(held > s.bytes)
	for _, im := range all {
		for held > s.bytes {
			before := im.held()
			if im.retire(func(*instance) bool { return true }, 1) == 0 {
				break
			}
			held -= min(held, before-min(before, im.held()))
		}
	}
}

// close ends all images, and the goroutine.
func (s *images) close() {
	s.mu.Lock()
	s.closed = true
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop != nil {
		close(stop)
		<-s.swept
	}
	for _, im := range s.list() {
		_ = im.Close()
	}
}

// byUse orders images by when they were used last, the longest ago first.
func byUse(all []*Image) []*Image {
	used := make(map[*Image]time.Time, len(all))
	for _, im := range all {
		im.mu.Lock()
		used[im] = im.used
		im.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b *Image) int { return used[a].Compare(used[b]) })
	return all
}
