package grants_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/dispatch/grants"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func data(t *testing.T, entries string) *grants.Allowed {
	t.Helper()
	a, _, _, err := grants.Parse("", "", entries, lookup)
	musttest.Do(t, err)
	return a
}

// Data goes to the operator's own skills, and to strangers by an entry; the first entry
// that is about a skill says which folder.
func TestGrantsOfData(t *testing.T) {
	root := musttest.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	sub := filepath.Join(root, "reports", "2026")
	outside := t.TempDir()
	musttest.Do(t, os.MkdirAll(sub, 0o700))
	for name, to := range map[string]string{"out": outside, "up": "..", "in": "reports"} {
		musttest.Do(t, os.Symlink(to, filepath.Join(root, name)))
	}
	musttest.Do(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	pulled := grants.Skill{ID: "weather", Trust: skill.Community}
	builtin := grants.Skill{ID: "weather", Trust: skill.Builtin}
	for name, tc := range map[string]struct {
		allow string
		who   grants.Skill
		want  string // "fails", or the folder
	}{
		"own":                                   {"", own, root},
		"built in":                              {"", builtin, root},
		"upload":                                {"", acme, ""},
		"pulled":                                {"", pulled, ""},
		"upload with an entry":                  {"@acme/weather", acme, root},
		"entry of another tenant":               {"@globex/weather", acme, ""},
		"entry of another skill":                {"@acme/other", acme, ""},
		"own entries are no grant":              {"@weather; reports", acme, ""},
		"entries of uploads narrow nobody else": {"@*/* reports", own, root},
		"a folder":                              {"@acme/* reports/2026", acme, sub},
		"pulled with an entry":                  {"@*/weather reports/2026", pulled, sub},
		"the first counts":                      {"@acme/weather reports/2026; @acme/*", acme, sub},
		"own in a folder":                       {"@weather reports/2026", own, sub},
		"all of the own":                        {"reports/2026", builtin, sub},
		"a link inside":                         {"@acme/* in/2026", acme, sub},
		"a link out":                            {"@acme/* out", acme, "fails"},
		"a link up":                             {"@acme/* up", acme, "fails"},
		"a file":                                {"@acme/* file", acme, "fails"},
		"nothing there":                         {"@weather none", own, "fails"},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := data(t, tc.allow).Grants(root, tc.who, skill.Permissions{Data: true})
			if tc.want == "fails" {
				if e, ok := errors.AsType[*skill.Error](err); g.Data != "" || !ok || e.Code != skill.ToolInvocationError || strings.Contains(e.Message, root) {
					t.Errorf("%q, %v", g.Data, err)
				}
				return
			}
			if err != nil || g.Data != tc.want {
				t.Errorf("%q, %v; want %q", g.Data, err, tc.want)
			}
			for what, g := range map[string]skill.Grants{
				"without asking":        must(data(t, tc.allow).Grants(root, tc.who, skill.Permissions{})),
				"without a data folder": must(data(t, tc.allow).Grants("", tc.who, skill.Permissions{Data: true})),
			} {
				if g.Data != "" {
					t.Errorf("%s: %q", what, g.Data)
				}
			}
		})
	}
	if g := must((*grants.Allowed)(nil).Grants(root, acme, skill.Permissions{Data: true})); g.Data != "" {
		t.Errorf("nil grants a stranger %q", g.Data)
	}
}

// What a manifest narrows the data folder to is below what the operator shows it.
func TestAllowedRootNarrows(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"logs/2026", "reports/logs"} {
		musttest.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	musttest.Do(t, os.Symlink(t.TempDir(), filepath.Join(root, "out")))
	own := grants.Skill{ID: "weather", Trust: skill.Trusted}
	root, _ = filepath.EvalSymlinks(root)
	for name, tc := range map[string]struct{ allow, root, want, at string }{
		"a folder":                {"", "data/logs", filepath.Join(root, "logs"), "logs"},
		"a folder below":          {"", "data/logs/2026", filepath.Join(root, "logs/2026"), "logs/2026"},
		"below what the operator": {"@weather reports", "data/logs", filepath.Join(root, "reports/logs"), "logs"},
		"nothing there":           {"", "data/none", "", ""},
		"a link out":              {"", "data/out", "", ""},
		"not what others have":    {"@weather reports", "data/logs/2026", "", ""},
		"up":                      {"", "data/../..", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := data(t, tc.allow).Grants(root, own, skill.Permissions{Data: true, AllowedRoot: tc.root})
			if g.Data != tc.want || (tc.want == "") != (err != nil) || tc.want != "" && g.DataAt != tc.at {
				t.Errorf("%+v, %v", g, err)
			}
		})
	}
	if g, err := data(t, "").Grants(root, grants.Skill{ID: "weather", Owner: "acme"}, skill.Permissions{Data: true, AllowedRoot: "data/logs"}); g.Data != "" || err != nil {
		t.Errorf("a stranger has %+v, %v", g, err)
	}
}

func must(g skill.Grants, err error) skill.Grants {
	if err != nil {
		panic(err)
	}
	return g
}

func TestRefusesFoldersOutsideTheData(t *testing.T) {
	for _, folder := range []string{"..", "../x", "a/../..", "a/../b", "/etc", "a//b", "a/", "./a", `a\b`, "a\x00b"} {
		if _, _, _, err := grants.Parse("", "", "@acme/x "+folder, nil); err == nil || !strings.Contains(err.Error(), "entry 1: ") {
			t.Errorf("%q: %v", folder, err)
		}
	}
}
