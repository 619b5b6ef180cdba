package access

import (
	"slices"
	"strings"
)

// rests are the parameters that stand for all that is left of a path: names of files,
// which may have slashes.
var rests = []string{"path", "script", "artifact"}

// files are the parameters whose values may have colons, as those of all parameters may that
// end before the path does. In others a colon begins an action that there is not.
var files = append([]string{"version"}, rests...)

// TakesRest reports whether a parameter of this name stands for all that is left of a
// path, slashes included.
func TakesRest(param string) bool { return slices.Contains(rests, param) }

// pattern is a path of the table taken apart.
type pattern struct {
	route    *Route
	segments []segment
}

type segment struct {
	literal string // of a segment that has no parameter
	param   string // name of the parameter; "" where there is none
	action  string // what comes after the parameter, as in ":invoke"
	rest    bool   // the parameter takes what is left, slashes included
	colons  bool   // its value may have colons
}

// patterns are those of the table by the first segment of their paths.
var patterns = compile(table)

func compile(rows []Route) map[string][]pattern {
	out := map[string][]pattern{}
	for i := range rows {
		p := pattern{route: &rows[i]}
		parts := strings.Split(rows[i].Path[1:], "/")
		for i, part := range parts {
			name, action, isParam := strings.Cut(strings.TrimPrefix(part, "{"), "}")
			if !isParam {
				p.segments = append(p.segments, segment{literal: part})
				continue
			}
			p.segments = append(p.segments, segment{
				param: name, action: action, rest: TakesRest(name), colons: action != "" || i < len(parts)-1 || slices.Contains(files, name),
			})
		}
		first := firstOf(rows[i].Path)
		out[first] = append(out[first], p)
	}
	return out
}

// firstOf is the first segment of a path, without an action.
func firstOf(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

// match reports whether a path without a slash at its ends is one of p's, and gives its
// first parameter.
func (p *pattern) match(path string) (subject string, ok bool) {
	for i := range p.segments {
		s := &p.segments[i]
		part, left, more := strings.Cut(path, "/")
		if s.rest {
			part, left, more = path, "", false
		}
		if more != (i < len(p.segments)-1) {
			return "", false
		}
		if s.param == "" {
			if part != s.literal {
				return "", false
			}
		} else {
			value, ends := strings.CutSuffix(part, s.action)
			if !ends || value == "" || !s.colons && strings.Contains(value, ":") {
				return "", false
			}
			if subject == "" {
				subject = value
			}
		}
		path = left
	}
	return subject, true
}

// Find gives the route of a request, nil if there is none, and the first parameter of
// its path. The path is decoded; one slash at its end is not looked at. HEAD is let in
// where GET is.
func Find(method, path string) (r *Route, subject string) {
	each(path, func(p *pattern, s string) bool {
		if p.route.Method != method && (method != "HEAD" || p.route.Method != "GET" || p.route.Stream) {
			return true
		}
		r, subject = p.route, s
		return false
	})
	return r, subject
}

// each calls f with the patterns that a path matches, until it says false.
func each(path string, f func(p *pattern, subject string) bool) {
	if len(path) < 2 || path[0] != '/' {
		return
	}
	path = strings.TrimSuffix(path[1:], "/")
	for i, list := 0, patterns[firstOf(path)]; i < len(list); i++ {
		if subject, ok := list[i].match(path); ok && !f(&list[i], subject) {
			return
		}
	}
}

// order is how methods are listed.
var order = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

// Allow gives the methods of a path as a header of that name has them, "" if there is no
// such path.
func Allow(path string) string {
	var has []string
	each(path, func(p *pattern, _ string) bool {
		has = append(has, p.route.Method)
		if p.route.Method == "GET" && !p.route.Stream {
			has = append(has, "HEAD")
		}
		return true
	})
	if has == nil {
		return ""
	}
	allow := ""
	for _, m := range order {
		if slices.Contains(has, m) {
			allow += m + ", "
		}
	}
	return allow + "OPTIONS"
}
