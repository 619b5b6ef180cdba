// Package outgoing says which requests the rules of a skill permit, and which variables it may
// be given.
package outgoing

import (
	"regexp"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// Permits reports whether r permits a request. path is as it is sent, escaped, and
// without the query.
func Permits(r skill.HTTPRule, method string, o skill.HTTPOrigin, path string) bool {
	return r.Scheme == o.Scheme && r.Port == o.Port && hostCovers(r.Host, o.Host) &&
		slices.Contains(r.Methods, method) && (r.Path == "" || pathCovers(r.Path, path) && plainPath(path))
}

// Meet gives what both rules permit; false if that is nothing.
func Meet(r, o skill.HTTPRule) (skill.HTTPRule, bool) {
	m := skill.HTTPRule{HTTPOrigin: r.HTTPOrigin, Path: r.Path}
	switch {
	case r.Scheme != o.Scheme || r.Port != o.Port:
		return skill.HTTPRule{}, false
	case hostCovers(r.Host, o.Host):
		m.Host = o.Host
	case !hostCovers(o.Host, r.Host):
		return skill.HTTPRule{}, false
	}
	switch {
	case r.Path == "" || o.Path != "" && pathCovers(r.Path, o.Path):
		m.Path = o.Path
	case o.Path != "" && !pathCovers(o.Path, r.Path):
		return skill.HTTPRule{}, false
	}
	for _, method := range r.Methods {
		if slices.Contains(o.Methods, method) {
			m.Methods = append(m.Methods, method)
		}
	}
	return m, len(m.Methods) > 0
}

// hostCovers reports whether the host of a rule stands for another, which may be
// that of a rule too.
func hostCovers(rule, host string) bool {
	if rule == host {
		return rule != ""
	}
	if rule == "*" {
		_, isAddress := skill.HTTPOrigin{Host: host}.Address()
		return host != "" && !isAddress
	}
	parent, ok := strings.CutPrefix(rule, "*")
	return ok && strings.HasSuffix(host, parent) // parent begins with the dot
}

func pathCovers(rule, path string) bool {
	rest, ok := strings.CutPrefix(path, rule)
	return ok && (rest == "" || strings.HasSuffix(rule, "/") || rest[0] == '/')
}

// plainPath reports whether what serves a path can only read it as it is written,
// so that one below a rule's path does not lead out of it.
func plainPath(path string) bool {
	lower := strings.ToLower(path)
	for _, hidden := range []string{"%2e", "%2f", "%5c", "%25", "%00", "\\"} {
		if strings.Contains(lower, hidden) {
			return false
		}
	}
	return !HasDotSegments(path)
}

// HasDotSegments reports whether a part of an escaped path is . or .., also with
// parameters behind it (..;x) or with escaped dots.
func HasDotSegments(path string) bool {
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		part, _, _ = strings.Cut(part, ";")
		if part = strings.ReplaceAll(part, "%2e", "."); part == "." || part == ".." {
			return true
		}
	}
	return false
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// ValidEnvName reports whether a skill may be given an environment variable of
// this name. Those that say something to a runtime are not for skills to ask for.
func ValidEnvName(name string) bool {
	upper := strings.ToUpper(name)
	for _, own := range []string{"OPENSKILL_", "PYTHON", "LD_", "DYLD_", "GLIBC_"} {
		if strings.HasPrefix(upper, own) {
			return false
		}
	}
	return envName.MatchString(name) && upper != "HOME" && upper != "TMPDIR"
}
