package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// spoken is a client of one revision and transport. It sends a message as it is, and returns
// what came back: over HTTP with the status and media type.
type spoken func(t *testing.T, message string) (status int, kind, answer string)

const meta2026 = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// request is a request of a revision; params without braces.
func request(revision, id, method, params string) string {
	if revision == stateless {
		params = strings.TrimPrefix(params+","+meta2026, ",")
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`
}

func greeting(revision string) string {
	return `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
}

// overHTTP speaks a revision over HTTP.
func overHTTP(t *testing.T, url, revision string, more ...string) spoken {
	t.Helper()
	standing := []string{headerProtocol, revision}
	if revision != stateless {
		status, text, h := send(t, url, greeting(revision), more...)
		if status != http.StatusOK || h.Get(headerSession) == "" || !strings.Contains(text, revision) {
			t.Fatalf("no session of %s: %d %s", revision, status, text)
		}
		standing = append(standing, headerSession, h.Get(headerSession))
	}
	return func(t *testing.T, message string) (int, string, string) {
		t.Helper()
		headers := slices.Concat(standing, more)
		if m := peek([]byte(message)); revision == stateless && m.Method != "" {
			var p struct{ Name, URI string }
			_ = json.Unmarshal(m.Params, &p) // what is not of this kind has neither
			if headers = append(headers, "Mcp-Method", m.Method); p.Name+p.URI != "" {
				headers = append(headers, "Mcp-Name", p.Name+p.URI)
			}
		}
		status, text, h := send(t, url, message, headers...)
		for line := range strings.Lines(text) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, `"id"`) {
				text = data
			}
		}
		return status, h.Get("Content-Type"), strings.TrimSpace(text)
	}
}

// overLines speaks a revision over standard input.
func overLines(t *testing.T, s *Server, p skill.Principal, revision string) spoken {
	t.Helper()
	c := converse(t, s, p)
	if revision != stateless {
		c.say(greeting(revision))
		if line := c.hear(); !strings.Contains(line, revision) {
			t.Fatalf("no session of %s: %s", revision, line)
		}
	}
	return func(t *testing.T, message string) (int, string, string) {
		t.Helper()
		c.say(message)
		return 0, "", c.hear()
	}
}

// schemaOf returns a definition of the schema of a revision.
func schemaOf(t *testing.T, revision, name string) *jsonschema.Schema {
	t.Helper()
	b := musttest.Get(os.ReadFile("testdata/schema/" + revision + ".json"))(t)
	doc := musttest.Get(jsonschema.UnmarshalJSON(strings.NewReader(string(b))))(t)
	c := jsonschema.NewCompiler()
	c.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(any) error { return nil }}) // it takes an authority for a host name
	musttest.Do(t, c.AddResource("mcp.json", doc))
	in := "$defs"
	if strings.Contains(string(b), `"definitions"`) {
		in = "definitions"
	}
	return musttest.Get(c.Compile("mcp.json#/" + in + "/" + name))(t)
}

// TestEmptyValuesMatchTheSchema asks for everything that can be empty, in each revision and over
// each transport, and holds the answers to the schema that the revision publishes.
func TestEmptyValuesMatchTheSchema(t *testing.T) {
	if testing.Short() {
		t.Skip("one request at a time, held against schemas")
	}
	d := newDoor()
	for id, data := range map[skill.ID]string{"object": `{}`, "list": `[]`, "text": `""`, "null": `null`} {
		d.add(id, `{"type":"object"}`, func(_ context.Context, r skill.Request) *skill.Result { return success(&r, []byte(data)) })
	}
	d.change("object", func(d *skill.Descriptor) { d.Description, d.Version, d.OutputSchema = "", "", nil })
	agents, _ := folders(t, map[string]map[string]string{
		"blank": {"SKILL.md": front("blank", "x"), "empty.md": "", "empty.csv": "", "sub/empty.txt": ""},
	})
	none, _ := folders(t, nil)
	asked := []struct{ result, method, params string }{
		{"ListToolsResult", "tools/list", ``},
		{"ListResourcesResult", "resources/list", ``},
		{"ListResourceTemplatesResult", "resources/templates/list", ``},
		{"ListPromptsResult", "prompts/list", ``},
		{"ReadResourceResult", "resources/read", `"uri":"skill://blank/SKILL.md"`},
		{"ReadResourceResult", "resources/read", `"uri":"skill://blank/empty.md"`},
		{"ReadResourceResult", "resources/read", `"uri":"skill://blank/empty.csv"`},
		{"ReadResourceResult", "resources/read", `"uri":"skill://blank/sub/empty.txt"`},
		{"GetPromptResult", "prompts/get", `"name":"blank"`},
		{"GetPromptResult", "prompts/get", `"name":"blank","arguments":{"task":""}`},
		{"CallToolResult", "tools/call", `"name":"object"`},
		{"CallToolResult", "tools/call", `"name":"list"`},
		{"CallToolResult", "tools/call", `"name":"text"`},
		{"CallToolResult", "tools/call", `"name":"null"`},
		{"CallToolResult", "tools/call", `"name":"echo","arguments":{}`},
		{"CallToolResult", "tools/call", `"name":"load_skill","arguments":{"skill_name":"blank"}`},
		{"CallToolResult", "tools/call", `"name":"read_skill_resource","arguments":{"skill_name":"blank","resource_name":"empty.md"}`},
		{"", "skills/list", ``},
		{"", "skills/get", `"uri":"skill://blank/SKILL.md"`},
		{"", "resources/directory/read", `"uri":"skill://blank/sub"`},
	}
	for _, world := range []struct {
		name string
		o    Options
	}{{"empty values", Options{Door: d, Catalogue: d, AgentSkills: agents}}, {"nothing there", Options{Door: &door{}, Catalogue: &door{}, AgentSkills: none}}} {
		web, s := listen(t, world.o)
		for _, revision := range served {
			for transport, say := range map[string]spoken{
				"http": overHTTP(t, web.URL, revision), "lines": overLines(t, s, skill.Local(), revision),
				"no scopes": overLines(t, s, skill.Principal{ID: "x", Tenant: "x"}, revision),
			} {
				t.Run(world.name+" "+revision+" "+transport, func(t *testing.T) {
					for _, a := range asked {
						_, _, text := say(t, request(revision, `7`, a.method, a.params))
						holds(t, revision, a.result, text)
					}
					if revision == stateless {
						_, _, text := say(t, request(revision, `7`, "server/discover", ""))
						holds(t, revision, "DiscoverResult", text)
					} else {
						_, _, text := say(t, request(revision, `7`, "ping", ""))
						holds(t, revision, "EmptyResult", text)
					}
				})
			}
		}
	}
}

// holds reports an answer that is not of the schema of a revision: a result of the named definition, or an error.
func holds(t *testing.T, revision, result, text string) {
	t.Helper()
	var a map[string]any
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Errorf("%v in %.300s", err, text)
		return
	}
	if a["error"] != nil {
		name := "JSONRPCErrorResponse"
		if revision < "2025-11-25" {
			name = "JSONRPCError"
		}
		if err := schemaOf(t, revision, name).Validate(a); err != nil {
			t.Errorf("%v in %.300s", err, text)
		}
		return
	}
	r, _ := a["result"].(map[string]any)
	if r == nil || revision == stateless && r["resultType"] != "complete" {
		t.Errorf("%s is not complete: %.300s", result, text)
	}
	if result == "" {
		return // the schema has no extensions
	}
	if err := schemaOf(t, revision, result).Validate(a["result"]); err != nil {
		t.Errorf("%v in %.300s", err, text)
	}
}
