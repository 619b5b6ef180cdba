package grants_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/dispatch/grants"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func rules(t *testing.T, texts ...string) []skill.HTTPRule {
	t.Helper()
	var out []skill.HTTPRule
	for _, s := range texts {
		r := musttest.Get(skill.ParseHTTPRule(s))(t)
		out = append(out, r)
	}
	return out
}

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"FROM_HOST": "host value", "EMPTY": ""}[name]
	return v, ok
}

func parse(t *testing.T, http, env string) *grants.Allowed {
	t.Helper()
	a, err, err2, _ := grants.Parse(http, env, "", lookup)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return a
}

var (
	own    = grants.Skill{ID: "weather", Trust: skill.Trusted}
	acme   = grants.Skill{ID: "weather", Trust: skill.Community, Owner: "acme"}
	globex = grants.Skill{ID: "weather", Trust: skill.Community, Owner: "globex"}
)

// The smaller of what is asked and what is allowed holds.
func TestForHTTP(t *testing.T) {
	asks := []string{"https://api.example.com/v1/ GET,POST", "http://127.0.0.1:8080"}
	for name, tc := range map[string]struct {
		allow string
		who   grants.Skill
		want  []string
	}{
		"nothing allowed":       {"", own, nil},
		"the same":              {"https://api.example.com/v1/ GET,POST", own, asks[:1]},
		"fewer methods":         {"https://api.example.com/v1/ POST,DELETE", own, []string{"https://api.example.com/v1/ POST"}},
		"narrower path":         {"https://api.example.com/v1/x GET", own, []string{"https://api.example.com/v1/x GET"}},
		"wider path":            {"https://api.example.com GET", own, []string{"https://api.example.com/v1/ GET"}},
		"wider host":            {"https://*.example.com GET", own, []string{"https://api.example.com/v1/ GET"}},
		"any name":              {"https://* GET", own, []string{"https://api.example.com/v1/ GET"}},
		"any name, no address":  {"http://*:8080", own, nil},
		"an address by itself":  {"http://127.0.0.1:8080", own, []string{"http://127.0.0.1:8080 GET,HEAD"}},
		"other port":            {"https://api.example.com:8443 GET", own, nil},
		"other scheme":          {"http://api.example.com GET", own, nil},
		"other methods":         {"https://api.example.com PUT", own, nil},
		"other path":            {"https://api.example.com/v2/ GET", own, nil},
		"the parent":            {"https://example.com GET", own, nil},
		"several":               {"https://api.example.com/v1/ GET; https://api.example.com/v1/x POST\nhttp://127.0.0.1:8080", own, []string{"https://api.example.com/v1/ GET", "https://api.example.com/v1/x POST", "http://127.0.0.1:8080 GET,HEAD"}},
		"twice the same":        {"https://*.example.com POST; https://api.example.com POST", own, []string{"https://api.example.com/v1/ POST"}},
		"own are not strangers": {"http://127.0.0.1:8080", acme, nil},
		"strangers are not own": {"@*/* http://127.0.0.1:8080", own, nil},
		"all strangers":         {"@*/* http://127.0.0.1:8080", acme, []string{"http://127.0.0.1:8080 GET,HEAD"}},
		"one tenant":            {"@acme/* http://127.0.0.1:8080", acme, []string{"http://127.0.0.1:8080 GET,HEAD"}},
		"another tenant":        {"@acme/* http://127.0.0.1:8080", globex, nil},
		"one upload":            {"@acme/weather http://127.0.0.1:8080", acme, []string{"http://127.0.0.1:8080 GET,HEAD"}},
		"another upload":        {"@acme/other http://127.0.0.1:8080", acme, nil},
		"the same id elsewhere": {"@acme/weather http://127.0.0.1:8080", globex, nil},
		"own by name":           {"@weather http://127.0.0.1:8080", own, []string{"http://127.0.0.1:8080 GET,HEAD"}},
		"own by name, upload":   {"@weather http://127.0.0.1:8080", acme, nil},
		"own by other name":     {"@other http://127.0.0.1:8080", own, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := parse(t, tc.allow, "").For(tc.who, skill.Permissions{HTTP: rules(t, asks...)})
			var texts []string
			for _, r := range got {
				texts = append(texts, r.String())
			}
			if d := cmp.Diff(tc.want, texts); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestForEnv(t *testing.T) {
	asks := skill.Permissions{Env: []string{"Z_KEY", "FROM_HOST", "A_KEY", "EMPTY"}}
	for name, tc := range map[string]struct {
		allow string
		who   grants.Skill
		want  []string
	}{
		"nothing":          {"", own, nil},
		"of the host":      {"FROM_HOST", own, []string{"FROM_HOST=host value"}},
		"empty":            {"EMPTY;A_KEY=", own, []string{"A_KEY=", "EMPTY="}},
		"values, in order": {"Z_KEY=a=b c; A_KEY = 1", own, []string{"A_KEY=1", "Z_KEY=a=b c"}},
		"not asked":        {"OTHER=1", own, nil},
		"strangers":        {"A_KEY=1", acme, nil},
		"an upload":        {"A_KEY=1;@acme/weather A_KEY=2", acme, []string{"A_KEY=2"}},
		"the first counts": {"@weather A_KEY=1;A_KEY=2", own, []string{"A_KEY=1"}},
		"case counts":      {"a_key=1", own, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := parse(t, "", tc.allow).For(tc.who, asks)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// What is granted beyond the most rules is left out, whoever asks for how many.
func TestGrantsOfOneSkillAreBounded(t *testing.T) {
	var asks, allows []string
	for i := range 64 {
		asks = append(asks, fmt.Sprintf("https://*.example.com/%d/ GET", i))
	}
	for i := range 256 {
		allows = append(allows, fmt.Sprintf("https://h%d.example.com GET", i))
	}
	a, err, _, _ := grants.Parse(strings.Join(allows, ";"), "", "", lookup)
	musttest.Do(t, err)
	if http, _ := a.For(own, skill.Permissions{HTTP: rules(t, asks...)}); len(http) != 1024 {
		t.Errorf("%d rules", len(http))
	}
}

func TestZeroAllowsNothing(t *testing.T) {
	asks := skill.Permissions{HTTP: rules(t, "https://example.com"), Env: []string{"A"}}
	for _, a := range []*grants.Allowed{nil, {}} {
		if http, env := a.For(own, asks); http != nil || env != nil || a.HTTP() {
			t.Errorf("granted %v, %d variables", http, len(env))
		}
	}
}

// What is wrong is named without showing a secret.
func TestProblems(t *testing.T) {
	for _, tc := range []struct{ http, env, want string }{
		{http: "ftp://example.com", want: "entry 1: ftp://example.com must begin with"},
		{http: "https://a.example; example.com", want: "entry 2: example.com must begin with"},
		{http: "https://a.example get", want: "methods"},
		{http: "@ https://a.example", want: "skill id"},
		{http: "@/x https://a.example", want: "TENANT"},
		{http: "@acme/X https://a.example", want: "skill id"},
		{http: "@x", want: "no rule"},
		{http: strings.Repeat("https://a.example;", 257), want: "the limit is 256"},
		{env: "1A=hush", want: "entry 1: invalid variable name"},
		{env: "OPENSKILL_JWT_SECRET=hush", want: "reserved name"},
		{env: "OPENSKILL_JWT_SECRET", want: "reserved name"},
		{env: "PYTHONPATH=hush", want: "reserved name"},
		{env: "NOT_THERE", want: "NOT_THERE is not set"},
		{env: "A=" + strings.Repeat("hush", 1025), want: "the value of A"},
		{env: "A=hu\x00sh", want: "the value of A"},
	} {
		_, err, err2, _ := grants.Parse(tc.http, tc.env, "", lookup)
		if err == nil {
			err = err2
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q %.20q: %v, want %q", tc.http, tc.env, err, tc.want)
		}
	}
}

func TestPermit(t *testing.T) {
	have := rules(t, "https://api.example.com/v1 GET,POST", "https://*.example.org")
	for text, want := range map[string]bool{
		"https://api.example.com/v1 GET": true, "https://api.example.com/v1/x POST": true, "https://a.example.org GET,HEAD": true,
		"https://api.example.com GET": false, "https://api.example.com/v1 GET,HEAD": false, "http://api.example.com/v1 GET": false, "https://example.net": false, "no rule": false,
	} {
		if grants.Permit(have, text) != want {
			t.Errorf("%s: want %v", text, want)
		}
	}
}
