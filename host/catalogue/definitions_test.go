package catalogue

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// site is what an operator has on one machine.
type site struct {
	t     *testing.T
	dir   string
	store *definitionRows
	log   bytes.Buffer

	remote bool // changes come over a network
}

func newSite(t *testing.T, store *definitionRows) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), store: store}
	for _, dir := range []string{"skills", "cli"} {
		musttest.Do(t, os.Mkdir(filepath.Join(s.dir, dir), 0o700))
	}
	return s
}

// write makes a file; "" removes it.
func (s *site) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	var err error
	if text == "" {
		err = os.RemoveAll(path)
	} else if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	musttest.Do(s.t, err)
}

func (s *site) registry() manifest.Options {
	return manifest.Options{
		Roots:  []manifest.Root{{Path: filepath.Join(s.dir, "skills"), Trust: skill.Trusted}},
		CLIDir: filepath.Join(s.dir, "cli"), Defaults: limits(), Caps: limits(),
	}
}

// start reads the folders and opens a catalogue, as a host does.
func (s *site) start() (*Definitions, error) {
	s.t.Helper()
	own := musttest.Get(manifest.Open(s.registry()))(s.t)
	return OpenDefinitions(s.t.Context(), DefinitionOptions{
		DB: s.store.DB, Own: own, Registry: s.registry(), Log: slog.New(slog.NewTextHandler(&s.log, nil)), Remote: s.remote,
		Now: func() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) },
	})
}

func (s *site) mustStart() *Definitions {
	s.t.Helper()
	c := musttest.Get(s.start())(s.t)
	return c
}

func file(id, description, rest string) string {
	return fmt.Sprintf("id: %s\nversion: 1.0.0\ndescription: %s\ntype: wasm\nruntime: wasi\nentry: m.wasm\n%s", id, description, rest)
}

// shown is what callers see of the skills: id, description, rate, and whether they can be
// called.
func shown(c *Definitions) (out []string) {
	now := c.Now()
	for _, id := range now.IDs() {
		s, err := now.Get(id, "")
		if err != nil {
			return []string{err.Error()}
		}
		d, rate := &s.Descriptor, 0
		if d.Cost != nil {
			rate = d.Cost.RateLimitPerMinute
		}
		out = append(out, fmt.Sprintf("%s %q %d %v", id, d.Description, rate, d.Enabled && s.Folder != ""))
	}
	return out
}

func wantsSkills(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

func code(t *testing.T, what string, err error, want skill.Code) {
	t.Helper()
	if got := skill.CodeOf(err); got != want {
		t.Errorf("%s: %v (%q), want %q", what, err, got, want)
	}
}

const list = `skills:
  - name: voc_search
    description: Searches.
    input_schema: {type: object}
    output_schema: {type: object}
    cost_metadata: {estimated_tokens: 500, rate_limit_per_minute: 30}
  - name: tag_list
    description: Lists.
    input_schema: {type: object}
    output_schema: {type: object}
    is_enabled: false
  - name: bad
    description: Its schema is none.
    input_schema: {type: nonsense}
    output_schema: {type: object}
  - name: later
    description: Has no script yet.
    input_schema: {type: object}
    output_schema: {type: object}
`

func TestSeeding(t *testing.T) {
	store := rowsOf(t)
	s := newSite(t, store)
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", "cost_metadata: {rate_limit_per_minute: 5}\n"))
	s.write("skills/skills.yaml", list)
	s.write("cli/voc_search.py", "print({})")
	s.write("cli/tag_list.py", "print({})")
	s.write("cli/plain.py", "print({})")
	c := s.mustStart()
	first := []string{
		`echo "Echoes." 5 true`, `later "Has no script yet." 0 false`, `plain "The script plain.py of the CLI folder; it has no manifest." 0 true`,
		`tag_list "Lists." 0 false`, `voc_search "Searches." 30 true`,
	}
	wantsSkills(t, "at first", shown(c), first...)
	for _, part := range []string{"skills.yaml", "line=14", "input_schema"} { // file, line, field
		if !strings.Contains(s.log.String(), part) {
			t.Errorf("the warning about the entry that is wrong lacks %s:\n%s", part, &s.log)
		}
	}
	latest := store.Latest(t)
	wantsSkills(t, "again", shown(s.mustStart()), first...)
	if store.Latest(t) != latest {
		t.Error("seeding the same again wrote rows")
	}

	// What the operator changed stays; what he did not follows the files.
	op := skill.Local()
	musttest.Get(c.Disable(t.Context(), op, "echo"))(t)
	mustUpdate(t, c, "voc_search", `{"cost_metadata": {"rate_limit_per_minute": 7}}`)
	s.write("skills/echo/skill.yaml", strings.Replace(file("echo", "Echoes twice.", "cost_metadata: {rate_limit_per_minute: 6}\n"), "1.0.0", "1.1.0", 1))
	s.write("skills/skills.yaml", strings.Replace(strings.Replace(list, "Searches.", "Finds.", 1), "is_enabled: false", "is_enabled: true", 1))
	s.write("cli/plain.py", "")
	s.write("cli/later.py", "print({})")
	c = s.mustStart()
	wantsSkills(t, "after the files have changed", shown(c),
		`echo "Echoes twice." 6 false`, `later "Has no script yet." 0 true`, `tag_list "Lists." 0 true`, `voc_search "Finds." 7 true`)
	if v, err := c.Now().Get("voc_search", ""); err != nil || v.Descriptor.Cost.EstimatedTokens != 500 {
		t.Errorf("the other numbers of the cost: %+v, %v", v, err)
	}
	rows := musttest.Get(store.Definitions(t.Context()))(t)
	for _, d := range rows {
		if d.Name == "echo" && (d.Version != "1.1.0" || d.Enabled || !d.Seed.Enabled || d.UpdatedBy != "" || !strings.HasSuffix(d.Place, "skill.yaml")) {
			t.Errorf("the row of echo is %+v", d)
		}
	}

	// Given back, the files say it again, without a restart.
	mustUpdate(t, c, "echo", `{"is_enabled": null}`)
	mustUpdate(t, c, "voc_search", `{"cost_metadata": null}`)
	wantsSkills(t, "given back", shown(c),
		`echo "Echoes twice." 6 true`, `later "Has no script yet." 0 true`, `tag_list "Lists." 0 true`, `voc_search "Finds." 30 true`)
}

func mustUpdate(t *testing.T, c *Definitions, id skill.ID, body string) skill.Descriptor {
	t.Helper()
	return musttest.Get(c.Update(t.Context(), skill.Local(), id, []byte(body)))(t)
}

func TestDeleteAndComeBack(t *testing.T) {
	s := newSite(t, rowsOf(t))
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c, op := s.mustStart(), skill.Local()
	if d, err := c.Delete(t.Context(), op, "echo"); err != nil || d.ID != "echo" || d.State != skill.StateDeleted {
		t.Fatalf("%+v, %v", d, err)
	}
	wantsSkills(t, "deleted", shown(c))
	wantsSkills(t, "deleted, after a restart", shown(s.mustStart()))
	_, err := c.Delete(t.Context(), op, "echo")
	code(t, "deleting it twice", err, skill.NotFound)
	_, err = c.Disable(t.Context(), op, "echo")
	code(t, "disabling what is deleted", err, skill.NotFound)
	musttest.Get(c.Enable(t.Context(), op, "echo"))(t)
	wantsSkills(t, "enabled again", shown(c), `echo "Echoes." 0 true`)
}

func TestCreate(t *testing.T) {
	s := newSite(t, rowsOf(t))
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c, op := s.mustStart(), skill.Local()
	const entry = `{"name": "made", "description": "Made \ud83d\ude00 here.", "input_schema": {"type": "object", "properties": {"n": {"type": "number", "maximum": 1e5}}}, "output_schema": {"type": "object"}}`
	d, err := c.Create(t.Context(), op, []byte(entry))
	if err != nil || d.Enabled || !strings.Contains(d.Reason, "made.py") {
		t.Fatalf("without code: %+v, %v", d, err)
	}
	_, err = c.Create(t.Context(), op, []byte(entry))
	code(t, "the same again", err, skill.Conflict)
	_, err = c.Create(t.Context(), op, []byte(strings.Replace(entry, "made", "echo", 1)))
	code(t, "the id of a folder", err, skill.Conflict)

	s.write("cli/made.py", "print({})")
	musttest.Do(t, c.Refresh(t.Context()))
	wantsSkills(t, "with its script", shown(c), `echo "Echoes." 0 true`, `made "Made 😀 here." 0 true`)
	if m, err := c.Now().Get("made", ""); err != nil || m.CheckInput(map[string]any{"n": "x"}, manifest.MaxSteps) == nil || m.Primary.Kind != skill.CLIPython {
		t.Errorf("%+v, %v", m, err)
	}

	if m, err := s.mustStart().Now().Get("made", ""); err != nil || m.CheckInput(map[string]any{"n": "x"}, manifest.MaxSteps) == nil || m.Descriptor.Description == "" {
		t.Errorf("after a restart: %+v, %v", m, err)
	}
	// A script that was there before its definition.
	s.write("cli/before.py", "print({})")
	c = s.mustStart()
	if d, err := c.Create(t.Context(), op, []byte(strings.Replace(entry, "made", "before", 1))); err != nil || !d.Enabled || d.Description != "Made 😀 here." {
		t.Errorf("of a script: %+v, %v", d, err)
	}
	if d, err := c.Delete(t.Context(), op, "before"); err != nil || !c.Now().Has("before") {
		t.Errorf("the script without its definition: %+v, %v", d, err)
	}
	s.write("cli/before.py", "")

	// A folder beside, without a manifest of its own.
	const folder = `{"name": "module", "description": "A module.", "input_schema": {}, "output_schema": {}, "type": "wasm", "runtime": "wasi", "entry": "m.wasm", "version": "2.0.0"}`
	if d, err := c.Create(t.Context(), op, []byte(folder)); err != nil || d.Enabled || !strings.Contains(d.Reason, "m.wasm") {
		t.Fatalf("without its folder: %+v, %v", d, err)
	}
	s.write("skills/module/m.wasm", "code")
	c = s.mustStart()
	wantsSkills(t, "with its folder", shown(c), `echo "Echoes." 0 true`, `made "Made 😀 here." 0 true`, `module "A module." 0 true`)

	// The files take it over where they define it themselves; what was said of it stays.
	s.write("skills/module/skill.yaml", file("module", "A module of the files.", ""))
	wantsSkills(t, "when it has a manifest", shown(s.mustStart()), `echo "Echoes." 0 true`, `made "Made 😀 here." 0 true`, `module "A module." 0 true`)
	musttest.Get(c.Delete(t.Context(), op, "made"))(t)
	if _, err := c.Create(t.Context(), op, []byte(entry)); err != nil {
		t.Errorf("what was deleted, again: %v", err)
	}
}

func TestRefusedDefinitions(t *testing.T) {
	s := newSite(t, rowsOf(t))
	c := s.mustStart()
	for name, test := range map[string]struct {
		entry string
		want  skill.Code
	}{
		"not JSON":            {`name: x`, skill.InvalidArgument},
		"a list":              {`[]`, skill.InvalidArgument},
		"a key twice":         {`{"name": "a", "name": "b"}`, skill.InvalidArgument},
		"nothing":             {`{}`, skill.InvalidManifest},
		"an unknown key":      {`{"name": "a", "description": "d", "input_schema": {}, "output_schema": {}, "trust": "builtin"}`, skill.InvalidManifest},
		"a bad schema":        {`{"name": "a", "description": "d", "input_schema": {"type": 7}, "output_schema": {}}`, skill.InvalidManifest},
		"a bad id":            {`{"name": "../a", "description": "d", "input_schema": {}, "output_schema": {}}`, skill.InvalidManifest},
		"a way out":           {`{"name": "a", "description": "d", "input_schema": {}, "output_schema": {}, "type": "wasm", "runtime": "wasi", "entry": "../m.wasm"}`, skill.InvalidManifest},
		"half a target":       {`{"name": "a", "description": "d", "input_schema": {}, "output_schema": {}, "type": "wasm"}`, skill.InvalidManifest},
		"a rate below zero":   {`{"name": "a", "description": "d", "input_schema": {}, "output_schema": {}, "cost_metadata": {"rate_limit_per_minute": -1}}`, skill.InvalidManifest},
		"an invisible letter": {`{"name": "a", "description": "d\u202e", "input_schema": {}, "output_schema": {}}`, skill.InvalidManifest},
		"too large":           {`{"name": "a", "description": "` + strings.Repeat("d", 70_000) + `"}`, skill.PayloadTooLarge},
	} {
		_, err := c.Create(t.Context(), skill.Local(), []byte(test.entry))
		code(t, name, err, test.want)
	}
	for name, body := range map[string]string{
		"not JSON": `x`, "nothing": `{}`, "an unknown key": `{"version": "2.0.0"}`, "a key twice": `{"is_enabled": true, "is_enabled": false}`,
		"no boolean": `{"is_enabled": "yes"}`, "an empty description": `{"description": " "}`, "a long one": `{"description": "` + strings.Repeat("d", 1025) + `"}`,
		"an invisible letter": `{"description": "a\u200bb"}`, "no object": `{"cost_metadata": 7}`, "an empty object": `{"cost_metadata": {}}`,
		"an unknown number": `{"cost_metadata": {"price": 1}}`, "half a token": `{"cost_metadata": {"estimated_tokens": 1.5}}`,
		"below zero": `{"cost_metadata": {"rate_limit_per_minute": -1}}`, "a null inside": `{"cost_metadata": {"rate_limit_per_minute": null}}`,
	} {
		_, err := parsePatch([]byte(body))
		code(t, "a patch with "+name, err, skill.InvalidArgument)
	}
	if got := shown(c); got != nil {
		t.Errorf("there is %v", got)
	}
}

func TestOnlyTheOperatorChanges(t *testing.T) {
	store := rowsOf(t)
	s := newSite(t, store)
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c := s.mustStart()
	before := store.Latest(t)
	for _, test := range []struct {
		p    skill.Principal
		want skill.Code
	}{
		{skill.Principal{}, skill.Unauthorized},
		{skill.Principal{Scopes: skill.Scopes()}, skill.Unauthorized},
		{skill.Principal{ID: "t", Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload, skill.ScopeHost}}, skill.Forbidden},
	} {
		ctx := t.Context()
		_, err := c.Enable(ctx, test.p, "echo")
		code(t, "enable", err, test.want)
		_, err = c.Disable(ctx, test.p, "echo")
		code(t, "disable", err, test.want)
		_, err = c.Delete(ctx, test.p, "echo")
		code(t, "delete", err, test.want)
		_, err = c.Create(ctx, test.p, []byte(`{}`))
		code(t, "create", err, test.want)
		_, err = c.Update(ctx, test.p, "echo", []byte(`{"is_enabled": false}`))
		code(t, "update", err, test.want)
	}
	if n := store.Latest(t) - before; n != 0 {
		t.Errorf("the revision grew by %d", n)
	}
}

// Two hosts on one store: each has its own files, and sees what was changed on the other.
func TestDefinitionsOnTwoHosts(t *testing.T) {
	store := rowsOf(t)
	one, two := newSite(t, store), newSite(t, store)
	one.write("skills/echo/skill.yaml", file("echo", "Old.", ""))
	two.write("skills/echo/skill.yaml", file("echo", "New.", ""))
	two.write("skills/only/skill.yaml", file("only", "Of the second host.", ""))
	a, b := one.mustStart(), two.mustStart()
	musttest.Get(b.Disable(t.Context(), skill.Local(), "echo"))(t)
	musttest.Do(t, a.Refresh(t.Context()))
	wantsSkills(t, "the first host", shown(a), `echo "Old." 0 false`)
	wantsSkills(t, "the second host", shown(b), `echo "New." 0 false`, `only "Of the second host." 0 true`)
	if d, err := a.Disable(t.Context(), skill.Local(), "only"); err != nil || d.ID != "only" || d.Enabled || d.Reason == "" {
		t.Errorf("a skill of the other host alone: %+v, %v", d, err)
	}
	musttest.Do(t, b.Refresh(t.Context()))
	wantsSkills(t, "the second host then", shown(b), `echo "New." 0 false`, `only "Of the second host." 0 false`)
}

// Who only looks seeds nothing.
func TestLookingChangesNothing(t *testing.T) {
	store := rowsOf(t)
	s := newSite(t, store)
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c := s.mustStart()
	musttest.Get(c.Disable(t.Context(), skill.Local(), "echo"))(t)
	s.write("skills/other/skill.yaml", file("other", "Is new.", ""))
	own, err := manifest.Open(s.registry())
	musttest.Do(t, err)
	before := store.Latest(t)
	c, err = OpenDefinitions(t.Context(), DefinitionOptions{DB: store.DB, Own: own, Registry: s.registry(), Look: true})
	musttest.Do(t, err)
	wantsSkills(t, "a look", shown(c), `echo "Echoes." 0 false`, `other "Is new." 0 true`)
	if n := store.Latest(t) - before; n != 0 {
		t.Errorf("the revision grew by %d", n)
	}
	still := StillDefinitions(own)
	_, err = still.Disable(t.Context(), skill.Local(), "echo")
	code(t, "a change of what no database has", err, skill.Conflict)
	wantsSkills(t, "without a database", shown(still), `echo "Echoes." 0 true`, `other "Is new." 0 true`)
}

func TestDefinitionsOutliveTheDatabase(t *testing.T) {
	store := rowsOf(t)
	s := newSite(t, store)
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c := s.mustStart()
	mend := away(t, store.DB, "skill_definitions")
	if _, err := s.start(); err == nil {
		t.Errorf("a start without the database: %v", err)
	}
	if err := c.Refresh(t.Context()); err == nil {
		t.Errorf("a refresh: %v", err)
	}
	_, err := c.Disable(t.Context(), skill.Local(), "echo")
	code(t, "a change", err, skill.Internal)
	wantsSkills(t, "what is served goes on", shown(c), `echo "Echoes." 0 true`)
	mend()
	if _, err := c.Disable(context.Background(), skill.Local(), "echo"); err != nil {
		t.Error(err)
	}
	wantsSkills(t, "when it is back", shown(c), `echo "Echoes." 0 false`)
}

// TestSeeds: a host's folders seed a real database once, whatever way it has of writing
// JSON, and another host sees what is changed.
func TestSeeds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, fresh func(*testing.T) func() *store.DB) {
		open := fresh(t)
		a, b := open(), open()
		o := manifest.Options{Roots: []manifest.Root{{Path: t.TempDir(), Trust: skill.Trusted}}, CLIDir: t.TempDir(), Defaults: limits(), Caps: limits()}
		list := func(rate string) {
			t.Helper()
			text := `skills:
  - name: seeded
    description: Is seeded.
    input_schema: {type: object, required: [z, a], properties: {z: {type: number, maximum: 1e5, multipleOf: 0.50}, a: {enum: ["", null, 12345678901234567890]}}}
    output_schema: {}
    cost_metadata: {rate_limit_per_minute: ` + rate + `}
`
			musttest.Do(t, os.WriteFile(filepath.Join(o.Roots[0].Path, manifest.ListFile), []byte(text), 0o600))
		}
		musttest.Do(t, os.WriteFile(filepath.Join(o.CLIDir, "seeded.py"), []byte("print({})"), 0o600))
		start := func(d *store.DB) *Definitions {
			t.Helper()
			own := musttest.Get(manifest.Open(o))(t)
			return musttest.Get(OpenDefinitions(t.Context(), DefinitionOptions{DB: d, Own: own, Registry: o, Log: slog.New(slog.DiscardHandler)}))(t)
		}
		row := func() *Definition {
			t.Helper()
			rows, err := definitions(t.Context(), a.Read, "TRUE")
			if err != nil || len(rows) != 1 {
				t.Fatalf("%v, %v", rows, err)
			}
			return rows[0]
		}
		list("5")
		one := start(a)
		first := row()
		two := start(b)
		if again := row(); again.Revision != first.Revision || !again.UpdatedAt.Equal(first.UpdatedAt) {
			t.Errorf("seeding the same again made revision %d of %d", again.Revision, first.Revision)
		}
		musttest.Get(one.Disable(t.Context(), skill.Local(), "seeded"))(t)
		musttest.Do(t, two.Refresh(t.Context()))
		if s, err := two.Now().Get("seeded", ""); err != nil || s.Descriptor.Enabled {
			t.Errorf("on the other host: %+v, %v", s, err)
		}
		list("6")
		start(b)
		if last := row(); last.Enabled || last.Cost.RateLimitPerMinute != 6 || last.Revision <= first.Revision || !last.CreatedAt.Equal(first.CreatedAt) || last.ID != first.ID {
			t.Errorf("after the files have changed: %+v", last)
		}
	})
}
