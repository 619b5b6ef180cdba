package packages

import (
	"regexp"
	"strings"

	"openskill/sdk/skill"
)

var (
	pythonRequirement = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[A-Za-z0-9._, -]*\])?\s*\(?((?:(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*,?\s*)*)\)?\s*$`)
	npmName           = regexp.MustCompile(`^(?:@[A-Za-z0-9~_-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*$`)
	npmRange          = regexp.MustCompile(`^[0-9A-Za-z.*^~<>=| +-]*$`)
)

// maxRequirement bounds a requirement, in bytes.
const maxRequirement = 200

// ParseRequirement reads a package that is asked for: python:NAME[EXTRAS]VERSIONS or
// npm:NAME@RANGE; without a prefix it is of the ecosystem given, "" for neither. Addresses,
// paths and options are refused. The error is a *skill.Error.
func ParseRequirement(text string, e Ecosystem) (Requirement, error) {
	given := text
	wrong := func(why string) (Requirement, error) {
		return Requirement{}, &skill.Error{
			Op: "packages.ParseRequirement", Code: skill.InvalidArgument, Subject: skill.CleanText(given, 80),
			Message: "invalid package " + `"` + skill.CleanText(given, 80) + `": ` + why,
		}
	}
	for _, prefix := range []Ecosystem{Python, NPM} {
		if rest, is := strings.CutPrefix(text, string(prefix)+":"); is {
			text, e = rest, prefix
		}
	}
	if len(text) > maxRequirement {
		return wrong("it is too long")
	}
	switch e {
	case NPM:
		name, spec := text, ""
		if i := strings.LastIndexByte(text, '@'); i > 0 {
			name, spec = text[:i], text[i+1:]
		}
		if !npmName.MatchString(name) || strings.Contains(name, "..") || !npmRange.MatchString(spec) {
			return wrong("use npm:NAME or npm:NAME@RANGE, such as npm:chalk@^5")
		}
		return Requirement{Ecosystem: NPM, Name: name, Spec: spec}, nil
	case Python:
		m := pythonRequirement.FindStringSubmatch(text)
		if m == nil {
			return wrong("use python:NAME, with versions as in python:requests>=2,<3")
		}
		spec := strings.ReplaceAll(m[2]+m[3], " ", "")
		return Requirement{Ecosystem: Python, Name: normal(m[1]), Spec: strings.TrimSuffix(spec, ",")}, nil
	}
	return wrong("say which kind it is: python:NAME or npm:NAME")
}
