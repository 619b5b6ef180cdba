package allow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"openskill/internal/outgoing"
	"openskill/sdk/skill"
)

// Grant is what the scripts of a skill are allowed while its files have the digest.
type Grant struct {
	Skill  string     `json:"skill"`
	Digest string     `json:"digest"`
	HTTP   []string   `json:"http"` // rules as [skill.HTTPRule] has them, in order; never nil
	Env    []Variable `json:"env"`  // in order of name; never nil

	Proposed Proposal          `json:"proposed"`        // by the scripts, when it was allowed
	Files    map[string]string `json:"files,omitempty"` // digests by path; nil where there were more than maxFiles

	By string    `json:"by"` // id of the principal
	At time.Time `json:"at"`

	reviewed *Review // that it was made of; nil: it takes the place of whatever is there
}

// Variable is one variable of a grant.
type Variable struct {
	Name string `json:"name"`
	// For are the places whose requests get the value, as rules. Without any, scripts see the value.
	For         []string `json:"for,omitempty"`
	Placeholder string   `json:"placeholder,omitempty"`

	// Value is kept encrypted, and read by [Store.Granted] alone. To [Store.Allow], nil means
	// the value that the skill's grant has already.
	Value *string `json:"-"`
}

// Proposal is what the scripts of a skill ask for, as their text shows it.
type Proposal struct {
	HTTP []string `json:"http"` // rules
	Env  []string `json:"env"`  // names
}

// The bounds of a grant.
const (
	maxRules  = 256
	maxEnv    = 64
	maxFor    = 16   // places of one variable
	maxValue  = 4096 // bytes
	minSecret = 8    // bytes: a shorter value would be found in any response
	maxFiles  = 2000 // whose digests are kept
)

func wrong(format string, args ...any) error {
	return &skill.Error{Op: "allow.Allow", Code: skill.InvalidArgument, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
}

// ParseRule reads a rule of requests: an address, and methods behind a space or a comma. It gives
// the text that a [Grant] has. The error is an *skill.Error.
func ParseRule(s string) (string, error) {
	if !strings.Contains(s, " ") {
		s = strings.Replace(s, ",", " ", 1)
	}
	r, err := skill.ParseHTTPRule(s)
	if err != nil {
		return "", err
	}
	return r.String(), nil
}

// ParsePlace reads where a value may go: a host, *.example.com, or an address with its scheme. A
// host alone means https. It gives a rule with every method.
func ParsePlace(s string) (string, error) {
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	if strings.ContainsAny(s, " ,\t\n") {
		return "", wrong("invalid host %.100s: use a host such as api.example.com, or an address such as https://api.example.com:8443/v1", s)
	}
	r, err := skill.ParseHTTPRule(s + " " + strings.Join(skill.HTTPMethods[:], ","))
	if err != nil {
		return "", err
	}
	if r.Host == "*" {
		return "", wrong("a value cannot go to every host: name hosts, such as api.example.com or *.example.com")
	}
	return r.String(), nil
}

// Trial makes what a command line grants the scripts of a folder that it names. The error is an
// *skill.Error.
func Trial(http []string, env []Variable) (*skill.Grants, error) {
	g := Grant{Skill: "trial", HTTP: http, Env: env}
	if err := g.check(); err != nil {
		return nil, err
	}
	return g.granted()
}

// granted is a grant as runs have it.
func (g *Grant) granted() (out *skill.Grants, err error) {
	out = &skill.Grants{}
	for _, text := range g.HTTP {
		r, err := skill.ParseHTTPRule(text)
		if err != nil {
			return nil, err
		}
		out.HTTP = append(out.HTTP, r)
	}
	out.Env, out.Secrets, err = secrets(g.Env)
	return out, err
}

// check brings a grant into the form that is kept, and refuses what no grant can be.
func (g *Grant) check() error {
	at := strings.LastIndexByte(g.Skill, '/') // of an upload: acme/name
	if _, err := skill.ParseID(g.Skill[at+1:]); err != nil {
		return err
	}
	if at >= 0 && strings.Trim(g.Skill[:at], ".") == "" {
		return wrong("invalid tenant %q", g.Skill[:at])
	}
	if len(g.HTTP) > maxRules || len(g.Env) > maxEnv {
		return wrong("too many rules or variables; the limits are %d and %d", maxRules, maxEnv)
	}
	rules := make([]string, 0, len(g.HTTP))
	for _, s := range g.HTTP {
		r, err := ParseRule(s)
		if err != nil {
			return err
		}
		if !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	slices.Sort(rules)
	g.HTTP = rules
	g.Env = slices.Clone(g.Env)
	slices.SortFunc(g.Env, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	for i := range g.Env {
		if i > 0 && g.Env[i].Name == g.Env[i-1].Name {
			return wrong("the variable %s is given twice", g.Env[i].Name)
		}
		if err := g.Env[i].check(); err != nil {
			return err
		}
	}
	if len(g.Files) > maxFiles {
		g.Files = nil
	}
	g.Env = append([]Variable{}, g.Env...)
	return nil
}

func (v *Variable) check() error {
	if !outgoing.ValidEnvName(v.Name) {
		return wrong("invalid variable name %.100s: use letters, digits and _, and no reserved name (OPENSKILL_…, PYTHON…, HOME, TMPDIR)", v.Name)
	}
	if len(v.For) > maxFor {
		return wrong("too many hosts for %s; the limit is %d", v.Name, maxFor)
	}
	places := make([]string, 0, len(v.For))
	for _, s := range v.For {
		p, err := ParsePlace(strings.TrimSuffix(s, " "+strings.Join(skill.HTTPMethods[:], ",")))
		if err != nil {
			return err
		}
		places = append(places, p)
	}
	v.For = places
	if v.Value == nil {
		return nil
	}
	if err := checkValue(v.Name, *v.Value, len(v.For) > 0); err != nil {
		return err
	}
	v.Placeholder = ""
	if len(v.For) > 0 {
		v.Placeholder = Placeholder(*v.Value)
	}
	return nil
}

func missing(name string) error {
	return wrong("%s is not set and had no value before; write %s=VALUE, or set it", name, name)
}

// checkValue refuses values that no variable can have. One with a placeholder is put into
// requests, and searched for in responses.
func checkValue(name, value string, secret bool) error {
	switch {
	case len(value) > maxValue || strings.ContainsRune(value, 0):
		return wrong("the value of %s has a NUL or exceeds %d bytes", name, maxValue)
	case secret && len(value) < minSecret:
		return wrong("the value of %s is too short: one that goes to some hosts only has at least %d bytes", name, minSecret)
	case secret && strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return wrong("the value of %s has characters other than printable ASCII; one that goes to some hosts only must fit into a header", name)
	}
	return nil
}

// secrets makes the secrets of variables with hosts, and the variables as scripts have them.
func secrets(list []Variable) (env []string, hidden []skill.Secret, err error) {
	for i := range list {
		v := &list[i]
		if v.Value == nil {
			return nil, nil, missing(v.Name)
		}
		if len(v.For) == 0 {
			env = append(env, v.Name+"="+*v.Value)
			continue
		}
		s := skill.Secret{Placeholder: v.Placeholder, Value: *v.Value}
		for _, text := range v.For {
			r, err := skill.ParseHTTPRule(text)
			if err != nil {
				return nil, nil, err
			}
			s.For = append(s.For, r)
		}
		env, hidden = append(env, v.Name+"="+v.Placeholder), append(hidden, s)
	}
	slices.Sort(env)
	return env, hidden, nil
}
