package parity

import (
	"fmt"
	"strings"

	"openskill/sdk/skill"
)

// The bounds of a diff that is shown.
const (
	maxDiffLines = 12
	maxDiffWidth = 160
	maxDiffTable = 400 // lines a side that are matched; what is longer is shown from its first difference
)

// diff shows where two texts differ: lines of the first with -, of the second with +.
func diff(a, b []byte) string {
	left, right := lines(a), lines(b)
	for len(left) > 0 && len(right) > 0 && left[0] == right[0] {
		left, right = left[1:], right[1:]
	}
	for len(left) > 0 && len(right) > 0 && left[len(left)-1] == right[len(right)-1] {
		left, right = left[:len(left)-1], right[:len(right)-1]
	}
	var out []string
	if len(left) <= maxDiffTable && len(right) <= maxDiffTable {
		out = matched(left, right)
	} else {
		for i := range min(maxDiffLines/2, max(len(left), len(right))) {
			out = append(out, sided(left, i, "-")...)
			out = append(out, sided(right, i, "+")...)
		}
		out = append(out, fmt.Sprintf("… %d lines natively, %d in the sandbox", len(left), len(right)))
	}
	if len(out) > maxDiffLines {
		out = append(out[:maxDiffLines], fmt.Sprintf("… %d more lines", len(out)-maxDiffLines))
	}
	return strings.Join(out, "\n")
}

func sided(side []string, i int, mark string) []string {
	if i >= len(side) {
		return nil
	}
	line := side[i]
	text := strings.TrimLeft(line, " ")
	indent := line[:min(len(line)-len(text), maxDiffWidth/2)]
	return []string{mark + indent + skill.CleanText(text, maxDiffWidth)}
}

func lines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	all := strings.Split(string(b), "\n")
	if all[len(all)-1] == "" {
		return all[:len(all)-1]
	}
	all[len(all)-1] += " (no end of line)"
	return all
}

// matched gives what is in one of two texts alone, by their longest common
// subsequence.
func matched(a, b []string) []string {
	// length[i][j] is how much a[i:] and b[j:] have in common.
	length := make([][]int, len(a)+1)
	for i := range length {
		length[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || length[i+1][j] >= length[i][j+1]):
			out = append(out, sided(a, i, "-")...)
			i++
		default:
			out = append(out, sided(b, j, "+")...)
			j++
		}
	}
	return out
}
