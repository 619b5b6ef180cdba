package tools_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"openskill/host/agent/tools"
	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// updating reports whether the tables are to be written anew; the flag is declared in clean_test.go.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

func lines(t *testing.T, v any) string {
	t.Helper()
	b := musttest.Get(json.Marshal(v))(t)
	o := musttest.Get(ordered.Decode(b))(t)
	text := musttest.Get(ordered.Encode(o))(t)
	return string(text) + "\n"
}

// The tables in testdata: of each schema what is shown of it, and how each vendor has it.
func TestDialects(t *testing.T) {
	files, err := filepath.Glob("testdata/schemas/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		archive := musttest.Get(txtar.ParseFile(file))(t)
		parts := map[string]string{}
		for _, f := range archive.Files {
			parts[f.Name] = string(f.Data)
		}
		out := &txtar.Archive{Comment: archive.Comment}
		for _, f := range archive.Files {
			name, isSchema := strings.CutSuffix(f.Name, ".json")
			if !isSchema {
				continue
			}
			var text string
			if text = string(f.Data); strings.Contains(text, "\\x{") {
				t.Fatal("write \\u")
			}
			tool := tools.Of(&skill.Descriptor{ID: "x", Description: "d", InputSchema: json.RawMessage(text)})
			var b strings.Builder
			fmt.Fprintf(&b, "shown     %s\n", tool.InputSchema)
			for _, format := range tools.Formats() {
				v := musttest.Get(tools.Write(format, []skill.Tool{tool}))(t)
				fmt.Fprintf(&b, "%-9s %s\n", format, inner(t, v))
				for _, w := range tools.Warnings(format, []skill.Tool{tool}) {
					fmt.Fprintf(&b, "%-9s ! %s\n", "", w)
				}
			}
			out.Files = append(out.Files, f, txtar.File{Name: name + ".txt", Data: []byte(b.String())})
			if d := cmp.Diff(parts[name+".txt"], b.String()); d != "" && !updating() {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
		if updating() {
			musttest.Do(t, os.WriteFile(file, txtar.Format(out), 0o600))
		}
	}
}

// inner is the schema in a list of one tool, and that it is one.
func inner(t *testing.T, v any) string {
	t.Helper()
	list := musttest.Get(ordered.Decode([]byte(lines(t, v))))(t)
	all, _ := list.([]any)
	if len(all) == 0 {
		return "left out"
	}
	o, _ := all[0].(*ordered.Object)
	if f := o.Object("function"); f != nil {
		o = f
	}
	for _, key := range []string{"parameters", "input_schema", "inputSchema"} {
		if s := o.Object(key); s != nil {
			b := musttest.Get(ordered.Encode(s))(t)
			if _, errs := manifest.CompileSchema(b); len(errs) > 0 {
				t.Errorf("not a schema: %v\n%s", errs[0], b)
			}
			if o.Text("description") != "d" {
				t.Errorf("the description is %q", o.Text("description"))
			}
			return string(b)
		}
	}
	t.Fatalf("no schema in %s", lines(t, v))
	return ""
}

// The whole form of each dialect.
func TestForms(t *testing.T) {
	list := tools.All([]skill.Descriptor{
		{
			ID: "adds", Enabled: true, Runner: skill.WasmPython, Description: "Adds\nnumbers.",
			InputSchema:  json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["a"],"properties":{"b":{"type":"number"},"a":{"type":"number"}}}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"number"}}}`),
		},
		{ID: "off", Runner: skill.WasmWASI},
		{ID: "native", Enabled: true, Runner: skill.CLIPython},
	})
	for format, want := range map[string]string{
		"openai":    `[{"type":"function","function":{"name":"adds","description":"Adds numbers.","parameters":{"type":"object","required":["a"],"properties":{"b":{"type":"number"},"a":{"type":"number"}}}}},{"type":"function","function":{"name":"native","description":"native","parameters":{"type":"object","properties":{}}}}]`,
		"anthropic": `[{"name":"adds","description":"Adds numbers.","input_schema":{"type":"object","required":["a"],"properties":{"b":{"type":"number"},"a":{"type":"number"}}}},{"name":"native","description":"native","input_schema":{"type":"object","properties":{}}}]`,
		"mcp":       `[{"name":"adds","description":"Adds numbers.","inputSchema":{"type":"object","required":["a"],"properties":{"b":{"type":"number"},"a":{"type":"number"}}},"outputSchema":{"type":"object","properties":{"sum":{"type":"number"}}},"annotations":{"readOnlyHint":true}},{"name":"native","inputSchema":{"type":"object"}}]`,
	} {
		v := musttest.Get(tools.Write(format, list))(t)
		if d := cmp.Diff(want+"\n", lines(t, v)); d != "" {
			t.Errorf("%s (-want +got):\n%s", format, d)
		}
	}
	for _, format := range tools.Formats() {
		if v, err := tools.Write(format, nil); err != nil || lines(t, v) != "[]\n" {
			t.Errorf("%s of nothing: %v, %v", format, v, err)
		}
	}
	var e *skill.Error
	if _, err := tools.Write("gemini", nil); !errors.As(err, &e) || e.Code != skill.InvalidArgument || !strings.Contains(e.Message, "openai, anthropic, mcp") {
		t.Errorf("%v", err)
	}
}

// G03: no two tools have one name. Skills of a catalogue cannot, whose ids are their
// names; lists that are put together keep the first; and what has two is not written.
func TestG03OneToolOfAName(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"a", "b"} {
		musttest.Do(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
		text := "id: same\nversion: 0.1.0\ndescription: Of " + folder + ".\ntype: wasm\nruntime: python\nentry: main.py\n"
		musttest.Do(t, os.WriteFile(filepath.Join(dir, folder, "skill.yaml"), []byte(text), 0o600))
	}
	limits := skill.Limits{Timeout: 1, Memory: 1, Fuel: 1, Output: 1, Scratch: 1}
	r := musttest.Get(manifest.Open(manifest.Options{Roots: []manifest.Root{{Path: dir}}, Defaults: limits, Caps: limits}))(t)
	page, _, err := r.List("", 0)
	musttest.Do(t, err)
	list := tools.All(page)
	if len(list) != 1 || list[0].Description != "Of a." || len(r.Problems()) != 1 {
		t.Errorf("%v, %v", list, r.Problems())
	}
	all, left := tools.Join([]skill.Tool{{Name: "load_skill", Description: "ours"}}, []skill.Tool{{Name: "load_skill", Description: "theirs"}, {Name: "other"}})
	if len(all) != 2 || all[0].Description != "ours" || len(left) != 1 || left[0] != "load_skill" {
		t.Errorf("%v, left %v", all, left)
	}
	var e *skill.Error
	for _, format := range tools.Formats() {
		if _, err := tools.Write(format, []skill.Tool{{Name: "x"}, {Name: "x"}}); !errors.As(err, &e) || e.Code != skill.Conflict {
			t.Errorf("%s: %v", format, err)
		}
	}
	// An id is a name that every vendor takes.
	for _, id := range []string{"a", "a-b_c9", strings.Repeat("x", 64)} {
		if _, err := skill.ParseID(id); err != nil || tools.Of(&skill.Descriptor{ID: skill.ID(id)}).Name != id {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// G01: what cannot be seen is not shown, wherever it stands.
func TestG01NothingHidden(t *testing.T) {
	for name, hidden := range map[string]string{
		"zero width":    "\u200b",
		"right to left": "\u202e",
		"tags":          "\U000e0049\U000e0067\U000e006e",
		"variants":      "\U000e0101",
		"control":       "\x07",
		"escape":        "\x1b[31m",
		"soft hyphen":   "\u00ad",
		"fillers":       "\u3164",
	} {
		t.Run(name, func(t *testing.T) {
			b := musttest.Get(json.Marshal("see" + hidden + "n"))(t)
			s := strings.ReplaceAll(`{"title":S,"description":S,"properties":{"a":{"description":S,"enum":["x",S],"default":S,"examples":[S]},S:{"type":"string"},"o":{"type":"object","description":S,
				"properties":{"deep":{"anyOf":[{"const":S},{"items":{"description":S}}]}}}},"required":["a",S],"$defs":{"d":{"description":S}}}`, "S", string(b))
			d := &skill.Descriptor{ID: "x", Enabled: true, Description: "Reads" + hidden + "it.", InputSchema: json.RawMessage(s), OutputSchema: json.RawMessage(s)}
			for _, format := range tools.Formats() {
				v := musttest.Get(tools.Write(format, tools.All([]skill.Descriptor{*d})))(t)
				text := lines(t, v)
				if _, after, _ := strings.Cut(hidden, "\x1b"); after != "" {
					hidden = "\x1b" // what follows it can be seen
				}
				if strings.Contains(text, hidden) || strings.Contains(text, strings.Trim(string(b), `"`)) {
					t.Errorf("%s shows it: %q", format, text)
				}
				if !strings.Contains(text, `"enum":["x"]`) {
					t.Errorf("%s: %s", format, text)
				}
			}
		})
	}
}

// Text is cut, and schemas that refer to much of themselves end.
func TestBounds(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	tool := tools.Of(&skill.Descriptor{ID: "x", Description: long, InputSchema: json.RawMessage(`{"properties":{"a":{"description":"` + long + `"}}}`)})
	if len(tool.Description) > 1024 || len(tool.InputSchema) > 800 {
		t.Errorf("%d and %d bytes", len(tool.Description), len(tool.InputSchema))
	}
	var defs []string
	for i := range 30 { // each of the next twice
		defs = append(defs, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	words := `{"enum":["` + strings.Repeat(`word","`, 3000) + `"]}`
	for name, schema := range map[string]string{
		"a doubling chain": `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`,
		"a large enum": `{"properties":{"a":{"prefixItems":[` + strings.Repeat(`{"$ref":"#/$defs/b"},`, 400) + `{}]},"c":{"anyOf":[` +
			strings.Repeat(`{"$ref":"#/$defs/b"},`, 400) + `{}]}},"$defs":{"b":` + words + `}}`,
	} {
		tool = tools.Of(&skill.Descriptor{ID: "x", InputSchema: json.RawMessage(schema)})
		for _, format := range tools.Formats() {
			v := musttest.Get(tools.Write(format, []skill.Tool{tool}))(t)
			if n := len(lines(t, v)); n > 300_000 {
				t.Errorf("%s, %s: %d bytes", name, format, n)
			}
		}
	}
	for _, raw := range []string{"", "null", "[]", "{", `"x"`, "true", strings.Repeat(`{"a":`, 100_000)} {
		if s := tools.Schema(json.RawMessage(raw)); string(s) != `{"type":"object"}` {
			t.Errorf("%.20s: %s", raw, s)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}},"anyOf":[{"required":["a"]}]}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`)
	f.Add(`{"properties":[],"required":{},"enum":1,"items":[{}],"type":["array",1]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		list := []skill.Tool{tools.Of(&skill.Descriptor{ID: "x", InputSchema: json.RawMessage(raw)})}
		for _, format := range tools.Formats() {
			v := musttest.Get(tools.Write(format, list))(t)
			musttest.Get(json.Marshal(v))(t)
		}
	})
}
