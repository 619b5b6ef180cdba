package main

import (
	"fmt"
	"regexp"
	"slices"

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

func readRules(in guest.Input) (rules, error) {
	var r rules
	raw, ok := in["rules"]
	if !ok {
		return r, nil
	}
	given, err := guest.Object(raw, "rules", " of timestamp_regex and level_map, both optional")
	if err != nil {
		return r, err
	}
	if err := given.Only("rules.", " in rules", "timestamp_regex", "level_map"); err != nil {
		return r, err
	}
	if raw, ok := given["timestamp_regex"]; ok {
		const field = "rules.timestamp_regex"
		pattern, err := guest.String(raw, field, 1, 200)
		if err != nil {
			return r, err
		}
		goPattern, problem := translate(pattern)
		if problem == "" {
			if r.timestamp, err = regexp.Compile(goPattern); err != nil {
				problem = "is not a regular expression"
			}
		}
		if problem != "" {
			return r, guest.Invalid(field, "pattern", field+": "+problem)
		}
	}
	if raw, ok := given["level_map"]; ok {
		const field = "rules.level_map"
		levels, err := guest.Object(raw, field, " of level names to level names")
		if err != nil {
			return r, err
		}
		if len(levels) > 50 {
			return r, guest.Invalid(field, "length", field+": must hold at most 50 levels")
		}
		r.levels = map[string]string{}
		names := make([]string, 0, len(levels))
		for name := range levels {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			to, err := guest.String(levels[name], field, 1, 40)
			if err != nil {
				return r, err
			}
			if n := len([]rune(name)); n < 1 || n > 40 {
				return r, guest.Invalid(field, "length", fmt.Sprintf("%s: the names of levels must be 1 to 40 characters long", field))
			}
			r.levels[name] = to
		}
	}
	return r, nil
}
