package metertest

import (
	"math"
	"slices"
)

// The numbers of rule 3 that are proved. The rewriter aims at less, and does not look as
// closely: at small loops that are laid out several times, and at tail calls.
const (
	mostUntested = 3*32_000 + 8_000 // most that is charged between two tests
	mostUnwound  = 1_000            // most that is paid before a call that may recurse, and done behind it
	mostWalks    = 64               // over one body at once; each may go one loop further out
	mostRounds   = 1_000            // over the bodies for whose callees something changed
)

// none stands for the charges of paths that there are not.
const none = -1

// nothing is owed where no path came from a call that may recurse.
const nothing = math.MinInt64

// sums are what a caller has to know of a function, or of all functions of a shape that a
// table may hold.
type sums struct {
	head    int64 // most that is charged from the entry to the first test, or to the return
	through int64 // the same from the entry to the return, without a test on the way; none
	behind  int64 // most that is charged from the last test to the return; none
}

func (s sums) merge(o sums) sums {
	return sums{max(s.head, o.head), max(s.through, o.through), max(s.behind, o.behind)}
}

// head is what is charged where a loop of the output begins, and where it goes on.
type head struct{ first, since, owed int64 }

// walks goes over all functions, callees first, and again over those whose callees have
// larger sums than before. When no sum grows any more, each holds for every call that
// ends, by induction over the time at which it does.
func (v *verifier) walks(w *walker) error {
	order := v.callees()
	v.knot(order)
	v.sums = slices.Repeat([]sums{{0, none, none}}, len(v.all))
	walked := slices.Repeat([]int{-1}, len(v.all)) // the step of the last walk
	grown := slices.Repeat([]int{0}, len(v.all))   // and that at which its sums grew
	step := 0
	for range mostRounds {
		again := false
		for _, f := range order {
			stale := walked[f] < 0
			for _, to := range v.all[f] {
				stale = stale || grown[to] > walked[f]
			}
			if !stale {
				continue
			}
			step++
			walked[f] = step
			before := v.sums[f]
			if int(f) < len(v.in.Codes) {
				v.calls[f] = v.calls[f][:0]
				if err := w.function(int(f)); err != nil {
					return err
				}
			} else {
				for _, to := range v.all[f] {
					v.sums[f] = v.sums[f].merge(v.sums[to])
				}
			}
			if v.sums[f] != before {
				step++
				grown[f], again = step, true
			}
		}
		if !again {
			return nil
		}
	}
	return broken("what is charged between two tests grows without end")
}

// plus adds a charge to what there is.
func plus(sum, c int64) int64 {
	if sum == none || c == none {
		return none
	}
	return sum + c
}

// untested notes a charge without a test.
func (w *walker) untested(c int64) error {
	w.st.first, w.st.since = plus(w.st.first, c), plus(w.st.since, c)
	return w.within(max(w.st.first, w.st.since), w.st.first)
}

// within holds what is charged between two tests against the most that may be; first is
// as much of it as was charged from the entry on.
func (w *walker) within(all, first int64) error {
	if !w.st.live {
		return nil
	}
	h := &w.v.sums[w.fn].head
	*h = max(*h, first)
	if all > mostUntested {
		return w.fail("%d units are charged between two tests; at most %d may be", all, mostUntested)
	}
	return nil
}

// enter carries what is charged over a call. to is as [walker.called] has it.
func (w *walker) enter(to int32) error {
	if !w.st.live || to < 0 {
		return nil
	}
	if w.v.knots[to] == w.v.knots[w.fn] { // a function that calls nobody who calls it is alone in its own
		w.st.owed = max(w.st.owed, 0)
	}
	st, s := &w.st, w.v.sums[to]
	if st.first == none && st.since == none {
		return nil // behind calls that do not return, as far as is known
	}
	if err := w.within(max(st.first, st.since)+s.head, plus(st.first, s.head)); err != nil {
		return err
	}
	st.first, st.since = plus(st.first, s.through), max(plus(st.since, s.through), s.behind)
	return w.within(max(st.first, st.since), st.first)
}

// leave notes what is untested where the function is left.
func (w *walker) leave() {
	if w.st.live {
		s := &w.v.sums[w.fn]
		s.through, s.behind = max(s.through, w.st.first), max(s.behind, w.st.since)
	}
}

// begins takes at the header of a loop what an earlier walk found where the loop goes on.
func (w *walker) begins() {
	if w.nheads == len(w.heads) {
		w.heads = append(w.heads, head{none, none, nothing})
	}
	h := &w.heads[w.nheads]
	w.nheads++
	if w.st.live {
		h.first, h.since, h.owed = max(h.first, w.st.first), max(h.since, w.st.since), max(h.owed, w.st.owed)
		w.st.first, w.st.since, w.st.owed = h.first, h.since, h.owed
	}
}

// goesOn notes what is charged where a loop goes on.
func (w *walker) goesOn(o *open) {
	h := &w.heads[o.head]
	if w.st.first > h.first || w.st.since > h.since || w.st.owed > h.owed {
		h.first, h.since, h.owed = max(h.first, w.st.first), max(h.since, w.st.since), max(h.owed, w.st.owed)
		w.more = true
	}
}

// owes gives what is owed after n units more were used, or -n were charged, behind a call
// that may recurse. What is used there beyond the charges was paid before the call, and so
// a stack of calls returns through as much each. Tests are no help: the host is visited
// when charges have used up a slice, and there are none.
func owes(owed, n int64) int64 {
	if owed == nothing {
		return nothing
	}
	return owed + n
}
