package quota

import (
	"math"
	"testing"
	"time"
)

// FuzzRow: whatever a row says and whatever is taken of it, a bucket has no more room
// than its limit, one that is taken empty is empty, and time fills it.
func FuzzRow(f *testing.F) {
	f.Add(int64(0), int64(60), int64(1), int64(1_000_000_000))
	f.Add(int64(math.MaxInt64), int64(1), int64(-5), int64(0))
	f.Add(int64(math.MinInt64), int64(100_000_000), int64(math.MaxInt64), int64(1<<60))
	f.Fuzz(func(t *testing.T, until, limit, n, now int64) {
		limit = 1 + int64(uint64(limit)%100_000_000)
		now = int64(uint64(now) % (1 << 61))
		r := Row{Until: until}
		room := r.room(limit, now)
		if room < 0 || room > limit {
			t.Fatalf("room for %d of %d", room, limit)
		}
		if wait := r.wait(limit, now); wait < 0 || wait > 4*time.Minute || (wait == 0) != (room >= 1) && limit < 1000 {
			t.Fatalf("room for %d of %d, and %v to wait", room, limit, wait)
		}
		r.take(room, limit, now)
		slack := limit * limit / minute // of nanoseconds that do not divide
		if left := r.room(limit, now); left > slack+1 {
			t.Fatalf("room for %d of %d when all was taken", left, limit)
		}
		if left := r.room(limit, now+2*minute); left < limit-1 {
			t.Fatalf("room for %d of %d two minutes later", left, limit)
		}
		r.take(n, limit, now)
		if left := r.room(limit, now); left < 0 || left > limit {
			t.Fatalf("room for %d of %d after %d", left, limit, n)
		}
	})
}

// A small limit is exact: so many calls, one after the other, and no more.
func TestSmallLimitsAreExact(t *testing.T) {
	const now = int64(1_700_000_000_000_000_000)
	for limit := int64(1); limit <= 2000; limit++ {
		var r Row
		n := int64(0)
		for r.room(limit, now) >= 1 && n <= limit {
			r.take(1, limit, now)
			n++
		}
		if n != limit {
			t.Fatalf("%d of %d", n, limit)
		}
		if wait := r.wait(limit, now); wait <= 0 || r.room(limit, now+int64(wait)) != 1 {
			t.Fatalf("after %v there is room for %d of %d", wait, r.room(limit, now+int64(wait)), limit)
		}
	}
}
