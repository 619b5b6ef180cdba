package console

import (
	"strings"
	"testing"
)

// The page of a version shows which packages it lacks and has; the operator changes them there.
func TestPackagesOfVersion(t *testing.T) {
	f := open(t, nil)
	const descriptor = `{"id":"up","version":"1.0.0+b","state":"disabled","digest":"sha256:0","input_schema":{},"output_schema":{}}`
	const at = "/skills/up/versions/1.0.0+b"
	f.answers["GET /skills/up"] = descriptor
	f.answers["GET /skills/up/versions"] = `{"data":[` + descriptor + `],"next":null}`
	report := func(needs, lock string) {
		f.answers["GET "+at] = `{"id":"up","version":"1.0.0+b","digest":"sha256:0","state":"disabled","report":{"verdict":"accepted",
			"preflight":{"needs":{"packages":[` + needs + `]}},"packages":` + lock + `}}`
	}
	report(`{"ecosystem":"python","file":"main.py","line":3,"name":"words<b>"},{"ecosystem":"npm","file":"x.js","line":0,"name":"sharp","native":true}`, "null")
	const path = "/console" + at
	owner, reader := f.signedIn(t, "operator"), f.signedIn(t, "reader")
	shows := func(v *visitor, yes bool, texts ...string) {
		t.Helper()
		body := v.get(t, path).Body.String()
		for _, text := range texts {
			if strings.Contains(body, text) != yes {
				t.Errorf("%q on the page: %t", text, !yes)
			}
		}
	}
	shows(owner, true, "python:words&lt;b&gt;", "main.py:3", "npm:sharp", "needs native code", "Add packages", "Add by name")
	shows(owner, false, "Update packages", "Remove packages")
	shows(reader, true, "python:words", "The operator can add them")
	shows(reader, false, "Add packages", "Add by name")
	report("", `{"packages":[{"ecosystem":"python","name":"words","version":"1.0","digest":"sha256:abc","notes":["left out: a <script>"]},{"ecosystem":"python","name":"pyyaml","version":"6.0.3"}]}`)
	shows(owner, true, "python:words", "of the runtime", "left out: a &lt;script&gt;", "Update packages", "Remove packages")
	shows(owner, false, "Add packages")
	report(`{"ecosystem":"npm","file":"x.js","line":0,"name":"sharp","native":true}`, "null")
	shows(owner, false, "Add packages")

	last := func(fields ...string) (asked, said string) {
		t.Helper()
		if w := owner.post(t, path+"/packages", fields...); w.Code != 303 || w.Header().Get("Location") != path {
			t.Errorf("%q: %d to %q", fields, w.Code, w.Header().Get("Location"))
		}
		asked = f.asked[len(f.asked)-1]
		return asked, owner.get(t, path).Body.String()
	}
	f.answers["POST "+at+"/packages"] = `{"id":"up","version":"1.0.0+b","digest":"sha256:0","state":"disabled","packages":null,"added":["python:words <1>"],"removed":[]}`
	f.answers["DELETE "+at+"/packages"] = `{"id":"up","version":"1.0.0+b","digest":"sha256:0","state":"disabled","packages":null,"added":[],"removed":[]}`
	for _, c := range []struct {
		fields      []string
		asked, said string
	}{
		{[]string{"do", "add", "digest", "sha256:0"}, `POST ` + at + `/packages {"digest":"sha256:0","update":false}`, "Added python:words &lt;1&gt;."},
		{[]string{"do", "add", "names", " python:a>=1\n npm:b "}, `POST ` + at + `/packages {"packages":["python:a\u003e=1","npm:b"],"update":false}`, "Added"},
		{[]string{"do", "update"}, `POST ` + at + `/packages {"update":true}`, "Added"},
		{[]string{"do", "remove"}, `DELETE ` + at + `/packages `, "The packages are as they were."},
	} {
		if asked, said := last(c.fields...); asked != "key:operator "+c.asked || !strings.Contains(said, c.said) {
			t.Errorf("%q: asked %q, said %t", c.fields, asked, strings.Contains(said, c.said))
		}
	}
	f.answers["POST "+at+"/packages"] = `502 {"error":{"code":"TOOL_INVOCATION_ERROR","status":502,"message":"not in the <index>"}}`
	if _, said := last("do", "add"); !strings.Contains(said, "not in the &lt;index&gt;") {
		t.Error("the page does not say why nothing was added")
	}
	if w := owner.post(t, path+"/packages", "do", "else"); w.Code != 400 {
		t.Errorf("something else: %d", w.Code)
	}
	n := len(f.asked)
	if w := owner.do(t, "POST", path+"/packages", "application/x-www-form-urlencoded", "do=add"); w.Code != 403 || len(f.asked) != n {
		t.Errorf("without the token of the session: %d", w.Code)
	}
}
