package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"openskill/sdk/skill"
)

// pageSize is how many entries a list shows.
const pageSize = 50

// mostSearched is how many skills a search looks through.
const mostSearched = 2000

// skillsData is the catalogue.
type skillsData struct {
	Skills    []skill.Descriptor
	Next      string
	Query     string
	Tenant    string
	AnyTenant bool // the caller may look into those of others
	Upload    bool
	Cut       bool // there are more skills than were searched
}

func (v *view) skills() error {
	if err := v.allowed("skills"); err != nil {
		return err
	}
	q := v.r.URL.Query()
	d := &skillsData{Query: strings.TrimSpace(q.Get("q")), Tenant: q.Get("tenant"), AnyTenant: v.p.May(skill.ScopeAdmin), Upload: v.may("upload")}
	if d.Query == "" {
		var page list[skill.Descriptor]
		if err := v.ask("GET", "/skills", values("limit", "50", "cursor", q.Get("cursor"), "tenant", d.Tenant), nil, &page); err != nil {
			return err
		}
		d.Skills, d.Next = page.Data, page.next()
	} else if err := v.search(d); err != nil {
		return err
	}
	if v.r.Header.Get("Hx-Request") != "" && v.r.Header.Get("Hx-Target") == "skills" {
		return v.show(http.StatusOK, skillRows(d))
	}
	return v.show(http.StatusOK, skillsPage(v.frame("skills", "Skills"), d))
}

// search looks for words in ids and descriptions.
func (v *view) search(d *skillsData) error {
	words := strings.Fields(strings.ToLower(d.Query))
	for cursor, seen := "", 0; ; {
		var page list[skill.Descriptor]
		if err := v.ask("GET", "/skills", values("limit", "100", "cursor", cursor, "tenant", d.Tenant), nil, &page); err != nil {
			return err
		}
		for i := range page.Data {
			text := strings.ToLower(string(page.Data[i].ID) + " " + page.Data[i].Description)
			all := true
			for _, w := range words {
				all = all && strings.Contains(text, w)
			}
			if all {
				d.Skills = append(d.Skills, page.Data[i])
			}
		}
		cursor, seen = page.next(), seen+len(page.Data)
		if cursor == "" || len(d.Skills) >= pageSize {
			return nil
		}
		if seen >= mostSearched {
			d.Cut = true
			return nil
		}
	}
}

// skillData is one skill.
type skillData struct {
	Skill    skill.Descriptor
	Versions []skill.Descriptor
	Tenant   string
	Form     *form
	Result   *resultData
	Call     bool // the caller may call it
	Decide   bool // enable and disable it
	Uploaded bool
	Own      bool // go back, and delete versions
	Approve  bool
}

// resultData is what a call came to.
type resultData struct {
	Success   bool
	Data      string
	Code      string
	Message   string
	Meta      skill.Meta
	Execution string
	Readable  bool // its execution can be looked at
}

func (v *view) loadSkill(id, version, tenant string) (*skillData, error) {
	d := &skillData{Tenant: tenant}
	if err := v.ask("GET", pathOf("skills", id), values("version", version, "tenant", tenant), nil, &d.Skill); err != nil {
		return nil, err
	}
	var versions list[skill.Descriptor]
	if err := v.ask("GET", pathOf("skills", id, "versions"), values("tenant", tenant), nil, &versions); err != nil {
		return nil, err
	}
	d.Versions, d.Form = versions.Data, formOf(d.Skill.InputSchema)
	d.Uploaded = d.Skill.State != ""
	d.Call = v.p.MayInvoke(d.Skill.ID)
	d.Own = d.Uploaded && (v.p.May(skill.ScopeUpload) || v.p.May(skill.ScopeAdmin))
	d.Decide = d.Own || v.p.May(skill.ScopeAdmin)
	d.Approve = d.Uploaded && v.p.May(skill.ScopeAdmin)
	return d, nil
}

func (v *view) skill() error {
	if err := v.allowed("skills"); err != nil {
		return err
	}
	q := v.r.URL.Query()
	d, err := v.loadSkill(v.r.PathValue("id"), q.Get("version"), q.Get("tenant"))
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, skillPage(v.frame("skills", oneLine(string(d.Skill.ID), 80)), d))
}

// try calls the skill with what the form has.
func (v *view) try() error {
	id := v.r.PathValue("id")
	d, err := v.loadSkill(id, v.r.PostForm.Get("version"), "")
	if err != nil {
		return err
	}
	status := http.StatusOK
	if input, ok := d.Form.read(v.r.PostForm); !ok {
		status = http.StatusUnprocessableEntity
	} else {
		body := map[string]any{"input": input}
		if version := v.r.PostForm.Get("version"); version != "" {
			body["version"] = version
		}
		if d.Result, err = v.run("/skills/"+url.PathEscape(id)+":invoke", body); err != nil {
			return err
		}
	}
	if v.r.Header.Get("Hx-Request") != "" {
		return v.show(http.StatusOK, tryPart(v.s.csrf(), d))
	}
	return v.show(status, skillPage(v.frame("skills", oneLine(id, 80)), d))
}

// run makes a call whose answer is a result, whatever it came to.
func (v *view) run(path string, body any) (*resultData, error) {
	resp, err := v.call("POST", path, nil, body)
	if err != nil {
		return nil, err
	}
	resp.StatusCode = http.StatusOK // the result says it
	var r skill.Result
	if err := v.read(resp, &r); err != nil {
		return nil, err
	}
	out := &resultData{Success: r.Success, Meta: r.Meta, Execution: r.Meta.ExecutionID, Readable: v.may("executions")}
	if r.Success {
		out.Data = pretty(r.Data)
	} else if r.Error != nil {
		out.Code, out.Message = visible(string(r.Error.Code), 64), visible(r.Error.Message, 1000)
		if r.Error.Details != nil {
			if b, err := json.Marshal(r.Error.Details); err == nil {
				out.Data = pretty(b)
			}
		}
	}
	return out, nil
}

// decisions are what can be decided about a skill, and how it is said.
var decisions = map[string]string{
	"enable": "can be called now", "disable": "can no longer be called", "rollback": "is current again", "approve": "is now published to all tenants", "delete": "is deleted",
}

func (v *view) decide() error {
	id, action := v.r.PathValue("id"), v.r.PathValue("action")
	said, ok := decisions[action]
	if !ok {
		return v.fail(http.StatusNotFound, "Page not found.")
	}
	f := v.r.PostForm
	version, tenant := f.Get("version"), f.Get("tenant")
	var state skill.VersionState
	var err error
	if action == "delete" {
		err = v.ask("DELETE", pathOf("skills", id, "versions", version), values("tenant", tenant), nil, &state)
	} else {
		body := map[string]string{}
		for _, k := range []string{"version", "tenant", "digest", "reason"} {
			if f.Get(k) != "" {
				body[k] = f.Get(k)
			}
		}
		err = v.ask("POST", "/skills/"+url.PathEscape(id)+":"+action, nil, body, &state)
	}
	if err != nil {
		v.leave(false, messageOf(err))
	} else {
		v.leave(true, id+" "+state.Version+" "+said+".")
	}
	to := with(link("skills", id), "tenant", tenant)
	http.Redirect(v.w, v.r, string(to), http.StatusSeeOther)
	return nil
}
