package pyast_test

import (
	"strings"
	"testing"

	"openskill/host/pyast"
)

// An answer that a broken parser made up holds together, or is refused.
func TestForgedAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"cut off":             `{"functions":[{"name":"f"`,
		"not an object":       `[]`,
		"of other types":      `{"functions":{}}`,
		"its own parent":      `{"parsers":[{"parent":0}]}`,
		"a parent to come":    `{"parsers":[{"parent":1},{"parent":-1}]}`,
		"no such parser":      `{"parsers":[{"parent":-1,"parents":[7]}]}`,
		"a parser before all": `{"parsers":[{"parent":-1,"parents":[-1]}]}`,
		"two answers":         `{}{}`,
		"nested a lot":        `{"aliases":[{"value":` + strings.Repeat(`{"of":[`, 20_000) + strings.Repeat(`]}`, 20_000) + `}]}`,
	} {
		if m, err := pyast.Decode([]byte(answer)); err == nil {
			t.Errorf("%s: %+v, want an error", name, m)
		}
	}
	m, err := pyast.Decode([]byte(`{"functions":[{"decorators":[null],"returns":{"kind":"union","of":[null,{"kind":"generic","of":[null]}]},"parameters":[{"default":{"kind":"list","value":"x"},"annotation":{"kind":"name","value":1}}]}],
		"uses":[{"args":[null],"keywords":[{"name":"x"}]}],"parsers":[{"parent":-1,"arguments":[{"call":{"args":[null],"keywords":[{"value":{"kind":"call","keywords":[{"name":"y"}]}}]}}]}],
		"aliases":[{"value":` + strings.Repeat(`{"kind":"union","of":[`, 500) + strings.Repeat(`]}`, 500) + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	f := m.Functions[0]
	if f.Decorators[0] == nil || f.Returns.Of[0] == nil || f.Returns.Of[1].Of[0] == nil || m.Uses[0].Args[0] == nil || m.Uses[0].Keywords[0].Value == nil ||
		m.Parsers[0].Arguments[0].Call.Args[0] == nil || m.Parsers[0].Arguments[0].Call.Keywords[0].Value.Keywords[0].Value == nil {
		t.Error("an expression within another is nil")
	}
	if p := f.Parameters[0]; p.Default.Value != nil || p.Annotation.Value != nil {
		t.Errorf("%s, %s: values of other kinds", p.Default.Value, p.Annotation.Value)
	}
	depth := 0
	for e := m.Aliases[0].Value; e != nil; depth++ {
		if len(e.Of) == 0 {
			break
		}
		e = e.Of[0]
	}
	if depth > 70 {
		t.Errorf("%d deep", depth)
	}
}
