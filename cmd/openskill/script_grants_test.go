package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// A script has the requests and the variables that the command line gives it, and no others.
func TestScriptGrants(t *testing.T) {
	state := pythonState(t)
	t.Setenv("FROM_HERE", "here;x=1")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" "+string(body))
	}))
	defer server.Close()
	folder := filepath.Join(t.TempDir(), "asks")
	for name, text := range map[string]string{
		"SKILL.md":        "---\nname: asks\ndescription: Asks a server.\n---\nRun scripts/ask.py.\n",
		"scripts/ask.py":  "import sys, urllib.request\nbody = sys.argv[2].encode() if len(sys.argv) > 2 else None\nprint(urllib.request.urlopen(sys.argv[1], body).read().decode())\n",
		"scripts/vars.py": "import os\nprint(os.environ.get('A'), os.environ.get('FROM_HERE'))\n",
	} {
		musttest.Write(t, filepath.Join(folder, name), text)
	}
	for _, c := range []struct {
		name   string
		code   int
		flags  []string
		script []string
		stdout string
		stderr string
	}{
		{"no request", 1, nil, []string{"ask.py", "--", server.URL}, "", "OPENSKILL_HTTP_ALLOW"},
		{"a request", 0, []string{"--allow", server.URL}, []string{"ask.py", "--", server.URL + "/a"}, "GET /a \n", ""},
		{"another method", 1, []string{"--allow", server.URL}, []string{"ask.py", "--", server.URL, "x"}, "", "--allow"},
		{"that method", 0, []string{"--allow", server.URL + ",GET,POST"}, []string{"ask.py", "--", server.URL, "x"}, "POST / x\n", ""},
		{"another path", 1, []string{"--allow", server.URL + "/api/"}, []string{"ask.py", "--", server.URL + "/other"}, "", "--allow"},
		{"no variables", 0, nil, []string{"vars.py"}, "None None\n", ""},
		{"variables", 0, []string{"--env", "A=1", "--env", "A= b;c=d ", "--env", "FROM_HERE"}, []string{"vars.py"}, " b;c=d  here;x=1\n", ""},
		{"no rule", 2, []string{"--allow", "ftp://example.com"}, []string{"vars.py"}, "", "example.com"},
		{"no variable", 2, []string{"--env", "NOT_SET_ANYWHERE"}, []string{"vars.py"}, "", "NOT_SET_ANYWHERE is not set"},
		{"a reserved variable", 2, []string{"--env", "HOME=/"}, []string{"vars.py"}, "", "invalid variable name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append(append([]string{"script", "--state", state, folder}, c.flags...), c.script...)
			if code := Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); code != c.code || stdout.String() != c.stdout || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("exit code %d, want %d\n%s%s", code, c.code, &stdout, &stderr)
			}
		})
	}
}
