// Package grants holds what the operator lets skills have: the data folder, requests
// to the network, and values of the environment.
//
// A skill gets the smaller of what its manifest asks and what an entry of the
// operator's allows. An entry is for the operator's own skills unless it names
// others, so that a stranger's upload gets nothing by asking for what a trusted
// skill was given:
//
//	https://api.example.com/v1/ GET,POST     every skill of the operator's own
//	@weather https://api.example.com         the operator's own skill weather
//	@acme/weather https://api.example.com    the upload weather of the tenant acme
//	@acme/* https://api.example.com          every upload of that tenant
//	@*/* https://api.example.com             every upload
//
// A script of an Agent Skill cannot ask: it gets what entries that name its skill allow.
//
// An entry for data names a folder below the data folder, or nothing for all of it:
//
//	@acme/weather reports/2026               that folder is the upload's /data
//	@weather reports                         the operator's own skill weather sees no more than that
//
// The operator's own skills that ask for data and that no entry is about have all of it.
//
// Entries stand on lines of their own or between semicolons.
package grants

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"openskill/internal/outgoing"
	"openskill/sdk/skill"
)

// Allowed is what the operator allows. The zero value allows the operator's own skills
// the data folder, and nothing else. It is not changed, and may be shared.
type Allowed struct {
	http []entry[skill.HTTPRule]
	env  []entry[variable]
	data []entry[string] // relative to the data folder
}

type variable struct{ name, value string }

// entry is one thing allowed, and to whom.
type entry[T any] struct {
	uploads bool   // false: skills of the operator's own
	owner   string // of an upload; "*" for every tenant
	id      string // "*" for every skill
	scripts bool   // also scripts of Agent Skills, which have no manifest to ask in
	what    T
}

// Skill is who asks.
type Skill struct {
	ID    skill.ID
	Trust skill.Trust
	Owner string // the tenant whose upload it is
}

const (
	maxEntries = 256
	maxRules   = 1024 // that one skill is granted; beyond it, what it asks for last is left out
	maxValue   = 4096 // bytes of a variable's value
)

// Parse reads the entries of the settings for HTTP, for the environment and for data.
// lookup gives variables of the host, for entries that name one without a value. The
// problems name entries by their number, and never show a value.
func Parse(http, env, data string, lookup func(name string) (value string, ok bool)) (a *Allowed, httpProblem, envProblem, dataProblem error) {
	a = &Allowed{}
	a.data, dataProblem = entries(data, folder)
	a.http, httpProblem = entries(http, skill.ParseHTTPRule)
	a.env, envProblem = entries(env, func(s string) (variable, error) {
		name, value, given := strings.Cut(s, "=")
		if given {
			name += "=" + strings.TrimSpace(value)
		}
		return variableOf(name, lookup)
	})
	return a, httpProblem, envProblem, dataProblem
}

// variableOf reads NAME=value, or NAME of a variable of the host.
func variableOf(s string, lookup func(name string) (value string, ok bool)) (variable, error) {
	name, value, given := strings.Cut(s, "=")
	v := variable{strings.TrimSpace(name), value}
	switch {
	case !outgoing.ValidEnvName(v.name):
		return v, fmt.Errorf("invalid variable name: use letters, digits and _, and no reserved name (OPENSKILL_…, PYTHON…, HOME, TMPDIR)")
	case !given:
		if v.value, given = lookup(v.name); !given {
			return v, fmt.Errorf("%s is not set in the host's environment; write %s=value, or set it", v.name, v.name)
		}
	}
	if len(v.value) > maxValue || strings.ContainsRune(v.value, 0) {
		return v, fmt.Errorf("the value of %s has a NUL or exceeds %d bytes", v.name, maxValue)
	}
	return v, nil
}

// Scripts gives what a script of an Agent Skill has for asking: what entries allow that name
// its skill.
func (a *Allowed) Scripts(s Skill) (asked skill.Permissions) {
	if a == nil {
		return asked
	}
	for i := range a.http {
		if e := &a.http[i]; e.scripts && e.fits(s) {
			asked.HTTP = append(asked.HTTP, e.what)
		}
	}
	for i := range a.env {
		if e := &a.env[i]; e.scripts && e.fits(s) && !slices.Contains(asked.Env, e.what.name) {
			asked.Env = append(asked.Env, e.what.name)
		}
	}
	return asked
}

// folder reads the folder of an entry for data.
func folder(s string) (string, error) {
	if s == "" {
		return ".", nil
	}
	if !fs.ValidPath(s) || strings.ContainsAny(s, "\\\x00") || !filepath.IsLocal(filepath.FromSlash(s)) {
		return "", errors.New("invalid folder: use a path in the data folder such as reports/2026, without .. and without / at either end")
	}
	return s, nil
}

func entries[T any](text string, parse func(string) (T, error)) ([]entry[T], error) {
	var out []entry[T]
	n := 0
	for s := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' }) {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if n++; n > maxEntries {
			return nil, fmt.Errorf("too many entries; the limit is %d", maxEntries)
		}
		e, rest, err := whose[T](s)
		if err == nil {
			e.what, err = parse(rest)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d: %s", n, message(err))
		}
		out = append(out, e)
	}
	return out, nil
}

func message(err error) string {
	if e, ok := errors.AsType[*skill.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// whose reads to whom an entry is given.
func whose[T any](s string) (e entry[T], rest string, err error) {
	e.id = "*"
	if !strings.HasPrefix(s, "@") {
		return e, s, nil
	}
	fields := strings.Fields(s)
	rest = strings.TrimSpace(strings.TrimPrefix(s, fields[0]))
	e.owner, e.id, e.uploads = strings.Cut(fields[0][1:], "/")
	if !e.uploads {
		e.owner, e.id = "", e.owner
	}
	if e.uploads && e.owner == "" {
		return e, "", fmt.Errorf("after @, write SKILL or TENANT/SKILL; * matches any")
	}
	if e.id != "*" {
		if _, err := skill.ParseID(e.id); err != nil {
			return e, "", err
		}
		e.scripts = true
	}
	return e, rest, nil
}

func (e *entry[T]) fits(s Skill) bool {
	return e.uploads == (s.Trust < skill.Trusted) &&
		(e.id == "*" || e.id == string(s.ID)) &&
		(!e.uploads || e.owner == "*" || e.owner == s.Owner)
}

// Grants gives all that a skill is granted of what it asks. root is the data folder of
// the host, "" for none. The error, a *skill.Error, is about a folder of an entry.
func (a *Allowed) Grants(root string, s Skill, asked skill.Permissions) (g skill.Grants, err error) {
	g.Scratch, g.Skills = asked.Scratch, asked.Skills
	g.HTTP, g.Env = a.For(s, asked)
	if asked.Data && root != "" {
		g.Data, err = a.dataFor(root, s)
	}
	if part := strings.TrimPrefix(asked.AllowedRoot, "data/"); asked.AllowedRoot != "" && g.Data != "" && err == nil {
		g.Data, err = below(g.Data, part)
		g.DataAt = part
	}
	return g, err
}

// dataFor gives the folder that a skill sees as /data, "" for none: of the first entry
// that is about the skill. Without one, the operator's own have all.
func (a *Allowed) dataFor(root string, s Skill) (string, error) {
	if a != nil {
		for i := range a.data {
			if a.data[i].fits(s) {
				return below(root, a.data[i].what)
			}
		}
	}
	if s.Trust >= skill.Trusted {
		return root, nil
	}
	return "", nil
}

// below gives a folder of the data folder behind all links, which do not lead out.
func below(root, name string) (string, error) {
	if name == "." {
		return root, nil
	}
	from, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", unusable(name, err)
	}
	to, err := filepath.EvalSymlinks(filepath.Join(from, filepath.FromSlash(name)))
	if err != nil {
		return "", unusable(name, err)
	}
	rel, err := filepath.Rel(from, to)
	if err != nil || !filepath.IsLocal(rel) {
		return "", unusable(name, errors.New("a link leads out of the data folder"))
	}
	if info, err := os.Stat(to); err != nil || !info.IsDir() {
		return "", unusable(name, errors.Join(err, errors.New("is not a folder")))
	}
	return to, nil
}

func unusable(name string, cause error) error {
	return &skill.Error{
		Op: "grants.Grants", Code: skill.ToolInvocationError, Subject: "data", Err: cause,
		Message: fmt.Sprintf("the granted folder %.100s is unusable: it must be a folder in the data folder; the operator must correct OPENSKILL_DATA_ALLOW, or allowed_root in the manifest", name),
	}
}

// For gives what a skill is granted of the requests and variables that it asks: rules
// that permit exactly the requests that both permit, and variables as NAME=value in order of name. Of two
// entries for one variable the first counts.
func (a *Allowed) For(s Skill, asked skill.Permissions) (http []skill.HTTPRule, env []string) {
	if a == nil {
		return nil, nil
	}
	for _, want := range asked.HTTP {
		for i := range a.http {
			if !a.http[i].fits(s) || len(http) == maxRules {
				continue
			}
			rule, ok := outgoing.Meet(want, a.http[i].what)
			same := func(r skill.HTTPRule) bool { return r.String() == rule.String() }
			if ok && !slices.ContainsFunc(http, same) {
				http = append(http, rule)
			}
		}
	}
	for _, name := range asked.Env {
		for i := range a.env {
			if v := &a.env[i]; v.what.name == name && v.fits(s) {
				env = append(env, name+"="+v.what.value)
				break
			}
		}
	}
	slices.Sort(env)
	return http, env
}

// Permit reports whether one of the rules permits all that the rule of a text does.
func Permit(rules []skill.HTTPRule, text string) bool {
	asked, err := skill.ParseHTTPRule(text)
	return err == nil && slices.ContainsFunc(rules, func(r skill.HTTPRule) bool {
		both, ok := outgoing.Meet(asked, r)
		return ok && both.String() == asked.String()
	})
}

// With adds grants that need no asking. A variable of theirs replaces one of the same name.
func With(g skill.Grants, more *skill.Grants) skill.Grants {
	if more == nil {
		return g
	}
	g.HTTP = append(slices.Clone(g.HTTP), more.HTTP...)
	g.Env = slices.DeleteFunc(slices.Clone(g.Env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(more.Env, func(w string) bool { return strings.HasPrefix(w, name+"=") })
	})
	g.Env = append(g.Env, more.Env...)
	slices.Sort(g.Env)
	g.Secrets = append(slices.Clone(g.Secrets), more.Secrets...)
	return g
}

// WithoutHTTP allows what a allows but requests.
func (a *Allowed) WithoutHTTP() *Allowed {
	if a == nil {
		return nil
	}
	out := *a
	out.http = nil
	return &out
}

// HTTP reports whether any skill may make requests.
func (a *Allowed) HTTP() bool { return a != nil && len(a.http) > 0 }
