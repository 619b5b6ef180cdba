package app

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// mixed is a folder of skills with some of the operator's own and some that were pulled, and
// a data folder.
type mixed struct {
	t    *testing.T
	dir  string
	file *manifest.Lock
	log  strings.Builder
}

func newMixed(t *testing.T) *mixed {
	t.Helper()
	m := &mixed{t: t, dir: t.TempDir(), file: &manifest.Lock{Lock: manifest.LockGeneration, Skills: map[skill.ID]*manifest.LockEntry{}}}
	m.write("data/secret.txt", "the operator's")
	return m
}

func (m *mixed) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	musttest.Do(m.t, os.MkdirAll(filepath.Dir(path), 0o700))
	musttest.Do(m.t, os.WriteFile(path, []byte(text), 0o600))
}

// agentSkill writes an Agent Skill whose script prints what it finds in the data folder.
func (m *mixed) agentSkill(folder, name, description string) {
	m.write(folder+"/SKILL.md", "---\nname: "+name+"\ndescription: "+description+"\n---\nRun scripts/read.js.\n")
	m.write(folder+"/scripts/read.js", "console.log(String(std.loadFile('/data/secret.txt')))")
}

// manifest makes a folder a skill.
func (m *mixed) manifest(folder, id, more string) {
	m.write(folder+"/skill.yaml", "id: "+id+"\nversion: 1.0.0\ndescription: D.\ntype: wasm\nruntime: javascript\nentry: main.mjs\n"+more)
	m.write(folder+"/main.mjs", "console.log('{}')")
}

// pulled has the lock file say that a folder was pulled as it is now.
func (m *mixed) pulled(id skill.ID, e manifest.LockEntry) {
	m.t.Helper()
	digest := musttest.Get(manifest.Digest(filepath.Join(m.dir, "skills", string(id))))(m.t)
	e.Version, e.Digest, e.Reference, e.Manifest = "1.0.0", digest, "r", digest
	m.file.Skills[id] = &e
	b := musttest.Get(m.file.Encode())(m.t)
	m.write("skills/"+manifest.LockName, string(b))
}

func (m *mixed) settings() *config.Settings {
	m.t.Helper()
	flags := map[string]string{"listen": "127.0.0.1:0", "data": filepath.Join(m.dir, "data")}
	return load(m.t, config.Sources{Dir: m.dir, Flags: flags})
}

func (m *mixed) open() *Host {
	m.t.Helper()
	s := m.settings()
	hosttest.Runtimes(m.t, "../..", s.StateDir)
	h := musttest.Get(Open(s, &Options{Log: slog.New(slog.NewTextHandler(&m.log, nil))}))(m.t)
	m.t.Cleanup(func() {
		if err := h.Close(); err != nil {
			m.t.Error(err)
		}
	})
	return h
}

// offers lists the Agent Skills of a host, with their trust.
func offers(t *testing.T, h *Host) string {
	t.Helper()
	list := musttest.Get(h.AgentSkills().List(t.Context(), skill.Local()))(t)
	var all []string
	for _, s := range list {
		all = append(all, fmt.Sprintf("%s (%s) %s", s.Name, s.Description, s.Trust))
	}
	return strings.Join(all, ", ")
}

func readsAt(t *testing.T, h *Host, name string) string {
	t.Helper()
	r, _ := h.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: name, Script: "read.js"})
	if !r.Success {
		return string(r.Error.Code)
	}
	return string(r.Data)
}

const (
	readAll     = `{"output":"the operator's\n"}`
	readNothing = `{"output":"null\n"}`
)

// A pulled skill is a stranger's by its SKILL.md too: it reads no data, and takes no name of
// the operator's own, whichever is found first.
func TestPulledAgentSkillsAreStrangers(t *testing.T) {
	m := newMixed(t)
	m.agentSkill("skills/unit-converter", "unit-converter", "own")
	m.manifest("skills/greeter", "greeter", "")
	m.agentSkill("skills/greeter", "greeter", "pulled")
	m.pulled("greeter", manifest.LockEntry{Key: "RW", Publisher: "x"})
	m.manifest("skills/aaa", "aaa", "")
	m.agentSkill("skills/aaa/unit-converter", "unit-converter", "pulled")
	m.pulled("aaa", manifest.LockEntry{Key: "RW", Publisher: "x"})
	m.manifest("skills/partner", "partner", "")
	m.agentSkill("skills/partner", "partner", "vouched for")
	m.pulled("partner", manifest.LockEntry{Key: "RW", Publisher: "us", Trust: skill.Trusted})
	m.manifest("skills/nobody", "nobody", "")
	m.agentSkill("skills/nobody", "nobody", "unsigned")
	m.pulled("nobody", manifest.LockEntry{Trust: skill.Trusted}) // no signature says so
	h := m.open()
	if got, want := offers(t, h), "greeter (pulled) community, nobody (unsigned) community, partner (vouched for) trusted, unit-converter (own) trusted"; got != want {
		t.Errorf("Agent Skills:\n%s, want\n%s", got, want)
	}
	for name, want := range map[string]string{"greeter": readNothing, "nobody": readNothing, "partner": readAll, "unit-converter": readAll} {
		if got := readsAt(t, h, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if !strings.Contains(m.log.String(), "is in the folder of the skill") {
		t.Errorf("nobody was told of the nested skill: %s", m.log.String())
	}
}

// A pulled folder that was changed is left out whole.
func TestChangedPulledAgentSkillsAreLeftOut(t *testing.T) {
	m := newMixed(t)
	m.manifest("skills/greeter", "greeter", "")
	m.agentSkill("skills/greeter", "greeter", "pulled")
	m.pulled("greeter", manifest.LockEntry{Key: "RW", Publisher: "us", Trust: skill.Trusted})
	m.write("skills/greeter/scripts/read.js", "console.log('other')")
	h := m.open()
	if got := offers(t, h); got != "" || h.skills.Now().Has("greeter") {
		t.Errorf("Agent Skills: %s; as a skill: %t", got, h.skills.Now().Has("greeter"))
	}
	if got := readsAt(t, h, "greeter"); got != string(skill.NotFound) {
		t.Errorf("its script: %s", got)
	}
	if !strings.Contains(m.log.String(), "changed since it was pulled") {
		t.Errorf("nobody was told: %s", m.log.String())
	}
}

// A skill that may not be called may not be called as an Agent Skill either; a pulled Agent
// Skill has no name of the operator's own skills.
func TestDisabledSkillsAreNoAgentSkills(t *testing.T) {
	m := newMixed(t)
	for _, id := range []string{"calc", "gone", "off", "on"} {
		m.manifest("skills/"+id, id, map[string]string{"off": "is_enabled: false\n"}[id])
	}
	for _, name := range []string{"gone", "off", "on"} {
		m.agentSkill("skills/"+name, name, "own")
	}
	m.agentSkill("skills/a/calc", "calc", "pulled")
	m.write("skills/a/calc/.openskill-origin", "")
	h := m.open()
	musttest.Get(h.skills.Delete(t.Context(), skill.Local(), "gone"))(t)
	if got, want := offers(t, h), "on (own) trusted"; got != want {
		t.Errorf("Agent Skills: %s, want %s", got, want)
	}
	if !strings.Contains(m.log.String(), "its name is taken by the operator's own") {
		t.Errorf("nobody was told: %s", m.log.String())
	}
	if got := readsAt(t, h, "on"); got != readAll {
		t.Errorf("its script: %s", got)
	}
	musttest.Get(h.skills.Disable(t.Context(), skill.Local(), "on"))(t)
	if got := readsAt(t, h, "on"); got != string(skill.NotFound) { // the list is from before
		t.Errorf("a script of a disabled skill: %s", got)
	}
}

// The mark of origin alone makes a folder a stranger's, wherever it is copied to, and the
// operator's word for its digest makes it trusted.
func TestMarkOfOriginIsEnough(t *testing.T) {
	m := newMixed(t)
	m.manifest("skills/greet.bak", "greet", "permissions: {data: read}\n")
	m.agentSkill("skills/greet.bak", "greet.bak", "copied")
	m.agentSkill("skills/copied", "copied", "copied")
	m.write("skills/copied/.openskill-origin", manifest.Mark)
	m.write("skills/greet.bak/.openskill-origin", manifest.Mark)
	m.agentSkill("skills/forged", "forged", "with another mark")
	m.write("skills/forged/.openskill-origin", "trusted")
	s := m.settings()
	trusts := func() string {
		t.Helper()
		own := musttest.Get(Catalogue(s, Roots(s, nil)))(t)
		k, err := own.Get("greet", "")
		if err != nil {
			t.Fatal(err, own.Problems())
		}
		return k.Descriptor.Trust.String()
	}
	digest, err := manifest.Digest(filepath.Join(m.dir, "skills", "greet.bak"))
	musttest.Do(t, err)
	if got := trusts(); got != "community" {
		t.Errorf("a copy is %s", got)
	}
	musttest.Do(t, manifest.Trust(t.Context(), s.StateDir, "greet", digest))
	if got := trusts(); got != "trusted" {
		t.Errorf("named by its digest it is %s", got)
	}
	m.write("skills/greet.bak/more", "")
	if got := trusts(); got != "community" {
		t.Errorf("changed since it is %s", got)
	}
	h := m.open()
	if got, want := offers(t, h), "copied (copied) community, forged (with another mark) community, greet-bak (copied) community"; got != want {
		t.Errorf("Agent Skills: %s, want %s", got, want)
	}
	digest, err = manifest.Digest(filepath.Join(m.dir, "skills", "copied"))
	if err == nil {
		err = manifest.Trust(t.Context(), s.StateDir, "copied", digest)
	}
	musttest.Do(t, err)
	h2 := m.open()
	if got := readsAt(t, h2, "copied"); got != readAll {
		t.Errorf("trusted by name: %s", got)
	}
	if got := readsAt(t, h2, "forged"); got != readNothing {
		t.Errorf("forged: %s", got)
	}
	// What is damaged says nothing.
	musttest.Do(t, os.WriteFile(filepath.Join(s.StateDir, manifest.NamedFile), []byte(`{"trusted":1,"skills":{`), 0o600))
	h3 := m.open()
	if got := readsAt(t, h3, "copied"); got != readNothing || !strings.Contains(m.log.String(), "no skill is trusted by name") {
		t.Errorf("with a damaged record: %s\n%s", got, m.log.String())
	}
}
