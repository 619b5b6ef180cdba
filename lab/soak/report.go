package soak

import (
	"fmt"
	"strings"
	"time"
)

// Row is what the rule says of one thing that was followed.
type Row struct {
	Name string
	Unit string // "MB" or nothing, for Shown
	Verdict

	Bound string // in words; empty: it is followed and not judged
	Told  bool   // whether there are values
}

// MemoryShare is how much memory may grow over the second half of a run.
const MemoryShare = 0.02

// Rows judges all that was followed.
func (o *Outcome) Rows() []Row {
	memory, none := Bound{Share: MemoryShare}, Bound{}
	series := []struct {
		name, unit, bound string
		b                 Bound
		of                func(*Sample) float64
	}{
		{"memory of the host (RSS)", "MB", "2 %", memory, func(s *Sample) float64 { return s.HostRSS }},
		{"memory of all processes (RSS)", "MB", "2 %", memory, func(s *Sample) float64 { return s.HostRSS + s.WorkersRSS }},
		{"goal of the host's Go heap", "MB", "2 %", memory, func(s *Sample) float64 { return s.Heap }},
		{"goroutines of the host", "", "0", none, func(s *Sample) float64 { return s.Goroutines }},
		{"descriptors of the host", "", "0", none, func(s *Sample) float64 { return s.HostFDs }},
		{"threads of the host", "", "0", none, func(s *Sample) float64 { return s.Threads }},
		{"processes beside the host", "", "0", none, func(s *Sample) float64 { return s.Workers }},
		{"descriptors of one of them", "", "0", none, func(s *Sample) float64 { return s.WorkerFDs }},
		{"threads of one of them", "", "0", none, func(s *Sample) float64 { return s.WorkerThr }},
		{"disk of the state folder", "MB", "", memory, func(s *Sample) float64 { return s.Disk }},
	}
	var rows []Row
	for _, f := range series {
		r := Row{Name: f.name, Unit: f.unit, Bound: f.bound, Told: len(o.Samples) > 0}
		var points []Point
		for i := range o.Samples {
			s := &o.Samples[i]
			v := f.of(s)
			if v < 0 {
				r.Told = false
				break
			}
			points = append(points, Point{s.At, v})
		}
		if r.Told {
			r.Verdict = Judge(points, f.b)
		}
		if r.Bound == "" {
			r.Judged, r.Growing = false, false
		}
		rows = append(rows, r)
	}
	return rows
}

// Growing are the names of what grows.
func Growing(rows []Row) (names []string) {
	for _, r := range rows {
		if r.Growing {
			names = append(names, r.Name)
		}
	}
	return names
}

// Cells are a row as text: name, first, last, growth, bound, verdict.
func (r *Row) Cells() [6]string {
	if !r.Told {
		return [6]string{r.Name, "", "", "", r.Bound, "not told"}
	}
	verdict := "too short to judge"
	switch {
	case r.Bound == "":
		verdict = "followed only"
	case r.Growing:
		verdict = "growing"
	case r.Judged:
		verdict = "flat"
	}
	growth := r.shown(r.Growth)
	if r.Growth > 0 {
		growth = "+" + growth
	}
	if r.Unit != "" && r.First > 0 {
		growth += fmt.Sprintf(" (%+.2f %%)", 100*r.Growth/r.First)
	}
	return [6]string{r.Name, r.shown(r.First), r.shown(r.Last), growth, r.Bound, verdict}
}

func (r *Row) shown(v float64) string {
	if r.Unit == "MB" {
		return fmt.Sprintf("%.1f MB", v/1e6)
	}
	return fmt.Sprintf("%.1f", v)
}

// Summary is the run in one line.
func (o *Outcome) Summary() string {
	s := fmt.Sprintf("%d calls in %s (%.0f a second), %d wrong", o.Calls, o.Took.Round(time.Second), float64(o.Calls)/max(o.Took.Seconds(), 1e-9), o.Wrong)
	var kinds []string
	for _, k := range o.Kinds {
		kinds = append(kinds, fmt.Sprintf("%s %d", k.Name, k.Calls))
	}
	return s + ": " + strings.Join(kinds, ", ")
}

// Header are the heads of the cells of a row.
var Header = [6]string{"what", "first", "last", "growth", "bound", "verdict"}

// Markdown is the table of a run, with the command that made it.
func (o *Outcome) Markdown(command string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`: %s.\n\n", command, o.Summary())
	line := func(c [6]string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(c[:], " | ")) }
	line(Header)
	line([6]string{"---", "---", "---", "---", "---", "---"})
	for _, r := range o.Rows() {
		line(r.Cells())
	}
	return b.String()
}
