package api_test

import (
	"bytes"
	"strings"
	"testing"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/sdk/skill"
)

// An upload gets the packages that it needs if an operator asks for them. Others are refused before
// anything is received.
func TestUploadWithPackages(t *testing.T) {
	body, ct := form(t, part{name: "archive", content: "a skill"})
	for scopes, want := range map[string]int{skill.ScopeUpload: 403, skill.ScopeUpload + " " + skill.ScopeAdmin: 201} {
		p := skill.Principal{ID: "key:1", Type: skill.Agent, Tenant: "acme", Scopes: strings.Fields(scopes)}
		s, u := startUploads(t, func(o *api.Options) { o.Definitions, o.Authenticate = &apitest.Definitions{}, apitest.As(p) })
		for _, c := range []struct{ path, body, ct string }{
			{"/skills?packages=true", body, ct},
			{"/skills", `{"reference": "r.example.com/a", "packages": true}`, "application/json"},
		} {
			resp, answer := s.do(t, "POST", c.path, c.body, "Content-Type", c.ct)
			if resp.StatusCode != want || bytes.Contains(answer, []byte(`"packages":{"added":[]}`)) != (want == 201) {
				t.Errorf("%s %s as %s: %d %s", c.path, c.body, scopes, resp.StatusCode, answer)
			}
		}
		if n := len(u.Seen()); n > 0 != (want == 201) {
			t.Errorf("%s: %d were received", scopes, n)
		}
	}
	s, u := startUploads(t, nil)
	for query, wants := range map[string]string{"?packages=1": "must be true or false", "?packages=true&packages=true": "more than once", "?packages=true&dry_run=true": "must be false for a dry run"} {
		if resp, answer := s.do(t, "POST", "/skills"+query, body, "Content-Type", ct); resp.StatusCode != 400 || !bytes.Contains(answer, []byte(wants)) {
			t.Errorf("%s: %d %s", query, resp.StatusCode, answer)
		}
	}
	if resp, answer := s.do(t, "POST", "/skills?packages=false", body, "Content-Type", ct); resp.StatusCode != 201 || bytes.Contains(answer, []byte("packages")) || len(u.Seen()) != 1 {
		t.Errorf("without: %d %s", resp.StatusCode, answer)
	}
	u.Skill = "another" // so that adding fails once the upload is stored
	resp, answer := s.do(t, "POST", "/skills?packages=true", body, "Content-Type", ct)
	if resp.StatusCode != 201 || !bytes.Contains(answer, []byte(`"state":"disabled"`)) || !bytes.Contains(answer, []byte(`"error":{"code":"NOT_FOUND"`)) {
		t.Errorf("where adding fails: %d %s", resp.StatusCode, answer)
	}
}
