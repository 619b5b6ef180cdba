package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestFiles: a file is uploaded as a body or a form, and downloaded as an attachment.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	body, ct := form(t, part{name: "other", content: "1"}, part{name: "file", header: `Content-Disposition: form-data; name="file"; filename="a b.html"`, content: "<b>hay</b>"})
	ids := map[string]bool{}
	for _, r := range []request{
		{method: "POST", path: "/files?name=a%20b.html", body: "<b>hay</b>"},
		{method: "POST", path: "/files", body: body, header: []string{"Content-Type", ct}},
	} {
		resp, answer := w.send(t, "ann", r)
		var info skill.FileInfo
		if err := json.Unmarshal(answer, &info); err != nil || resp.StatusCode != 201 || info.Size != 10 || info.Name != "a b.html" {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
		ids[info.ID] = true
	}
	if len(ids) != 1 {
		t.Fatalf("%v", ids)
	}
	for id := range ids {
		resp, content := w.as(t, "ann", "GET", "/files/"+id+"/content", "")
		if string(content) != "<b>hay</b>" || resp.Header.Get("Content-Type") != "application/octet-stream" || resp.Header.Get("Content-Disposition") != `attachment; filename="a b.html"` ||
			resp.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%v %s", resp.Header, content)
		}
		if resp, _ := w.as(t, "ann", "HEAD", "/files/"+id+"/content", ""); resp.StatusCode != 200 || resp.ContentLength != 10 {
			t.Errorf("%d, %d bytes", resp.StatusCode, resp.ContentLength)
		}
		if resp, answer := w.as(t, "ann", "GET", "/files", ""); resp.StatusCode != 200 || !strings.Contains(string(answer), id) || !strings.HasSuffix(string(answer), `"next":null}`+"\n") {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
		if resp, answer := w.as(t, "ann", "DELETE", "/files/"+id, ""); resp.StatusCode != 204 || len(answer) > 0 {
			t.Errorf("%d %s", resp.StatusCode, answer)
		}
		if resp, _ := w.as(t, "ann", "GET", "/files/"+id+"/content", ""); resp.StatusCode != 404 {
			t.Errorf("deleted: %d", resp.StatusCode)
		}
	}
}

// TestFilesRefused: invalid and oversized uploads are refused with a helpful message.
func TestFilesRefused(t *testing.T) {
	w := newWorld(t)
	without, ct := form(t, part{name: "other", content: "1"})
	for _, c := range []struct {
		r      request
		status int
		words  string
	}{
		{request{method: "POST", path: "/files", body: without, header: []string{"Content-Type", ct}}, 400, "the part file"},
		{request{method: "POST", path: "/files", body: "no form", header: []string{"Content-Type", ct}}, 400, "the part file"},
		{request{method: "POST", path: "/files", body: "x", header: []string{"Content-Type", "multipart/form-data"}}, 400, "the part file"},
		{request{method: "POST", path: "/files", body: "x", header: []string{"Content-Encoding", "gzip"}}, 415, "without Content-Encoding"},
		{request{method: "POST", path: "/files?name=" + strings.Repeat("x", 1001), body: "x"}, 400, "name"},
		{request{method: "GET", path: "/files?limit=0"}, 400, "limit"},
		{request{method: "GET", path: "/files?cursor=x"}, 400, "cursor"},
		{request{method: "GET", path: "/files/x"}, 404, "file not found"},
	} {
		if resp, body := w.send(t, "ann", c.r); resp.StatusCode != c.status || !strings.Contains(string(body), c.words) {
			t.Errorf("%s %.60s: %d %s", c.r.method, c.r.path, resp.StatusCode, body)
		}
	}
	large := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.Addr+"/files", strings.NewReader("x")))(t)
	large.ContentLength = 257 << 20 // which is not sent
	large.Header.Set("Expect", "100-continue")
	large.Header.Set("X-API-Key", "ann")
	resp, err := http.DefaultClient.Do(large)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d", resp.StatusCode)
	}
}

// TestFilesOfCalls: the member files of a call is parsed strictly.
func TestFilesOfCalls(t *testing.T) {
	w := newWorld(t)
	for files, want := range map[string]struct {
		status int
		words  string
	}{
		`[]`:                              {200, ""},
		`[{"name": "a", "text": ""}]`:     {200, ""},
		`{}`:                              {400, "must be a list"},
		`["a"]`:                           {400, "files.0"},
		`[{"name": 1}]`:                   {400, "files.0.name"},
		`[{"name": "a", "path": "/etc"}]`: {400, "files.0.path: is not a known key"},
		`[{"name": "a", "name": "b"}]`:    {400, "name"},
		`[{"name": "a", "text": null}]`:   {400, "files.0.text"},
	} {
		resp, body := w.as(t, "ann", "POST", "/skills/echo:invoke", fmt.Sprintf(`{"input": {"text": "x"}, "files": %s}`, files))
		if resp.StatusCode != want.status || !strings.Contains(string(body), want.words) {
			t.Errorf("%s: %d %s", files, resp.StatusCode, body)
		}
	}
}

// TestWorkspaceOfCalls: every way to call takes the workspace with when it is saved and what happens if it is in use.
func TestWorkspaceOfCalls(t *testing.T) {
	s := start(t, nil)
	s.Door.Add(skill.RunCode, func(context.Context, skill.Request) (json.RawMessage, error) { return json.RawMessage(`{}`), nil })
	const more = `"workspace": "w", "commit": "always", "busy": "conflict"}`
	for path, body := range map[string]string{"/skills/echo:invoke": `{"input": {"text": "x"}, ` + more, "/code:run": `{"language": "shell", "code": "", ` + more} {
		if resp, answer := s.do(t, "POST", path, body); resp.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, answer)
		}
		if resp, answer := s.do(t, "POST", path, strings.Replace(body, "conflict", "never", 1)); path != "/code:run" && (resp.StatusCode != 400 || !strings.Contains(string(answer), "busy: must be wait or conflict")) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, answer)
		}
	}
	for _, r := range s.Door.Calls() {
		asked := skill.WorkspaceRef{ID: "w", Always: true, NoWait: true}
		if r.SkillID == skill.RunCode && !strings.Contains(string(r.Input), `"workspace":"w","commit":"always","busy":`) || r.SkillID != skill.RunCode && r.Workspace != asked {
			t.Errorf("%s: %s %+v", r.SkillID, r.Input, r.Workspace)
		}
	}
}

// TestForkRefusesUnknownKeys: a body with one known key names it, and is a mistake of the client.
func TestForkRefusesUnknownKeys(t *testing.T) {
	w := newWorld(t)
	resp, body := w.as(t, "ann", "POST", "/workspaces/a:fork", `{"id":"b","files":[]}`)
	if resp.StatusCode != 400 || !strings.Contains(string(body), `"files: is not a known key; id is the only one"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
