package app

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/host/packages"
	"openskill/internal/musttest"
	"openskill/plugins/javascript"
	"openskill/plugins/python/runtimes"
	"openskill/sdk/skill"
)

// wheels makes pip use a folder of pure Python wheels instead of an index. A name such as words-1.0
// becomes a wheel with one module, words, whose text is the name.
func wheels(t *testing.T, names ...string) {
	t.Helper()
	if err := exec.Command("python3", "-m", "pip", "--version").Run(); err != nil {
		t.Skip("python3 is not there, or without pip")
	}
	dir := t.TempDir()
	for _, n := range names {
		name, version, _ := strings.Cut(n, "-")
		dist := n + ".dist-info/"
		files := [][2]string{
			{name + ".py", fmt.Sprintf("text = %q\n", n)},
			{dist + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"},
			{dist + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
			{dist + "RECORD", ""},
		}
		f := musttest.Get(os.Create(filepath.Join(dir, n+"-py3-none-any.whl")))(t)
		z := zip.NewWriter(f)
		for _, file := range files {
			w, err := z.Create(file[0])
			if err == nil {
				_, err = io.WriteString(w, file[1])
			}
			musttest.Do(t, err)
		}
		musttest.Do(t, z.Close())
		_ = f.Close()
	}
	for name, value := range map[string]string{"PIP_CONFIG_FILE": os.DevNull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": dir, "PIP_NO_CACHE_DIR": "1"} {
		t.Setenv(name, value)
	}
}

// greeter is an upload that imports a package which it declares.
func greeter(t *testing.T, version, requirement string) map[string][]byte {
	t.Helper()
	return map[string][]byte{"archive": zipped(t, map[string]string{
		"skill.yaml":       manifestOf("greet", version, "type: wasm\nruntime: python\nentry: main.py\nlimits: {timeout_ms: 60000}\n"),
		"main.py":          "import json, words\nprint(json.dumps({'v': words.text}))\n",
		"requirements.txt": requirement,
	})}
}

func pythonSettings(t *testing.T) *config.Settings {
	t.Helper()
	s := settings(t, map[string]string{"timeout-ms": "60000"})
	hosttest.Runtimes(t, "../..", s.StateDir)
	if _, err := runtimes.New(s.StateDir).For(nil, nil); err != nil {
		t.Skip("no runtime of Python is installed")
	}
	return s
}

// packagesOf is what a route about packages answers.
func (v *serving) packagesOf(t *testing.T, method, version, body string) (status int, out skill.PackagesResult, failed *skill.ResultError) {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), method, v.url+"/skills/greet/versions/"+version+"/packages", strings.NewReader(body)))(t)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	musttest.Do(t, err)
	defer res.Body.Close()
	var both struct {
		skill.PackagesResult
		Error *skill.ResultError `json:"error"`
	}
	musttest.Do(t, json.NewDecoder(res.Body).Decode(&both))
	return res.StatusCode, both.PackagesResult, both.Error
}

// adds gives a version packages, and fails the test where that fails.
func (v *serving) adds(t *testing.T, version, body string, want ...string) {
	t.Helper()
	status, out, failed := v.packagesOf(t, "POST", version, body)
	if status != 200 || !slices.Equal(out.Added, want) {
		t.Fatalf("%d: added %q, want %q; %+v", status, out.Added, want, failed)
	}
}

// An upload gets the packages that it declares when the operator says so, each version its own.
func TestPackagesOfUploads(t *testing.T) {
	wheels(t, "words-1.0", "words-2.0")
	s := pythonSettings(t)
	v := serve(t, s)
	expect(t, "the upload", v.upload(t, "", greeter(t, "1.0.0", "words==1.0\npyyaml\n")), "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "greet", "enable", ""), "200 1.0.0 enabled")
	a := v.call(t, "greet")
	for n := 0; n < 5 && a.Error != nil && a.Error.Code == skill.Timeout; n++ { // a slow machine still compiles the runtime
		a = v.call(t, "greet")
	}
	if a.Error == nil || !strings.Contains(fmt.Sprint(a.Error), "words") {
		t.Errorf("before it has packages: %s %+v", a.got(), a.Error)
	}
	proposed := []byte("null")
	for n := 0; n < 50 && string(proposed) == "null"; n++ { // a look at scripts ends after some seconds, on a busy machine without a result
		proposed, _ = json.Marshal(v.do(t, "GET", "/skills/greet/versions/1.0.0", "", nil).Report["preflight"])
	}
	if !strings.Contains(string(proposed), `"packages":[{"ecosystem":"python","file":"main.py","line":1,"name":"words"}]`) {
		t.Errorf("the report proposes no package: %s", proposed)
	}
	v.adds(t, "1.0.0", "", "python:pyyaml 6.0.3", "python:words 1.0")
	expect(t, "a call", v.call(t, "greet"), `200 {"v":"words-1.0"}`)

	report := v.do(t, "GET", "/skills/greet/versions/1.0.0", "", nil)
	if text, _ := json.Marshal(report.Report); !strings.Contains(string(text), `"name":"words","needs":null`) && !strings.Contains(string(text), `"name":"words","version":"1.0"`) || strings.Contains(string(text), s.StateDir) {
		t.Errorf("the report does not list the packages, or names a folder: %s", text)
	}
	if text := v.body(t, "/skills/greet/versions/1.0.0/sbom"); !strings.Contains(text, `"purl":"pkg:pypi/words@1.0"`) || !strings.Contains(text, `"name":"greet","version":"1.0.0"`) {
		t.Errorf("the bill of materials is %s", text)
	}

	// Each version has its own, and a rollback brings them back.
	expect(t, "another version", v.upload(t, "", greeter(t, "2.0.0", "words>1\n")), "201 2.0.0 disabled")
	v.adds(t, "2.0.0", `{"reason": "checked"}`, "python:words 2.0")
	expect(t, "enabling it", v.act(t, "greet", "enable", ""), "200 2.0.0 enabled")
	expect(t, "a call of it", v.call(t, "greet"), `200 {"v":"words-2.0"}`)
	expect(t, "rolling back", v.act(t, "greet", "rollback", ""), "200 1.0.0 enabled")
	expect(t, "a call then", v.call(t, "greet"), `200 {"v":"words-1.0"}`)

	// The folder of packages is a copy.
	sets, err := filepath.Glob(filepath.Join(packages.Sets(s.StateDir), "*"))
	if err != nil || len(sets) != 2 {
		t.Fatalf("%q %v", sets, err)
	}
	for _, set := range sets {
		musttest.Do(t, os.RemoveAll(set))
	}
	soon(t, "a call after the copies were removed", `200 {"v":"words-1.0"}`, func() answer { return v.call(t, "greet") })

	// Named ones, newer ones, none.
	v.adds(t, "1.0.0", `{"packages": ["python:words"], "update": true}`, "python:words 2.0")
	expect(t, "a call with the newer one", v.call(t, "greet"), `200 {"v":"words-2.0"}`)
	if status, out, failed := v.packagesOf(t, "DELETE", "1.0.0", ""); status != 200 || !slices.Equal(out.Removed, []string{"python:pyyaml 6.0.3", "python:words 2.0"}) {
		t.Errorf("%d %+v %+v", status, out, failed)
	}
	if a := v.call(t, "greet"); a.Error == nil {
		t.Errorf("without packages: %s", a.got())
	}
	if got := v.do(t, "GET", "/skills/greet/versions/1.0.0", "", nil); got.Report["packages"] != nil {
		t.Errorf("the report lists %v", got.Report["packages"])
	}
}

// body reads a route that answers no error.
func (v *serving) body(t *testing.T, path string) string {
	t.Helper()
	res, err := http.Get(v.url + path)
	musttest.Do(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("%d %v %s", res.StatusCode, err, b)
	}
	return string(b)
}

// index serves packages of npm, each with one version, whose text is the module.
func index(t *testing.T, modules map[string]string) {
	t.Helper()
	if err := exec.Command("npm", "--version").Run(); err != nil {
		t.Skip("npm is not there")
	}
	tarballs := map[string][]byte{}
	for name, text := range modules {
		var b bytes.Buffer
		g := gzip.NewWriter(&b)
		w := tar.NewWriter(g)
		for file, text := range map[string]string{"package/package.json": `{"name":"` + name + `","version":"1.0.0"}`, "package/index.js": text} {
			err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
			if err == nil {
				_, err = io.WriteString(w, text)
			}
			musttest.Do(t, err)
		}
		musttest.Do(t, errors.Join(w.Close(), g.Close()))
		tarballs[name] = b.Bytes()
	}
	var at string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, file, isFile := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/-/")
		b, ok := tarballs[name]
		switch {
		case !ok:
			http.NotFound(w, r)
		case isFile && file != "":
			_, _ = w.Write(b)
		default:
			sum := sha512.Sum512(b)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "time": map[string]string{"1.0.0": "2020-01-01T00:00:00Z"},
				"versions": map[string]any{"1.0.0": map[string]any{"name": name, "version": "1.0.0", "dist": map[string]string{
					"tarball": at + "/" + name + "/-/" + name + "-1.0.0.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
				}}},
			})
		}
	}))
	at = server.URL
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"NPM_CONFIG_REGISTRY": at, "NPM_CONFIG_CACHE": t.TempDir(), "NPM_CONFIG_USERCONFIG": os.DevNull, "NPM_CONFIG_GLOBALCONFIG": filepath.Join(t.TempDir(), "none")} {
		t.Setenv(name, value)
	}
}

// An upload in JavaScript gets packages of npm, which it imports as scripts for Node do.
func TestNPMPackagesOfUploads(t *testing.T) {
	if !javascript.HasNode() {
		t.Skip("Node's modules are not installed: make node-modules")
	}
	index(t, map[string]string{"greetings": "module.exports = 'good day';\n"})
	v := serve(t, settings(t, map[string]string{"timeout-ms": "60000"}))
	expect(t, "the upload", v.upload(t, "", map[string][]byte{"archive": zipped(t, map[string]string{
		"skill.yaml":   manifestOf("greet", "1.0.0", "type: wasm\nruntime: javascript\nentry: main.mjs\n"),
		"main.mjs":     "import greetings from 'greetings';\nlet text = '';\nprocess.stdin.on('data', (d) => { text += d; }).on('end', () => console.log(JSON.stringify({ v: greetings, id: JSON.parse(text).skill_id })));\n",
		"package.json": `{"dependencies": {"greetings": "^1.0.0"}}`,
	})}), "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "greet", "enable", ""), "200 1.0.0 enabled")
	if a := v.call(t, "greet"); a.Error == nil {
		t.Errorf("without packages: %s", a.got())
	}
	v.adds(t, "1.0.0", "", "npm:greetings 1.0.0")
	expect(t, "a call", v.call(t, "greet"), `200 {"v":"good day","id":"greet"}`)
	if text := v.body(t, "/skills/greet/versions/1.0.0/sbom"); !strings.Contains(text, `"purl":"pkg:npm/greetings@1.0.0"`) {
		t.Errorf("the bill of materials is %s", text)
	}
	for body, want := range map[string]string{
		`{"packages": ["npm:missing"]}`:               "502 TOOL_INVOCATION_ERROR",
		`{"packages": ["greetings"]}`:                 "400 INVALID_ARGUMENT",
		`{"packages": ["npm:greetings@git+ssh://x"]}`: "400 INVALID_ARGUMENT",
		`{"packages": ["python:../x"]}`:               "400 INVALID_ARGUMENT",
		`{"digest": "sha256:0"}`:                      "409 CONFLICT",
		`{"from": "/etc"}`:                            "400 INVALID_ARGUMENT",
	} {
		if status, _, failed := v.packagesOf(t, "POST", "1.0.0", body); failed == nil || fmt.Sprintf("%d %s", status, failed.Code) != want {
			t.Errorf("%s: %d %+v, want %s", body, status, failed, want)
		}
	}
	expect(t, "a call after what was refused", v.call(t, "greet"), `200 {"v":"good day","id":"greet"}`)
	if status, _, failed := v.packagesOf(t, "POST", "9.0.0", ""); status != 404 {
		t.Errorf("of no version: %d %+v", status, failed)
	}
}
