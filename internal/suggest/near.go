// Package suggest finds the names that somebody may have meant who wrote one that there is
// not.
package suggest

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Most is how many names are offered.
const Most = 5

// Names gives the names that a caller may have meant: of the same last part, holding the
// name or held by it, or a few letters away; the nearest first, and at most [Most].
func Names(name string, all []string) []string {
	type candidate struct {
		name string
		away int
	}
	var found []candidate
	short := strings.ToLower(name)
	if len(short) > 200 {
		short = "" // nobody meant that
	}
	for _, name := range all {
		c := strings.ToLower(name)
		away := -1
		switch {
		case short == "":
		case c == short || path.Base(c) == path.Base(short):
			away = 0
		case stem(c) == stem(short):
			away = 1
		case min(len(short), len(c)) >= 3 && (strings.Contains(c, short) || strings.Contains(short, c)):
			away = 2
		default:
			a, b := stem(c), stem(short)
			if d := distance(a, b); d <= max(2, len(a)/4) && d < max(len(a), len(b)) { // else nothing is common to both
				away = 2 + d
			}
		}
		if away >= 0 {
			found = append(found, candidate{name, away})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.away, b.away) })
	var names []string
	for i := range min(len(found), Most) {
		names = append(names, found[i].name)
	}
	return names
}

// stem is the last part of a name without its extension.
func stem(s string) string { return strings.TrimSuffix(path.Base(s), path.Ext(s)) }

// distance is the number of letters to change, add or take away to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
