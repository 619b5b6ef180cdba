package quota

import (
	"context"
	"math"
	"math/bits"
	"time"
)

// Row is what is kept of one limit. The zero values of its numbers are one of which
// nothing was used.
type Row struct {
	Key   string
	Until int64     // of a rate: when its bucket is full again, in nanoseconds since 1970
	Calls int64     // of a day
	Fuel  int64     // of a day
	Ends  time.Time // when the row means nothing any more
}

// Store keeps rows. It is safe for concurrent use, and shared by hosts; storetest is the
// suite that each implementation passes. Errors mean that it cannot now.
type Store interface {
	// Exchange reads the rows of some keys, which are text without NUL, sorted, and each
	// there once; hands them to do in that order; and writes them as do leaves them, in one
	// transaction that excludes all others of these keys. A row that is not there comes
	// with its Key alone; one that another host has in a transaction is left out, and must
	// be asked for again: that host may have frozen. do may be called again with other values where the transaction
	// was lost to another one; only the last time counts.
	Exchange(ctx context.Context, keys []string, do func(rows []Row)) error

	// Read reads the rows of some keys as Exchange does, and changes none.
	Read(ctx context.Context, keys []string) ([]Row, error)

	// Sweep deletes rows that ended before a time, no more than most of them, and says how
	// many.
	Sweep(ctx context.Context, before time.Time, most int) (int, error)
}

// minute is what a bucket holds, whatever the limit, in nanoseconds: n calls are n parts
// of it.
const minute = int64(time.Minute)

// parts is how much of a bucket n calls of a limit are.
func parts(n, perMinute int64) int64 {
	negative := n < 0
	if negative {
		n = -n
	}
	hi, lo := bits.Mul64(uint64(n), uint64(minute))
	if hi >= uint64(perMinute) {
		return math.MaxInt64 / 4 // more than any bucket
	}
	q, _ := bits.Div64(hi, lo, uint64(perMinute))
	p := int64(min(q, math.MaxInt64/4))
	if negative {
		return -p
	}
	return p
}

// backlog is how much of the bucket is not full at a time. What is further ahead than a
// bucket and its debts can be is a clock that was wrong.
func (r *Row) backlog(now int64) int64 {
	return min(max(r.Until-now, 0), 2*minute)
}

// room is how many calls of a limit can begin now.
func (r *Row) room(perMinute, now int64) int64 {
	free := minute - r.backlog(now)
	if free <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(free), uint64(perMinute))
	q, _ := bits.Div64(hi, lo, uint64(minute))
	return int64(min(q, math.MaxInt64))
}

// take counts n calls of a rate, or gives them back.
func (r *Row) take(n, perMinute, now int64) {
	r.Until = now + max(r.backlog(now)+parts(n, perMinute), 0)
	r.Ends = time.Unix(0, r.Until).Add(time.Minute)
}

// wait is how long it takes until one more call can begin.
func (r *Row) wait(perMinute, now int64) time.Duration {
	one := parts(1, perMinute)
	if minute%perMinute != 0 {
		one++ // rounded up, so that there is room then
	}
	return time.Duration(max(r.backlog(now)+one-minute, 0))
}

// add adds without overflow and never below 0.
func add(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return max(a+b, 0)
}
