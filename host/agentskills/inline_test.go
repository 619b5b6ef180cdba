package agentskills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

type conversion struct {
	Value  float64 `json:"value" description:"The value to convert."`
	Factor float64 `json:"factor" minimum:"0"`
}

func convert(_ context.Context, c conversion) (any, error) {
	return map[string]float64{"value": c.Value, "factor": c.Factor, "result": math.Round(c.Value*c.Factor*1e4) / 1e4}, nil
}

func TestTyped(t *testing.T) {
	t.Parallel()
	reads := 0
	type members struct {
		ConversionTable string                                         `resource:"" description:"Factors."`
		Reads           func() int                                     `resource:"reads"`
		Convert         func(context.Context, conversion) (any, error) `script:"convert" description:"Multiplies."`
		Any             any                                            `script:""`
		Other           string
		hidden          string `resource:"hidden"`
	}
	s := Typed(Frontmatter{Name: "unit-converter", Description: "Converts."}, "Use the table.", &members{
		ConversionTable: "| miles | 1.60934 |", Convert: convert, Reads: func() int { reads++; return reads }, Any: func() string { return "any" }, hidden: "x",
	})
	musttest.Do(t, s.Err())
	if diff := cmp.Diff([]string{"conversion-table", "reads"}, infoNames(resourceInfos(s))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"convert", "any"}, infoNames(scriptInfos(s))); diff != "" {
		t.Error(diff)
	}
	p := provide(t, memory(t, s), nil)
	if got := field(t, call(t, p, ToolRun, `{"skill_name": "unit-converter", "script_file": "convert", "args": {"value": 26.2, "factor": 1.60934}}`), "output"); got != `{"factor":1.60934,"result":42.1647,"value":26.2}` {
		t.Error(got)
	}
	if got := field(t, call(t, p, ToolRun, `{"skill_name": "unit-converter", "script_file": "convert", "args": ["--value", "-2", "--factor=3"]}`), "output"); !strings.Contains(got, `"result":-6`) {
		t.Error(got)
	}
	for _, want := range []string{"1", "2"} {
		if got := field(t, call(t, p, ToolRead, `{"skill_name": "unit-converter", "resource_name": "reads"}`), "content"); got != want {
			t.Errorf("%s, want %s: a function is asked each time", got, want)
		}
	}
	if got := field(t, call(t, p, ToolLoad, `{"skill_name": "unit-converter"}`), "content"); got != "---\nname: unit-converter\ndescription: \"Converts.\"\n---\n\nUse the table.\n" {
		t.Error(got)
	}
	r := p.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "unit-converter", Script: "any"})
	if r.Meta.Runner != "go:function" || !r.Success {
		t.Errorf("%+v", r)
	}
}

func TestInlineMistakes(t *testing.T) {
	t.Parallel()
	good := func() *InlineSkill { return inline("demo", "D") }
	type embedded struct{ conversion }
	type nested struct {
		In struct {
			N int `json:"n" default:"1"`
		} `json:"in"`
	}
	type endless struct {
		Next *endless `json:"next"`
	}
	for name, c := range map[string]struct {
		s    *InlineSkill
		want string
	}{
		"a bad name":             {inline("Demo", "D"), "is not a valid skill name"},
		"no description":         {inline("demo", ""), "description is empty"},
		"too long":               {NewInline(Frontmatter{Name: "demo", Description: "D"}, strings.Repeat("x", MaxContent)), "more than"},
		"two resources":          {good().AddResource("a", 1, "").AddResource("a", 2, ""), "two resources a"},
		"two scripts":            {good().AddScript("a", func() {}, "").AddScript("a", func() {}, ""), "two scripts a"},
		"a path":                 {good().AddResource("../a", 1, ""), "cannot be the name"},
		"a script's path":        {good().AddScript("/a", func() {}, ""), "cannot be the name"},
		"nil":                    {good().AddResource("a", nil, ""), "has no value"},
		"a channel":              {good().AddResource("a", make(chan int), ""), "JSON"},
		"a resource's parameter": {good().AddResource("a", func(conversion) string { return "" }, ""), "takes no parameters"},
		"no function":            {good().AddScript("a", "x", ""), "needs a function"},
		"a nil function":         {good().Add(NewScript[conversion]("a", "", nil)), "needs a function"},
		"two parameters":         {good().AddScript("a", func(conversion, conversion) {}, ""), "one struct"},
		"a number":               {good().AddScript("a", func(int) {}, ""), "one struct"},
		"variadic":               {good().AddScript("a", func(...conversion) {}, ""), "one struct"},
		"three results":          {good().AddScript("a", func() (int, int, error) { return 0, 0, nil }, ""), "then an error"},
		"two values":             {good().AddScript("a", func() (int, int) { return 0, 0 }, ""), "then an error"},
		"embedded":               {good().AddScript("a", func(embedded) {}, ""), "embedded"},
		"a default within":       {good().AddScript("a", func(nested) {}, ""), "only parameters have defaults"},
		"an endless type":        {good().AddScript("a", func(endless) {}, ""), "nested more than"},
		"a function as one":      {good().AddScript("a", func(struct{ F func() }) {}, ""), "cannot write values of func() as JSON"},
		"a map of numbers":       {good().AddScript("a", func(struct{ M map[int]int }) {}, ""), "keys must be text"},
		"minimum of text": {good().AddScript("a", func(struct {
			S string `minimum:"1"`
		}) {
		}, ""), "only numbers"},
		"a wrong default": {good().AddScript("a", func(struct {
			N int `default:"x"`
		}) {
		}, ""), "is no integer"},
		"no struct": {Typed(Frontmatter{Name: "demo", Description: "D"}, "", 1), "needs a struct"},
	} {
		if err := c.s.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, err := NewInMemory(c.s); err == nil {
			t.Errorf("%s: a source takes it", name)
		}
	}
	if _, err := NewInMemory(nil); err == nil {
		t.Error("a source takes nil")
	}
}

// What functions can look like, and what each gives.
func TestScriptForms(t *testing.T) {
	t.Parallel()
	fails := errors.New("of the function")
	s := inline("demo", "D").
		AddScript("nothing", func() {}, "").
		AddScript("value", func() int { return 1 }, "").
		AddScript("only-error", func() error { return fails }, "").
		AddScript("no-error", func() error { return nil }, "").
		AddScript("both", func(context.Context) (string, error) { return "x", nil }, "").
		AddScript("coded", func() error { return &skill.Error{Code: skill.Conflict, Message: "taken"} }, "").
		AddScript("panics", func() { panic("secret") }, "").
		AddScript("waits", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "")
	p := provide(t, memory(t, s), nil)
	run := func(name string) *skill.Result {
		return p.RunScript(t.Context(), skill.Local(), skill.ScriptRequest{Skill: "demo", Script: name, Limits: skill.Limits{Timeout: 20 * time.Millisecond}})
	}
	for name, want := range map[string]string{"nothing": "", "value": "1", "no-error": "", "both": "x"} {
		if got := field(t, run(name), "output"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]skill.Code{"only-error": skill.ToolInvocationError, "coded": skill.Conflict, "panics": skill.Internal, "waits": skill.Timeout} {
		r := run(name)
		if r.Error == nil || r.Error.Code != want || strings.Contains(r.Error.Message, "secret") {
			t.Errorf("%s: %+v, want %s", name, r.Error, want)
		}
	}
}

func TestParameters(t *testing.T) {
	t.Parallel()
	type inner struct {
		X int `json:"x"`
	}
	type all struct {
		Text     string            `json:"text" description:"Some \"text\"."`
		Kind     string            `json:"kind" enum:"a, b" default:"a"`
		Count    int               `json:"count,omitempty" minimum:"0" maximum:"10"`
		Ratio    *float64          `json:"ratio"`
		Flag     bool              `json:"flag" default:"false"`
		List     []int             `json:"list,omitempty"`
		Map      map[string]string `json:"map,omitempty"`
		In       inner             `json:"in,omitzero"`
		When     time.Time         `json:"when,omitzero"`
		Raw      json.RawMessage   `json:"raw,omitempty"`
		Bytes    []byte            `json:"bytes,omitempty"`
		Left     string            `json:"-"`
		Untagged string            `default:"u"`
		hidden   int
	}
	s := NewScript("all", "", func(_ context.Context, a all) (any, error) { a.hidden++; return a, nil })
	if s.err != nil {
		t.Fatal(s.err)
	}
	const want = `{"type":"object","properties":{"text":{"type":"string","description":"Some \"text\"."},` +
		`"kind":{"type":"string","enum":["a","b"],"default":"a"},"count":{"type":"integer","minimum":0,"maximum":10},` +
		`"ratio":{"type":"number"},"flag":{"type":"boolean","default":false},"list":{"type":"array","items":{"type":"integer"}},` +
		`"map":{"type":"object","additionalProperties":{"type":"string"}},"in":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},` +
		`"when":{"type":"string","format":"date-time"},"raw":{},"bytes":{"type":"string","contentEncoding":"base64"},"Untagged":{"type":"string","default":"u"}},` +
		`"required":["text"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(s.Info().Parameters)); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct {
		object string
		args   []string
		want   string // a part of the output, or of the message
		ok     bool
	}{
		"the least":          {object: `{"text": "x"}`, want: `"text":"x","kind":"a","ratio":null,"flag":false`, ok: true},
		"the default":        {object: `{"text": "x"}`, want: `"Untagged":"u"`, ok: true},
		"given":              {object: `{"text": "x", "kind": "b", "count": 3, "in": {"x": 1}, "raw": [1]}`, want: `"kind":"b","count":3`, ok: true},
		"by name":            {args: []string{"--text", "1", "--count=7", "--flag", "--list", "1", "2", "--ratio", "0.5"}, want: `"text":"1","kind":"a","count":7,"ratio":0.5,"flag":true,"list":[1,2]`, ok: true},
		"a list twice":       {args: []string{"--text", "x", "--list=1", "--list", "2"}, want: `"list":[1,2]`, ok: true},
		"an object by name":  {args: []string{"--text", "x", "--in", `{"x": 4}`}, want: `"in":{"x":4}`, ok: true},
		"a flag's value":     {args: []string{"--text", "x", "--flag=false"}, want: `"flag":false`, ok: true},
		"missing":            {object: `{}`, want: "text"},
		"not in the list":    {object: `{"text": "x", "kind": "c"}`, want: "kind"},
		"over the maximum":   {object: `{"text": "x", "count": 11}`, want: "count"},
		"not a whole number": {object: `{"text": "x", "count": 1.5}`, want: "count"},
		"a wrong type":       {object: `{"text": 1}`, want: "text"},
		"too large for int":  {object: `{"text": "x", "list": [1e300]}`, want: "fit"},
		"an unknown one":     {object: `{"text": "x", "txt": 1}`, want: "txt"},
		"a key twice":        {object: `{"text": "x", "text": "y"}`, want: "do not fit"},
		"positional":         {args: []string{"x"}, want: "takes its arguments by name"},
		"no such name":       {args: []string{"--txt", "x"}, want: `no parameter "txt"; its parameters are text, kind`},
		"a name's value":     {args: []string{"--text"}, want: "--text needs a value"},
		"text for a number":  {args: []string{"--text", "x", "--count", "many"}, want: "count"},
	} {
		var object json.RawMessage
		if c.object != "" {
			object = json.RawMessage(c.object)
		}
		v, err := s.Run(t.Context(), nil, &Call{Object: object, Args: c.args})
		if c.ok {
			b, mErr := json.Marshal(v)
			if err != nil || mErr != nil || !strings.Contains(string(b), c.want) {
				t.Errorf("%s: %s, %v; want %s", name, b, err, c.want)
			}
			continue
		}
		if skill.CodeOf(err) != skill.InvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, v, err, c.want)
		}
	}
}

func TestResourceForms(t *testing.T) {
	t.Parallel()
	s := inline("demo", "D").
		AddResource("text.md", "x", "").AddResource("bytes", []byte("y"), "").AddResource("json", map[string]int{"a": 1}, "").
		AddResource("f1", func(context.Context) (any, error) { return "1", nil }, "").
		AddResource("f2", func(context.Context) (string, error) { return "2", nil }, "").
		AddResource("f3", func(context.Context) ([]byte, error) { return []byte("3"), nil }, "").
		AddResource("f4", func() []int { return []int{4} }, "").
		AddResource("fails", func() error { return errors.New("gone") }, "").
		AddResource("panics", func() string { panic("secret") }, "").
		AddResource("large", func() string { return strings.Repeat("x", DefaultMaxResource+1) }, "")
	p := provide(t, memory(t, s), nil)
	for name, want := range map[string]string{"text.md": "x text/markdown", "bytes": "y text/plain", "json": `{"a":1} text/plain`, "f1": "1 text/plain", "f2": "2 text/plain", "f3": "3 text/plain", "f4": "[4] text/plain"} {
		r, err := p.ReadResource(t.Context(), skill.Local(), "demo", name)
		if got := fmt.Sprintf("%s %s", r.Data, r.MediaType); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
	for name, code := range map[string]skill.Code{"fails": skill.ToolInvocationError, "panics": skill.Internal, "large": skill.PayloadTooLarge} {
		if _, err := p.ReadResource(t.Context(), skill.Local(), "demo", name); skill.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
}
