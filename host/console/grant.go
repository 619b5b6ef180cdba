package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// grantAsk is one thing that scripts ask for, as the API tells it.
type grantAsk struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
	New  bool   `json:"new"`

	Has bool `json:"-"` // allowed, or allowed before
}

type grantVariable struct {
	Name string   `json:"name"`
	For  []string `json:"for"`
}

// grantData is what the scripts of an Agent Skill ask for and are allowed.
type grantData struct {
	Skill    string     `json:"skill"`
	Digest   string     `json:"digest"`
	State    string     `json:"state"`
	HTTP     []grantAsk `json:"http"`
	Env      []grantAsk `json:"env"`
	Packages []grantAsk `json:"packages"` // that are not added
	Grant    *struct {
		HTTP []string        `json:"http"`
		Env  []grantVariable `json:"env"`
		By   string          `json:"by"`
	} `json:"grant"`
	Changes *struct {
		Added   []string `json:"added"`
		Changed []string `json:"changed"`
		Removed []string `json:"removed"`
		Gone    []string `json:"gone"`
		Unknown bool     `json:"unknown"`
	} `json:"changes"`
}

// grant shows what the scripts of an Agent Skill may do. It is a page of its own, since the scripts
// are read for it, which takes seconds.
func (v *view) grant() error {
	if err := v.allowed("grants"); err != nil {
		return err
	}
	d := &grantData{}
	if err := v.ask("GET", pathOf("agent-skills", v.r.PathValue("name"), "grant"), nil, nil, d); err != nil {
		return err
	}
	d.merge()
	return v.show(http.StatusOK, grantPage(v.frame("agent-skills", "What the scripts of "+d.Skill+" may do"), d))
}

// merge adds what is allowed and not asked for to what is asked for.
func (d *grantData) merge() {
	if d.Grant == nil {
		return
	}
	has := func(list []grantAsk, name string) []grantAsk {
		i := slices.IndexFunc(list, func(a grantAsk) bool { return a.Name == name })
		if i < 0 {
			return append(list, grantAsk{Name: name, Has: true})
		}
		list[i].Has = true
		return list
	}
	for _, rule := range d.Grant.HTTP {
		d.HTTP = has(d.HTTP, rule)
	}
	for _, of := range d.Grant.Env {
		d.Env = has(d.Env, of.Name)
	}
}

// places are the hosts of a variable that is allowed, as a form has them.
func (d *grantData) places(name string) string {
	if d.Grant == nil {
		return ""
	}
	var out []string
	for _, of := range d.Grant.Env {
		for _, rule := range of.For {
			if place, _, _ := strings.Cut(rule, " "); of.Name == name {
				out = append(out, strings.TrimPrefix(place, "https://"))
			}
		}
	}
	return strings.Join(out, ", ")
}

// changeLines say what is different from what was allowed.
func (d *grantData) changeLines() (lines []string) {
	c := d.Changes
	if c == nil {
		return nil
	}
	for _, of := range []struct {
		what string
		list []string
	}{{"added", c.Added}, {"changed", c.Changed}, {"removed", c.Removed}, {"not asked for any more", c.Gone}} {
		for _, name := range of.list {
			lines = append(lines, of.what+": "+name)
		}
	}
	if c.Unknown {
		lines = append(lines, "too many files to say which")
	}
	return lines
}

func grantState(state string) string {
	if state == "none" {
		return "nothing allowed"
	}
	return visible(state, 20)
}

// decideGrant allows what a form names, or revokes. A value that was entered is in no page.
func (v *view) decideGrant() error {
	name, f := v.r.PathValue("name"), v.r.PostForm
	path := "/agent-skills/" + url.PathEscape(name)
	var err error
	said := "The scripts of " + name + " are allowed what you chose."
	switch body := wishOf(f); {
	case f.Get("do") == "revoke":
		err, said = v.ask("POST", path+":revoke", nil, nil, nil), "Nothing is allowed to the scripts of "+name+" any more."
	case body == nil: // which would agree to everything
		v.leave(false, "Nothing was allowed: choose requests, or give a variable a value.")
		return v.redirect(path + "/grant")
	default:
		err = v.ask("POST", path+":allow", nil, body, nil)
	}
	if err != nil {
		v.leave(false, messageOf(err))
	} else {
		v.leave(true, said)
	}
	return v.redirect(path + "/grant")
}

// wishOf is what a form allows; nil: nothing.
func wishOf(f url.Values) map[string]any {
	type variable struct {
		Name  string   `json:"name"`
		Value *string  `json:"value,omitempty"`
		For   []string `json:"for,omitempty"`
	}
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == ',' })
	}
	rules := slices.Clone(f["http"])
	for line := range strings.Lines(f.Get("rules")) {
		if line = strings.TrimSpace(line); line != "" {
			rules = append(rules, line)
		}
	}
	var env []variable
	for i, name := range f["variable"] {
		if i >= len(f["value"]) || i >= len(f["for"]) {
			break
		}
		name = strings.TrimSpace(name)
		of := variable{Name: name, For: words(f["for"][i])}
		switch value := f["value"][i]; {
		case name == "":
			continue
		case value != "":
			of.Value = &value
		case !slices.Contains(f["keep"], name):
			continue
		}
		env = append(env, of)
	}
	if len(rules) == 0 && len(env) == 0 {
		return nil
	}
	return map[string]any{"digest": f.Get("digest"), "http": append([]string{}, rules...), "env": append([]variable{}, env...)}
}
