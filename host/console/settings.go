package console

import (
	"net/http"
	"strings"
)

// Setting is one as it is in force. The value of a secret is not in it.
type Setting struct {
	Name, Value, From, Doc string
	Secret                 bool // whether it is set is all that is shown
}

// settingsData is the page.
type settingsData struct {
	List    []Setting
	Query   string
	Changed bool // only those that are not the default
}

func (v *view) settings() error {
	if err := v.allowed("settings"); err != nil {
		return err
	}
	q := v.r.URL.Query()
	d := &settingsData{Query: strings.TrimSpace(q.Get("q")), Changed: q.Get("changed") == "yes"}
	if v.o.Settings != nil {
		for _, s := range v.o.Settings() {
			if strings.Contains(strings.ToLower(s.Name+" "+s.Doc), strings.ToLower(d.Query)) && (!d.Changed || s.From != "default") {
				d.List = append(d.List, s)
			}
		}
	}
	return v.show(http.StatusOK, settingsPage(v.frame("settings", "Settings"), d))
}
