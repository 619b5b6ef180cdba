package console

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"openskill/host/selftest"
)

// Setting is one as it is in force. The value of a secret is not in it.
type Setting struct {
	Name, Value, From, Doc string
	Secret                 bool   // whether it is set is all that is shown
	Warning                string // what protection this value weakens, and what to set instead; "" for none
}

// settingsData is the page.
type settingsData struct {
	SelfTest *selftest.Kept // nil: there is none
	Unread   bool           // there is a report that cannot be read
	Version  string
	List     []Setting
	Warnings []Setting // those with a warning, whatever is searched for
	Query    string
	Changed  bool // only those that are not the default
}

func (v *view) settings() error {
	if err := v.allowed("settings"); err != nil {
		return err
	}
	q := v.r.URL.Query()
	d := &settingsData{Version: v.o.Version, Query: strings.TrimSpace(q.Get("q")), Changed: q.Get("changed") == "yes"}
	if v.o.Settings != nil {
		for _, s := range v.o.Settings() {
			if s.Warning != "" {
				d.Warnings = append(d.Warnings, s)
			}
			if strings.Contains(strings.ToLower(s.Name+" "+s.Doc), strings.ToLower(d.Query)) && (!d.Changed || s.From != "default") {
				d.List = append(d.List, s)
			}
		}
	}
	var err error
	if d.SelfTest, err = selftest.Last(v.r.Context(), v.o.DB); err != nil {
		d.Unread = true
		v.log.WarnContext(v.r.Context(), "cannot read the report of the last self-test", slog.String("error", err.Error()))
	}
	return v.show(http.StatusOK, settingsPage(v.frame("settings", "Settings"), d))
}

// result is what a row of a self-test says.
func result(r *selftest.Row) string {
	return oneLine(strings.Join(slices.Concat([]string{r.Happened}, r.Problems), "; "), 1000)
}

// notPassed are the rows that somebody must look at.
func notPassed(rows []selftest.Row) []selftest.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r selftest.Row) bool { return r.Verdict == selftest.Pass })
}

// outcome is that of a self-test in a line.
func outcome(t *selftest.Kept) string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.Passed, t.Failed, t.Skipped)
}
