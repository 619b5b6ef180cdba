package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/admission"
	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/sdk/skill"
)

// A body with a reference is an upload that the host gets itself; one without is a
// definition still.
func TestPull(t *testing.T) {
	d := &apitest.Definitions{}
	s, u := startUploads(t, func(o *api.Options) { o.Definitions = d })
	for _, c := range []struct {
		path, body string
		status     int
		wants      string
	}{
		{"/skills", `{"reference": "r.example.com/a:1.0.0"}`, 201, `"state":"disabled"`},
		{"/skills", `{"enable": true, "reference": "r.example.com/b"}`, 201, `"state":"enabled"`},
		{"/skills?dry_run=true", `{"reference": "r.example.com/c", "enable": false}`, 200, `"state":"dry_run"`},
		{"/skills?dry_run=true", `{"reference": "r.example.com/c", "enable": true}`, 400, "must be false for a dry run"},
		{"/skills", `{"reference": "none/here"}`, 404, "NOT_FOUND"},
		{"/skills", `{"reference": ""}`, 400, "1 to 1024"},
		{"/skills", `{"reference": null}`, 400, "must be a string"},
		{"/skills", `{"reference": "a", "reference": "b"}`, 400, "INVALID_ARGUMENT"},
		{"/skills", `{"reference": "a", "Reference": "b"}`, 400, "not a known key"},
		{"/skills", `{"reference": "a", "enable": 1}`, 400, "must be true or false"},
		{"/skills", `{"reference": "a", "name": "own"}`, 400, "name: is not a known key"},
		{"/skills", `{"name": "own"}`, 201, `"An own one."`},
	} {
		resp, answer := s.do(t, "POST", c.path, c.body, "Content-Type", "application/json")
		if resp.StatusCode != c.status || !bytes.Contains(answer, []byte(c.wants)) {
			t.Errorf("%s %s: %d %s, want %d with %q", c.path, c.body, resp.StatusCode, answer, c.status, c.wants)
		}
	}
	want := []apitest.Uploaded{
		{Tenant: "local", Archive: apitest.Sum([]byte("r.example.com/a:1.0.0")), Reference: "r.example.com/a:1.0.0"},
		{Tenant: "local", Archive: apitest.Sum([]byte("r.example.com/b")), Reference: "r.example.com/b"},
		{Tenant: "local", Archive: apitest.Sum([]byte("r.example.com/c")), Reference: "r.example.com/c", DryRun: true},
	}
	if diff := cmp.Diff(want, u.Seen()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`create own {"name": "own"}`}, d.Done()); diff != "" {
		t.Error(diff)
	}
	if got := u.Decisions(); len(got) != 1 || got[0].Action != "enable" {
		t.Errorf("%+v", got)
	}
}

// A version that did not get the packages that it needs is not enabled.
func TestPullWithoutPackagesIsNotEnabled(t *testing.T) {
	s, u := startUploads(t, nil)
	u.Skill = "another" // which is then not found, as an index may not be
	const body = `{"reference": "r.example.com/a", "packages": true, "enable": true}`
	resp, answer := s.do(t, "POST", "/skills", body, "Content-Type", "application/json")
	if resp.StatusCode != 201 || !bytes.Contains(answer, []byte(`"state":"disabled"`)) || !bytes.Contains(answer, []byte("NOT_FOUND")) || len(u.Decisions()) > 0 {
		t.Errorf("%d %s, %v", resp.StatusCode, answer, u.Decisions())
	}
}

// To pull is to upload: who may only define skills may not, nor on a host without uploads.
func TestPullNeedsTheScope(t *testing.T) {
	const body = `{"reference": "r.example.com/a"}`
	for scope, status := range map[string]int{skill.ScopeUpload: 201, skill.ScopeAdmin: 403, skill.ScopeRead: 403} {
		p := skill.Principal{ID: "key:1", Type: skill.Agent, Tenant: "acme", Scopes: []string{scope}}
		s, u := startUploads(t, func(o *api.Options) {
			o.Definitions, o.Authenticate = &apitest.Definitions{}, apitest.As(p)
		})
		if resp, answer := s.do(t, "POST", "/skills", body, "Content-Type", "application/json"); resp.StatusCode != status || len(u.Seen()) > 0 != (status == 201) {
			t.Errorf("%s: %d %s", scope, resp.StatusCode, answer)
		}
	}
	s := start(t, func(o *api.Options) { o.Definitions = &apitest.Definitions{} })
	if resp, answer := s.do(t, "POST", "/skills", body, "Content-Type", "application/json"); resp.StatusCode != 403 || !bytes.Contains(answer, []byte("uploads are disabled")) {
		t.Errorf("no uploads: %d %s", resp.StatusCode, answer)
	}
	s, _ = startUploads(t, nil)
	if resp, answer := s.do(t, "POST", "/skills", `{"name": "own"}`, "Content-Type", "application/json"); resp.StatusCode != 415 {
		t.Errorf("no definitions: %d %s", resp.StatusCode, answer)
	}
	if resp, answer := s.do(t, "POST", "/skills", body, "Content-Type", "application/json"); resp.StatusCode != 201 {
		t.Errorf("no definitions: %d %s", resp.StatusCode, answer)
	}
}

// A pull counts among the uploads that come in, and has the time of one.
func TestPullsAreBounded(t *testing.T) {
	began, end := make(chan struct{}, 8), make(chan struct{})
	s, _ := startUploads(t, func(o *api.Options) {
		u, ok := o.Uploads.(*apitest.Uploads)
		if !ok {
			t.Fatal("no fake")
		}
		o.Uploads = slowly{u, began, end}
		o.Receiving = 1
	})
	answers := make(chan int, 1)
	go func() {
		resp, _ := s.do(t, "POST", "/skills", `{"reference": "r.example.com/a"}`, "Content-Type", "application/json")
		answers <- resp.StatusCode
	}()
	<-began
	resp, answer := s.do(t, "POST", "/skills", `{"reference": "r.example.com/b"}`, "Content-Type", "application/json")
	var told struct {
		Error skill.ResultError `json:"error"`
	}
	if err := json.Unmarshal(answer, &told); err != nil || resp.StatusCode != 429 || told.Error.Code != skill.RateLimited {
		t.Errorf("a second one: %d %s", resp.StatusCode, answer)
	}
	close(end)
	if status := <-answers; status != 201 {
		t.Errorf("the first one: %d", status)
	}
	s, _ = startUploads(t, func(o *api.Options) {
		u, ok := o.Uploads.(*apitest.Uploads)
		if !ok {
			t.Fatal("no fake")
		}
		o.Uploads = slowly{u, make(chan struct{}, 1), make(chan struct{})}
		o.UploadTimeout = 50 * time.Millisecond
	})
	if resp, answer := s.do(t, "POST", "/skills", `{"reference": "r.example.com/a"}`, "Content-Type", "application/json"); resp.StatusCode != 408 {
		t.Errorf("a slow one: %d %s", resp.StatusCode, answer)
	}
}

// slowly fetches nothing until end is closed.
type slowly struct {
	*apitest.Uploads
	began, end chan struct{}
}

func (s slowly) Begin(p skill.Principal) (api.Upload, error) {
	up, err := s.Uploads.Begin(p)
	return slowOne{up, s}, err
}

type slowOne struct {
	api.Upload
	of slowly
}

func (o slowOne) Fetch(ctx context.Context, reference string) (admission.Source, error) {
	o.of.began <- struct{}{}
	select {
	case <-o.of.end:
		return o.Upload.Fetch(ctx, reference)
	case <-ctx.Done():
		return admission.Source{}, ctx.Err()
	}
}
