package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/examples/hostile"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// reader serves a host that has a planted data folder, and gives what an upload reads
// that asks for data: 1 for the file that it may read, if it is there.
func reader(t *testing.T, allow string) (v *serving, reads func() string, id string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	musttest.Do(t, os.Mkdir(data, 0o700))
	musttest.Do(t, hostile.Plant(data))
	flags := map[string]string{"data": data}
	if allow != "" {
		flags["data-allow"] = allow
	}
	v = serve(t, settings(t, flags))
	for _, c := range hostile.All() {
		if !strings.HasPrefix(c.Name, "F01") {
			continue
		}
		u := c.Upload()
		id = string(u.ID)
		v.upload(t, "", map[string][]byte{"module": u.Module, "manifest": u.Manifest})
		expect(t, "enabling", v.act(t, id, "enable", ""), "200 0.1.0 enabled")
	}
	return v, func() string {
		a := v.call(t, id)
		var said struct{ Escaped, Granted int }
		if err := json.Unmarshal(a.Data, &said); err != nil || a.Error != nil || said.Escaped != 0 {
			return a.got()
		}
		return map[int]string{0: "nothing", 1: "the file"}[said.Granted]
	}, id
}

// An upload does not get the operator's data by asking for it: an entry grants it.
func TestUploadsReadNoDataWithoutAGrant(t *testing.T) {
	for name, tc := range map[string]struct{ allow, want string }{
		"no entry":                  {"", "nothing"},
		"an entry for it":           {"@" + skill.Local().Tenant + "/*", "the file"},
		"an entry for others":       {"@acme/*", "nothing"},
		"an entry for the own":      {"@*", "nothing"},
		"another folder":            {"@*/* sub", "nothing"},
		"a folder that is not here": {"@*/* none", "502 TOOL_INVOCATION_ERROR"},
		"a link that leads out":     {"@*/* folder", "502 TOOL_INVOCATION_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			v, reads, id := reader(t, tc.allow)
			if got := reads(); got != tc.want && !strings.HasPrefix(got, tc.want) {
				t.Errorf("it reads %s, want %s", got, tc.want)
			}
			d, err := v.host.Catalogue().Get(skill.Local(), skill.ID(id), "")
			granted := tc.want == "the file" || tc.allow == "@*/* sub"
			if err != nil || d.Permissions.Data != granted {
				t.Errorf("the catalogue shows data %t, want %t (%v)", d.Permissions.Data, granted, err)
			}
		})
	}
}

// A grant holds from the next call on, and ends with it.
func TestDataIsGrantedAtReload(t *testing.T) {
	v, reads, id := reader(t, "@*/"+"other")
	for _, tc := range []struct{ allow, want string }{{"", "nothing"}, {"@*/%", "the file"}, {"@*/% sub; @*/%", "nothing"}, {"@*/%", "the file"}, {"", "nothing"}} {
		now := *v.host.settings
		musttest.Do(t, now.Allow(strings.ReplaceAll(tc.allow, "%", id)))
		musttest.Get(v.host.Reload(t.Context(), &now))(t)
		if got := reads(); got != tc.want {
			t.Errorf("with %q it reads %s, want %s", tc.allow, got, tc.want)
		}
	}
}

// What the operator approves and enables is what was looked at.
func TestApprovalsOfUploadsArePinned(t *testing.T) {
	v := serve(t, settings(t, nil))
	upload := func(text string) answer {
		t.Helper()
		return v.upload(t, "", map[string][]byte{"module": says(text, 0), "manifest": []byte(manifestOf("bait", "0.1.0", wasiEntry))})
	}
	seen := upload("reviewed")
	expect(t, "the upload", seen, "201 0.1.0 disabled")
	expect(t, "deleting it", v.do(t, "DELETE", "/skills/bait/versions/0.1.0", "application/json", nil), "200 0.1.0 deleted")
	if a := upload("others"); a.Status != 409 {
		t.Errorf("other files under the same name: %s", a.got())
	}
	expect(t, "the same files", upload("reviewed"), "201 0.1.0 disabled")
	other := strings.Replace(seen.Digest, seen.Digest[10:14], "0000", 1)
	for _, action := range []string{"enable", "approve", "disable"} {
		if a := v.act(t, "bait", action, `{"version": "0.1.0", "digest": "`+other+`"}`); a.Status != 409 || a.Error.Code != skill.Conflict {
			t.Errorf("%s with another digest: %s", action, a.got())
		}
		if a := v.act(t, "bait", action, `{"digest": "`+seen.Digest+`"}`); a.Status != 200 {
			t.Errorf("%s with its digest: %s", action, a.got())
		}
	}
	for _, action := range []string{"disable", "enable"} { // the operator's own too
		if a := v.act(t, "quick", action, `{"digest": "`+other+`"}`); a.Status != 409 {
			t.Errorf("%s of an own skill with another digest: %s", action, a.got())
		}
	}
}
