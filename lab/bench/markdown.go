package bench

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"openskill/internal/measure"
)

// Marks of a table in a document; the text between the two is written by a program.
const (
	beginMark = "<!-- bench %s: written by a command, not by hand -->"
	endMark   = "<!-- end -->"
)

// Markdown writes the tables of rows into a document: for every suite, and for
// "goals", between its marks. Of suites that have no rows, or no marks, nothing is
// changed. above is the text above the tables of a suite: the command that prints them.
func Markdown(doc []byte, rows []measure.Row, above func(suite string) string) ([]byte, error) {
	suites := map[string][]measure.Row{}
	for _, r := range rows {
		suites[r.Suite] = append(suites[r.Suite], r)
	}
	for suite, rs := range suites {
		text := above(suite) + "\n\n" + table(rs)
		if g := goals(rs); g != "" {
			text += "\n" + g
		}
		begin := []byte(fmt.Sprintf(beginMark, suite))
		before, rest, ok := bytes.Cut(doc, begin)
		if !ok {
			continue
		}
		_, after, ok := bytes.Cut(rest, []byte(endMark))
		if !ok {
			return nil, fmt.Errorf("the marks of %s have no end: %s", suite, endMark)
		}
		doc = slices.Concat(before, begin, []byte("\n"+text), []byte(endMark), after)
	}
	return doc, nil
}

func table(rows []measure.Row) string {
	var b strings.Builder
	has := func(of func(*measure.Row) bool) bool {
		return slices.ContainsFunc(rows, func(r measure.Row) bool { return of(&r) })
	}
	columns := []struct {
		name string
		show func(*measure.Row) string
		used bool
	}{
		{"case", func(r *measure.Row) string { return r.Case }, true},
		{"variant", func(r *measure.Row) string { return r.Variant }, true},
		{"minimum", func(r *measure.Row) string { return measure.Span(r.MinNS) }, has(func(r *measure.Row) bool { return r.MinNS != 0 })},
		{"median", func(r *measure.Row) string { return measure.Span(r.P50NS) }, has(func(r *measure.Row) bool { return r.P50NS != 0 })},
		{"p99", func(r *measure.Row) string { return measure.Span(r.P99NS) }, has(func(r *measure.Row) bool { return r.P99NS != 0 })},
		{"memory", func(r *measure.Row) string {
			if r.Bytes == 0 {
				return ""
			}
			return measure.Bytes(r.Bytes)
		}, has(func(r *measure.Row) bool { return r.Bytes != 0 })},
		{"ratio", func(r *measure.Row) string { return measure.Ratio(r.Ratio) }, has(func(r *measure.Row) bool { return r.Ratio != 0 })},
		{"of minima", func(r *measure.Row) string { return measure.Ratio(r.MinRatio) }, has(func(r *measure.Row) bool { return r.MinRatio != 0 })},
		{"runs", func(r *measure.Row) string { return fmt.Sprint(r.N) }, true},
		{"note", func(r *measure.Row) string { return r.Note }, has(func(r *measure.Row) bool { return r.Note != "" })},
	}
	line := func(cell func(i int) string) {
		for i, c := range columns {
			if c.used {
				b.WriteString("| " + strings.ReplaceAll(cell(i), "|", "\\|") + " ")
			}
		}
		b.WriteString("|\n")
	}
	line(func(i int) string { return columns[i].name })
	line(func(int) string { return "---" })
	for k := range rows {
		line(func(i int) string { return columns[i].show(&rows[k]) })
	}
	return b.String()
}

func goals(rows []measure.Row) string {
	var b strings.Builder
	for _, r := range rows {
		for _, g := range r.Goals {
			met := "met"
			if !g.Met {
				met = "**missed**"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.ReplaceAll(r.Case, "|", "\\|"), g.Goal, g.Measured, met)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "| case | goal | measured | |\n| --- | --- | --- | --- |\n" + b.String()
}
