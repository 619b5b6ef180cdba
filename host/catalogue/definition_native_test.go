package catalogue

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// entryOf is an entry with more keys, as JSON.
func entryOf(name string, more map[string]any) []byte {
	all := map[string]any{"name": name, "description": "Is defined from elsewhere.", "input_schema": map[string]any{}, "output_schema": map[string]any{}}
	maps.Copy(all, more)
	b, _ := json.Marshal(all) // of maps and strings
	return b
}

var (
	sandboxed = map[string]any{"type": "wasm", "runtime": "javascript", "entry": "run.mjs"}
	beyond    = map[string]map[string]any{ // what files alone can say
		"native code":       {"type": "cli", "runtime": "python", "entry": "run.py"},
		"a program":         {"type": "cli", "runtime": "exec", "entry": "run.sh"},
		"a native fallback": {"fallback": map[string]any{"type": "cli", "runtime": "python", "entry": "run.py"}},
		"data":              {"permissions": map[string]any{"data": "read"}},
		"requests":          {"permissions": map[string]any{"http": []string{"https://a.example GET"}}},
		"variables":         {"permissions": map[string]any{"env": []string{"KEY"}}},
	}
)

func with(base, more map[string]any) map[string]any {
	out := maps.Clone(base)
	maps.Copy(out, more)
	return out
}

// Native code and grants stand in files: neither HTTP nor a row of the database makes them.
func TestRefusesNativeCodeAndGrants(t *testing.T) {
	for name, more := range beyond {
		t.Run(name, func(t *testing.T) {
			store := rowsOf(t)
			s := newSite(t, store)
			for _, file := range []string{"run.py", "run.sh", "run.mjs"} {
				s.write("skills/made/"+file, "code")
			}
			entry := entryOf("made", with(sandboxed, more))
			_, err := s.mustStart().Create(t.Context(), skill.Local(), entry)
			code(t, "making it", err, skill.InvalidManifest)
			if err != nil && !strings.Contains(err.Error(), "made/skill.yaml") {
				t.Errorf("%v does not say what to do", err)
			}

			// A release before this one took it.
			err = store.Change(t.Context(), "made", func(*Definition) (*Definition, error) {
				return &Definition{
					CreatedAt: time.Unix(1, 0), UpdatedAt: time.Unix(1, 0),
					ID: "00000000-0000-7000-8000-000000000000", Name: "made", Version: "1.0.0", Kind: "cli:python", Entry: "run.py", Source: Created, Manifest: entry,
					Values: Values{Description: "d", Enabled: true}, Seed: Values{Description: "d", Enabled: true},
				}, nil
			})
			musttest.Do(t, err)
			c := s.mustStart()
			musttest.Get(c.Enable(t.Context(), skill.Local(), "made"))(t)
			m, err := c.Now().Get("made", "")
			if err != nil || m.Folder != "" || m.Descriptor.Enabled || !strings.Contains(m.Descriptor.Reason, "made/skill.yaml") {
				t.Errorf("an old row is %+v, %v", m.Descriptor, err)
			}
		})
	}
}

// A row of the database whose manifest is about another skill makes neither of both.
func TestRefusesRowsOfAnotherName(t *testing.T) {
	store := rowsOf(t)
	s := newSite(t, store)
	s.write("skills/other/run.mjs", "code")
	err := store.Change(t.Context(), "made", func(*Definition) (*Definition, error) {
		return &Definition{
			CreatedAt: time.Unix(1, 0), UpdatedAt: time.Unix(1, 0),
			ID: "00000000-0000-7000-8000-000000000000", Name: "made", Version: "1.0.0", Kind: "wasm:javascript", Entry: "run.mjs", Source: Created,
			Manifest: entryOf("other", sandboxed), Values: Values{Description: "d", Enabled: true},
		}, nil
	})
	musttest.Do(t, err)
	if ids := s.mustStart().Now().IDs(); len(ids) > 0 {
		t.Errorf("%v is served", ids)
	}
}

// A script of an Agent Skill may need somebody's approval: it does not run as a skill.
func TestRefusesScriptsOfAgentSkills(t *testing.T) {
	for _, at := range []string{"skills/made/SKILL.md", "skills/made/scripts/SKILL.md"} {
		s := newSite(t, rowsOf(t))
		s.write("skills/made/scripts/run.mjs", "code")
		s.write(at, "---\nname: made\ndescription: d\n---\n")
		d, err := s.mustStart().Create(t.Context(), skill.Local(), entryOf("made", with(sandboxed, map[string]any{"entry": "scripts/run.mjs"})))
		if err != nil || d.Enabled || !strings.Contains(d.Reason, "Agent Skill") {
			t.Errorf("with %s: %+v, %v", at, d, err)
		}
		if m, err := s.mustStart().Now().Get("made", ""); err != nil || m.Folder != "" || m.Descriptor.Enabled {
			t.Errorf("with %s, after a restart: %+v, %v", at, m, err)
		}
	}
}

// What files keep off and runs outside the sandbox is not enabled over a network.
func TestNativeCodeIsEnabledOnTheMachine(t *testing.T) {
	s := newSite(t, rowsOf(t))
	native := "id: %\nversion: 1.0.0\ndescription: d\ntype: cli\nruntime: python\nentry: run.py\n"
	for id, text := range map[string]string{
		"off": native + "is_enabled: false\n", "on": native,
		"fallback": file("%", "d", "is_enabled: false\nfallback: {type: cli, runtime: python, entry: run.py}\n"), "wasm": file("%", "d", "is_enabled: false\n"),
	} {
		s.write("skills/"+id+"/skill.yaml", strings.ReplaceAll(text, "%", id))
		s.write("skills/"+id+"/run.py", "code")
		s.write("skills/"+id+"/m.wasm", "code")
	}
	local := s.mustStart()
	s.remote = true
	c, op := s.mustStart(), skill.Local()
	for _, id := range []skill.ID{"off", "fallback"} {
		_, err := c.Enable(t.Context(), op, id)
		code(t, "enabling "+string(id), err, skill.Forbidden)
		_, err = c.Update(t.Context(), op, id, []byte(`{"is_enabled": true}`))
		code(t, "patching "+string(id), err, skill.Forbidden)
		musttest.Get(c.Delete(t.Context(), op, id))(t)
		_, err = c.Enable(t.Context(), op, id)
		code(t, "bringing back "+string(id), err, skill.Forbidden)
	}
	for _, id := range []skill.ID{"on", "wasm"} { // what the operator stopped over HTTP goes on over HTTP
		musttest.Get(c.Disable(t.Context(), op, id))(t)
		if d, err := c.Enable(t.Context(), op, id); err != nil || !d.Enabled {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	if d, err := local.Enable(t.Context(), op, "off"); err != nil || !d.Enabled {
		t.Errorf("on the machine: %+v, %v", d, err)
	}
	if _, err := c.Update(t.Context(), op, "off", []byte(`{"description": "Changed."}`)); err != nil {
		t.Errorf("another change of what is on: %v", err)
	}
}

// A definition that was there before the files does not turn on what they keep off.
func TestFilesKeepOffWhatWasDefinedBefore(t *testing.T) {
	s := newSite(t, rowsOf(t))
	musttest.Get(s.mustStart().Create(t.Context(), skill.Local(), entryOf("made", sandboxed)))(t)
	s.write("skills/made/skill.yaml", "id: made\nversion: 1.0.0\ndescription: d\ntype: cli\nruntime: python\nentry: run.py\nis_enabled: false\n")
	s.write("skills/made/run.py", "code")
	if m, err := s.mustStart().Now().Get("made", ""); err != nil || m.Descriptor.Enabled {
		t.Errorf("%+v, %v", m, err)
	}
}
