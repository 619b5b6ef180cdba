package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// measured records the longest result that the SDK gets from this server, by method.
type measured struct {
	mu   sync.Mutex
	most map[string]int
}

func (m *measured) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		res, err := next(ctx, method, req)
		if b, wrong := json.Marshal(res); err == nil && wrong == nil {
			m.mu.Lock()
			m.most[method] = max(m.most[method], len(b))
			m.mu.Unlock()
		}
		return res, err
	}
}

// large is a door with a list of 1 MB, and Agent Skills with a large file of each kind.
func large(t *testing.T) (*door, AgentSkills, map[string]string) {
	t.Helper()
	d := newDoor()
	var properties []string
	for i := range 400 {
		properties = append(properties, fmt.Sprintf(`"text_%d":{"type":"string","description":"A text, the %d. of many."}`, i, i))
	}
	schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`
	for i := range 40 {
		d.add(skill.ID(fmt.Sprintf("upload%02d", i)), schema, nil)
	}
	text := strings.Repeat("a \"quoted\"\tline\\\u2028\n\x01", 40<<10)
	pretty := musttest.Get(json.MarshalIndent(map[string]string{"text": text}, "", "  "))(t)
	d.add("big", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result { return success(&r, pretty) })
	files := map[string]string{
		"SKILL.md": front("large", "Is large.") + text[:len(text)/8], "references/text.md": text, "references/blob.csv": "\x00\xff" + text[1:],
	}
	skills := map[string]map[string]string{"large": files}
	for i := range 30 {
		name := fmt.Sprintf("s%02d", i)
		skills[name] = map[string]string{"SKILL.md": front(name, strings.Repeat("d", 1000))}
		for j := range 40 {
			skills[name][fmt.Sprintf("references/%s%d.md", strings.Repeat("f", 60), j)] = "x"
		}
	}
	agents, _ := folders(t, skills)
	return d, agents, map[string]string{"text": text, "pretty": string(pretty), "SKILL.md": files["SKILL.md"], "blob": files["references/blob.csv"]}
}

// ask makes a request of each method, and compares what the client gets.
func ask(t *testing.T, cs *mcp.ClientSession, want map[string]string) {
	t.Helper()
	same := func(what string, got, want any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %.300s", what, err, diff)
		}
	}
	if names := toolNames(t, cs); len(names) != 45 {
		t.Errorf("%d tools", len(names))
	}
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "big", Arguments: map[string]any{}})
	musttest.Do(t, err)
	same("a result", textOf(t, res), want["pretty"], nil)
	same("structured", res.StructuredContent, any(map[string]any{"text": want["text"]}), nil)
	for _, file := range []string{"SKILL.md", "references/text.md"} {
		res, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "read_skill_resource", Arguments: map[string]any{"skill_name": "large", "resource_name": file}})
		if err != nil || !res.IsError && !strings.Contains(textOf(t, res), want["text"]) {
			t.Errorf("%s by a tool: %v", file, err)
		}
	}
	read := func(uri string) *mcp.ResourceContents {
		t.Helper()
		r, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 {
			t.Fatalf("%s: %v", uri, err)
		}
		return r.Contents[0]
	}
	same("SKILL.md", read("skill://large/SKILL.md").Text, want["SKILL.md"], nil)
	same("a text", read("skill://large/references/text.md").Text, want["text"], nil)
	same("a blob", string(read("skill://large/references/blob.csv").Blob), want["blob"], nil)
	task := strings.TrimSpace(want["text"][:100<<10])
	prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "large", Arguments: map[string]string{"task": task}})
	if err != nil || len(prompt.Messages) != 2 || !strings.HasSuffix(prompt.Messages[1].Content.(*mcp.TextContent).Text, task) {
		t.Errorf("a prompt: %v", err)
	}
	list, err := cs.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 100 {
		t.Errorf("resources: %v", err)
	}
	prompts, err := cs.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) != 31 {
		t.Errorf("prompts: %v", err)
	}
}

// The SDK encodes results when the request has left its place: each of 32 requests at once took
// 100 MB and a third of a second of a processor.
func TestTheSDKGetsNothingLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("large answers, which the race detector is slow at")
	}
	d, agents, want := large(t)
	of := func(t *testing.T) (*Server, string, *measured) {
		web, s := listen(t, Options{Door: d, Catalogue: d, AgentSkills: agents})
		return s, web.URL, &measured{most: map[string]int{}}
	}
	check := func(t *testing.T, m *measured) {
		t.Helper()
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.most) < 7 {
			t.Errorf("only %v were asked", m.most)
		}
		for method, most := range m.most {
			if most > inline+4<<10 {
				t.Errorf("the SDK gets %d bytes of %s", most, method)
			}
		}
	}
	empty := func(t *testing.T, b *bodies) {
		t.Helper()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.all) > 0 {
			t.Errorf("%d values are kept of answers that were sent", len(b.all))
		}
	}
	revisions(t, func(t *testing.T, handshake bool) {
		s, url, m := of(t)
		c := musttest.Get(s.web.callerOf(skill.Local()))(t)
		c.server.AddReceivingMiddleware(m.middleware)
		ask(t, surf(t, url, handshake, nil), want)
		check(t, m)
	})
	t.Run("stdio", func(t *testing.T) {
		s, _, m := of(t)
		cs := connect(t, s, skill.Local(), nil)
		s.mu.Lock()
		for c := range s.callers {
			c.server.AddReceivingMiddleware(m.middleware)
		}
		s.mu.Unlock()
		ask(t, cs, want)
		page, err := mcp.CallCustomMethod[*listSkillsParams, *listSkillsResult](t.Context(), cs, "skills/list", &listSkillsParams{})
		if err != nil || len(page.Skills) != skillsPage {
			t.Errorf("skills: %v", err)
		}
		check(t, m)
		s.mu.Lock()
		defer s.mu.Unlock()
		for c := range s.callers {
			empty(t, &c.lines.bodies)
		}
	})
}

// nowhere takes an answer and keeps nothing of it.
type nowhere struct {
	header http.Header
	size   int
	held   int
}

func (n *nowhere) Header() http.Header { return n.header }
func (n *nowhere) WriteHeader(int)     {}
func (n *nowhere) Hold(size int)       { n.held += size }

func (n *nowhere) Write(p []byte) (int, error) {
	n.size += len(p)
	return len(p), nil
}

// A result of 16 MB took 200 MB for as long as the client read it.
func TestLargeResultsAreNotCopied(t *testing.T) {
	if testing.Short() {
		t.Skip("large answers, which the race detector is slow at")
	}
	const size = 16 << 20
	d := newDoor()
	data := []byte(`{"text":"` + strings.Repeat("x", size) + `"}`)
	d.add("big", `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result { return success(&r, data) })
	s := newServer(t, Options{Door: d, Catalogue: d, Principal: named})
	for _, params := range []string{`"name":"big"`, `"name":"big","_meta":{"progressToken":1}`} {
		body, headers := modern("tools/call", params)
		call := func() *nowhere {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i+1 < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := &nowhere{header: http.Header{}}
			s.ServeHTTP(w, r)
			return w
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := call()
		runtime.ReadMemStats(&after)
		if w.size < 2*size || w.held < size || w.held > size+1000 {
			t.Errorf("%d bytes are sent, %d are told of", w.size, w.held)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
			t.Errorf("%d bytes are allocated for a result of %d", n, size)
		}
	}
}

// The same list was encoded for each request.
func TestListsAreEncodedOnceForATenantAndRevision(t *testing.T) {
	d := &counted{door: newDoor()}
	for i := range 120 {
		d.add(skill.ID(fmt.Sprintf("s%03d", i)), `{"type":"object"}`, nil)
	}
	d.add("acme-of-own", `{"type":"object"}`, nil)
	var revision atomic.Int64
	web, _ := listen(t, Options{
		Door: d, Catalogue: d, Principal: byTenant,
		Revision: func(context.Context, skill.Principal) any { return revision.Load() },
	})
	list := func(caller, cursor string) string {
		t.Helper()
		body, headers := modern("tools/list", `"cursor":"`+cursor+`"`)
		res, err := post(t, t.Context(), web.URL, body, append(headers, "X-Caller", caller)...)
		musttest.Do(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%d %s %v", res.StatusCode, b, err)
		}
		return string(b)
	}
	second := encodeCursor("tools", "s080")
	first, more := list("acme/a", ""), list("acme/a", second)
	before := d.lists.Load()
	for range 20 {
		if list("acme/a", "") != first || list("acme/b", second) != more {
			t.Fatal("the list is another one")
		}
	}
	if n := d.lists.Load() - before; n > 2 { // to know what acme/b sees, for when it changes
		t.Errorf("the catalogue was read %d times", n)
	}
	if !strings.Contains(first, "acme-of-own") || strings.Contains(list("beta/b", ""), "acme-of-own") {
		t.Error("another tenant gets the list of acme")
	}
	d.change("s001", func(s *skill.Descriptor) { s.Description = "Another one." })
	revision.Add(1)
	if !strings.Contains(list("acme/a", ""), "Another one.") {
		t.Error("the list is that of the revision before")
	}
}

func FuzzWriteString(f *testing.F) {
	f.Add("a \"b\"\\\n\r\t\x00\x1f\u2028é\xff", 3)
	f.Add(strings.Repeat("x", piece), 1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		s = strings.Repeat(s, 1+max(0, n)%4)
		var out bytes.Buffer
		musttest.Do(t, writeString(&out, []byte(s)))
		var got string
		musttest.Do(t, json.Unmarshal(out.Bytes(), &got))
		if got != strings.ToValidUTF8(s, "\ufffd") {
			t.Errorf("%q is read as %q", s, got)
		}
		if !utf8.Valid(out.Bytes()) || bytes.ContainsAny(out.Bytes(), "\r\n") {
			t.Errorf("%q has bytes that end lines or are not UTF-8", out.Bytes())
		}
	})
}
