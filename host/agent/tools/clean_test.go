package tools

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

var update = flag.Bool("update", false, "write the table anew")

// G01: what models see of what strangers wrote, as a table to read.
func TestG01Descriptors(t *testing.T) {
	const file = "testdata/descriptors.txtar"
	from := musttest.Get(txtar.ParseFile(file))(t)
	want := map[string]string{}
	for _, f := range from.Files {
		want[f.Name] = string(f.Data)
	}
	to := &txtar.Archive{Comment: from.Comment}
	for _, f := range from.Files {
		name, ok := strings.CutSuffix(f.Name, ".json")
		if !ok {
			continue
		}
		var d skill.Descriptor
		if err := json.Unmarshal(f.Data, &d); err != nil {
			t.Fatal(f.Name, err)
		}
		tool := toolOf(&d)
		got := fmt.Sprintf("%s: %s\n%s\n", tool.Name, tool.Description, tool.InputSchema)
		if anyMark.MatchString(got) || strings.Contains(got, `:"obey`) || strings.Contains(got, `"ignore`) || tool.OutputSchema != nil {
			t.Errorf("%s shows what it must not:\n%s", name, got)
		}
		if _, problems := manifest.CompileSchema(tool.InputSchema); len(problems) > 0 {
			t.Errorf("%s is no schema any more: %v", name, problems[0])
		}
		to.Files = append(to.Files, f, txtar.File{Name: name + ".txt", Data: []byte(got)})
		if diff := cmp.Diff(want[name+".txt"], got); diff != "" && !*update {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if *update {
		musttest.Do(t, os.WriteFile(file, txtar.Format(to), 0o600))
	}
}

// What is long is cut; a schema that is long loses its words first, and then all.
func TestLengths(t *testing.T) {
	long := strings.Repeat("长 words ", 500)
	tool := toolOf(&skill.Descriptor{ID: "x", Description: long, InputSchema: []byte(`{"properties":{"a":{"description":"` + long + `","enum":["` + long + `","b"],"default":"` + long + `","pattern":"` + strings.Repeat("a", 301) + `"}}}`)})
	if len(tool.Description) > maxDescription || len(tool.Description) < maxDescription-4 || !strings.HasSuffix(tool.Description, "…") {
		t.Errorf("a description of %d bytes", len(tool.Description))
	}
	o := musttest.Get(ordered.DecodeObject(tool.InputSchema))(t)
	a := o.Object("properties").Object("a")
	if d := a.Text("description"); len(d) > maxWords || len(d) < maxWords-4 || len(a.List("enum")) != 1 || a.Has("default") || a.Has("pattern") {
		t.Errorf("%s", tool.InputSchema)
	}
	many := func(n int, description string) json.RawMessage {
		o := &ordered.Object{}
		for i := range n {
			o.Set(fmt.Sprintf("p%d", i), ordered.Of("type", "string", "description", description))
		}
		return musttest.Get(ordered.Encode(ordered.Of("type", "object", "description", "D", "properties", o)))(t)
	}
	for _, c := range []struct {
		n, properties int
		words         bool
	}{{20, 20, true}, {100, 100, false}, {1000, 0, false}} {
		made := schemaOf(many(c.n, strings.Repeat("w", 200)))
		o, err := ordered.DecodeObject(made)
		if err != nil || len(made) > maxSchema {
			t.Fatalf("%d bytes, %v", len(made), err)
		}
		n := 0
		if p := o.Object("properties"); p != nil {
			n = len(p.Members)
		}
		if n != c.properties || strings.Contains(string(made), "description") != c.words {
			t.Errorf("of %d properties %d are shown: %.200s", c.n, n, made)
		}
	}
	for _, raw := range []string{"", "null", "{", `"x"`, strings.Repeat(`{"not":`, 60) + "{}" + strings.Repeat("}", 60), `{"description":"` + strings.Repeat("a", 100_000) + `"}`} {
		if made := schemaOf(json.RawMessage(raw)); !strings.HasPrefix(string(made), `{"type":"object"`) || len(made) > 500 {
			t.Errorf("%.40s: %s", raw, made)
		}
	}
}

// FuzzSchema: whatever a schema says, what is shown of it is a short object that hides
// nothing and holds no marks.
func FuzzSchema(f *testing.F) {
	from := musttest.Get(txtar.ParseFile("testdata/descriptors.txtar"))(f)
	for _, file := range from.Files {
		var d skill.Descriptor
		if json.Unmarshal(file.Data, &d) == nil {
			f.Add([]byte(d.InputSchema), d.Description)
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, description string) {
		tool := toolOf(&skill.Descriptor{ID: "x", Description: description, InputSchema: raw})
		o, err := ordered.DecodeObject(tool.InputSchema)
		if err != nil || o.Text("type") != "object" || len(tool.InputSchema) > maxSchema || len(tool.Description) > maxDescription || !utf8.ValidString(tool.Description) {
			t.Fatalf("%v: %s\n%s", err, tool.Description, tool.InputSchema)
		}
		if s := string(tool.InputSchema) + tool.Description; anyMark.MatchString(s) || skill.CleanText(s, len(s)) != strings.TrimSpace(s) {
			t.Fatalf("it shows %q", s)
		}
		for _, format := range Formats() {
			musttest.Get(Write(format, []skill.Tool{tool}))(t)
		}
		list := []field{{Field: "/a/0", Problem: "is missing"}, {Field: "/a/b", Problem: "is not known"}, {Field: "/a", Problem: "is a string", Expected: "integer"}, {Problem: "x"}}
		advise(tool.InputSchema, json.RawMessage(`{"a":{"b":"1"}}`), list)
	})
}
