package config

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
)

// Change is what becomes of settings when they are read again while a host runs.
type Change struct {
	Settings *Settings // as the host has them then: of what waits, the old values
	Taken    []string  // names of settings whose new value holds
	Waiting  []string  // names of settings whose new value waits for a restart
}

// Change compares settings with those that were read now. A file that the old ones were
// read from must still be there: one that is gone is rather being replaced than meant to
// say that everything has its default. The error names it.
func (s *Settings) Change(now *Settings) (*Change, error) {
	var gone []string
	for _, name := range s.files {
		if !slices.Contains(now.files, name) {
			gone = append(gone, filepath.Base(name)+" is gone: put it back, or restart the host if it is not needed any more")
		}
	}
	if len(gone) > 0 {
		return nil, failure(gone)
	}
	merged := *s
	merged.origins, merged.places, merged.unknown, merged.renamed, merged.files = maps.Clone(s.origins), maps.Clone(s.places), now.unknown, now.renamed, now.files
	c := &Change{Settings: &merged, Taken: []string{}, Waiting: []string{}}
	to, from := reflect.ValueOf(&merged).Elem(), reflect.ValueOf(now).Elem()
	for _, row := range table() {
		same := true
		for _, f := range row.parts {
			have, want := to.Field(f.index), from.Field(f.index)
			same = same && have.Equal(want)
			if row.Reloads {
				have.Set(want)
				merged.origins[f.name()] = now.origins[f.name()]
			}
		}
		switch {
		case row.Reloads:
			merged.origins[row.Env], merged.places[row.Env] = now.origins[row.Env], now.places[row.Env]
			if !same {
				c.Taken = append(c.Taken, row.Env)
			}
		case !same:
			c.Waiting = append(c.Waiting, row.Env)
		}
	}
	merged.allowed, merged.prices = now.allowed, now.prices
	if !s.allowed.HTTP() && now.allowed.HTTP() {
		// The process has nothing that makes requests, and does not get it while it runs.
		merged.allowed, merged.HTTPAllow = now.allowed.WithoutHTTP(), s.HTTPAllow
		c.Taken = slices.DeleteFunc(c.Taken, func(name string) bool { return name == "OPENSKILL_HTTP_ALLOW" })
		c.Waiting = append(c.Waiting, "OPENSKILL_HTTP_ALLOW")
	}
	return c, nil
}
