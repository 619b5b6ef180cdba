package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"openskill/host/pyast"
	"openskill/host/tools/ordered"
	"openskill/sdk/skill"
)

// A Problem is one thing that keeps code from being a tool. It is written for the author.
type Problem struct {
	File    string `json:"file"` // as it was named; "" where there is one alone
	Line    int    `json:"line"` // from 1; 0: the whole
	Message string `json:"message"`
}

func at(line int, message string) Problem { return Problem{Line: line, Message: message} }

// String gives file:line: message.
func (p Problem) String() string {
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	case p.File != "":
		return p.File + ": " + p.Message
	case p.Line > 0:
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return p.Message
}

// Function is a function as a tool: what it takes and gives, in JSON Schema 2020-12.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"` // of its docstring, or of its module's; ""
	Line        int             `json:"line"`
	Input       json.RawMessage `json:"input_schema"`  // of an object with its parameters
	Output      json.RawMessage `json:"output_schema"` // of {"result": …}
	// Notes say what was left out, or accepts anything: parameters that no JSON could be given
	// for, or whose type no schema says.
	Notes []string `json:"notes,omitempty"`
	// Types tells whether any parameter has a type that was said, and not guessed.
	Types bool `json:"types"`

	hinted map[string]bool // the parameters with type hints
}

// Extract makes a tool of a function at the top of a module. With name "" it is the one
// public function that there is, or else one of the names main, run, execute and
// entry. Without problems the function is not nil.
func Extract(m *pyast.Module, name string) (*Function, []Problem) {
	f, problems := find(m, name)
	if f == nil {
		return nil, problems
	}
	t := newTyper(m, false)
	out := &Function{Name: f.Name, Line: f.Line}
	docs := parseDoc(f.Docstring)
	for _, text := range []string{docs.summary, parseDoc(m.Docstring).summary} {
		if out.Description == "" {
			out.Description = skill.CleanText(text, maxDescription)
		}
	}
	for _, p := range f.TypeParams {
		t.vars[p.Name] = p.Bound
	}
	var input *ordered.Object
	err := t.whole(func() error {
		out.Notes, problems, out.Types, out.hinted = nil, nil, false, map[string]bool{}
		input = t.input(f, docs, out, &problems)
		return nil
	})
	if err != nil || len(problems) > 0 {
		return nil, problems
	}
	out.Notes = append(out.Notes, t.notes...)
	if len(t.defs.Members) > 0 {
		input.Set("$defs", t.defs)
	}
	if out.Input, err = ordered.Encode(input); err != nil {
		return nil, []Problem{at(f.Line, "the schema of "+f.Name+" cannot be written")}
	}
	if out.Output, err = ordered.Encode(output(m, f, docs)); err != nil {
		return nil, []Problem{at(f.Line, "the schema of what "+f.Name+" gives cannot be written")}
	}
	return out, nil
}

// Broken tells what keeps a source from being read; nil where nothing does.
func Broken(m *pyast.Module) []Problem {
	if m.Problem == nil {
		return nil
	}
	what := map[string]string{"syntax": "this is not Python: ", "encoding": "the text is not in the encoding that it says: "}[m.Problem.Kind]
	return []Problem{at(m.Problem.Line, what+skill.CleanText(m.Problem.Message, 200))}
}

// find chooses the function.
func find(m *pyast.Module, name string) (*pyast.Function, []Problem) {
	if problems := Broken(m); problems != nil {
		return nil, problems
	}
	var public []string
	for i := range m.Functions {
		if f := &m.Functions[i]; f.Path == f.Name && !strings.HasPrefix(f.Name, "_") && !slices.Contains(public, f.Name) {
			public = append(public, f.Name)
		}
	}
	there := "there is none"
	if len(public) > 0 {
		there = "there are " + strings.Join(public[:min(len(public), 20)], ", ")
	}
	if name == "" {
		switch {
		case len(public) == 1:
			name = public[0]
		default:
			for _, usual := range []string{"main", "run", "execute", "entry"} {
				if name == "" && slices.Contains(public, usual) {
					name = usual
				}
			}
		}
		if name == "" {
			return nil, []Problem{at(0, "it is not clear which function is meant; "+there)}
		}
	}
	f := m.Function(name)
	shown := skill.CleanText(name, 80)
	switch {
	case strings.HasPrefix(name, "_"):
		return nil, []Problem{at(lineOf(f), shown+" is private: its name begins with _, and others may change it without a word; give it a public name")}
	case f == nil && m.Class(name) != nil:
		return nil, []Problem{at(m.Class(name).Line, shown+" is a class; a tool is a function; "+there)}
	case f == nil && m.Alias(name) != nil:
		return nil, []Problem{at(m.Alias(name).Line, shown+" is not made by def, so that its parameters cannot be read; "+there)}
	case f == nil:
		return nil, []Problem{at(0, "there is no function "+shown+" at the top of the file; "+there)}
	}
	return f, nil
}

func lineOf(f *pyast.Function) int {
	if f == nil {
		return 0
	}
	return f.Line
}

// input makes the schema of the parameters, and gathers what is wrong with them.
func (t *typer) input(f *pyast.Function, docs docstring, out *Function, problems *[]Problem) *ordered.Object {
	props := &ordered.Object{}
	var required []any
	var more any = false // additionalProperties
	for i := range f.Parameters {
		p := &f.Parameters[i]
		doc := docs.params[p.Name]
		s, err := t.parameter(p, doc, out)
		switch {
		case err == nil:
		case errors.Is(err, errTooMany):
			s = &ordered.Object{}
			out.Notes = append(out.Notes, p.Name+" accepts anything: "+err.Error())
		case p.Default != nil || p.Kind == pyast.VarPositional || p.Kind == pyast.VarKeyword:
			out.Notes = append(out.Notes, fmt.Sprintf("%s is left out, and keeps its default: %s", p.Name, err))
			continue
		default:
			*problems = append(*problems, at(p.Line, fmt.Sprintf("the parameter %s of %s cannot be given: %s; give it a default, or another type", p.Name, f.Name, err)))
			continue
		}
		switch p.Kind {
		case pyast.VarPositional:
			list := typed("array", "items", s)
			describe(list, doc.text)
			props.Set(p.Name, list)
			continue
		case pyast.VarKeyword:
			if inner := t.resolved(s).Object("properties"); p.Annotation != nil && canonical(p.Annotation.Name) == "Unpack" && inner != nil {
				for _, m := range inner.Members {
					props.Set(m.Key, m.Value)
				}
				required = append(required, t.resolved(s).List("required")...)
				continue
			}
			more = s
			if len(s.Members) == 0 {
				more = true
			}
			continue
		}
		if p.Default != nil {
			t.parameterDefault(s, p)
		} else {
			required = append(required, p.Name)
		}
		describe(s, doc.text)
		props.Set(p.Name, s)
	}
	s := typed("object", "properties", props)
	if len(required) > 0 {
		s.Set("required", required)
	}
	s.Set("additionalProperties", more)
	return s
}

// parameter makes the schema of one parameter: of its hint, of its docstring, or of its
// default.
func (t *typer) parameter(p *pyast.Parameter, doc docParam, out *Function) (*ordered.Object, error) {
	if p.Annotation != nil {
		out.Types, out.hinted[p.Name] = true, true
		if canonical(p.Annotation.Name) == "Unpack" && len(p.Annotation.Of) == 1 {
			return t.schema(p.Annotation.Of[0])
		}
		return t.schema(p.Annotation)
	}
	if doc.kind != "" {
		if s := t.docType(doc.kind); len(s.Members) > 0 {
			out.Types = true
			return s, nil
		}
	}
	v := t.literalOf(p.Default)
	if v == nil && p.Default != nil {
		switch p.Default.Kind {
		case pyast.KindList, pyast.KindTuple:
			return typed("array", "items", &ordered.Object{}), nil
		case pyast.KindDict:
			return typed("object"), nil
		}
	}
	switch w := wordOf(v); {
	case v == nil || w == "null":
		return &ordered.Object{}, nil
	case w == "integer": // x=0 says nothing against 0.5
		return typed("number"), nil
	case w == "array":
		return typed("array", "items", &ordered.Object{}), nil
	default:
		return typed(w), nil
	}
}

// parameterDefault adds a default; pydantic's Field(…) says more than that.
func (t *typer) parameterDefault(s *ordered.Object, p *pyast.Parameter) {
	if d := p.Default; d.Kind == pyast.KindCall && isField(d.Name) {
		t.fieldDefault(s, &oneField{Field: pyast.Field{Name: p.Name, Default: d}}, true)
		return
	}
	t.setDefault(s, p.Default)
}

// output is the schema of {"result": …}. What only the docstring says of the type is no
// promise, and is not made one.
func output(m *pyast.Module, f *pyast.Function, docs docstring) *ordered.Object {
	t := newTyper(m, true)
	for _, p := range f.TypeParams {
		t.vars[p.Name] = p.Bound
	}
	var s *ordered.Object
	err := t.whole(func() (err error) {
		s, err = t.schema(f.Returns)
		return err
	})
	if err != nil {
		s = &ordered.Object{}
	}
	if text := skill.CleanText(docs.returns.text, maxParameter); text != "" {
		if s.Has("$ref") {
			s = ordered.Of("$ref", s.Get("$ref"))
		}
		s.Set("description", text)
	}
	o := typed("object", "properties", ordered.Of("result", s), "required", []any{"result"})
	if len(t.defs.Members) > 0 {
		o.Set("$defs", t.defs)
	}
	return o
}
