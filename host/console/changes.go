package console

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// change is one as the API tells it.
type change struct {
	Tenant    string            `json:"tenant"`
	Action    string            `json:"action"`
	Subject   string            `json:"subject"`
	Details   map[string]string `json:"details"`
	Failed    string            `json:"failed"`
	Principal string            `json:"principal"`
	Of        string            `json:"principal_tenant"`
	Time      time.Time         `json:"time"`
}

func (c *change) details() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Details)) {
		if c.Details[name] != "" {
			out = append(out, name+" "+c.Details[name])
		}
	}
	return strings.Join(out, ", ")
}

func (v *view) changes() error {
	if err := v.allowed("changes"); err != nil {
		return err
	}
	q := v.r.URL.Query()
	var page list[change]
	if err := v.ask("GET", "/audit/changes", values("tenant", strings.TrimSpace(q.Get("tenant")), "cursor", q.Get("cursor")), nil, &page); err != nil {
		return err
	}
	return v.show(http.StatusOK, changesPage(v.frame("changes", "Changes"), &page, strings.TrimSpace(q.Get("tenant"))))
}
