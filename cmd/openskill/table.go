package main

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// table is rows of cells under a header, aligned by what terminals show.
type table struct {
	rows  [][]string
	right [][]bool    // the cells with numbers
	most  map[int]int // columns that are wrapped, by their number from 1
}

// newTable returns a table with this header, or without one.
func newTable(header ...any) *table {
	t := &table{most: map[int]int{}}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

// wrap has the cells of a column, numbered from 1, wrapped at this many columns of the terminal.
func (t *table) wrap(column, most int) { t.most[column] = most }

func (t *table) row(cells ...any) {
	texts, right := make([]string, len(cells)), make([]bool, len(cells))
	for i, c := range cells {
		texts[i] = fmt.Sprint(c)
		switch c.(type) {
		case int, int32, int64, uint32, uint64, float64:
			right[i] = true
		}
	}
	t.rows, t.right = append(t.rows, texts), append(t.right, right)
}

// String returns the rows as lines.
func (t *table) String() string {
	var wide []int
	lines := make([][][]string, len(t.rows)) // by row and column
	for r, row := range t.rows {
		for c, text := range row {
			if c == len(wide) {
				wide = append(wide, 0)
			}
			cell := wrapped(text, t.most[c+1])
			lines[r] = append(lines[r], cell)
			for _, line := range cell {
				wide[c] = max(wide[c], columns(line))
			}
		}
	}
	var out strings.Builder
	for r, row := range lines {
		high := 1
		for _, cell := range row {
			high = max(high, len(cell))
		}
		for l := range high {
			if r+l > 0 {
				out.WriteByte('\n')
			}
			for c := range wide {
				text := ""
				if c < len(row) && l < len(row[c]) {
					text = row[c][l]
				}
				pad := strings.Repeat(" ", wide[c]-columns(text))
				if c < len(row) && t.right[r][c] {
					text, pad = pad+text, ""
				}
				out.WriteString(" " + text + pad + " ")
			}
		}
	}
	return out.String()
}

// wrapped returns the lines of text, each within most columns where most is not 0.
// Lines are broken between words, and in a word that does not fit into a line.
func wrapped(text string, most int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if most == 0 || columns(line) <= most {
			lines = append(lines, line)
			continue
		}
		now := ""
		for word := range strings.FieldsSeq(line) {
			if now != "" && columns(now)+1+columns(word) <= most {
				now += " " + word
				continue
			}
			if now != "" {
				lines = append(lines, now)
			}
			for columns(word) > most {
				head := snip(word, most)
				lines, word = append(lines, head), word[len(head):]
			}
			now = word
		}
		lines = append(lines, now)
	}
	return lines
}

// columns returns how many columns of a terminal text takes.
func columns(text string) (n int) {
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// runeColumns returns how many columns of a terminal r takes: 0, 1 or 2.
func runeColumns(r rune) int {
	switch {
	case r == 0 || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1f300 && r <= 0x1faff:
		return 2 // symbols that terminals show as wide as ideographs
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// snip returns the beginning of text that fits into most columns.
func snip(text string, most int) string {
	n := 0
	for i, r := range text {
		if n += runeColumns(r); n > most {
			return text[:i]
		}
	}
	return text
}
