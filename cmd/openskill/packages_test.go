package main

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// wheelFile writes a wheel in pure Python into a folder.
func wheelFile(t *testing.T, dir, name, version, needs string, files map[string]string) {
	t.Helper()
	dist := name + "-" + version + ".dist-info/"
	all := map[string]string{
		dist + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n" + needs,
		dist + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		dist + "RECORD":   "",
	}
	for n, text := range files {
		all[n] = text
	}
	f := musttest.Get(os.Create(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl")))(t)
	z := zip.NewWriter(f)
	for n, text := range all {
		w, err := z.Create(n)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		musttest.Do(t, err)
	}
	musttest.Do(t, z.Close())
	musttest.Do(t, f.Close())
}

func skillWith(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), name)
	files["SKILL.md"] = "---\nname: " + name + "\ndescription: For a test.\n---\nRun the scripts.\n"
	for n, text := range files {
		musttest.Write(t, filepath.Join(folder, n), text)
	}
	return folder
}

// What a skill declares is added, seen by its scripts and by what they start, and removed.
func TestPackagesOfSkills(t *testing.T) {
	state := pythonState(t)
	if err := exec.Command("python3", "-m", "pip", "--version").Run(); err != nil {
		t.Skip("python3 is not there, or without pip")
	}
	t.Setenv("PIP_CONFIG_FILE", os.DevNull)
	t.Setenv("PIP_FIND_LINKS", "")
	wheels := t.TempDir()
	wheelFile(t, wheels, "greetings", "1.0", "Requires-Dist: words\n", map[string]string{"greetings.py": "from words import hello\n"})
	wheelFile(t, wheels, "words", "2.0", "", map[string]string{"words/__init__.py": "hello = 'good day'\n"})
	folder := skillWith(t, "greet", map[string]string{
		"requirements.txt": "# what it needs\ngreetings>=1  # all of it\npyyaml\n",
		"scripts/greet.py": "import greetings, yaml, subprocess, sys\nprint(greetings.hello)\n" +
			"import importlib.util as u\nwith open(greetings.__spec__.cached, 'rb') as f: head = f.read(8)\nprint(head[:4] == u.MAGIC_NUMBER, head[4])\n" +
			"print(subprocess.run([sys.executable, '-c', 'import words; print(words.hello.upper())'], capture_output=True, text=True).stdout, end='')\n",
	})
	run := func(code int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if is := Run(t.Context(), args, strings.NewReader(""), &stdout, &stderr); is != code {
			t.Fatalf("%q: exit code %d, want %d\n%s%s", args, is, code, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	contains := func(text string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("%q is not in:\n%s", p, text)
			}
		}
	}
	script := []string{"script", "--state", state, "--timeout", "60s", folder, "greet.py"} // on a busy machine
	contains(run(1, script...), "ModuleNotFoundError")
	contains(run(0, "packages", "add", "--state", state, folder, "--from", wheels), "+ python:greetings 1.0\n", "+ python:words 2.0\n", "+ python:pyyaml 6.0.3 (of the runtime)", "3 packages")
	if out := run(0, script...); out != "good day\nTrue 1\nGOOD DAY\n" { // compiled by the interpreter that imports it
		t.Errorf("got %q", out)
	}
	contains(run(0, "packages", "list", "--state", state, folder), "python:words", "sha256:")
	contains(run(0, "packages", "list", "--state", state, folder, "--sbom"), `"purl": "pkg:pypi/words@2.0"`, `"alg": "SHA-256"`, `"openskill:from"`)
	contains(run(2, "packages", "list", "--state", state, "--sbom"), "needs a folder")
	contains(run(0, "packages", "list", "--state", state), folder)
	contains(run(0, "skills", "check", "--state", state, folder), "has 3 packages: python:greetings 1.0", "0 cannot run")
	report := filepath.Join(t.TempDir(), "report.json")
	run(0, append(script, "--report", report)...)
	if b, err := os.ReadFile(report); err != nil || !strings.Contains(string(b), `"python:words 2.0"`) {
		t.Errorf("the report does not list the packages: %v\n%s", err, b)
	}
	contains(run(0, "packages", "lock", "--state", state, folder, "--from", wheels), "3 packages")
	contains(run(1, "packages", "add", "--state", state, folder, "--from", wheels, "none-such"), "not found in the index")
	contains(run(2, "packages", "add", "--state", state, folder, "../x"), "invalid package")
	contains(run(2, "packages", "add", "--state", state, folder, "--min-age", "-1h"), "--min-age")
	allowed := filepath.Join(t.TempDir(), "allowed")
	musttest.Do(t, os.WriteFile(allowed, []byte("python:greetings # fine\n"), 0o600))
	contains(run(1, "packages", "lock", "--state", state, folder, "--from", wheels, "--allowed", allowed), "not on the list")
	contains(run(0, "packages", "remove", "--state", state, folder, "greetings"), "- python:words 2.0\n", "1 packages")
	contains(run(1, script...), "ModuleNotFoundError")
	contains(run(0, "packages", "remove", "--state", state, folder), "- python:pyyaml 6.0.3")
	// A folder that declares nothing gets what its scripts import.
	wheelFile(t, wheels, "requests", "9.0", "", map[string]string{"requests.py": "x = 1\n"})
	plain := skillWith(t, "plain", map[string]string{"scripts/a.py": "import json, yaml, requests\ntry:\n    import torch\nexcept ImportError:\n    pass\nprint(requests.x)\n"})
	contains(run(0, "packages", "add", "--state", state, plain, "--from", wheels), "plain declares no packages; its scripts import python:requests\n", "scripts/a.py:3: python:torch needs native code", "+ python:requests 9.0", "1 packages")
	contains(run(0, "packages", "remove", "--state", state, plain), "- python:requests 9.0")
	// Allowing shows packages that are missing, and adds those alone where it is told to.
	t.Setenv("PIP_NO_INDEX", "1")
	t.Setenv("PIP_FIND_LINKS", wheels)
	wheelFile(t, wheels, "requests", "8.0", "", map[string]string{"requests.py": "x = 0\n"})
	for name, text := range map[string]string{"requirements.txt": "words\nrequests<9\n", "scripts/b.py": "import urllib.request as r\nr.urlopen('https://www.iana.org/x')\n"} {
		musttest.Do(t, os.WriteFile(filepath.Join(plain, name), []byte(text), 0o600))
	}
	allowing := []string{"skills", "allow", "plain", "--state", state, "--agent-skills", filepath.Dir(plain)}
	contains(run(2, append(allowing, "--revoke", "--packages")...), "no other flags")
	contains(run(2, append(allowing, "--json", "--packages")...), "does not go with --json")
	contains(run(0, append(allowing, "--json")...), `"packages":[{"name":"python:requests"`)
	contains(run(1, append(allowing, "--packages", "--digest", "sha256:"+strings.Repeat("0", 64))...), "digest mismatch")
	contains(run(0, append(allowing, "--yes")...), "not added", "python:requests is not added; if the scripts need it: openskill skills allow plain --packages\n")
	added := run(0, append(allowing, "--packages")...)
	contains(added, "+ python:requests 8.0\n", "1 packages, ")
	if strings.Contains(added, "torch") || strings.Contains(added, "words") || strings.Contains(added, " ALLOWED") {
		t.Errorf("more is added or allowed than was shown: %s", added)
	}
	if out := run(0, append(allowing, "--yes", "--packages")...); strings.Contains(out, "not added") {
		t.Errorf("it was added: %s", out)
	}
	contains(run(0, "script", "--state", state, "--timeout", "60s", plain, "a.py"), "0\n")
	none := skillWith(t, "none", map[string]string{"scripts/a.py": "import json\n"})
	contains(run(0, "packages", "add", "--state", state, none, "--from", wheels), "none declares and imports no packages")
	contains(run(0, "packages", "remove", "--state", state, plain), "- python:requests 8.0")
	contains(run(0, "packages", "list", "--state", state), "no skill has packages")
}
