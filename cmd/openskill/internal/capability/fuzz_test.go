package capability_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"openskill/cmd/openskill/internal/capability"
	"openskill/host/manifest"
	"openskill/host/pysource"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// forged is an analyzer whose sandbox answers with this text.
type forged []byte

func (f forged) Ask(context.Context, string, []byte, pysource.Question) (*pysource.Module, error) {
	m := &pysource.Module{}
	return m, json.Unmarshal(f, m)
}

func TestRefusesForgedAnswers(t *testing.T) {
	declared := musttest.Get(capability.ParseDeclared([]byte(`{"parameters": [{"name": "x", "description": "said"}], "returns": {"description": "said"}}`)))(t)
	for _, answer := range []string{
		`{}`, `{"function":null}`, `{"function":{"name":"f"}}`, `{"function":{"input_schema":{"properties":{}},"output_schema":{"properties":{}}}}`,
		`{"function":{"name":"f","input_schema":{"properties":{}},"output_schema":[]}}`,
		`{"function":{"name":"f","input_schema":{"properties":[]},"output_schema":{"properties":{}}}}`,
		`{"function":{"name":"f","input_schema":{"properties":` + strings.Repeat(`{"x":`, 100) + `1` + strings.Repeat("}", 100) + `},"output_schema":{"properties":{}}}}`,
	} {
		mk := capability.New(capability.Options{Analyzer: forged(answer)})
		made, problems, err := mk.Make(t.Context(), &capability.Source{File: "a.py", Function: "f", Declared: declared})
		if skill.CodeOf(err) != skill.Internal {
			t.Errorf("%s: %+v, %v, %v; want INTERNAL_ERROR", answer, made, problems, err)
		}
	}
	if s, problems, err := capability.Command(t.Context(), forged(`{"script":{"input_schema":{"type":"array"}}}`), "test", nil); skill.CodeOf(err) != skill.Internal {
		t.Errorf("%+v, %v, %v; want INTERNAL_ERROR", s, problems, err)
	}
}

// What the sandbox answers may be forged by the code that it reads: whatever it is, skills
// are made of it or not, and each schema can be compiled or is refused.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"error":{"kind":"syntax","line":1}}`, `{"problems":[{"line":-1,"message":"\u202e"}]}`, `{"function":null,"script":null}`,
		`{"function":{"name":"f","input_schema":{},"output_schema":null}}`,
		`{"function":{"name":"f","input_schema":{"properties":[]},"output_schema":{"properties":{"result":1}},"parameters":[["a"],[]]},"script":{"input_schema":{"properties":{"x":null}}}}`,
		`{"function":{"name":"..","description":"\u200b","input_schema":{"type":"object","properties":{"x":{"type":"x","pattern":"(?=a)","description":1}}},"output_schema":{"properties":{}}}}`,
		`{"function":{"name":"f","line":-5,"input_schema":{"type":"object","properties":{"x":{"$ref":"#/$defs/x"}},"required":["y"],"$defs":{"x":{"$ref":"#/$defs/x"}}},"output_schema":{"properties":{"result":{}}},"hinted":["x"],"notes":["\u202e"]},"imports":[{"module":""}]}`,
		`{"script":{"input_schema":{"properties":{}},"command":"c","options":[{"name":"x","flag":"-","list":true,"repeat":true},{"name":"x","count":true,"subcommand":"c"}]}}`,
	} {
		f.Add([]byte(seed), `{"x": 1, "c": "c"}`)
	}
	declared := musttest.Get(capability.ParseDeclared([]byte(`{"parameters": [{"name": "x", "type": "string", "description": "said", "default": 1}], "returns": {"description": "said"}}`)))(f)
	f.Fuzz(func(t *testing.T, answer []byte, object string) {
		fn, problems, err := capability.Extract(t.Context(), forged(answer), "test", nil, "f")
		switch {
		case err == nil && fn == nil && len(problems) == 0:
			t.Error("no tool, and nothing says why")
		case fn != nil && (!json.Valid(fn.Input) || !json.Valid(fn.Output)):
			t.Errorf("%s, %s", fn.Input, fn.Output)
		}
		mk := capability.New(capability.Options{Analyzer: forged(answer)})
		made, problems, err := mk.Make(t.Context(), &capability.Source{File: "a.py", Function: "f", Declared: declared})
		if made == nil && len(problems) == 0 && err == nil {
			t.Error("no skill, and nothing says why")
		}
		if made != nil {
			for _, s := range [][]byte{made.Function.Input, made.Function.Output} {
				if _, errs := manifest.CompileSchema(s); len(errs) > 0 {
					t.Errorf("%s: %v", s, errs[0])
				}
			}
		}
		if s, _, err := capability.Command(t.Context(), forged(answer), "test", nil); err == nil && s != nil {
			if !json.Valid(s.Input) {
				t.Errorf("%s", s.Input)
			}
			_, _ = s.Arguments([]byte(object))
		}
	})
}
