package console

import (
	"net/http"
	"net/url"
	"time"

	"openskill/sdk/skill"
)

// approvalRow is an approval as the API tells it.
type approvalRow struct {
	ID             string    `json:"id"`
	State          string    `json:"state"`
	Policy         string    `json:"policy"`
	Skill          string    `json:"skill"`
	Version        string    `json:"version"` // of a proposed skill; "" of scripts
	Script         string    `json:"script"`
	Digest         string    `json:"digest"`
	PreviousDigest string    `json:"previous_digest"`
	Trust          string    `json:"trust"`
	Arguments      []string  `json:"arguments"`
	ArgumentsCut   bool      `json:"arguments_cut"`
	Tenant         string    `json:"tenant"`
	Caller         string    `json:"caller"`
	AskedAt        time.Time `json:"asked_at"`
	ExpiresAt      time.Time `json:"expires_at"`
	DecidedBy      string    `json:"decided_by"`
	DecidedAt      time.Time `json:"decided_at"`
}

// approvalsData is a page of approvals.
type approvalsData struct {
	List   []approvalRow
	Next   string
	State  string
	Decide bool
	Enable bool // may decide about proposed skills
}

var approvalStates = []string{"pending", "approved", "denied", "expired", "used"}

func (v *view) approvals() error {
	if err := v.allowed("approvals"); err != nil {
		return err
	}
	q := v.r.URL.Query()
	d := &approvalsData{State: q.Get("state"), Decide: v.p.May(skill.ScopeAdmin), Enable: v.p.May(skill.ScopeUpload)}
	var page list[approvalRow]
	if err := v.ask("GET", "/approvals", values("limit", "50", "cursor", q.Get("cursor"), "state", d.State), nil, &page); err != nil {
		return err
	}
	d.List, d.Next = page.Data, page.next()
	return v.show(http.StatusOK, approvalsPage(v.frame("approvals", "Approvals"), d))
}

func (v *view) decideApproval() error {
	id, word := v.r.PathValue("id"), v.r.PathValue("word")
	if word != "approve" && word != "deny" {
		return v.fail(http.StatusNotFound, "Page not found.")
	}
	var a approvalRow
	if err := v.ask("POST", "/approvals/"+url.PathEscape(id)+":"+word, nil, nil, &a); err != nil {
		v.leave(false, messageOf(err))
	} else {
		what := a.Script + " of " + a.Skill
		if a.Version != "" {
			what = a.Skill + " " + a.Version
		}
		v.leave(true, what+": "+a.State+".")
	}
	return v.redirect("/approvals")
}
