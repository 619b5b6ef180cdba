package capability_test

import (
	"encoding/json"
	"testing"

	"openskill/host/capability"
	"openskill/host/pyast"
	"openskill/host/registry/schema"
)

// What the sandbox answers may be forged by the code that it reads: whatever it is, tools
// are made of it or not, and each schema can be compiled or is refused.
func FuzzModule(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `{"error":{"kind":"syntax","line":1}}`,
		`{"functions":[{"name":"f","path":"f","parameters":[{"name":"a","kind":"keyword_only","annotation":{"kind":"generic","name":"typing.Annotated","of":[{"kind":"name","name":"int"},{"kind":"call","name":"annotated_types.Len","of":[null,{"kind":"value","value":3}],"keywords":[{"name":"ge","value":null}]}]},"default":{"kind":"value","value":[1]}}],"returns":{"kind":"union","of":[null]}}]}`,
		`{"functions":[{"name":"f","path":"f","parameters":[{"name":"a","kind":"x","annotation":{"kind":"name","name":"A"}},{"name":"b","annotation":{"kind":"generic","name":"Literal","of":[{"kind":"name","name":"E.X"},{"kind":"value","value":null}]},"default":{"kind":"name","name":"E.X.value"}}]}],"classes":[{"name":"A","path":"A","bases":[{"name":"A"},null],"decorators":[{"kind":"name","name":"dataclass"}],"fields":[{"name":"x","annotation":{"kind":"name","name":"A"}}]},{"name":"E","path":"E","bases":[{"name":"enum.Enum"}],"fields":[{"name":"X","default":{"kind":"value","value":"\u200b"}}]}]}`,
		`{"aliases":[{"name":"T","value":{"kind":"call","name":"typing.TypedDict","of":[null,{"kind":"dict","keys":[{"kind":"value","value":"a"}],"of":[]}]}},{"name":"N","value":{"kind":"call","name":"namedtuple","of":[null,{"kind":"list","of":[{"kind":"tuple","of":[null,null]}]}]}},{"name":"E","value":{"kind":"call","name":"enum.Enum","of":[null,{"kind":"dict","value":{"a":[1]}}]}}],"functions":[{"name":"f","path":"f","parameters":[{"name":"a","annotation":{"kind":"name","name":"T"}},{"name":"b","annotation":{"kind":"name","name":"N"}},{"name":"c","annotation":{"kind":"name","name":"E"}}]}]}`,
		`{"parsers":[{"parent":-1,"arguments":[{"call":{"args":[{"kind":"value","value":"--x"}],"keywords":[{"name":"nargs","value":{"kind":"value","value":99999999999}},{"name":"choices","value":{"kind":"call","name":"range","of":[null]}},{"name":"type","value":null}]}}],"subparsers":[{"call":{}}]},{"parent":0,"command":"c","parents":[0]}]}`,
	} {
		f.Add([]byte(seed), "Does.\n\nArgs:\n    a (int): x", `{"x": 1}`)
	}
	f.Fuzz(func(t *testing.T, answer []byte, doc, object string) {
		m, err := pyast.Decode(answer)
		if err != nil {
			return
		}
		for i := range m.Functions {
			m.Functions[i].Docstring += doc
			fn, problems := capability.Extract(m, m.Functions[i].Name)
			switch {
			case fn == nil && len(problems) == 0:
				t.Error("no tool, and nothing says why")
			case fn != nil && (!json.Valid(fn.Input) || !json.Valid(fn.Output)):
				t.Errorf("%s, %s", fn.Input, fn.Output)
			case fn != nil:
				schema.Compile(fn.Input)
				schema.Compile(fn.Output)
			}
		}
		if s := capability.Command(m); s != nil {
			if !json.Valid(s.Input) {
				t.Errorf("%s", s.Input)
			}
			_, _ = s.Arguments([]byte(object))
		}
	})
}
