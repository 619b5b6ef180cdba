package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// With --remote the commands ask a running host; what it answers is printed clean, and what belongs to
// a folder is refused.
func TestPackagesOfAnotherHost(t *testing.T) {
	t.Parallel()
	var asked []string
	answers := map[string]string{
		"POST /skills/up/versions/1.0.0/packages":               `{"id": "up", "version": "1.0.0", "state": "enabled", "added": ["python:words 2.0\u001b[31m"], "removed": ["python:words 1.0"]}`,
		"DELETE /skills/up/versions/1.0.0/packages?tenant=acme": `{"id": "up", "version": "1.0.0", "state": "disabled", "added": [], "removed": ["python:words 2.0"]}`,
		"GET /skills/up/versions/1.0.0/sbom":                    `{"bomFormat": "CycloneDX"}`,
		"GET /skills/none/versions/1.0.0":                       `{"id": "none", "version": "1.0.0", "report": {}}`,
		"GET /skills/up/versions/1.0.0":                         `{"id": "up", "version": "1.0.0", "report": {"packages": {"lock": 1, "asked": [], "packages": [{"ecosystem": "python", "name": "py\u001b[2Jyaml", "version": "6.0.3\u001b[31m", "notes": ["\u001b]0;x\u0007"]}], "set": "", "files": 0, "bytes": 0}}}`,
		"GET /skills/odd/versions/1.0.0":                        `{"id": "odd", "version": "1.0.0", "report": {"packages": {"lock": 99}}}`,
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body) // what it is shows below
		asked = append(asked, r.Method+" "+r.RequestURI+" "+string(b))
		text, ok := answers[r.Method+" "+r.RequestURI]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"error": {"code": "NOT_FOUND", "status": 404, "message": "no such version"}}`
		}
		_, _ = io.WriteString(w, text)
	}))
	defer host.Close()
	run := func(code int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if is := Run(t.Context(), append([]string{"packages"}, args...), strings.NewReader(""), &stdout, &stderr); is != code {
			t.Errorf("%q: exit code %d, want %d\n%s%s", args, is, code, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	at := func(args ...string) []string { return append(args, "--remote", host.URL) }
	for _, c := range []struct {
		code  int
		args  []string
		wants string
	}{
		{0, at("add", "up@1.0.0", "python:words>=2"), "- python:words 1.0\n+ python:words 2.0[31m\nup 1.0.0 is enabled\n"},
		{0, at("lock", "up@1.0.0"), "+ python:words 2.0"},
		{0, at("remove", "up@1.0.0", "--tenant", "acme"), "- python:words 2.0\nup 1.0.0 is disabled\n"},
		{0, at("list", "up@1.0.0"), "python:py[2Jyaml  6.0.3[31m"},
		{0, at("list", "up@1.0.0", "--sbom"), `"CycloneDX"`},
		{0, at("list", "none@1.0.0"), "none@1.0.0 has no packages"},
		{1, at("add", "up@2.0.0"), "no such version"},
		{3, at("list", "odd@1.0.0"), "format 99"},
		{2, at("add", "up"), "use SKILL@VERSION"},
		{2, at("add", "./up@1.0.0"), "use SKILL@VERSION"},
		{2, at("add", "up@"), "use SKILL@VERSION"},
		{2, at("list"), "needs SKILL@VERSION"},
		{2, at("remove", "up@1.0.0", "python:words"), "all packages"},
		{2, at("add", "up@1.0.0", "--from", "x"), "--from does not apply"},
		{2, at("add", "up@1.0.0", "--state", "x"), "--state does not apply"},
		{2, at("add", "up@1.0.0", "--key-env", "NO_SUCH_VARIABLE"), "unset or empty"},
		{2, []string{"add", "up@1.0.0", "--remote", "ftp://x"}, "invalid base URL"},
		{2, []string{"add", ".", "--tenant", "acme"}, "--tenant needs --remote"},
		{3, []string{"list", "up@1.0.0", "--remote", "http://127.0.0.1:1"}, "refused"},
	} {
		if out := run(c.code, c.args...); !strings.Contains(out, c.wants) {
			t.Errorf("%q: %q is not in:\n%s", c.args, c.wants, out)
		}
	}
	var out struct{ Added []string }
	if err := json.Unmarshal([]byte(run(0, at("add", "up@1.0.0", "--json")...)), &out); err != nil || len(out.Added) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	for _, want := range []string{`POST /skills/up/versions/1.0.0/packages {"packages":["python:words\u003e=2"]}`, `POST /skills/up/versions/1.0.0/packages {"update":true}`} {
		if !slices.Contains(asked, want) {
			t.Errorf("it was not asked %s, but %q", want, asked)
		}
	}
}
