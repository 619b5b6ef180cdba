package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/dispatch/grants"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// What skills may ask for is read with the settings, whichever source it is from,
// and a wrong entry stops the start without showing a value.
func TestAllowances(t *testing.T) {
	dir := t.TempDir()
	s, err := Load(Sources{Dir: dir, Environ: []string{
		"OPENSKILL_HTTP_ALLOW=https://a.example GET;\n@*/* https://b.example", "OPENSKILL_ENV_ALLOW=API_KEY; OTHER=set here", "API_KEY=of the host",
	}})
	musttest.Do(t, err)
	rule := musttest.Get(skill.ParseHTTPRule("https://* GET,POST"))(t)
	who := grants.Skill{ID: "x", Trust: skill.Trusted}
	http, env := s.Allowed().For(who, skill.Permissions{HTTP: []skill.HTTPRule{rule}, Env: []string{"OTHER", "API_KEY", "PATH"}})
	if len(http) != 1 || http[0].String() != "https://a.example GET" {
		t.Errorf("requests %v", http)
	}
	if d := cmp.Diff([]string{"API_KEY=of the host", "OTHER=set here"}, env); d != "" {
		t.Error(d)
	}

	for _, tc := range []struct{ setting, want string }{
		{"OPENSKILL_HTTP_ALLOW=https://a.example;b.example", "OPENSKILL_HTTP_ALLOW (from the environment): entry 2: b.example must begin with"},
		{"OPENSKILL_ENV_ALLOW=A=1;MISSING", "OPENSKILL_ENV_ALLOW (from the environment): entry 2: MISSING is not set"},
		{"OPENSKILL_ENV_ALLOW=OPENSKILL_X=hush", "OPENSKILL_ENV_ALLOW (from the environment): entry 1:"},
		{"OPENSKILL_DATA_ALLOW=@acme/x;@acme/y ../x", "OPENSKILL_DATA_ALLOW (from the environment): entry 2: invalid folder"},
	} {
		_, err := Load(Sources{Dir: dir, Environ: []string{tc.setting}})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want %q", tc.setting, err, tc.want)
		}
	}
	// In the file they stand on lines of their own.
	text := "http_allow: |\n  https://a.example\n  @acme/* https://b.example GET\nenv_allow: |\n  A=1\n  B=2; C=3\n"
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "settings.yaml"), []byte(text), 0o600))
	if s, err = Load(Sources{Dir: dir, File: "settings.yaml"}); err != nil {
		t.Fatal(err)
	}
	http, env = s.Allowed().For(who, skill.Permissions{HTTP: []skill.HTTPRule{rule}, Env: []string{"A", "B", "C"}})
	if len(http) != 1 || http[0].String() != "https://a.example GET" || len(env) != 3 {
		t.Errorf("requests %v, variables %q", http, env)
	}
	if s, err = Load(Sources{Dir: dir}); err != nil || s.Allowed().HTTP() {
		t.Errorf("without settings: %v, requests allowed", err)
	}
}
