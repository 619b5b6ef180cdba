package definitions_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/catalogue/definitions"
	"openskill/host/catalogue/definitionstest"
	"openskill/host/catalogue/manifest"
	"openskill/host/catalogue/manifest/schema"
	"openskill/sdk/skill"
)

func limits() skill.Limits {
	return skill.Limits{Timeout: time.Second, Memory: 1 << 20, Fuel: 1000, Output: 1 << 10, Scratch: 1 << 20}
}

// site is what an operator has on one machine.
type site struct {
	t     *testing.T
	dir   string
	store definitions.Store
	log   bytes.Buffer

	remote bool // changes come over a network
}

func newSite(t *testing.T, store definitions.Store) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), store: store}
	for _, dir := range []string{"skills", "cli"} {
		if err := os.Mkdir(filepath.Join(s.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) registry() manifest.Options {
	return manifest.Options{
		Roots:  []manifest.Root{{Path: filepath.Join(s.dir, "skills"), Trust: skill.Trusted}},
		CLIDir: filepath.Join(s.dir, "cli"), Defaults: limits(), Caps: limits(),
	}
}

// start reads the folders and opens a catalogue, as a host does.
func (s *site) start() (*definitions.Catalogue, error) {
	s.t.Helper()
	own, err := manifest.Open(s.registry())
	if err != nil {
		s.t.Fatal(err)
	}
	return definitions.Open(s.t.Context(), definitions.Options{
		Store: s.store, Own: own, Registry: s.registry(), Log: slog.New(slog.NewTextHandler(&s.log, nil)), Remote: s.remote,
		Now: func() time.Time { return time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC) },
	})
}

func (s *site) mustStart() *definitions.Catalogue {
	s.t.Helper()
	c, err := s.start()
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func file(id, description, rest string) string {
	return fmt.Sprintf("id: %s\nversion: 1.0.0\ndescription: %s\ntype: wasm\nruntime: wasi\nentry: m.wasm\n%s", id, description, rest)
}

// shown is what callers see of the skills: id, description, rate, and whether they can be
// called.
func shown(c *definitions.Catalogue) (out []string) {
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

func wants(t *testing.T, what string, got []string, want ...string) {
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
	store := &definitionstest.Memory{}
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
	wants(t, "at first", shown(c), first...)
	for _, part := range []string{"skills.yaml", "line=14", "input_schema"} { // file, line, field
		if !strings.Contains(s.log.String(), part) {
			t.Errorf("the warning about the entry that is wrong lacks %s:\n%s", part, &s.log)
		}
	}
	if n := store.Changes(); n != 5 {
		t.Errorf("%d rows were written, want 5", n)
	}
	wants(t, "again", shown(s.mustStart()), first...)
	if n := store.Changes(); n != 5 {
		t.Errorf("seeding the same again wrote %d rows", n-5)
	}

	// What the operator changed stays; what he did not follows the files.
	op := skill.Local()
	if _, err := c.Disable(t.Context(), op, "echo"); err != nil {
		t.Fatal(err)
	}
	patch(t, c, "voc_search", `{"cost_metadata": {"rate_limit_per_minute": 7}}`)
	s.write("skills/echo/skill.yaml", strings.Replace(file("echo", "Echoes twice.", "cost_metadata: {rate_limit_per_minute: 6}\n"), "1.0.0", "1.1.0", 1))
	s.write("skills/skills.yaml", strings.Replace(strings.Replace(list, "Searches.", "Finds.", 1), "is_enabled: false", "is_enabled: true", 1))
	s.write("cli/plain.py", "")
	s.write("cli/later.py", "print({})")
	c = s.mustStart()
	wants(t, "after the files have changed", shown(c),
		`echo "Echoes twice." 6 false`, `later "Has no script yet." 0 true`, `tag_list "Lists." 0 true`, `voc_search "Finds." 7 true`)
	if v, err := c.Now().Get("voc_search", ""); err != nil || v.Descriptor.Cost.EstimatedTokens != 500 {
		t.Errorf("the other numbers of the cost: %+v, %v", v, err)
	}
	rows, err := store.Definitions(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range rows {
		if d.Name == "echo" && (d.Version != "1.1.0" || d.Enabled || !d.Seed.Enabled || d.UpdatedBy != "" || !strings.HasSuffix(d.Place, "skill.yaml")) {
			t.Errorf("the row of echo is %+v", d)
		}
	}

	// Given back, the files say it again, without a restart.
	patch(t, c, "echo", `{"is_enabled": null}`)
	patch(t, c, "voc_search", `{"cost_metadata": null}`)
	wants(t, "given back", shown(c),
		`echo "Echoes twice." 6 true`, `later "Has no script yet." 0 true`, `tag_list "Lists." 0 true`, `voc_search "Finds." 30 true`)
}

func patch(t *testing.T, c *definitions.Catalogue, id skill.ID, body string) skill.Descriptor {
	t.Helper()
	p, err := definitions.ParsePatch([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Update(t.Context(), skill.Local(), id, p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDeleteAndComeBack(t *testing.T) {
	s := newSite(t, &definitionstest.Memory{})
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c, op := s.mustStart(), skill.Local()
	if d, err := c.Delete(t.Context(), op, "echo"); err != nil || d.ID != "echo" || d.Enabled {
		t.Fatalf("%+v, %v", d, err)
	}
	wants(t, "deleted", shown(c))
	wants(t, "deleted, after a restart", shown(s.mustStart()))
	_, err := c.Delete(t.Context(), op, "echo")
	code(t, "deleting it twice", err, skill.NotFound)
	_, err = c.Disable(t.Context(), op, "echo")
	code(t, "disabling what is deleted", err, skill.NotFound)
	if _, err := c.Enable(t.Context(), op, "echo"); err != nil {
		t.Fatal(err)
	}
	wants(t, "enabled again", shown(c), `echo "Echoes." 0 true`)
}

func TestCreate(t *testing.T) {
	s := newSite(t, &definitionstest.Memory{})
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
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants(t, "with its script", shown(c), `echo "Echoes." 0 true`, `made "Made 😀 here." 0 true`)
	if m, err := c.Now().Get("made", ""); err != nil || m.CheckInput(map[string]any{"n": "x"}, schema.MaxSteps) == nil || m.Primary.Kind != skill.CLIPython {
		t.Errorf("%+v, %v", m, err)
	}

	if m, err := s.mustStart().Now().Get("made", ""); err != nil || m.CheckInput(map[string]any{"n": "x"}, schema.MaxSteps) == nil || m.Descriptor.Description == "" {
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
	wants(t, "with its folder", shown(c), `echo "Echoes." 0 true`, `made "Made 😀 here." 0 true`, `module "A module." 0 true`)

	// The files take it over where they define it themselves; what was said of it stays.
	s.write("skills/module/skill.yaml", file("module", "A module of the files.", ""))
	wants(t, "when it has a manifest", shown(s.mustStart()), `echo "Echoes." 0 true`, `made "Made 😀 here." 0 true`, `module "A module." 0 true`)
	if _, err := c.Delete(t.Context(), op, "made"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), op, []byte(entry)); err != nil {
		t.Errorf("what was deleted, again: %v", err)
	}
}

func TestRefusedDefinitions(t *testing.T) {
	s := newSite(t, &definitionstest.Memory{})
	c := s.mustStart()
	for name, test := range map[string]struct {
		entry string
		want  skill.Code
	}{
		"no JSON":             {`name: x`, skill.InvalidArgument},
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
		"no JSON": `x`, "nothing": `{}`, "an unknown key": `{"version": "2.0.0"}`, "a key twice": `{"is_enabled": true, "is_enabled": false}`,
		"no boolean": `{"is_enabled": "yes"}`, "an empty description": `{"description": " "}`, "a long one": `{"description": "` + strings.Repeat("d", 1025) + `"}`,
		"an invisible letter": `{"description": "a\u200bb"}`, "no object": `{"cost_metadata": 7}`, "an empty object": `{"cost_metadata": {}}`,
		"an unknown number": `{"cost_metadata": {"price": 1}}`, "half a token": `{"cost_metadata": {"estimated_tokens": 1.5}}`,
		"below zero": `{"cost_metadata": {"rate_limit_per_minute": -1}}`, "a null inside": `{"cost_metadata": {"rate_limit_per_minute": null}}`,
	} {
		_, err := definitions.ParsePatch([]byte(body))
		code(t, "a patch with "+name, err, skill.InvalidArgument)
	}
	if got := shown(c); got != nil {
		t.Errorf("there is %v", got)
	}
}

func TestOnlyTheOperatorChanges(t *testing.T) {
	store := &definitionstest.Memory{}
	s := newSite(t, store)
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c := s.mustStart()
	before := store.Changes()
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
		_, err = c.Update(ctx, test.p, "echo", definitions.Patch{})
		code(t, "update", err, test.want)
	}
	if n := store.Changes() - before; n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// Two hosts on one store: each has its own files, and sees what was changed on the other.
func TestTwoHosts(t *testing.T) {
	store := &definitionstest.Memory{}
	one, two := newSite(t, store), newSite(t, store)
	one.write("skills/echo/skill.yaml", file("echo", "Old.", ""))
	two.write("skills/echo/skill.yaml", file("echo", "New.", ""))
	two.write("skills/only/skill.yaml", file("only", "Of the second host.", ""))
	a, b := one.mustStart(), two.mustStart()
	if _, err := b.Disable(t.Context(), skill.Local(), "echo"); err != nil {
		t.Fatal(err)
	}
	if err := a.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants(t, "the first host", shown(a), `echo "Old." 0 false`)
	wants(t, "the second host", shown(b), `echo "New." 0 false`, `only "Of the second host." 0 true`)
	if d, err := a.Disable(t.Context(), skill.Local(), "only"); err != nil || d.ID != "only" || d.Enabled || d.Reason == "" {
		t.Errorf("a skill of the other host alone: %+v, %v", d, err)
	}
	if err := b.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	wants(t, "the second host then", shown(b), `echo "New." 0 false`, `only "Of the second host." 0 false`)
}

// Who only looks seeds nothing.
func TestLook(t *testing.T) {
	store := &definitionstest.Memory{}
	s := newSite(t, store)
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c := s.mustStart()
	if _, err := c.Disable(t.Context(), skill.Local(), "echo"); err != nil {
		t.Fatal(err)
	}
	s.write("skills/other/skill.yaml", file("other", "Is new.", ""))
	own, err := manifest.Open(s.registry())
	if err != nil {
		t.Fatal(err)
	}
	before := store.Changes()
	c, err = definitions.Open(t.Context(), definitions.Options{Store: store, Own: own, Registry: s.registry(), Look: true})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "a look", shown(c), `echo "Echoes." 0 false`, `other "Is new." 0 true`)
	if n := store.Changes() - before; n != 0 {
		t.Errorf("%d rows were written", n)
	}
	still := definitions.Still(own)
	_, err = still.Disable(t.Context(), skill.Local(), "echo")
	code(t, "a change of what no database has", err, skill.Conflict)
	wants(t, "without a database", shown(still), `echo "Echoes." 0 true`, `other "Is new." 0 true`)
}

func TestDatabaseIsGone(t *testing.T) {
	store := &definitionstest.Memory{}
	s := newSite(t, store)
	s.write("skills/echo/skill.yaml", file("echo", "Echoes.", ""))
	c := s.mustStart()
	gone := errors.New("gone")
	store.Fail(gone)
	if _, err := s.start(); !errors.Is(err, gone) {
		t.Errorf("a start without the database: %v", err)
	}
	if err := c.Refresh(t.Context()); !errors.Is(err, gone) {
		t.Errorf("a refresh: %v", err)
	}
	_, err := c.Disable(t.Context(), skill.Local(), "echo")
	code(t, "a change", err, skill.Internal)
	wants(t, "what is served goes on", shown(c), `echo "Echoes." 0 true`)
	store.Fail(nil)
	if _, err := c.Disable(context.Background(), skill.Local(), "echo"); err != nil {
		t.Error(err)
	}
	wants(t, "when it is back", shown(c), `echo "Echoes." 0 false`)
}
