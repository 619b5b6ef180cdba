package app

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/admission"
	"openskill/host/app/hosttest"
	"openskill/internal/digest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestModulesOfAnUploadShareTheirTime holds that a host takes what the modules of an upload
// before have cost from the time of the next one, with workers and without.
func TestModulesOfAnUploadShareTheirTime(t *testing.T) {
	hosttest.NoRace(t)
	for _, workers := range []string{"tenant", "off"} {
		t.Run(workers, func(t *testing.T) {
			dir := t.TempDir()
			for name, module := range map[string]string{"a.wasm": answering, "w.wasm": waiting} {
				musttest.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(module), 0o600))
			}
			of := func(entry string) *skill.Spec { return &skill.Spec{Tenant: "acme", Folder: dir, Entry: entry} }
			c := moduleChecker{openHost(t, settings(t, map[string]string{"workers": workers, "workers-spare": "0"}))}
			all := 10 * time.Second
			if _, err := c.Check(t.Context(), skill.WasmWASI, of("a.wasm"), &all); skill.CodeOf(err) != skill.CompileTimeout || !strings.Contains(err.Error(), "together") {
				t.Errorf("nothing is left: %v", err)
			}
			var spent time.Duration
			if report, err := c.Check(t.Context(), skill.WasmWASI, of("a.wasm"), &spent); err != nil || len(report) == 0 || spent <= 0 || spent > 10*time.Second {
				t.Fatalf("the first: %s, %v, after %s", report, err, spent)
			}
			if report, err := c.Check(t.Context(), skill.WasmWASI, of("w.wasm"), &spent); err != nil || len(report) == 0 {
				t.Errorf("the second: %s, %v, after %s", report, err, spent)
			}
		})
	}
}

// TestUploadIsHashedThreeTimes holds that an uploaded module is written once, and read whole
// three times until its first call has ended: with the digest of its folder when it is
// admitted, by the process that compiles it, and when its folder is read for its calls. Its
// worker maps what was compiled of it, by the digest that its plan says.
func TestUploadIsHashedThreeTimes(t *testing.T) {
	hosttest.NoRace(t)
	custom := append([]byte("\x04text"), make([]byte, 300_000)...)
	module := append(binary.AppendUvarint(append(says(`{"of": "it"}`, 0), 0), uint64(len(custom))), custom...)
	v := serve(t, settings(t, map[string]string{"workers-spare": "0"}))
	before := digest.Hashed()
	u, err := v.host.uploads.Begin(skill.Local())
	musttest.Do(t, err)
	defer u.Close()
	part, err := u.File()
	musttest.Do(t, err)
	defer part.Close()
	musttest.Get(part.Write(module))(t)
	musttest.Get(u.Admit(t.Context(), admission.Source{Module: part, Manifest: []byte(manifestOf("up", "1.0.0", wasiEntry))}, false))(t)
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	for range 3 {
		if a := v.call(t, "up"); a.Status != 200 {
			t.Fatal(a.got())
		}
	}
	const byTheCompiler = 1 // of which this process knows nothing: TestModuleIsHashedOnce
	if times := float64(digest.Hashed()-before)/float64(len(module)) + byTheCompiler; times > 3.1 || times < 3 {
		t.Errorf("it was hashed %.1f times", times)
	}
	is, err := part.Stat()
	musttest.Do(t, err)
	kept := ""
	err = filepath.WalkDir(uploadsDir(v.host.settings.StateDir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "m.wasm" {
			kept = path
		}
		return err
	})
	musttest.Do(t, err)
	now, err := os.Stat(kept)
	musttest.Do(t, err)
	if !os.SameFile(is, now) || now.Mode().Perm() != 0o444 {
		t.Errorf("%v: it was copied, or can be written", now.Mode())
	}
}
