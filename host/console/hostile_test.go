package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"openskill/host/identity"
	"openskill/host/records"
	"openskill/host/selftest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// hostile is text that would do something if it were shown as it is: HTML in and out of an
// attribute, a terminal's colors, marks that turn text around, what cannot be seen, and
// bytes that are no UTF-8 where JSON lets them through.
const hostile = "zq\"'><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202eright\u2066left\u200b\u00ad\ufeff\U000e0041\u2028</td></p></textarea></title></pre>{{x}}javascript:alert(3)"

// harmless looks at a page on which hostile stands somewhere.
func harmless(t *testing.T, what, page string) {
	t.Helper()
	if !strings.Contains(page, "zq") {
		t.Errorf("%s: it is not on the page at all", what)
	}
	if !utf8.ValidString(page) {
		t.Errorf("%s: the page is no UTF-8", what)
	}
	doc := musttest.Get(html.Parse(strings.NewReader(page)))(t)
	seen := func(text string) {
		for i, r := range text {
			if hidden(r) && r != '\n' && r != '\t' {
				t.Errorf("%s: U+%04X is on the page, in %q", what, r, text[max(0, i-40):min(len(text), i+20)])
				break
			}
		}
	}
	for n := range doc.Descendants() {
		if n.Type == html.TextNode {
			seen(n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		for _, a := range n.Attr {
			// What a form sends back is not shown, but for a field to type into: and that has what
			// the visitor has typed, or a default in which all can be seen.
			if a.Key != "value" || n.Data == "input" && strings.HasPrefix(attribute(n, "name"), "in.") {
				seen(a.Val)
			}
		}
		switch n.Data {
		case "script", "img", "link":
			for _, a := range n.Attr {
				if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, base+"/assets/") {
					t.Errorf("%s: <%s %s=%q>", what, n.Data, a.Key, a.Val)
				}
			}
			if n.Data == "script" && n.FirstChild != nil {
				t.Errorf("%s: a script: %s", what, n.FirstChild.Data)
			}
		case "style", "iframe", "object", "embed", "base":
			t.Errorf("%s: <%s>", what, n.Data)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" {
				t.Errorf("%s: <%s %s=%q>", what, n.Data, a.Key, a.Val)
			}
			if (a.Key == "href" || a.Key == "action" || a.Key == "src" || a.Key == "formaction") && !strings.HasPrefix(a.Val, base) && a.Val != "#main" && a.Val != "/docs" && a.Val != "" {
				t.Errorf("%s: <%s %s=%q>", what, n.Data, a.Key, a.Val)
			}
		}
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// TestHostileText puts hostile into each field of everything that pages show, one after the
// other.
func TestHostileText(t *testing.T) {
	h := musttest.Get(json.Marshal(hostile))(t)
	id := "01a202dd-0000-7000-8000-000000000001"
	descriptor := `{"id":"echo","version":"1.0.0","description":"D","runner":"wasm:wasi","fallback":"cli:python","trust":"community","digest":"sha256:0","enabled":true,"state":"enabled","reason":"R","limits":{},"permissions":{"data":true,"scratch":true,"env":["E"]},"requires":["P"],"input_schema":{"type":"object","properties":{"N":{"type":"string","description":"F","default":"V","maxLength":5},"e":{"enum":["O"]},"j":{"type":"array","default":["W"]}}},"output_schema":{"title":"T"}}`
	execution := `{"id":"` + id + `","status":"failed","skill":"S","script":"C","version":"V","digest":"G","runner":"R","tenant":"T","principal":"P","principal_type":"Y","key":"K","trace_id":"X","session":"Z","iteration":0,"replay_of":"O","damaged":"B","started_at":"2026-11-22T10:00:00Z","finished_at":"2026-11-22T10:00:01Z","duration_ms":5,"error":{"code":"E","message":"M"},"limits":{},"input":{"bytes":3,"sha256":"H","json":{"I":"J"}},"output":{"bytes":3,"json":"Q"},"artifacts":[{"name":"A","size":3,"sha256":"","kept":true},{"name":"B","size":3,"sha256":""}],"unlisted":{"count":900,"bytes":7,"sha256":"H"},"processes":{"started":900,"list":[{"id":2,"parent":1,"program":"F","exit":1},{"id":3,"parent":2,"program":"F","exit":1}]},"logs":"L","result":{"data":"U"}}`
	result := `{"success":false,"skill_id":"echo","trace_id":"t","data":null,"error":{"code":"E","status":422,"message":"M","details":{"D":"F"}},"meta":{"latency_ms":1,"version":"1","execution_id":"` + id + `","runner":"","digest":"","fuel_used":1,"memory_peak_bytes":1,"truncated":true}}`
	success := `{"success":true,"skill_id":"echo","trace_id":"t","data":{"K":"V"},"error":null,"meta":{"latency_ms":1,"version":"1","execution_id":"` + id + `","runner":"","digest":"","fuel_used":1,"memory_peak_bytes":1,"truncated":false}}`
	agentSkill := `{"name":"asker","description":"D","license":"L","digest":"sha256:0","trust":"community","resources":[{"name":"R","size":1}],"scripts":[{"name":"S","description":"E"}],"content":"---\nname: x\n---\nC"}`
	approval := `{"id":"` + id + `","state":"pending","policy":"call","skill":"S","script":"C","digest":"sha256:0","previous_digest":"sha256:1","trust":"T","arguments":["A"],"call_hash":"","tenant":"N","caller":"P","asked_at":"2026-11-22T10:00:00Z","decided_by":"B"}`
	conversation := `{"id":"` + id + `","title":"T","total_tokens":1,"messages":[{"role":"user","text":"M","at":"2026-11-22T10:00:00Z"},{"role":"assistant","text":"A","calls":[{"id":"c","name":"N","arguments":"G"}],"at":"2026-11-22T10:00:00Z"},{"role":"tool","text":"R","at":"2026-11-22T10:00:00Z"}],"pending":[{"approval_id":"x","skill_id":"S","script":"C"}]}`
	replay := `{"replay_id":"` + id + `","identical":false,"differences":[{"field":"F","name":"N","pointer":"P","then":"T","now":"W"}],"notes":["O"]}`
	// Whoever sent an archive has named its files, what its module imports, and what it asks.
	report := `{"id":"echo","version":"1.0.0","digest":"sha256:0","state":"disabled","report":{"verdict":"refused","files":[{"path":"P","size":1}],"asks":{"permissions":{"env":["E"]},"limits":{},"requires":["Q"]},"gets":{"permissions":{"http":["H"]},"limits":{}},"refused":[{"file":"F","line":3,"code":"C","message":"M"}],"warnings":["W"],"module":{"size":8,"features":["U"],"imports":[{"module":"O","name":"N"}],"exports":["X"]},"preflight":{"scripts":["S"]}}}`
	list := func(one string) string { return `{"data":[` + one + `],"next":null}` }

	// field finds the values that stand for one: capital letters.
	field := regexp.MustCompile(`"[A-Z]"`)
	for _, page := range []struct {
		name, key, body, path string
		form                  []string // of a POST
		also                  map[string]string
	}{
		{name: "skills", key: "GET /skills", body: list(descriptor), path: "/console/skills"},
		{name: "skill", key: "GET /skills/echo", body: descriptor, path: "/console/skills/echo", also: map[string]string{"GET /skills/echo/versions": list(descriptor)}},
		{name: "failed try", key: "POST /skills/echo:invoke", body: result, path: "/console/skills/echo/try", form: []string{"x", "y"}, also: map[string]string{"GET /skills/echo": strings.NewReplacer(`["O"]`, `["a"]`).Replace(descriptor), "GET /skills/echo/versions": list(descriptor)}},
		{name: "try", key: "POST /skills/echo:invoke", body: success, path: "/console/skills/echo/try", form: []string{"x", "y"}, also: map[string]string{"GET /skills/echo": descriptor, "GET /skills/echo/versions": list(descriptor)}},
		{name: "version", key: "GET /skills/echo/versions/1.0.0", body: report, path: "/console/skills/echo/versions/1.0.0", also: map[string]string{"GET /skills/echo": descriptor, "GET /skills/echo/versions": list(descriptor)}},
		{name: "version without a report", key: "GET /skills/echo/versions/1.0.0", body: `404 {"error":{"code":"E","status":404,"message":"M"}}`, path: "/console/skills/echo/versions/1.0.0", also: map[string]string{"GET /skills/echo": descriptor, "GET /skills/echo/versions": list(descriptor)}},
		{name: "the skill of a version", key: "GET /skills/echo", body: descriptor, path: "/console/skills/echo/versions/1.0.0", also: map[string]string{"GET /skills/echo/versions/1.0.0": report, "GET /skills/echo/versions": list(descriptor)}},
		{name: "a file of a version", key: "GET /skills/echo/versions/1.0.0/file", body: `"F"`, path: "/console/skills/echo/versions/1.0.0/file?path=main.py"},
		{name: "proposals", key: "GET /approvals", body: list(strings.Replace(approval, `"skill":"S"`, `"skill":"S","version":"V"`, 1)), path: "/console/approvals"},
		{name: "executions", key: "GET /executions", body: list(execution), path: "/console/executions"},
		{name: "execution", key: "GET /executions/" + id, body: execution, path: "/console/executions/" + id},
		{name: "replay", key: "POST /executions/" + id + ":replay", body: replay, path: "/console/executions/" + id + "/replay", form: []string{"x", "y"}, also: map[string]string{"GET /executions/" + id: execution}},
		{name: "agent skills", key: "GET /agent-skills", body: list(agentSkill), path: "/console/agent-skills"},
		{name: "agent skill", key: "GET /agent-skills/asker", body: agentSkill, path: "/console/agent-skills/asker"},
		{name: "grant", key: "GET /agent-skills/asker/grant", body: `{"skill":"asker","digest":"sha256:0","state":"changed","http":[{"name":"H","file":"F","line":3,"new":true}],"env":[{"name":"E","file":"F","line":3,"new":false}],"grant":{"http":["H"],"env":[{"name":"E","for":["P"]}],"by":"B"},"changes":{"added":["A"],"changed":["C"],"removed":["R"],"gone":["G"]}}`, path: "/console/agent-skills/asker/grant"},
		{name: "approvals", key: "GET /approvals", body: list(approval), path: "/console/approvals"},
		{name: "changes", key: "GET /audit/changes", body: list(`{"id":"` + id + `","tenant":"T","action":"A","subject":"S","details":{"N":"D"},"failed":"F","principal":"P","principal_type":"human","principal_tenant":"O","time":"2026-11-22T10:00:00Z"}`), path: "/console/changes"},
		{name: "conversations", key: "GET /agent/conversations", body: list(`{"id":"` + id + `","title":"T","updated_at":"2026-11-22T10:00:00Z","messages":1}`), path: "/console/chat"},
		{name: "conversation", key: "GET /agent/conversations/" + id, body: conversation, path: "/console/chat/" + id},
		{name: "an error", key: "GET /skills", body: `422 {"error":{"code":"E","status":422,"message":"M"}}`, path: "/console/skills"},
	} {
		f := open(t, nil)
		for k, v := range page.also {
			f.answers[k] = v
		}
		v := f.signedIn(t, "operator")
		shown := 0
		for _, at := range field.FindAllStringIndex(page.body, -1) {
			what := page.name + ", " + page.body[max(0, at[0]-20):at[1]]
			f.answers[page.key] = page.body[:at[0]] + string(h) + page.body[at[1]:]
			ask := func() *httptest.ResponseRecorder { return v.get(t, page.path) }
			if page.form != nil {
				ask = func() *httptest.ResponseRecorder { return v.post(t, page.path, page.form...) }
			}
			w := ask()
			text := w.Body.String()
			if w.Code >= 500 {
				t.Errorf("%s: %d %s", what, w.Code, text)
				continue
			}
			if !strings.Contains(text, "zq") {
				// Lists leave some of it out.
				if page.name == "execution" || page.name == "an error" {
					t.Errorf("%s is not shown", what)
				}
				text += "zq"
			} else {
				shown++
			}
			harmless(t, what, text)
		}
		if shown == 0 {
			t.Errorf("%s: nothing of it is shown", page.name)
		}
	}
}

// What comes of the live view, figures, keys and settings is as harmless.
func TestHostileTextOfTheHost(t *testing.T) {
	f := open(t, func(o *Options) {
		o.Settings = func() []Setting { return []Setting{{Name: "OPENSKILL_X", Value: hostile, From: "flag"}} }
		o.Chain = func(_ context.Context, _ string) (*ChainState, error) {
			return &ChainState{Tenant: hostile, Faults: []string{hostile}, Found: 2}, nil
		}
		keys := identity.NewKeyStore(o.DB)
		musttest.Do(t, keys.Create(t.Context(), &identity.Key{ID: "abc", Name: hostile, Tenant: hostile, Scopes: []string{hostile}, CreatedBy: hostile, CreatedAt: time.Now()}))
		o.Keys = func(skill.Principal) *identity.Keys { return identity.NewKeys(keys) }
		row := selftest.Row{Case: hostile, Limit: hostile, Happened: hostile, Verdict: hostile, Problems: []string{hostile}}
		musttest.Do(t, selftest.Keep(t.Context(), o.DB, &selftest.Kept{Version: hostile, Report: selftest.Report{Promises: []selftest.Row{row}, Rows: []selftest.Row{row}}}))
	})
	f.answers["GET /executions"] = `{"data":[],"next":null}`
	f.o.Recent.Denied(hostile, hostile)
	f.o.Recent.Add(&records.EndedCall{Tenant: hostile, Skill: hostile, Code: hostile, Took: time.Millisecond})
	v := f.signedIn(t, "operator")
	for _, path := range []string{"/console/overview", "/console/overview/figures", "/console/overview?tenant=" + url.QueryEscape(hostile), "/console/settings", "/console/keys", "/console/skills?q=" + url.QueryEscape(hostile), "/console/executions?skill=" + url.QueryEscape(hostile)} {
		f.answers["GET /skills"] = `{"data":[],"next":null}`
		harmless(t, path, v.get(t, path).Body.String())
	}
	harmless(t, "the chain", v.post(t, "/console/executions/verify").Body.String())
	harmless(t, "a key that was made", v.post(t, "/console/keys", "days", "1", "name", "x").Body.String())
	harmless(t, "a key that was not", v.post(t, "/console/keys", "days", hostile, "name", hostile, "tenant", hostile).Body.String())
	f.answers["POST /skills/echo:enable"] = `409 {"error":{"code":"CONFLICT","status":409,"message":` + quoted(hostile) + `}}`
	v.post(t, "/console/skills/echo/enable")
	harmless(t, "a note", v.get(t, "/console/x").Body.String())
	harmless(t, "a file's name", func() string {
		f.answers["GET /executions/x/artifacts/"+hostileName] = "bytes"
		w := v.get(t, "/console/executions/x/artifacts/"+url.PathEscape(hostileName))
		if d := w.Header().Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") || strings.ContainsAny(d, "\r\n\x1b\u202e") || w.Body.String() != "bytes" || w.Header().Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
		return "zq"
	}())
}

const hostileName = "zq\u202e<b>\x1b.html"

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain":            "plain",
		"äöü 漢字 🙂 é":       "äöü 漢字 🙂 é",
		"a\x00b\x1b[0m\r":  "a‹U+0000›b‹U+001B›[0m‹U+000D›",
		"a\u202eb\u2066c":  "a‹U+202E›b‹U+2066›c",
		"a\u200bb\u00adc":  "a‹U+200B›b‹U+00AD›c",
		"a\ufe0fb\u115fc":  "a‹U+FE0F›b‹U+115F›c",
		"a\U000e0041b":     "a‹U+E0041›b",
		"a\xffb":           "a‹FF›b",
		"a\ufffdb":         "a\ufffdb",
		"two\nlines\tkept": "two\nlines\tkept",
		"a\u2028b\u00a0c":  "a‹U+2028›b\u00a0c",
	} {
		if got := visible(in, 100); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := visible(strings.Repeat("x", 300), 100); got != strings.Repeat("x", 100)+" … (200 more bytes)" {
		t.Errorf("cut: %q", got)
	}
	if got := oneLine("a\r\n\n b", 10); got != "a b" {
		t.Errorf("one line: %q", got)
	}
	if got := pretty(json.RawMessage(`{"a":"\u202e` + "\u202e" + `"}`)); got != "{\n  \"a\": \"\\u202e‹U+202E›\"\n}" {
		t.Errorf("JSON: %q", got)
	}
	if got := pretty(json.RawMessage("no json \x1b")); got != "no json ‹U+001B›" {
		t.Errorf("no JSON: %q", got)
	}
	if n := len(pretty(json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`))); n > mostShown+100 {
		t.Errorf("a long value is shown in %d bytes", n)
	}
}

// Markdown of strangers has no HTML, no image and no link but to http and https.
func TestMarkdown(t *testing.T) {
	for source, want := range map[string]string{
		"# A\n\n*b* `c`":                          "<h1>A</h1>\n<p><em>b</em> <code>c</code></p>\n",
		"<script>alert(1)</script>":               "<!-- raw HTML omitted -->\n",
		"a <b onclick=x>b</b>":                    "<p>a <!-- raw HTML omitted -->b<!-- raw HTML omitted --></p>\n",
		"[a](https://x.example/?a=1)":             `<p><a href="https://x.example/?a=1" rel="noopener noreferrer nofollow">a</a></p>` + "\n",
		"[a](javascript:alert(1))":                "<p>a</p>\n",
		"[a](JaVaScRiPt:alert(1))":                "<p>a</p>\n",
		"[a](data:text/html,x)":                   "<p>a</p>\n",
		"[a](//evil.example) [b](/console/keys)":  "<p>a b</p>\n",
		"<javascript:alert(1)>":                   "<p>javascript:alert(1)</p>\n",
		"<https://x.example/>":                    `<p><a href="https://x.example/" rel="noopener noreferrer nofollow">https://x.example/</a></p>` + "\n",
		"![pixel](https://x.example/p.png)":       "<p>[image: pixel]</p>\n",
		"[![p](https://x.example/p.png)](data:x)": "<p>[image: p]</p>\n",
		"a\u202eb":                        "<p>a‹U+202E›b</p>\n",
		"[r]\n\n[r]: javascript:alert(1)": "<p>r</p>\n",
		"![<script>](x)":                  "<p>[image: &lt;script&gt;]</p>\n",
		"[<b>](data:x)":                   "<p>&lt;b&gt;</p>\n",
	} {
		if got := markdown(source); got != want {
			t.Errorf("%q:\n%q, want\n%q", source, got, want)
		}
	}
	for in, want := range map[string]string{"---\na: b\n---\nx": "x", "---\r\na: b\r\n---\r\nx": "x", "x": "x", "---\nno end": "---\nno end"} {
		if got := withoutFrontmatter(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	for _, deep := range []string{
		strings.Repeat("> ", 60_000), strings.Repeat("- > ", 60_000), strings.Repeat("[a](", 30_000), strings.Repeat("![", 60_000),
		strings.Repeat("**a_b_", 20_000), strings.Repeat("*a_\n", 20_000), strings.Repeat("1. ", 40_000), strings.Repeat("1)\t", 40_000),
		strings.Repeat("|a", 300) + "|\n" + strings.Repeat("|-", 300) + "|\n" + strings.Repeat("|\n", 100),
		strings.Repeat(strings.Repeat("|a", 50)+"\n"+strings.Repeat("|-", 50)+"\n"+strings.Repeat("x\n", 50)+"\n", 10),
	} {
		if !strings.HasPrefix(markdown(deep), "<pre>") {
			t.Errorf("%.10q is read as Markdown, which takes the square of its length", deep)
		}
	}
	// 128 KiB of it are shown, read as Markdown or not, and how much more there is.
	for _, part := range []string{strings.Repeat("ab ", 1<<17/4) + strings.Repeat("\n\n\n\n", 1<<17/16), strings.Repeat("[", 1<<17)} {
		if got := markdown(part); !strings.Contains(got, strings.TrimSpace(part)) || strings.Contains(got, "more bytes") {
			t.Errorf("%.4q: not all of 128 KiB is shown", part)
		}
		if got := markdown(part + "the end"); !strings.Contains(got, "… (7 more bytes)") || strings.Contains(got, "the end") {
			t.Errorf("%.4q: more than 128 KiB are shown", part)
		}
	}
	if got := markdown(strings.Repeat("[", mostBrackets+1) + "<b>"); !strings.Contains(got, "&lt;b&gt;") {
		t.Errorf("what is shown as it is: %.40s", got)
	}
	for _, fair := range []string{
		strings.Repeat("[a](https://x.example/) ", mostBrackets), strings.Repeat("snake_case\n", mostMarks), strings.Repeat("*a* and _b_\n\n", 5000),
		strings.Repeat("* one\n* two\n\n", 4000), strings.Repeat("1. ", mostQuotes) + "x", strings.Repeat("-", 500), strings.Repeat("* ", 60),
		"|a|b|c|\n|-|-|-|\n" + strings.Repeat("|x|y|z|\n", 4000), strings.Repeat("|a|b|\n|-|-|\n|x|y|\n\n", 1500),
	} {
		if strings.HasPrefix(markdown(fair), "<pre>") {
			t.Errorf("%.20q: at the limit it is not read", fair)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# a", "[a](b)", "<b>", "![a](b)", hostile, "| a |\n|---|\n| b |"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		doc := musttest.Get(html.Parse(strings.NewReader(markdown(source))))(t)
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode {
				for _, a := range n.Attr {
					if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" && !safeLink(a.Val) {
						t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
					}
				}
				if n.Data == "script" || n.Data == "img" || n.Data == "style" {
					t.Errorf("<%s>", n.Data)
				}
			}
		}
	})
}

// What people give in a form becomes the input that they meant, or is said to be wrong.
func TestInputOfForms(t *testing.T) {
	schema := `{"type":"object","required":["s"],"properties":{"s":{"type":"string","maxLength":9},"n":{"type":"number"},"i":{"type":"integer","default":3},"b":{"type":"boolean"},"e":{"enum":["a",2,null]},"l":{"type":"array"},"o":{"type":"object"},"any":{}}}`
	for _, tc := range []struct{ given, want, wrong string }{
		{"in.0=x", `{"s":"x"}`, ""},
		{"in.0=", `{"s":""}`, ""},
		{"in.0=1&in.1=1e400", "", "n"},
		{"in.0=%22q%22%0D%0Ar&in.1=0.5&in.2=7&in.3=true", `{"s":"\"q\"\nr","n":0.5,"i":7,"b":true}`, ""},
		{"in.0=x&in.1=12345678901234567890.5", `{"s":"x","n":12345678901234567890.5}`, ""},
		{"in.0=x&in.1=NaN", "", "n"},
		{"in.0=x&in.1=0x10", "", "n"},
		{"in.0=x&in.3=maybe", "", "b"},
		{"in.0=x&in.4=1", `{"s":"x","e":2}`, ""},
		{"in.0=x&in.4=2", `{"s":"x","e":null}`, ""},
		{"in.0=x&in.4=3", "", "e"},
		{"in.0=x&in.4=-1", "", "e"},
		{"in.0=x&in.4=%22a%22", "", "e"},
		{"in.0=x&in.5=[1,2]&in.6={%22a%22:1}&in.7=%22z%22", `{"s":"x","l":[1,2],"o":{"a":1},"any":"z"}`, ""},
		{"in.0=x&in.5=[1", "", "l"},
		{"in.0=x&in.6=a", "", "o"},
		{"in.0=x&other=1", `{"s":"x"}`, ""},
	} {
		q := musttest.Get(url.ParseQuery(tc.given))(t)
		f := formOf(json.RawMessage(schema))
		got, ok := f.read(q)
		wrong := ""
		for _, p := range f.Fields {
			if p.Problem != "" {
				wrong += p.Name
			}
		}
		if ok != (tc.wrong == "") || wrong != tc.wrong || ok && string(got) != tc.want {
			t.Errorf("%s: %s %v, wrong %q; want %s, wrong %q", tc.given, got, ok, wrong, tc.want, tc.wrong)
		}
	}
	var many []string
	for i := range mostFields + 1 {
		many = append(many, fmt.Sprintf(`"p%d":{}`, i))
	}
	for _, s := range []string{"", "true", "null", "[]", `{"oneOf":[]}`, `{"$ref":"#/x"}`, `{"type":"object"}`, `{"properties":{` + strings.Join(many, ",") + `}}`, `{"properties":7}`, strings.Repeat(`{"properties":`, 5000)} {
		f := formOf(json.RawMessage(s))
		if !f.IsWhole {
			t.Errorf("%.40s: has fields", s)
		}
		if _, ok := f.read(url.Values{"whole": {"[1]"}}); ok {
			t.Errorf("%.40s: takes a list", s)
		}
		if got, ok := f.read(url.Values{"whole": {` {"a":1}`}}); !ok || string(got) != ` {"a":1}` {
			t.Errorf("%.40s: %s", s, got)
		}
	}
}
