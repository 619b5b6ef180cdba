// Package schema compiles the JSON Schemas (2020-12) of skills and says, field by
// field, what is wrong with a value.
//
// Schemas are written by strangers, so compiling and checking are bounded: no
// reference leaves the document, patterns are RE2, sizes are capped, and one check
// may evaluate at most [MaxEvaluations] subschemas. What is wrong is told without
// repeating the value, so that the text may be logged.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The limits of a schema and of one check against it.
const (
	MaxBytes       = 32 << 10  // of one schema as JSON
	MaxDepth       = 32        // of objects and arrays within one schema
	MaxEvaluations = 1_000_000 // of subschemas in one check
	MaxFields      = 20        // wrong fields that are listed
	maxIdle        = 4         // compiled copies kept per schema
)

// Draft is the only accepted value of "$schema".
const Draft = "https://json-schema.org/draft/2020-12/schema"

// resource is the name of the document to itself; it is not a place.
const resource = "mem:///schema"

// A Field is one wrong field of a value.
type Field struct {
	Field    string `json:"field"`    // JSON pointer; "" is the whole value
	Problem  string `json:"problem"`  // what is wrong with it
	Expected string `json:"expected"` // what would be accepted
}

// Faults are all wrong fields of one value.
type Faults struct {
	Fields    []Field // at most MaxFields
	Total     int     // how many there are
	Forbidden bool    // one of them is a path that leaves the data folder
}

// Summary lists the first fields.
func (f *Faults) Summary() string {
	var b strings.Builder
	for i, w := range f.Fields {
		if i == 3 {
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		name := w.Field
		if name == "" {
			name = "the whole value"
		}
		b.WriteString(name + " " + w.Problem)
		if w.Expected != "" {
			b.WriteString(" (accepted: " + w.Expected + ")")
		}
	}
	if f.Total > 3 {
		fmt.Fprintf(&b, "; and %d more", f.Total-3)
	}
	return b.String()
}

// A CompileError is one thing wrong with a schema, at a JSON pointer into it.
type CompileError struct {
	Pointer string
	Message string
}

func (e *CompileError) Error() string { return e.Pointer + ": " + e.Message }

// Schema is a compiled schema; safe for concurrent use.
type Schema struct {
	doc  any // as UnmarshalJSON gives it
	idle chan *validator
}

// validator is one compiled copy. Copies exist because the count of evaluations
// belongs to one check at a time.
type validator struct {
	schema *jsonschema.Schema
	spent  int
}

// tooMuch unwinds a check that is over MaxEvaluations; see budget.Validate.
type tooMuch struct{}

// Compile checks and compiles a schema. It reports every problem that it finds.
func Compile(src []byte) (*Schema, []*CompileError) {
	if len(src) > MaxBytes {
		return nil, []*CompileError{{"", fmt.Sprintf("the schema has %d bytes as JSON; at most %d are accepted", len(src), MaxBytes)}}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return nil, []*CompileError{{"", "the schema is not JSON"}}
	}
	if _, isObject := doc.(map[string]any); !isObject {
		return nil, []*CompileError{{"", "a schema is an object"}}
	}
	if problems := inspect(doc, "", 1); len(problems) > 0 {
		return nil, problems
	}
	s := &Schema{doc: doc, idle: make(chan *validator, maxIdle)}
	v, err := s.compile()
	if err != nil {
		return nil, compileErrors(err)
	}
	s.idle <- v
	return s, nil
}

// inspect finds what the compiler would accept and this release does not.
func inspect(v any, at string, depth int) (problems []*CompileError) {
	if depth > MaxDepth {
		return []*CompileError{{at, fmt.Sprintf("nested more than %d deep", MaxDepth)}}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			here := at + "/" + escape(key)
			text, isText := v[key].(string)
			switch {
			case !isText:
			case key == "$schema" && strings.TrimSuffix(text, "#") != Draft:
				problems = append(problems, &CompileError{here, "only " + Draft + " is accepted as $schema"})
			case (key == "$ref" || key == "$dynamicRef") && !strings.HasPrefix(text, "#"):
				problems = append(problems, &CompileError{here, "a reference must stay in this schema and begin with #"})
			}
			problems = append(problems, inspect(v[key], here, depth+1)...)
		}
	case []any:
		for i, e := range v {
			problems = append(problems, inspect(e, at+"/"+strconv.Itoa(i), depth+1)...)
		}
	}
	return problems
}

func (s *Schema) compile() (v *validator, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("the schema cannot be compiled")
		}
	}()
	v = &validator{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuseAll{})
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: DataPath, Validate: checkDataPath})
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "mem:///vocabulary/budget",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
			return budget{v}, nil
		},
	})
	c.AssertVocabs()
	if err := c.AddResource(resource, s.doc); err != nil {
		return nil, err
	}
	v.schema, err = c.Compile(resource)
	return v, err
}

// refuseAll is the loader of references: the default one would read files.
type refuseAll struct{}

func (refuseAll) Load(string) (any, error) {
	return nil, errors.New("a reference must stay in this schema and begin with #")
}

// budget is a keyword that every subschema has and no one writes. It is asked at
// each evaluation and so can count them: references and allOf can double the work
// at every level, which no cap on size bounds.
type budget struct{ v *validator }

func (b budget) Validate(*jsonschema.ValidatorContext, any) {
	if b.v.spent++; b.v.spent > MaxEvaluations {
		panic(tooMuch{})
	}
}

// Check reports what is wrong with value, nil if nothing is. Numbers in value are
// json.Number, objects map[string]any, arrays []any. Numbers must have been
// bounded before (the exponents too): they are compared exactly.
func (s *Schema) Check(value any) *Faults {
	var v *validator
	select {
	case v = <-s.idle:
	default:
		var err error
		if v, err = s.compile(); err != nil { // it compiled before; fail closed
			return whole("cannot be checked", "")
		}
	}
	v.spent = 0
	err, over := v.check(value)
	select {
	case s.idle <- v:
	default:
	}
	if over {
		return whole("takes too many steps to check against the schema", fmt.Sprintf("a value that needs at most %d", MaxEvaluations))
	}
	var ve *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ve):
		r := &reporter{doc: s.doc}
		r.walk(ve)
		if len(r.faults.Fields) > 0 {
			return &r.faults
		}
	}
	return whole("does not match the schema", "")
}

func whole(problem, expected string) *Faults {
	return &Faults{Fields: []Field{{"", problem, expected}}, Total: 1}
}

func (v *validator) check(value any) (err error, over bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, over = p.(tooMuch); !over {
				err = errors.New("the check failed")
			}
		}
	}()
	return v.schema.Validate(value), false
}

// Properties gives the names that the schema declares at its top.
func (s *Schema) Properties() []string {
	top, _ := s.doc.(map[string]any)
	props, _ := top["properties"].(map[string]any)
	return sortedKeys(props)
}

func compileErrors(err error) []*CompileError {
	var invalid *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &ve) {
		r := &reporter{}
		r.walk(ve)
		var out []*CompileError
		for _, f := range r.faults.Fields {
			msg := f.Problem
			if f.Expected != "" {
				msg += " (accepted: " + f.Expected + ")"
			}
			out = append(out, &CompileError{f.Field, msg})
		}
		if len(out) > 0 {
			return out
		}
	}
	var re *jsonschema.InvalidRegexError
	if errors.As(err, &re) {
		_, pointer, _ := strings.Cut(re.URL, "#")
		return []*CompileError{{pointer, "the pattern is not a regular expression that RE2 accepts (no lookaround, no backreferences)"}}
	}
	msg := err.Error()
	msg = strings.ReplaceAll(msg, resource, "")
	return []*CompileError{{"", "not a valid JSON Schema: " + msg}}
}
