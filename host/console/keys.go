package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"openskill/host/identity"
	"openskill/sdk/skill"
)

// keysData is the page.
type keysData struct {
	List    []*identity.Key
	Now     time.Time
	Next    string
	Missing bool
	Text    string // of one that was just made
	Of      *identity.Key
	Form    identity.NewKey
	Days    string
	Problem string
}

func (v *view) loadKeys(d *keysData) error {
	if err := v.allowed("keys"); err != nil {
		return err
	}
	if d.Missing = v.o.Keys == nil; d.Missing {
		return nil
	}
	var err error
	d.Now = v.o.Now()
	d.List, d.Next, err = v.o.Keys(v.p).List(v.r.Context(), identity.KeyQuery{Cursor: v.r.URL.Query().Get("cursor"), Limit: 50})
	return err
}

func (v *view) keys() error {
	d := &keysData{Days: "365"}
	if err := v.loadKeys(d); err != nil {
		return err
	}
	return v.show(http.StatusOK, keysPage(v.frame("keys", "Keys"), d))
}

func (v *view) createKey() error {
	d := &keysData{}
	if err := v.loadKeys(d); err != nil {
		return err
	}
	if d.Missing {
		return v.keys()
	}
	f := v.r.PostForm
	d.Days = strings.TrimSpace(f.Get("days"))
	d.Form = identity.NewKey{Name: strings.TrimSpace(f.Get("name")), Tenant: strings.TrimSpace(f.Get("tenant")), By: v.p.ID, Scopes: f["scope"]}
	d.Form.Scopes = append(d.Form.Scopes, strings.Fields(f.Get("more"))...)
	days, err := strconv.Atoi(d.Days)
	status := http.StatusOK
	if err != nil || days < 1 || days > 3650 {
		d.Problem, status = "Enter 1 to 3650 days.", http.StatusUnprocessableEntity
	} else {
		d.Form.Life = time.Duration(days) * 24 * time.Hour
		if d.Of, d.Text, err = v.o.Keys(v.p).Create(v.r.Context(), d.Form); err != nil {
			d.Problem, status = messageOf(err), http.StatusUnprocessableEntity
		} else if err := v.loadKeys(d); err != nil {
			return err
		} else {
			d.Form, d.Days = identity.NewKey{}, "365"
		}
	}
	return v.show(status, keysPage(v.frame("keys", "Keys"), d))
}

func (v *view) changeKey() error {
	if err := v.allowed("keys"); err != nil {
		return err
	}
	if v.o.Keys == nil {
		return v.keys()
	}
	id := v.r.PathValue("id")
	switch v.r.PathValue("word") {
	case "revoke":
		if k, err := v.o.Keys(v.p).Revoke(v.r.Context(), id); err != nil {
			v.leave(false, messageOf(err))
		} else {
			v.leave(true, "The key "+k.Name+" is revoked. It stops working within a second.")
		}
		return v.redirect("/keys")
	case "rotate":
		d := &keysData{Days: "365"}
		var err error
		if d.Of, d.Text, err = v.o.Keys(v.p).Rotate(v.r.Context(), id, 24*time.Hour); err != nil {
			v.leave(false, messageOf(err))
			return v.redirect("/keys")
		}
		if err := v.loadKeys(d); err != nil {
			return err
		}
		return v.show(http.StatusOK, keysPage(v.frame("keys", "Keys"), d))
	}
	return v.fail(http.StatusNotFound, "Page not found.")
}

// scopeWords say what scopes are for.
var scopeWords = map[string]string{
	skill.ScopeRead:          "read skills",
	skill.ScopeInvoke:        "call skills",
	skill.ScopeUpload:        "upload skills and decide about them",
	skill.ScopeAdmin:         "decide about skills of every tenant",
	skill.ScopeAgent:         "use the agent",
	skill.ScopeExecutions:    "read its own calls",
	skill.ScopeAllExecutions: "read all calls of its tenant",
	skill.ScopeMetrics:       "read the metrics of the whole host",
	skill.ScopeHost:          "manage keys, read settings and the calls of every tenant",
}
