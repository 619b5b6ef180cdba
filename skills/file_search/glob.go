package main

import (
	"strings"

	"openskill/skills/internal/guest"
)

// parseGlob splits a pattern into its segments. The language is small on
// purpose, so that both forms of the skill read it alike:
//
//	**  as a whole segment: any number of folders, also none
//	*   any characters of one name, also none
//	?   one character of a name
//
// Everything else stands for itself, case and a leading dot included.
func parseGlob(pattern string) ([]string, error) {
	if strings.ContainsAny(pattern, `[]{}\`) {
		return nil, guest.Invalid("glob", "unsupported", "glob: knows *, ? and ** as in **/*.md; no brackets, braces or backslashes")
	}
	var segments []string
	for i, segment := range strings.Split(pattern, "/") {
		switch {
		case segment == "..", i == 0 && segment == "":
			return nil, &guest.Fault{
				Code: guest.ForbiddenPath, Field: "glob", Reason: "outside_data",
				Message: "glob: must be relative to root_dir, without a leading / and without ..",
			}
		case segment == "":
			return nil, guest.Invalid("glob", "empty_segment", "glob: must not hold an empty name, as in a//b or a/")
		case segment != ".":
			segments = append(segments, segment)
		}
	}
	return segments, nil
}

// matchPath reports whether the names of a path match the segments of a glob.
func matchPath(glob, names []string) bool {
	return matchList(glob, names, "**", matchName)
}

// matchName reports whether one name matches one segment.
func matchName(segment, name string) bool {
	return matchList(strings.Split(segment, ""), strings.Split(name, ""), "*",
		func(pattern, char string) bool { return pattern == "?" || pattern == char })
}

// matchList matches items against a pattern in which star stands for any run of
// items. Going back only to the last star is enough, and keeps the work at
// len(pattern) * len(items) where a backtracking matcher would explode.
func matchList(pattern, items []string, star string, one func(pattern, item string) bool) bool {
	p, i, back, from := 0, 0, -1, 0
	for i < len(items) {
		switch {
		case p < len(pattern) && pattern[p] == star:
			back, from = p, i
			p++
		case p < len(pattern) && one(pattern[p], items[i]):
			p++
			i++
		case back >= 0:
			from++
			p, i = back+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == star {
		p++
	}
	return p == len(pattern)
}
