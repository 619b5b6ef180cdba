package console

import (
	"net/http"
	"strings"
	"testing"
)

func TestSettingsPageShowsWarnings(t *testing.T) {
	f := open(t, func(o *Options) {
		o.Settings = func() []Setting {
			return []Setting{{Name: "OPENSKILL_WORKERS", Value: "off", From: "flag", Warning: "skills run in the <host>"}}
		}
	})
	v := f.signedIn(t, "operator")
	if r := v.get(t, "/console/settings?q=nothing"); r.Code != http.StatusOK || !strings.Contains(r.Body.String(), "skills run in the &lt;host&gt;") {
		t.Errorf("%d: %s", r.Code, r.Body)
	}
}
