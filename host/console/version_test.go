package console

import (
	"strings"
	"testing"
)

// The page of a version shows what the check finds in it, to whoever finds the version; what
// can be decided about it is there for its owner alone.
func TestVersionPage(t *testing.T) {
	f := open(t, nil)
	const descriptor = `{"id":"up","version":"1.0.0+b","state":"disabled","digest":"sha256:0","input_schema":{},"output_schema":{}}`
	f.answers["GET /skills/up"] = descriptor
	f.answers["GET /skills/up/versions"] = `{"data":[` + descriptor + `],"next":null}`
	f.answers["GET /skills/up/versions/1.0.0+b"] = `{"id":"up","version":"1.0.0+b","digest":"sha256:0","state":"disabled","report":{
		"verdict":"accepted","files":[{"path":"m.wasm","size":1024}],"warnings":["not all is granted"],"refused":[],
		"asks":{"permissions":{"data":true},"limits":{"timeout_ms":30000}},"gets":{"permissions":{"data":false},"limits":{"timeout_ms":20000}},
		"module":{"size":2048,"features":["simd"],"imports":[{"module":"wasi_snapshot_preview1","name":"fd_write"},{"module":"openskill","name":"http_request"},{"module":"wasi_snapshot_preview1","name":"fd_read"}]}}}`
	const path = "/console/skills/up/versions/1.0.0+b"
	owner, reader := f.signedIn(t, "operator"), f.signedIn(t, "reader")
	if body := owner.get(t, "/console/skills/up").Body.String(); !strings.Contains(body, `href="`+path+`"`) {
		t.Error("the skill's page does not lead to it")
	}
	body := owner.get(t, path).Body.String()
	for _, want := range []string{"m.wasm", "not all is granted", "fd_write, fd_read", "http_request", "uses simd", "2.0 KiB", "Enable this version"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	const file = path + "/file?path=m.wasm"
	if !strings.Contains(body, `href="`+file+`"`) {
		t.Error("the page does not lead to its files")
	}
	f.answers["GET /skills/up/versions/1.0.0+b/file"] = "a\u202eb" + strings.Repeat("x", mostFile)
	if w := reader.get(t, file); w.Code != 200 || !strings.Contains(w.Body.String(), "a‹U+202E›b") || !strings.Contains(w.Body.String(), " more bytes)") {
		t.Errorf("a file: %d", w.Code)
	}
	if w := f.signedIn(t, "nothing").get(t, file); w.Code != 403 {
		t.Errorf("a file without a scope: %d", w.Code)
	}
	if w := reader.get(t, path); w.Code != 200 || !strings.Contains(w.Body.String(), "m.wasm") || strings.Contains(w.Body.String(), "Enable this version") {
		t.Errorf("for a reader: %d", w.Code)
	}
	if w := f.signedIn(t, "nothing").get(t, path); w.Code != 403 {
		t.Errorf("without a scope: %d", w.Code)
	}
	if asked := f.asked[len(f.asked)-1]; !strings.Contains(asked, "key:reader GET /skills/up/versions/1.0.0+b") {
		t.Errorf("the API was asked as %q", asked)
	}
	f.answers["GET /skills/up/versions/1.0.0+b"] = `{"report":{"verdict":"refused","refused":[{"file":"m.wasm","code":"IMPORT_DENIED","message":"imports x.y"}]}}`
	if body := owner.get(t, path).Body.String(); !strings.Contains(body, "would no longer accept it") || !strings.Contains(body, "IMPORT_DENIED") {
		t.Error("it does not say that the version is refused today")
	}
	delete(f.answers, "GET /skills/up/versions/1.0.0+b")
	if w := owner.get(t, path); w.Code != 404 || !strings.Contains(w.Body.String(), "No report available") {
		t.Errorf("without a report: %d", w.Code)
	}
	delete(f.answers, "GET /skills/up")
	if w := owner.get(t, path); w.Code != 404 || strings.Contains(w.Body.String(), "Enable this version") {
		t.Errorf("a version that is not found: %d", w.Code)
	}
}
