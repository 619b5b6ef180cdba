package agentskills

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// maxNear is how many names a message offers.
const maxNear = 5

// near gives the names that a caller may have meant: of the same last part, holding the
// name or held by it, or a few letters away; the nearest first.
func near(name string, all []string) []string {
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
		case len(short) >= 3 && (strings.Contains(c, short) || strings.Contains(short, c)):
			away = 2
		default:
			if d := distance(stem(c), stem(short)); d <= max(2, len(stem(c))/4) {
				away = 2 + d
			}
		}
		if away >= 0 {
			found = append(found, candidate{name, away})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.away, b.away) })
	var names []string
	for i := range min(len(found), maxNear) {
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

// offer says which names there are: the near ones, or else the first of all.
func offer(name string, all []string, none string) string {
	if len(all) == 0 {
		return none
	}
	if list := near(name, all); len(list) > 0 {
		return "did you mean " + names(list, " or ") + "?"
	}
	more := ""
	if len(all) > maxNear {
		more = " and others"
		all = all[:maxNear]
	}
	return "there are " + names(all, ", ") + more
}

func names(list []string, between string) string {
	shown := make([]string, len(list))
	for i, n := range list {
		shown[i] = skill.CleanText(n, 80)
	}
	return strings.Join(shown, between)
}
