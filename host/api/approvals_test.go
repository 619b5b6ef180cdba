package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// approvals starts an edge with a store of approvals, and asks for one.
func approvals(t *testing.T, change func(*api.Options)) (s *server, store *approval.Store, id string) {
	t.Helper()
	store = musttest.Get(approval.Open(t.Context(), approval.Options{DB: storetest.SQLite(t), Policy: approval.PerVersion, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { _ = store.Close() })
	s = start(t, func(o *api.Options) {
		o.Approvals = store
		if change != nil {
			change(o)
		}
	})
	return s, store, askFor(t, store, "local", "agent-1", "sha256:1")
}

func askFor(t *testing.T, store *approval.Store, tenant, caller, digest string) (id string) {
	t.Helper()
	err := store.Check(t.Context(), approval.Ask{
		Skill: "unit-converter", Script: "scripts/convert.py", Digest: digest, Tenant: tenant, Caller: caller, Trust: skill.Trusted,
		Arguments: []string{"--value", "26.2"},
	})
	var e *skill.Error
	if !errors.As(err, &e) {
		t.Fatalf("Check = %v", err)
	}
	id, _ = e.Details["approval_id"].(string)
	return id
}

func TestApprovalsOverHTTP(t *testing.T) {
	s, store, id := approvals(t, nil)
	state := func(method, path string, status int) (a approval.Approval) {
		t.Helper()
		resp, body := s.do(t, method, path, "")
		if resp.StatusCode != status {
			t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, body)
		}
		if status == 200 && json.Unmarshal(body, &a) != nil {
			t.Fatalf("%s", body)
		}
		return a
	}
	list := func(query string) (ids []string) {
		t.Helper()
		_, body := s.do(t, "GET", "/approvals"+query, "")
		var page struct{ Data []approval.Approval }
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for _, a := range page.Data {
			ids = append(ids, a.ID)
		}
		return ids
	}
	if a := state("GET", "/approvals/"+id, 200); a.State != approval.Pending || a.Skill != "unit-converter" {
		t.Errorf("%+v", a)
	}
	if ids := list("?state=pending"); len(ids) != 1 || ids[0] != id {
		t.Errorf("pending: %v", ids)
	}
	if a := state("POST", "/approvals/"+id+":approve", 200); a.State != approval.Approved || a.DecidedBy != "local" {
		t.Errorf("%+v", a)
	}
	state("POST", "/approvals/"+id+"%3Aapprove", 200)
	if ids := list("?state=pending"); len(ids) != 0 {
		t.Errorf("pending: %v", ids)
	}
	changed := askFor(t, store, "local", "agent-1", "sha256:2")
	if a := state("GET", "/approvals/"+changed, 200); a.Digest != "sha256:2" || a.PreviousDigest != "sha256:1" {
		t.Errorf("%+v", a)
	}
	if ids := list("?limit=1"); len(ids) != 1 || ids[0] != changed {
		t.Errorf("first page: %v", ids)
	}
	if ids := list("?limit=1&cursor=" + changed); len(ids) != 1 || ids[0] != id {
		t.Errorf("second page: %v", ids)
	}
	state("POST", "/approvals/"+changed+":deny", 200)
	state("POST", "/approvals/"+changed+":approve", 409)
	for path, status := range map[string]int{
		"/approvals/nope": 404, "/approvals/" + strings.ToUpper(id) + "0": 404, "/approvals?cursor=x": 200, "/approvals?cursor=": 400, "/approvals?limit=1000": 400, "/approvals?state=maybe": 400,
		"/approvals/..%2f..%2fetc": 404,
	} {
		if resp, body := s.do(t, "GET", path, ""); resp.StatusCode != status {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	for body, status := range map[string]int{"": 200, "{}": 200, " \n": 200, `{"word": "x"}`: 400, "null": 400} {
		if resp, got := s.do(t, "POST", "/approvals/"+changed+":deny", body); resp.StatusCode != status {
			t.Errorf("%q: %d %s", body, resp.StatusCode, got)
		}
	}
	if resp, _ := s.do(t, "POST", "/approvals/"+changed+":deny", "", "Origin", "http://evil.example"); resp.StatusCode != 403 {
		t.Errorf("a foreign page: %d", resp.StatusCode)
	}
}

// Who may run a script may not approve it, and finds nothing of other tenants.
func TestWhoMayApproveOverHTTP(t *testing.T) {
	agent := skill.Principal{ID: "agent-1", Type: skill.Agent, Tenant: "acme", Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload}}
	s, store, foreign := approvals(t, func(o *api.Options) { o.Authenticate = apitest.As(agent) })
	own := askFor(t, store, "acme", "agent-1", "sha256:1")
	for _, tc := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/approvals/" + own, 200},
		{"GET", "/approvals/" + foreign, 404},
		{"POST", "/approvals/" + own + ":approve", 403},
		{"POST", "/approvals/" + own + ":deny", 403},
		{"POST", "/approvals/" + foreign + ":approve", 404},
	} {
		if resp, body := s.do(t, tc.method, tc.path, ""); resp.StatusCode != tc.want {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, resp.StatusCode, body)
		}
	}
	if _, body := s.do(t, "GET", "/approvals", ""); bytes.Contains(body, []byte(foreign)) || !bytes.Contains(body, []byte(own)) {
		t.Errorf("list: %s", body)
	}
	if a, err := store.Get(t.Context(), skill.Local(), own); err != nil || a.State != approval.Pending {
		t.Errorf("it is %s, %v", a.State, err)
	}
}

func TestWhoMaySeeApprovals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		who    skill.Principal
		status int
	}{
		{"nobody", skill.Principal{Scopes: []string{skill.ScopeAdmin}}, 401},
		{"without scopes", skill.Principal{ID: "x"}, 403},
		{"a runner", skill.Principal{ID: "x", Scopes: []string{skill.ScopeInvoke}}, 403},
		{"admin alone", skill.Principal{ID: "x", Scopes: []string{skill.ScopeAdmin}}, 200},
	} {
		s, _, id := approvals(t, func(o *api.Options) { o.Authenticate = apitest.As(tc.who) })
		for _, path := range []string{"/approvals", "/approvals/" + id} {
			if resp, body := s.do(t, "GET", path, ""); resp.StatusCode != tc.status {
				t.Errorf("%s: %s: %d %s", tc.name, path, resp.StatusCode, body)
			}
		}
		if resp, body := s.do(t, "POST", "/approvals/"+id+":deny", ""); resp.StatusCode != tc.status {
			t.Errorf("%s: deny: %d %s", tc.name, resp.StatusCode, body)
		}
	}
}
