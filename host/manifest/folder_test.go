package manifest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestReadFolder(t *testing.T) {
	o := Options{Defaults: limits(10), Caps: limits(20)}
	const manifest = "id: up\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: m.wasm\n"
	for name, c := range map[string]struct {
		manifest string
		module   bool
		options  Options
		want     string // in the problems; "" for none
	}{
		"good":                  {manifest, true, o, ""},
		"nothing to start":      {manifest, false, o, "skill.yaml:6: entry m.wasm not found in the folder"},
		"the CLI runner":        {strings.Replace(manifest, "wasm\nruntime: wasi", "cli\nruntime: python", 1), true, o, "trusted"},
		"a CLI fallback":        {manifest + "fallback: {type: cli, runtime: python, entry: m.wasm}\n", true, o, "trusted"},
		"its own trust":         {manifest + "trust: builtin\n", true, o, "trust"},
		"no limits of the host": {manifest, true, Options{}, "zero"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			musttest.Write(t, filepath.Join(dir, ManifestFile), c.manifest)
			if c.module {
				musttest.Write(t, filepath.Join(dir, "m.wasm"), "\x00asm")
			}
			s, problems := ReadFolder(dir, c.options)
			if c.want != "" {
				if text := fmt.Sprint(problems); s != nil || !strings.Contains(text, c.want) || strings.Contains(text, dir) {
					t.Fatalf("got %v, problems %v; want one with %q, and no path of the host", s, problems, c.want)
				}
				return
			}
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			digest := musttest.Get(Digest(dir))(t)
			if d := s.Descriptor; d.Trust != skill.Community || d.Digest != digest || d.Limits.TimeoutMS != 10_000 || !filepath.IsAbs(s.Folder) {
				t.Errorf("got %+v in %s", d, s.Folder)
			}
		})
	}
	if _, problems := ReadFolder(filepath.Join(t.TempDir(), "gone"), o); len(problems) != 1 {
		t.Errorf("a folder that is not there: %v", problems)
	}
}
