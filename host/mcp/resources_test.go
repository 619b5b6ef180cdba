package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

func TestURIs(t *testing.T) {
	for _, c := range []struct{ name, file, uri string }{
		{"unit-converter", "", "skill://unit-converter"},
		{"unit-converter", "SKILL.md", "skill://unit-converter/SKILL.md"},
		{"a", "scripts/x y.py", "skill://a/scripts/x%20y.py"},
		{"a", "ä/100%.md", "skill://a/%C3%A4/100%25.md"},
		{"a", "what?#.md", "skill://a/what%3F%23.md"},
	} {
		if got := uriOf(c.name, c.file); got != c.uri {
			t.Errorf("%s of %s is %s, want %s", c.file, c.name, got, c.uri)
		}
		if name, file, ok := parseURI(c.uri); !ok || name != c.name || file != c.file {
			t.Errorf("%s is %s of %s, %v", c.uri, file, name, ok)
		}
	}
	for _, uri := range []string{
		"", "skill://", "skill:///SKILL.md", "file:///etc/passwd", "skill://A/SKILL.md", "skill://a/", "skill://a//b", "skill://a/b/",
		"skill://a/../b/SKILL.md", "skill://a/..", "skill://a/.", "skill://a/%2e%2e/x", "skill://a/x%2Fy", "skill://a/x%5cy", "skill://a/%00",
		"skill://a/%zz", "skill://a/%ff", "skill://../a", "skill://a:80/x", "skill://u@a/x", "SKILL://a/x", "skill://" + strings.Repeat("a", 65) + "/x",
		"skill://a/" + strings.Repeat("x", 5000),
	} {
		if name, file, ok := parseURI(uri); ok {
			t.Errorf("%.60q is %q of %q", uri, file, name)
		}
	}
}

func TestResources(t *testing.T) {
	agents, root := folders(t, converter())
	musttest.Do(t, os.WriteFile(filepath.Join(root, "unit-converter", "references", "odd.md"), []byte{0xff, 0, 1}, 0o600))
	cs := connect(t, newServer(t, Options{AgentSkills: agents}), skill.Local(), nil)
	var uris []string
	for r, err := range cs.Resources(t.Context(), nil) {
		musttest.Do(t, err)
		uris = append(uris, r.URI)
		if r.URI == "skill://unit-converter/SKILL.md" && (r.Name != "unit-converter" || r.Description != "Converts units." || r.MIMEType != "text/markdown") {
			t.Errorf("%+v", r)
		}
	}
	want := []string{
		"skill://unit-converter/SKILL.md", "skill://unit-converter/references/more.csv", "skill://unit-converter/references/odd.md",
		"skill://unit-converter/references/table.md", "skill://unit-converter/scripts/convert.py",
	}
	if diff := cmp.Diff(want, uris); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for uri, text := range map[string]string{
		want[0]: converter()["unit-converter"]["SKILL.md"], want[1]: "a,b\n", want[3]: "| mile | km |\n", want[4]: "print(1)\n",
	} {
		got, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(got.Contents) != 1 || got.Contents[0].Text != text || got.Contents[0].URI != uri || got.Contents[0].MIMEType == "" {
			t.Errorf("%s: %+v, %v", uri, got, err)
		}
	}
	odd, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: want[2]})
	if err != nil || string(odd.Contents[0].Blob) != "\xff\x00\x01" || odd.Contents[0].Text != "" {
		t.Errorf("bytes that are no text: %+v, %v", odd, err)
	}
	templates, err := cs.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "skill://{skill}/{+path}" {
		t.Errorf("templates %+v, %v", templates, err)
	}
	for _, uri := range []string{
		"skill://nosuch/SKILL.md", "skill://unit-converter/nosuch.md", "skill://unit-converter", "skill://unit-converter/../../etc/passwd",
		"skill://unit-converter/%2e%2e/x", "file:///etc/passwd", "skill://unit-converter/scripts", "x", "",
	} {
		_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != jsonrpc.CodeInvalidParams || strings.Contains(wire.Message, root) {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// TestLargeResources holds that a file over the limit is refused by its size alone.
func TestLargeResources(t *testing.T) {
	agents, root := folders(t, converter())
	f, err := os.Create(filepath.Join(root, "unit-converter", "huge.md"))
	musttest.Do(t, err)
	if err := f.Truncate(20 << 20); err != nil { // takes no room on the disk
		t.Fatal(err)
	}
	musttest.Do(t, f.Close())
	cs := connect(t, newServer(t, Options{AgentSkills: agents}), skill.Local(), nil)
	_, err = cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "skill://unit-converter/huge.md"})
	if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || !strings.Contains(wire.Message, "16777216 bytes") || !strings.Contains(string(wire.Data), `"PAYLOAD_TOO_LARGE"`) {
		t.Errorf("%v", err)
	}
	got, err := getSkill(t, cs, "skill://unit-converter/SKILL.md")
	if err != nil || string(got.Skill.Resources) != `"dynamic"` {
		t.Errorf("a skill over the bounds of the extension: %+v, %v", got, err)
	}
}

// TestManyResources pages through skills whose files do not end at pages.
func TestManyResources(t *testing.T) {
	skills, want := map[string]map[string]string{}, []string{}
	for name, n := range map[string]int{"a": 150, "a-b": 0, "b": 99, "c": 100, "d": 101, "e": 1} {
		skills[name] = map[string]string{"SKILL.md": front(name, "x")}
		for i := range n {
			skills[name][fmt.Sprintf("f%03d.md", i)] = "x"
		}
	}
	for _, name := range []string{"a", "a-b", "b", "c", "d", "e"} {
		want = append(want, uriOf(name, "SKILL.md"))
		for i := range len(skills[name]) - 1 {
			want = append(want, uriOf(name, fmt.Sprintf("f%03d.md", i)))
		}
	}
	agents, _ := folders(t, skills)
	cs := connect(t, newServer(t, Options{AgentSkills: agents}), skill.Local(), nil)
	var got []string
	for r, err := range cs.Resources(t.Context(), nil) {
		musttest.Do(t, err)
		got = append(got, r.URI)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrompts(t *testing.T) {
	agents, _ := folders(t, converter())
	cs := connect(t, newServer(t, Options{AgentSkills: agents}), skill.Local(), nil)
	list, err := cs.ListPrompts(t.Context(), nil)
	if err != nil || len(list.Prompts) != 1 || list.Prompts[0].Name != "unit-converter" || list.Prompts[0].Description != "Converts units." {
		t.Fatalf("%+v, %v", list, err)
	}
	got, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "unit-converter", Arguments: map[string]string{"task": "26.2 miles to km"}})
	if err != nil || len(got.Messages) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	file, ok := got.Messages[0].Content.(*mcp.EmbeddedResource)
	if !ok || file.Resource.Text != converter()["unit-converter"]["SKILL.md"] {
		t.Errorf("%+v", got.Messages[0].Content)
	}
	if words := got.Messages[1].Content.(*mcp.TextContent).Text; !strings.HasSuffix(words, "for this task: 26.2 miles to km") {
		t.Errorf("%q", words)
	}
	if _, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "nosuch"}); err == nil {
		t.Error("a prompt that there is not was given")
	}
}

// The client's side of the Skills extension.
func listSkills(t *testing.T, cs *mcp.ClientSession, cursor string) (*listSkillsResult, error) {
	t.Helper()
	return mcp.CallCustomMethod[*listSkillsParams, *listSkillsResult](t.Context(), cs, "skills/list", &listSkillsParams{Cursor: cursor})
}

func getSkill(t *testing.T, cs *mcp.ClientSession, uri string) (*getSkillResult, error) {
	t.Helper()
	return mcp.CallCustomMethod[*getSkillParams, *getSkillResult](t.Context(), cs, "skills/get", &getSkillParams{URI: uri})
}

func readDirectory(t *testing.T, cs *mcp.ClientSession, uri string) (*directoryResult, error) {
	t.Helper()
	return mcp.CallCustomMethod[*directoryParams, *directoryResult](t.Context(), cs, "resources/directory/read", &directoryParams{URI: uri})
}

// TestSkillsExtension holds what the server says of a skill against its files.
func TestSkillsExtension(t *testing.T) {
	agents, root := folders(t, converter())
	cs := connect(t, newServer(t, Options{AgentSkills: agents}), skill.Local(), nil)
	list, err := listSkills(t, cs, "")
	if err != nil || len(list.Skills) != 1 || list.ResultType != "complete" || list.CacheScope != "private" {
		t.Fatalf("%+v, %v", list, err)
	}
	got, err := getSkill(t, cs, "skill://unit-converter/SKILL.md")
	if err != nil || got.ResultType != "complete" {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(list.Skills[0], got.Skill); diff != "" {
		t.Errorf("list and get differ:\n%s", diff)
	}
	var front map[string]any
	musttest.Do(t, json.Unmarshal(got.Skill.Frontmatter, &front))
	wantFront := map[string]any{
		"name": "unit-converter", "description": "Converts units.", "license": "MIT",
		"allowed-tools": "Read Bash(git:*)", "metadata": map[string]any{"version": "1.0"},
	}
	if diff := cmp.Diff(wantFront, front); diff != "" {
		t.Errorf("frontmatter (-want +got):\n%s", diff)
	}
	var digests []skillDigest
	if err := json.Unmarshal(got.Skill.Resources, &digests); err != nil || len(digests) != 4 || digests[0].URI != got.Skill.URI {
		t.Fatalf("%s, %v", got.Skill.Resources, err)
	}
	for _, d := range digests {
		read := musttest.Get(cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: d.URI}))(t)
		text := read.Contents[0].Text
		if want := digestOf(d.URI, []byte(text)); d != want {
			t.Errorf("%+v, and what is read is %+v", d, want)
		}
	}
	for _, uri := range []string{"", "skill://nosuch/SKILL.md", "skill://unit-converter", "skill://unit-converter/scripts/convert.py", "skill://unit-converter/../x/SKILL.md"} {
		_, err := getSkill(t, cs, uri)
		if wire := (*jsonrpc.Error)(nil); !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%q: %v", uri, err)
		}
	}

	// A skill that changes is another.
	musttest.Do(t, os.WriteFile(filepath.Join(root, "unit-converter", "scripts", "convert.py"), []byte("print(2, 3)\n"), 0o600))
	changed, err := getSkill(t, cs, "skill://unit-converter/SKILL.md")
	if err != nil || string(changed.Skill.Resources) == string(got.Skill.Resources) {
		t.Errorf("%s, %v, as before the change", changed.Skill.Resources, err)
	}
}

func TestDirectories(t *testing.T) {
	agents, _ := folders(t, converter())
	cs := connect(t, newServer(t, Options{AgentSkills: agents}), skill.Local(), nil)
	for uri, want := range map[string][]string{
		"skill://unit-converter": {
			"skill://unit-converter/SKILL.md text/markdown", "skill://unit-converter/references inode/directory", "skill://unit-converter/scripts inode/directory",
		},
		"skill://unit-converter/scripts": {"skill://unit-converter/scripts/convert.py"},
	} {
		res, err := readDirectory(t, cs, uri)
		if err != nil || res.ResultType != "complete" || len(res.Resources) != len(want) {
			t.Errorf("%s: %+v, %v", uri, res, err)
			continue
		}
		for i, r := range res.Resources {
			if !strings.HasPrefix(r.URI+" "+r.MIMEType, want[i]) {
				t.Errorf("%s: %+v, want %s", uri, r, want[i])
			}
		}
	}
	for _, uri := range []string{"", "skill://nosuch", "skill://unit-converter/", "skill://unit-converter/SKILL.md", "skill://unit-converter/script", "skill://unit-converter/.."} {
		_, err := readDirectory(t, cs, uri)
		if wire := (*jsonrpc.Error)(nil); !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// TestManySkills pages through entries.
func TestManySkills(t *testing.T) {
	skills, want := map[string]map[string]string{}, []string{}
	for i := range 45 {
		name := fmt.Sprintf("s%02d", i)
		skills[name] = map[string]string{"SKILL.md": front(name, "x")}
		want = append(want, uriOf(name, "SKILL.md"))
	}
	agents, _ := folders(t, skills)
	cs := connect(t, newServer(t, Options{AgentSkills: agents}), skill.Local(), nil)
	var got []string
	for cursor, more := "", true; more; more = cursor != "" {
		page := musttest.Get(listSkills(t, cs, cursor))(t)
		for _, e := range page.Skills {
			got = append(got, e.URI)
		}
		cursor = page.NextCursor
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
