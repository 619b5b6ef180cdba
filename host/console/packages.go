package console

import (
	"net/http"
	"strings"

	"openskill/sdk/skill"
)

// needed is a package that scripts of a version import or its files declare.
type needed struct {
	Name      string `json:"name"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Ecosystem string `json:"ecosystem"`
	Native    bool   `json:"native"`
}

// given is a package that a version has.
type given struct {
	Ecosystem string   `json:"ecosystem"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Digest    string   `json:"digest"`
	Notes     []string `json:"notes"`
}

// missing are the packages that a version needs and does not have.
func (r *report) missing() []needed {
	if r.Preflight == nil {
		return nil
	}
	return r.Preflight.Needs.Packages
}

// given are the packages that a version has.
func (r *report) given() []given {
	if r.Packages == nil {
		return nil
	}
	return r.Packages.Packages
}

// addable reports whether one of the missing packages has no native code.
func (r *report) addable() bool {
	for _, p := range r.missing() {
		if !p.Native {
			return true
		}
	}
	return false
}

// packages adds packages to a version, or takes them away, as a form says. Adding takes as long as
// pip and npm of the host do.
func (v *view) packages() error {
	id, version, f := v.r.PathValue("id"), v.r.PathValue("version"), v.r.PostForm
	path := pathOf("skills", id, "versions", version, "packages")
	tenant := f.Get("tenant")
	var out skill.PackagesResult
	var err error
	switch f.Get("do") {
	case "remove":
		err = v.ask("DELETE", path, values("tenant", tenant), nil, &out)
	case "add", "update":
		body := map[string]any{"update": f.Get("do") == "update"}
		for _, k := range []string{"tenant", "digest"} {
			if f.Get(k) != "" {
				body[k] = f.Get(k)
			}
		}
		if names := strings.Fields(f.Get("names")); len(names) > 0 {
			body["packages"] = names
		}
		err = v.ask("POST", path, nil, body, &out)
	default:
		return v.fail(http.StatusBadRequest, "The form is incomplete. Reload the page and try again.")
	}
	if err != nil {
		v.leave(false, messageOf(err))
	} else {
		v.leave(true, packagesSaid(&out))
	}
	http.Redirect(v.w, v.r, string(with(link("skills", id, "versions", version), "tenant", tenant)), http.StatusSeeOther)
	return nil
}

// packagesSaid says what a change of packages came to.
func packagesSaid(out *skill.PackagesResult) string {
	var parts []string
	for _, of := range []struct {
		what string
		list []string
	}{{"Added ", out.Added}, {"Removed ", out.Removed}} {
		if len(of.list) > 0 {
			parts = append(parts, of.what+oneLine(strings.Join(of.list, ", "), 600)+".")
		}
	}
	if parts == nil {
		return "The packages are as they were."
	}
	return strings.Join(parts, " ")
}
