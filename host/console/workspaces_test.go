package console

import (
	"strings"
	"testing"
)

// TestWorkspacePages: the pages list workspaces and their files, hand files on to be saved, and delete. They call the API
// with the rights of the signed-in user.
func TestWorkspacePages(t *testing.T) {
	f := open(t, nil)
	f.answers["GET /workspaces"] = `{"data":[{"id":"w-1","files":[],"size":2048,"revision":3,"created_at":"2026-11-22T10:00:00Z","updated_at":"2026-11-22T10:00:00Z","expires_at":"2026-11-22T11:00:00Z"}],"next":"w-1"}`
	f.answers["GET /workspaces/w-1"] = `{"id":"w-1","files":[{"name":"a/<b>.txt","id":"abc","size":5}],"size":5,"revision":3,"created_at":"2026-11-22T10:00:00Z","updated_at":"2026-11-22T10:00:00Z","expires_at":"2026-11-22T11:00:00Z"}`
	f.answers["GET /files/abc/content"] = "bytes"
	f.answers["DELETE /workspaces/w-1"] = "204 "
	v := f.signedIn(t, "operator")
	if w := v.get(t, "/console/workspaces"); w.Code != 200 || !strings.Contains(w.Body.String(), `href="/console/workspaces/w-1"`) || !strings.Contains(w.Body.String(), "cursor=w-1") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := v.get(t, "/console/workspaces/w-1"); w.Code != 200 || !strings.Contains(w.Body.String(), "a/&lt;b&gt;.txt") || strings.Contains(w.Body.String(), "<b>") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := v.get(t, "/console/workspaces/w-1/files/a%2F%3Cb%3E.txt"); w.Code != 200 || w.Body.String() != "bytes" || w.Header().Get("Content-Type") != "application/octet-stream" || !strings.Contains(w.Header().Get("Content-Disposition"), "_b_.txt") {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	for _, path := range []string{"/console/workspaces/w-1/files/other", "/console/workspaces/w-2"} {
		if w := v.get(t, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := v.post(t, "/console/workspaces/w-1/delete"); w.Code != 303 || w.Header().Get("Location") != "/console/workspaces" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if last := f.asked[len(f.asked)-1]; !strings.HasSuffix(last, "operator DELETE /workspaces/w-1 ") {
		t.Errorf("asked %q", last)
	}
	if w := f.signedIn(t, "reader").get(t, "/console/workspaces/w-1"); w.Code != 403 {
		t.Errorf("without the scope: %d", w.Code)
	}
}
