package main

import (
	"maps"
	"regexp"
	"slices"
	"unicode/utf8"

	"openskill/skills/internal/guest"
)

// rules are what a caller says about the lines.
type rules struct {
	timestamp *regexp.Regexp    // nil for the default
	levels    map[string]string // nil for none
}

// level is the name that the caller wants for a level. Loggers that write JSON put
// colours into it too.
func (r rules) level(name string) string {
	name = string(plain([]byte(name)))
	if to, ok := r.levels[name]; ok {
		return to
	}
	return name
}

func readRules(in *guest.Input) (r rules) {
	given := in.Object("rules", " of timestamp_regex and level_map, both optional")
	given.Only("timestamp_regex", "level_map")
	if pattern := given.String("timestamp_regex", 1, 200, ""); pattern != "" {
		goPattern, problem := translate(pattern)
		if problem == "" {
			var err error
			if r.timestamp, err = regexp.Compile(goPattern); err != nil {
				problem = "is not a regular expression"
			}
		}
		if problem != "" {
			in.Fail(guest.Invalid("rules.timestamp_regex", "pattern", "rules.timestamp_regex: "+problem))
		}
	}
	const field = "rules.level_map"
	levels := given.Object("level_map", " of level names to level names").Fields
	if len(levels) > 50 {
		in.Fail(guest.Invalid(field, "length", field+": must hold at most 50 levels"))
	}
	r.levels = make(map[string]string, len(levels))
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		r.levels[name] = in.StringOf(levels[name], field, 1, 40)
		if n := utf8.RuneCountInString(name); n < 1 || n > 40 {
			in.Fail(guest.Invalid(field, "length", field+": the names of levels must be 1 to 40 characters long"))
		}
	}
	return r
}
