package allow

import (
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// State says whether a grant is in force.
type State string

// The states.
const (
	Nothing State = "none"    // nothing is allowed
	Allowed State = "allowed" // these files are
	Changed State = "changed" // other files are: scripts do not run until they are allowed again
)

// Standing is what the files of a skill are, and whether they are allowed something.
type Standing struct {
	Skill, Digest string
	State         State
}

// Digests are those of the files that are allowed something, by the name of their skill.
type Digests map[string]string

// State says whether the files of a skill are allowed something.
func (d Digests) State(name, digest string) State {
	switch allowed, ok := d[name]; {
	case !ok:
		return Nothing
	case allowed != digest:
		return Changed
	}
	return Allowed
}

// Ask is one thing that scripts ask for, and where.
type Ask struct {
	Name string `json:"name"` // a rule, a variable's name, or a package as in python:requests
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	New  bool   `json:"new"` // not proposed when the grant was made

	Given bool `json:"-"` // by the settings, whatever is granted
}

// Current is a skill as its folder is now.
type Current struct {
	Skill  string            `json:"skill"`
	Digest string            `json:"digest"`
	Folder string            `json:"-"` // where it is, on this host
	HTTP   []Ask             `json:"http"`
	Env    []Ask             `json:"env"`
	Files  map[string]string `json:"-"` // digests by path

	// Packages that the scripts import and do not have. They are no part of a grant: the
	// operator adds them.
	Packages []Ask `json:"packages"`
}

// Changes are the paths of files that differ from those that were allowed.
type Changes struct {
	Added   []string `json:"added"`
	Changed []string `json:"changed"`
	Removed []string `json:"removed"`
	Unknown bool     `json:"unknown,omitempty"` // there were too many files to keep their digests
	Gone    []string `json:"gone"`              // what was proposed and is not any more
}

// Review is what a person sees before a decision: what scripts ask for, what they are allowed,
// and what is different since.
type Review struct {
	Current

	State   State    `json:"state"`
	Grant   *Grant   `json:"grant"`   // null where nothing is allowed
	Changes *Changes `json:"changes"` // null unless the state is changed
}

// maxShown is how many paths of a kind a review lists.
const maxShown = 100

// Compare makes a review. g is nil where nothing is allowed.
func Compare(c Current, g *Grant) *Review {
	r := &Review{Current: c, State: Nothing, Grant: g}
	r.HTTP, r.Env, r.Packages = append([]Ask{}, c.HTTP...), append([]Ask{}, c.Env...), append([]Ask{}, c.Packages...)
	if g == nil {
		return r
	}
	for i := range r.HTTP {
		r.HTTP[i].New = !slices.Contains(g.Proposed.HTTP, r.HTTP[i].Name)
	}
	for i := range r.Env {
		r.Env[i].New = !slices.Contains(g.Proposed.Env, r.Env[i].Name)
	}
	if r.State = Allowed; g.Digest == c.Digest {
		return r
	}
	r.State, r.Changes = Changed, &Changes{Added: []string{}, Changed: []string{}, Removed: []string{}, Gone: []string{}, Unknown: g.Files == nil}
	note := func(list *[]string, path string) {
		if len(*list) < maxShown {
			*list = append(*list, skill.CleanText(path, 200))
		}
	}
	for path, digest := range c.Files {
		switch was, ok := g.Files[path]; {
		case g.Files == nil:
		case !ok:
			note(&r.Changes.Added, path)
		case was != digest:
			note(&r.Changes.Changed, path)
		}
	}
	for path := range g.Files {
		if _, ok := c.Files[path]; !ok {
			note(&r.Changes.Removed, path)
		}
	}
	gone := func(before []string, now []Ask) {
		for _, name := range before {
			if !slices.ContainsFunc(now, func(a Ask) bool { return a.Name == name }) {
				note(&r.Changes.Gone, name)
			}
		}
	}
	gone(g.Proposed.HTTP, c.HTTP)
	gone(g.Proposed.Env, c.Env)
	for _, list := range [][]string{r.Changes.Added, r.Changes.Changed, r.Changes.Removed} {
		slices.Sort(list)
	}
	return r
}

// Wish is what somebody wants to allow. Without rules and variables it means what was allowed
// before, and the requests that are proposed. Otherwise it adds to what these files are allowed.
type Wish struct {
	Digest string // that the skill must have; "": any
	HTTP   []string
	Env    []Variable
	After  *Review // that the wish answers: what is allowed must be as it showed; nil: whatever is
}

// Grant makes the grant that a wish means for a skill.
func (w *Wish) Grant(r *Review) (Grant, error) {
	g := Grant{Skill: r.Skill, Digest: r.Digest, Files: r.Files, HTTP: slices.Clone(w.HTTP), Env: slices.Clone(w.Env), reviewed: r}
	if w.Digest != "" && w.Digest != r.Digest {
		return g, &skill.Error{
			Op: "allow.Wish", Code: skill.Conflict, Subject: r.Skill,
			Message: "digest mismatch: the folder of " + r.Skill + " has the digest " + r.Digest + "; check it again", Details: map[string]any{"digest": r.Digest},
		}
	}
	if w.After != nil && !same(r.Grant, w.After.Grant) {
		return g, meanwhile(r.Skill)
	}
	g.Proposed = Proposal{HTTP: names(r.HTTP), Env: names(r.Env)}
	all := len(w.HTTP) == 0 && len(w.Env) == 0
	if all {
		g.HTTP = slices.Clone(g.Proposed.HTTP)
	}
	if r.Grant != nil && (all || r.State == Allowed) {
		g.HTTP = append(g.HTTP, r.Grant.HTTP...)
		for _, v := range r.Grant.Env {
			if !slices.ContainsFunc(g.Env, func(o Variable) bool { return o.Name == v.Name }) {
				g.Env = append(g.Env, v)
			}
		}
	}
	if len(g.HTTP) == 0 && len(g.Env) == 0 {
		return g, wrong("the scripts of %s ask for no requests that are known; name what to allow: --http RULE, --env NAME=VALUE", r.Skill)
	}
	return g, nil
}

func names(list []Ask) []string {
	out := make([]string, 0, len(list))
	for _, a := range list {
		out = append(out, a.Name)
	}
	return out
}

// Unasked lists the variables that scripts ask for and a grant has not.
func (r *Review) Unasked() (missing []Ask) {
	for _, a := range r.Env {
		if r.Grant == nil || !slices.ContainsFunc(r.Grant.Env, func(v Variable) bool { return v.Name == a.Name }) {
			missing = append(missing, a)
		}
	}
	return missing
}

// Places gives the hosts of a variable as people write them; "" for one that scripts see.
func (v *Variable) Places() string {
	var out []string
	for _, r := range v.For {
		place, _, _ := strings.Cut(r, " ")
		out = append(out, strings.TrimPrefix(place, "https://"))
	}
	return strings.Join(out, ", ")
}
