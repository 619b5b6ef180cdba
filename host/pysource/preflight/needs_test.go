package preflight_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"openskill/host/pysource/preflight"
	"openskill/internal/musttest"
)

// told are needs in one line each.
func told(list []preflight.Need) string {
	var all []string
	for _, n := range list {
		s := fmt.Sprintf("%s:%d %s", n.File, n.Line, n.Name)
		if n.Have {
			s += " have"
		}
		if n.Native {
			s += " native"
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

func needs(t *testing.T, files map[string]string) preflight.Needs {
	t.Helper()
	r := musttest.Get(preflight.Check(t.Context(), folder(t, files), options(t)))(t)
	return r.Needs
}

// What a script in Python needs is named once, with where it is met first; what is computed is not named.
func TestNeedsOfPython(t *testing.T) {
	for _, c := range []struct{ name, text, http, env, commands, packages string }{
		{
			name: "addresses", text: "'''https://doc.test/'''\nimport urllib.request\nAPI = 'https://api.service.test:8443/v1'\nx = f'{API}/x'\ny = f'http://two.test/{x}'\nz = f'https://{x}.three.test/'\nprint('https://four.test')\nns = 'http://www.w3.org/2000/svg'\nh = f'https://five.test{x}'\nk = 'see https://six.test/'\nm = 'http://127.0.0.1:11434/api'\n",
			http: "s.py:3 https://api.service.test:8443; s.py:5 http://two.test; s.py:11 http://127.0.0.1:11434",
		},
		{name: "methods", text: "import requests\nrequests.post('https://a.test/x', json={})\nrequests.request('DELETE', 'https://a.test/y')\n", http: "s.py:2 https://a.test,GET,DELETE,POST", packages: "s.py:1 requests"},
		{name: "a connection by hand", text: "from http.client import HTTPSConnection\nHTTPSConnection('a.test')\n", http: "s.py:2 https://a.test"},
		{name: "addresses that are not asked", text: "URL = 'https://a.test/'\n"},
		{
			name: "variables", text: "import os\nfrom os import environ\nNAME = 'A_KEY'\nos.getenv(NAME)\nenviron['B']\nos.environ.get('C', 'x')\n'D' in os.environ\nos.environ['SET'] = 'x'\nos.environ.get('HOME')\nos.environ.get(f())\ndef env(name): return os.environ.get(name)\nenv('E')\nenv(name='F')\n",
			env: "s.py:4 A_KEY; s.py:6 C; s.py:12 E; s.py:13 F; s.py:5 B; s.py:7 D",
		},
		{
			name: "programs", text: "import asyncio, os, shutil, subprocess as sp, sys\ncmd = ['rg', '-l']\nsp.run(cmd + sys.argv)\nsp.call('ls')\nsp.run(sys.argv[1:])\nBIN = shutil.which('gog') or 'gog'\ndef run(cmd): return sp.check_output(cmd)\nrun(['jq', '.'])\nrun([BIN, 'x'])\ndef git(*args): run(['git', *args])\ngit('log')\nsp.run([sys.executable, 'x.py'])\nsp.run(['/usr/bin/curl', 'x'])\nasyncio.create_subprocess_exec('node', 'x.js')\nrun('convert a b'.split())\nsp.run(['./own.sh'])\n",
			commands: "s.py:3 rg; s.py:4 ls have; s.py:8 jq have; s.py:9 gog; s.py:10 git; s.py:15 convert; s.py:12 python3 have; s.py:13 curl have; s.py:14 node",
		},
		{name: "packages", text: "import requests\ntry:\n    import dotenv\nexcept ImportError: pass\nimport playwright.sync_api\nimport yaml\nimport frobnicate\n", packages: "s.py:1 requests; s.py:3 python-dotenv; s.py:5 playwright native"},
		{name: "a module of its own", text: "import lib.typer\nimport typer\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := needs(t, map[string]string{"s.py": c.text, "lib/typer.py": ""})
			for _, l := range []struct {
				what, want string
				list       []preflight.Need
			}{{"http", c.http, n.HTTP}, {"env", c.env, n.Env}, {"commands", c.commands, n.Commands}, {"packages", c.packages, n.Packages}} {
				if got := told(l.list); got != l.want {
					t.Errorf("%s: %s\nwant %s", l.what, got, l.want)
				}
				if l.list == nil {
					t.Errorf("%s is nil", l.what)
				}
			}
		})
	}
}

// A stranger's script makes the lists no longer than their bound, and its names are cleaned.
func TestNeedsAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("import os, subprocess, urllib.request\n")
	for i := range 900 {
		fmt.Fprintf(&text, "os.getenv('V%d')\nsubprocess.run(['p%d'])\nu = 'https://h%d.test'\n", i, i, i)
	}
	text.WriteString("os.getenv('A\\x1b[2JB')\nsubprocess.run(['\\u202e'])\n")
	deep := "import subprocess\n" + strings.Repeat("def f(x): f(x)\n", 300) + "def g(c): subprocess.run(c); g([c])\ng(g)\n" + strings.Repeat("a = a + a\n", 300) + "subprocess.run(a)\n"
	r := musttest.Get(preflight.Check(t.Context(), folder(t, map[string]string{"a.py": text.String(), "b.py": text.String(), "deep.py": deep}), options(t)))(t)
	if n := r.Needs; len(n.Env) != 500 || len(n.Commands) != 500 || len(n.HTTP) != 500 || !r.Cut {
		t.Errorf("%d variables, %d commands, %d addresses", len(n.Env), len(n.Commands), len(n.HTTP))
	}
	for _, n := range append(r.Needs.Env, r.Needs.Commands...) {
		if strings.ContainsAny(n.Name, "\x1b\u202e") {
			t.Errorf("%q", n.Name)
		}
	}
}

// Nothing of the table is a module that a runtime has: its package would be asked for in vain.
func TestPackagesAreInNoRuntime(t *testing.T) {
	o := options(t)
	text := musttest.Get(os.ReadFile("packages.txt"))(t)
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		if len(f) != 3 || f[2] != "pure" && f[2] != "native" {
			t.Errorf("%q", line)
		}
		if home, ok := o.Modules(f[0]); ok {
			t.Errorf("%s is in %s", f[0], home.Runtime)
		}
	}
}

// A module that the table lacks counts as one of a package where the folder or its collection
// declares the package, by any spelling of its name.
func TestPackagesThatAreDeclared(t *testing.T) {
	script := map[string]string{"s.py": "import frob_nicate.core\n"}
	for _, c := range []struct {
		name       string
		files      map[string]string
		collection map[string]bool
		packages   string
		verdict    preflight.Severity
	}{
		{name: "by nothing", verdict: preflight.CannotRun},
		{name: "another", files: map[string]string{"requirements.txt": "frob\nnicate\n"}, verdict: preflight.CannotRun},
		{name: "in requirements.txt", files: map[string]string{"requirements.txt": "Frob.Nicate[all] >= 1.2  # why\n"}, packages: "s.py:1 frob-nicate", verdict: preflight.Runs},
		{name: "in pyproject.toml", files: map[string]string{"pyproject.toml": "[project]\ndependencies = [\"frob-nicate~=1.0\"]\n"}, packages: "s.py:1 frob-nicate", verdict: preflight.Runs},
		{name: "in another script", files: map[string]string{"o.py": "# /// script\n# dependencies = [\"frob_nicate\"]\n# ///\n"}, packages: "s.py:1 frob-nicate", verdict: preflight.Runs},
		{name: "by the collection", collection: map[string]bool{"frob-nicate": true}, packages: "s.py:1 frob-nicate", verdict: preflight.Runs},
		{name: "by an upload", files: map[string]string{"requirements.txt": "frob-nicate\n", "skill.yaml": "id: x\n"}, packages: "s.py:1 frob-nicate", verdict: preflight.Runs},
		{name: "npm's", files: map[string]string{"package.json": `{"dependencies": {"frob-nicate": "1"}}`}, verdict: preflight.CannotRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := maps.Clone(script)
			maps.Copy(files, c.files)
			o := options(t)
			o.Declared = c.collection
			r := musttest.Get(preflight.Check(t.Context(), folder(t, files), o))(t)
			if got := told(r.Needs.Packages); got != c.packages || r.Verdict != c.verdict {
				t.Errorf("packages %q, verdict %s; want %q, %s\n%v", got, r.Verdict, c.packages, c.verdict, r.Findings)
			}
		})
	}
}
