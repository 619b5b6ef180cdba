package soak

import (
	"math"
	"slices"
	"time"
)

// Point is a value at a time since the run began.
type Point struct {
	At    time.Duration
	Value float64
}

// Bound is how much a series may grow over the judged part of a run.
type Bound struct {
	Share float64 // of the median of its first third
	Plus  float64 // in the series' own unit
}

// Verdict is what the rule says about a series.
type Verdict struct {
	Judged  bool    // whether there was enough of it
	Growing bool    // only where it was judged
	First   float64 // the median of the first third of the judged part
	Last    float64 // and of the last third
	Growth  float64 // the slope over the judged part, in the series' unit
	Floor   float64 // what the lowest value of the last third is above that of the first
	Most    float64 // that Growth may be
}

// What is judged is the second half of a run, if it is so long and has so many points. A
// host keeps what is not called any more for five minutes: before that it fills.
const (
	LeastTime   = 5 * time.Minute
	LeastPoints = 30
)

// Judge says whether a series grows: whether its slope over the second half of the run
// is more than the bound, and the lowest values rise with it.
//
// The slope is that of Theil and Sen, the median of the slopes between all pairs of
// points (Sen, Journal of the American Statistical Association 63, 1968): a peak, or a
// step that came once and stayed, does not tilt it, if it is not right in the middle. A heap
// between two collections, and workers that are replaced, go up and down like a saw;
// their lowest points stay where they are. A leak raises both.
func Judge(series []Point, b Bound) Verdict {
	var v Verdict
	if len(series) == 0 {
		return v
	}
	end := series[len(series)-1].At
	half := slices.IndexFunc(series, func(p Point) bool { return p.At >= end/2 })
	s := series[half:] // the last point at least
	third := max(1, len(s)/3)
	first, last := s[:third], s[len(s)-third:]
	span := s[len(s)-1].At - s[0].At
	v.First, v.Last = median(values(first)), median(values(last))
	v.Growth = slope(s) * span.Seconds()
	v.Floor = slices.Min(values(last)) - slices.Min(values(first))
	v.Most = b.Plus + b.Share*v.First
	v.Judged = span >= LeastTime && len(s) >= LeastPoints
	// Half a descriptor is none: counts grow by one at least.
	beyond := v.Growth > v.Most && (b.Share > 0 || math.Round(v.Growth-b.Plus) >= 1)
	v.Growing = v.Judged && beyond && v.Floor > v.Most/2
	return v
}

// slope is the median of the slopes between all pairs, a second.
func slope(s []Point) float64 {
	// Of a long run every so-manieth point is enough, and bounds the pairs.
	const most = 600
	if step := (len(s) + most - 1) / most; step > 1 {
		var fewer []Point
		for i := 0; i < len(s); i += step {
			fewer = append(fewer, s[i])
		}
		s = fewer
	}
	var slopes []float64
	for i := range s {
		for j := i + 1; j < len(s); j++ {
			if dt := s[j].At - s[i].At; dt > 0 {
				slopes = append(slopes, (s[j].Value-s[i].Value)/dt.Seconds())
			}
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return median(slopes)
}

func values(s []Point) (out []float64) {
	for _, p := range s {
		out = append(out, p.Value)
	}
	return out
}

// median sorts what it is given.
func median(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}
