package manifest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// folderSafe is what a version may be made of: it becomes the name of a folder.
var folderSafe = regexp.MustCompile(`^[0-9][0-9A-Za-z.+-]{0,63}$`)

// FuzzManifest: whatever a stranger's manifest says, it has problems, or nothing in it
// leads out of its folder, out of the sandbox, or beyond what may be asked.
func FuzzManifest(f *testing.F) {
	for _, name := range []string{"echo", "calculator", "file_search", "log_transform"} {
		src := musttest.Get(os.ReadFile(filepath.Join("..", "..", "skills", name, ManifestFile)))(f)
		f.Add(src)
	}
	const head = "id: a\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: "
	for _, rest := range []string{
		"m.wasm\n", "./a/b.wasm\nlimits: {fuel: 18446744073709551615}\n", "a/../../b\n", "/a\n", "C:a\n", "a\\b\n", "\"a\\0b\"\n", ".\n", "a//b\n", "a/.\n", "\"\"\n",
		"m\npermissions: {data: read, http: [\"https://*.a.example/x GET,POST\"], env: [A]}\n", "m\nfallback: {type: cli, runtime: python, entry: m.py}\n",
		"m\ninput_schema: {type: object, properties: {a: {type: string, format: data-path}}}\n", "m\ninput_schema: {$ref: \"#/x\"}\n", "m\nrequires: [numpy]\n", "m\nlimits: {timeout_ms: 1e3}\n",
		"m\ncost_metadata: {estimated_tokens: 0x10}\nis_enabled: no\n", "m\n<<: {id: b}\n", "m\n? [id]\n: b\n", "m\nid: b\n", "&a m\nbuild: *a\n", "!!str m\n", "m\n---\nid: b\n",
	} {
		f.Add([]byte(head + rest))
	}
	bombs := musttest.Get(filepath.Glob("safeyaml/testdata/bombs/*.yaml"))(f)
	for _, name := range bombs {
		src := musttest.Get(os.ReadFile(name))(f)
		f.Add(src)
	}
	for _, src := range []string{full, fmt.Sprintf(small, "a"), list} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		_, _ = parseList("f", src, skill.Trusted, known) // only that it ends
		_, _ = parseManifest("f", src, skill.Trusted, known)
		m, problems := parseManifest(ManifestFile, src, skill.Community, known)
		if (m == nil) != (len(problems) > 0) {
			t.Fatalf("%v, %v", m, problems)
		}
		for _, p := range problems {
			if p.Message == "" || p.Line < 0 {
				t.Fatalf("the problem %+v", p)
			}
		}
		if m == nil {
			return
		}
		if _, err := skill.ParseID(string(m.id)); err != nil || !folderSafe.MatchString(m.version) || strings.Contains(m.version, "..") {
			t.Fatalf("id %q, version %q", m.id, m.version)
		}
		if e := m.primary.Entry; !fs.ValidPath(e) || e == "." || strings.ContainsAny(e, "\\:\x00") {
			t.Fatalf("entry %q", e)
		}
		if !strings.HasPrefix(string(m.primary.Kind), "wasm:") || m.fallback != nil {
			t.Fatalf("%+v with the fallback %+v", m.primary, m.fallback)
		}
		if p := m.permissions; p != nil && (len(p.HTTP) > maxAsked || len(p.Env) > maxAsked) {
			t.Fatalf("%d and %d permissions", len(p.HTTP), len(p.Env))
		}
		for _, s := range []*field{m.input, m.output} {
			if s != nil && (!json.Valid(s.text) || s.size == 0) {
				t.Fatalf("the schema %q", s.text)
			}
		}
		limits := m.limits.Limits()
		if limits.Timeout < 0 || limits.Memory > 1<<40 || limits.Output > 1<<40 || limits.Scratch > 1<<40 {
			t.Fatalf("limits %+v", limits)
		}
		if _, found := skill.Unseen(m.description); found {
			t.Fatalf("description %q", m.description)
		}
	})
}
