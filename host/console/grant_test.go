package console

import (
	"strings"
	"testing"
)

const grantOf = `{"skill":"asker","digest":"sha256:2","state":"changed","packages":[{"name":"python:requests","file":"scripts/a.py","line":1,"new":false}],"http":[{"name":"https://a.example GET,HEAD","file":"scripts/a.py","line":3,"new":true}],
	"env":[{"name":"API_KEY","file":"scripts/a.py","line":4,"new":false}],
	"grant":{"http":["https://b.example GET,HEAD"],"env":[{"name":"API_KEY","for":["https://a.example GET,HEAD,POST"],"placeholder":"x"}],"by":"ann"},
	"changes":{"added":["scripts/new.py"],"changed":["scripts/a.py"],"removed":[],"gone":[]}}`

func TestGrantPage(t *testing.T) {
	f := open(t, nil)
	const skillPage, page = "/console/agent-skills/asker", "/console/agent-skills/asker/grant"
	f.answers["GET /agent-skills/asker"] = `{"name":"asker","content":"x","scripts":[{"name":"a.py"}],"resources":[]}`
	f.answers["GET /agent-skills/asker/grant"] = grantOf
	f.answers["POST /agent-skills/asker:allow"] = grantOf
	f.answers["POST /agent-skills/asker:revoke"] = `{"skill":"asker","state":"none"}`

	f.answers["GET /agent-skills"] = `{"data":[{"name":"asker","digest":"d","scripts":[{"name":"a.py"}],"resources":[],"grant":"changed"}],"next":null}`
	reader := f.signedIn(t, "reader")
	if w := reader.get(t, "/console/agent-skills"); !strings.Contains(w.Body.String(), `<span class="badge bad">changed</span>`) {
		t.Errorf("the list does not say that the skill changed: %d", w.Code)
	}
	if w := reader.get(t, skillPage); w.Code != 200 || strings.Contains(w.Body.String(), page) {
		t.Errorf("who may not decide is led to the page: %d", w.Code)
	}
	if w := reader.get(t, page); w.Code != 403 || strings.Contains(w.Body.String(), "a.example") {
		t.Errorf("who may not decide sees the page: %d", w.Code)
	}

	v := f.signedIn(t, "operator")
	if w := v.get(t, skillPage); !strings.Contains(w.Body.String(), page) {
		t.Error("the skill's page does not lead to the grant")
	}
	text := v.get(t, page).Body.String()
	for _, want := range []string{
		"https://a.example GET,HEAD", "scripts/a.py:3", "https://b.example GET,HEAD", "added: scripts/new.py", "changed: scripts/a.py", "ann", "allowed before",
		"python:requests", "skills allow asker --packages", `name="digest" value="sha256:2"`, `value="a.example"`, `name="keep" value="API_KEY"`, "Revoke everything",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for name, of := range map[string]struct {
		form        []string
		asked, said string
	}{
		"less": {
			[]string{"digest", "sha256:2", "http", "https://a.example GET,HEAD", "rules", "", "variable", "API_KEY", "value", "", "for", "a.example", "variable", "", "value", "", "for", ""},
			`POST /agent-skills/asker:allow {"digest":"sha256:2","env":[],"http":["https://a.example GET,HEAD"]}`, "allowed what you chose",
		},
		"more": {
			[]string{"digest", "sha256:2", "rules", "https://c.example POST\r\n\r\n", "variable", "API_KEY", "value", "", "for", "a.example", "keep", "API_KEY", "variable", " TOKEN ", "value", "v-secret-v", "for", "x.example, *.y.example"},
			`POST /agent-skills/asker:allow {"digest":"sha256:2","env":[{"name":"API_KEY","for":["a.example"]},{"name":"TOKEN","value":"v-secret-v","for":["x.example","*.y.example"]}],"http":["https://c.example POST"]}`, "allowed what you chose",
		},
		"nothing": {[]string{"digest", "sha256:2", "variable", "API_KEY", "value", "", "for", "a.example"}, "", "Nothing was allowed"},
		"cut off": {[]string{"digest", "sha256:2", "variable", "API_KEY", "keep", "API_KEY"}, "", "Nothing was allowed"},
		"revoke":  {[]string{"do", "revoke"}, `POST /agent-skills/asker:revoke `, "Nothing is allowed"},
	} {
		before := len(f.asked)
		w := v.post(t, page, of.form...)
		if asked := f.asked[before:]; of.asked == "" && len(asked) > 0 || of.asked != "" && (len(asked) != 1 || asked[0] != "key:operator "+of.asked) {
			t.Errorf("%s: asked %q", name, asked)
		}
		if after := v.get(t, page).Body.String(); w.Code != 303 || !strings.Contains(after, of.said) || strings.Contains(after, "v-secret-v") {
			t.Errorf("%s: %d", name, w.Code)
		}
	}

	// The folder changed after the page was made.
	f.answers["POST /agent-skills/asker:allow"] = `409 {"error":{"code":"CONFLICT","status":409,"message":"digest mismatch: check it again"}}`
	v.post(t, page, "digest", "sha256:1", "http", "https://a.example")
	if text := v.get(t, page).Body.String(); !strings.Contains(text, "digest mismatch") {
		t.Error("a conflict is not shown")
	}
	v.csrf = "wrong"
	before := len(f.asked)
	if w := v.post(t, page, "do", "revoke"); w.Code != 403 || len(f.asked) != before {
		t.Errorf("without the token: %d", w.Code)
	}
}
