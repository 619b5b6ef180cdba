package app

import (
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/identity"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// Who changes keys, skills and settings is on record, with what was changed, in the chain
// that audit verify reads; no key is in it.
func TestChangesAreOnRecord(t *testing.T) {
	s := settings(t, map[string]string{"auth": "required"})
	h := musttest.Get(Open(s, &Options{Mode: Serving}))(t)
	defer h.Close()
	ctx := t.Context()
	by := skill.Principal{ID: "ada", Type: skill.Human, Tenant: "ops", Scopes: skill.Scopes()}
	keys := ManageKeys(h.kept.db, by)
	k, text, err := keys.Create(ctx, identity.NewKey{Name: "ci", Tenant: "acme", Scopes: []string{skill.ScopeRead}, By: by.ID})
	musttest.Do(t, err)
	if _, _, err := keys.Rotate(ctx, k.ID, 0); err != nil {
		t.Fatal(err)
	}
	musttest.Get(keys.Revoke(ctx, k.ID))(t)
	if _, _, err := keys.Rotate(ctx, k.ID, 0); skill.CodeOf(err) != skill.Conflict {
		t.Fatal(err)
	}
	musttest.Get(h.skills.Decide(ctx, catalogue.Decision{Action: catalogue.Disable, By: by, ID: "quick"}))(t)
	musttest.Get(h.Reload(ctx, s))(t)
	all := musttest.Get(records.NewStore(h.kept.db).Changes(ctx, records.ChangeQuery{Limit: 100}))(t)
	var got []string
	for i := range all {
		c := &all[i]
		got = append(got, c.Tenant+" "+c.Action+" "+strings.ReplaceAll(c.Subject, k.ID, "K")+" "+c.Principal+" "+string(c.Failed))
		body, err := json.Marshal(c)
		if err != nil || strings.Contains(string(body), text) {
			t.Errorf("%s, %v", body, err)
		}
	}
	slices.Reverse(got)
	want := []string{
		"acme key.create K ada ", "acme key.rotate K ada ", "acme key.revoke K ada ", "acme key.rotate K ada ", "acme key.rotate K ada CONFLICT",
		"local definition.update quick ada ", "local settings.reload settings local ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("on record\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	r, err := records.Verify(ctx, records.NewStore(h.kept.db), records.VerifyOptions{Rows: true})
	if err != nil || !r.Whole() {
		t.Errorf("%+v, %v", r, err)
	}
}

// Each decision about an upload is on record, in the chain of its owner.
func TestDecisionsAreOnRecord(t *testing.T) {
	s := settings(t, nil)
	v := serve(t, s)
	expect(t, "the upload", v.upload(t, "", map[string][]byte{"module": says("{}", 0), "manifest": []byte(manifestOf("up", "1.0.0", wasiEntry))}), "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	expect(t, "publishing", v.act(t, "up", "approve", ""), "200 1.0.0 enabled")
	expect(t, "disabling", v.act(t, "up", "disable", ""), "200 1.0.0 disabled")
	v.do(t, "DELETE", "/skills/up/versions/1.0.0", "", nil)
	db := musttest.Get(OpenStore(t.Context(), s, slog.New(slog.DiscardHandler)))(t)
	defer db.Close()
	all := musttest.Get(records.NewStore(db).Changes(t.Context(), records.ChangeQuery{Limit: 100}))(t)
	var got []string
	for _, c := range all {
		got = append(got, c.Tenant+" "+c.Action+" "+c.Subject+" "+c.Principal+string(c.Failed))
		if c.Details["version"] != "1.0.0" || !strings.HasPrefix(c.Details["digest"], "sha256:") {
			t.Errorf("%s does not say of which files: %v", c.Action, c.Details)
		}
	}
	slices.Reverse(got)
	want := []string{"local skill.upload up local", "local skill.enable up local", "local skill.approve up local", "local skill.disable up local", "local skill.delete up local"}
	if !slices.Equal(got, want) {
		t.Errorf("on record %q\nwant %q", got, want)
	}
}

// read gives the body of an answer.
func (v *serving) read(t *testing.T, path string) []byte {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, v.url+path, http.NoBody))(t)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	musttest.Do(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", path, resp.StatusCode, b, err)
	}
	return b
}

// What the host takes out of service itself is on record as its own decision; where it cannot
// be put on record, it is taken out of service all the same.
func TestQuarantinesAreOnRecord(t *testing.T) {
	s := settings(t, nil)
	v := serve(t, s)
	expect(t, "the upload", v.upload(t, "", map[string][]byte{"module": says("{}", 0), "manifest": []byte(manifestOf("up", "1.0.0", wasiEntry))}), "201 1.0.0 disabled")
	expect(t, "enabling", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	musttest.Do(t, v.host.uploads.Quarantine("local", "up", "1.0.0", "its worker process crashed"))
	db := v.host.kept.db
	all, err := records.NewStore(db).Changes(t.Context(), records.ChangeQuery{Limit: 1})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if c := all[0]; c.Action != "skill.quarantine" || c.Tenant != "local" || c.Subject != "up" || c.Principal != "host" || c.Failed != "" || c.Details["version"] != "1.0.0" || c.Details["reason"] == "" {
		t.Errorf("on record is %+v", c)
	}
	var got []string
	for cursor := ""; ; {
		var page struct {
			Data []records.Change `json:"data"`
			Next *string          `json:"next"`
		}
		musttest.Do(t, json.Unmarshal(v.read(t, "/audit/changes?limit=2"+cursor), &page))
		for _, c := range page.Data {
			got = append(got, c.Action)
		}
		if page.Next == nil {
			break
		}
		cursor = "&cursor=" + *page.Next
	}
	if want := []string{"skill.quarantine", "skill.enable", "skill.upload"}; !slices.Equal(got, want) {
		t.Errorf("over HTTP: %q, want %q", got, want)
	}
	c := musttest.Get(client.New(v.url, nil))(t)
	var byClient []client.Change
	for change, err := range c.Changes(t.Context(), client.ChangeQuery{Tenant: "local", Since: all[0].Time}) {
		musttest.Do(t, err)
		byClient = append(byClient, *change)
	}
	if diff := cmp.Diff([]client.Change{client.Change(all[0])}, byClient); diff != "" {
		t.Errorf("by the client:\n%s", diff)
	}
	// Where it cannot be put on record, the version is taken out of service all the same.
	expect(t, "enabling again", v.act(t, "up", "enable", ""), "200 1.0.0 enabled")
	refuseRecords(t, s)
	musttest.Do(t, v.host.uploads.Quarantine("local", "up", "1.0.0", "it crashed again"))
	expect(t, "a call without a record", v.call(t, "up"), "404 NOT_FOUND")
	if a := v.do(t, "GET", "/skills/up", "", nil); a.State != skill.StateQuarantined {
		t.Errorf("without a record it is %+v", a)
	}
}

// refuseRecords has the database of a host refuse every record.
func refuseRecords(t *testing.T, s *config.Settings) {
	t.Helper()
	db := musttest.Get(sql.Open("sqlite", "file:"+filepath.Join(s.StateDir, store.File)+"?_pragma=busy_timeout(60000)"))(t)
	defer db.Close()
	musttest.Get(db.Exec("CREATE TRIGGER refuse BEFORE INSERT ON audit_records BEGIN SELECT RAISE(ABORT, 'full'); END"))(t)
}

// Without a record there is no change: neither of a script's approval nor of settings.
func TestRefusesChangesWithoutARecord(t *testing.T) {
	s := settings(t, nil)
	h, err := Open(s, &Options{Mode: Serving})
	musttest.Do(t, err)
	defer h.Close()
	refuseRecords(t, s)
	by := skill.Local()
	_, _, err = ManageKeys(h.kept.db, by).Create(t.Context(), identity.NewKey{Name: "ci", Tenant: "acme", Scopes: []string{skill.ScopeRead}})
	wantUnavailable := func(what string, err error) {
		t.Helper()
		if skill.CodeOf(err) != skill.AuditUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantUnavailable("a key", err)
	if keys, _, err := identity.NewKeyStore(h.kept.db).Keys(t.Context(), identity.KeyQuery{Limit: 10}); err != nil || len(keys) != 0 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	_, err = h.skills.Decide(t.Context(), catalogue.Decision{Action: catalogue.Disable, By: by, ID: "quick"})
	wantUnavailable("a definition", err)
	if d, err := h.Catalogue().Get(by, "quick", ""); err != nil || !d.Enabled {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = h.Reload(t.Context(), s)
	wantUnavailable("settings", err)
}
