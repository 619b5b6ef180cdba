package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas are written by strangers, so compiling and checking are bounded: no reference leaves
// the document, patterns are RE2 and small, sizes are capped, and one check takes at most
// [MaxSteps]. What is wrong is told without repeating the value, so that the text may be
// logged. A schema is of the draft that its $schema names, and else of 2020-12.

// The limits of a schema and of one check against it.
const (
	MaxSchemaBytes = 32 << 10  // of one schema as JSON
	MaxSchemaDepth = 32        // of objects and arrays within one schema
	MaxSteps       = 5_000_000 // of one check; about half a second, and 100 MB for what is wrong
	FewSteps       = 200_000   // of a check that nobody need wait for
	MaxFields      = 20        // wrong fields that are listed
	MaxSchemaSize  = 2 << 20   // of one compiled copy, as estimated; see Size
	maxIdle        = 4         // compiled copies kept per schema
	maxNumber      = 256       // characters of a number
	maxPower       = 400       // of ten, of a number
)

// What a compiled copy takes in memory, at most, in bytes.
const (
	sizeOfSchema      = 1000 // an object or a boolean, which may be a schema, without its place
	sizeOfCount       = 700  // what counts the steps of one that has keywords
	sizeOfPlace       = 3    // a byte of the place of a schema, escaped
	sizeOfValue       = 150  // any other value
	sizeOfPattern     = 500  // without its instructions
	sizeOfInstruction = 100
)

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
	Over      bool    // the check ended before it was done: it takes more steps than it may
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

// A SchemaError is one thing wrong with a schema, at a JSON pointer into it.
type SchemaError struct {
	Pointer string
	Message string
}

func (e *SchemaError) Error() string { return e.Pointer + ": " + e.Message }

// Schema is a compiled schema; safe for concurrent use.
type Schema struct {
	doc     any    // as UnmarshalJSON gives it
	counted any    // as it is compiled; see counted
	costs   []cost // of its subschemas
	chain   int    // subschemas that follow one from another at one value, at most
	size    int    // of a copy
	objects bool   // an object may be right
	idle    chan *validator
}

// Size estimates how many bytes of memory the schema takes with as many copies as it keeps.
func (s *Schema) Size() int { return maxIdle * s.size }

// validator is one compiled copy. Copies exist because the count of steps
// belongs to one check at a time.
type validator struct {
	schema *jsonschema.Schema
	left   int
}

// tooMuch unwinds a check that takes more steps than it may.
type tooMuch struct{}

// CompileSchema checks and compiles a schema. It reports every problem that it finds.
func CompileSchema(src []byte) (*Schema, []*SchemaError) {
	if len(src) > MaxSchemaBytes {
		return nil, []*SchemaError{{"", fmt.Sprintf("the schema is too large: %d bytes as JSON, the limit is %d", len(src), MaxSchemaBytes)}}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return nil, []*SchemaError{{"", "the schema is not JSON"}}
	}
	if _, isObject := doc.(map[string]any); !isObject {
		return nil, []*SchemaError{{"", "a schema is an object"}}
	}
	var all total
	if all.draft, err = draftOf(doc); err != nil {
		return nil, []*SchemaError{{"/$schema", err.Error()}}
	}
	if problems := inspect(doc, "", 1, &all); len(problems) > 0 {
		return nil, problems
	}
	if all.recursive != "" && all.resources { // where it leads depends on the way there
		return nil, []*SchemaError{{all.recursive, "$recursiveRef is accepted only without $id"}}
	}
	if all.size > MaxSchemaSize {
		return nil, []*SchemaError{{"", fmt.Sprintf("the schema would take more than %d KiB of memory; use fewer subschemas, or shorter names", MaxSchemaSize>>10)}}
	}
	s := &Schema{doc: doc, size: all.size, idle: make(chan *validator, maxIdle)}
	v, err := s.prepare()
	if err != nil {
		return nil, compileErrors(err)
	}
	s.idle <- v
	return s, nil
}

// total is what the parts of a schema come to.
type total struct {
	draft     *jsonschema.Draft
	recursive string // where a $recursiveRef is; "": nowhere
	resources bool   // a part of it has an $id, and may be a schema of its own
	patterns  int    // instructions
	size      int    // bytes of a compiled copy
}

// inspect finds what the compiler would accept and this release does not, and adds up what
// the parts of the schema come to. It ends where that is too much.
func inspect(v any, at string, depth int, all *total) (problems []*SchemaError) {
	switch v := v.(type) {
	case map[string]any:
		n := 1
		for _, key := range []string{"format", "enum", "const"} {
			if _, late := v[key]; late { // which count makes a schema of its own
				n = 2
			}
		}
		if _, ref := v["$ref"]; ref && refAlone(all.draft) { // which wrapRef does
			n = 2
		}
		all.size += n * (sizeOfSchema + min(len(v), 1)*sizeOfCount + sizeOfPlace*len(at))
	case bool:
		all.size += sizeOfSchema + sizeOfPlace*len(at)
	default:
		all.size += sizeOfValue
	}
	if all.size > MaxSchemaSize {
		return nil
	}
	if depth > MaxSchemaDepth {
		return []*SchemaError{{at, fmt.Sprintf("nested more than %d deep", MaxSchemaDepth)}}
	}
	large := func(at, pattern string) {
		n := instructions(pattern)
		if all.patterns += n; all.patterns <= MaxInstructions {
			all.size += sizeOfPattern + n*sizeOfInstruction
		} else {
			problems = append(problems, &SchemaError{at, fmt.Sprintf("the patterns of a schema exceed %d instructions together ((a{100}){100} is 10000); repeat less", MaxInstructions)})
			all.patterns = 0 // each is told once
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			here := at + "/" + escape(key)
			text, isText := v[key].(string)
			switch {
			case !isText:
			case key == "$schema":
				if d, err := draftNamed(text); err != nil || d != all.draft {
					problems = append(problems, &SchemaError{here, "$schema differs from the top; use one draft"})
				}
			case key == "$recursiveRef":
				if all.recursive = here; text != "#" {
					problems = append(problems, &SchemaError{here, "$recursiveRef must be #"})
				}
			case key == "$id" && depth > 1:
				all.resources = true
			case (key == "$ref" || key == "$dynamicRef") && !strings.HasPrefix(text, "#"):
				problems = append(problems, &SchemaError{here, "references must begin with # and stay in this schema"})
			case key == "pattern":
				large(here, text)
			}
			if key == "patternProperties" {
				names, _ := v[key].(map[string]any)
				for _, name := range sortedKeys(names) {
					large(here+"/"+escape(name), name)
				}
			}
			problems = append(problems, inspect(v[key], here, depth+1, all)...)
		}
	case []any:
		for i, e := range v {
			problems = append(problems, inspect(e, at+"/"+strconv.Itoa(i), depth+1, all)...)
		}
	case json.Number:
		if !bounded(v) {
			problems = append(problems, &SchemaError{at, "the number is beyond the range of a double"})
		}
	}
	return problems
}

// bounded reports whether a number can be compared exactly at a small price.
func bounded(n json.Number) bool {
	_, power, has := strings.Cut(strings.ToLower(string(n)), "e")
	if len(n) > maxNumber || !has {
		return len(n) <= maxNumber
	}
	p, err := strconv.Atoi(power)
	return err == nil && -maxPower <= p && p <= maxPower
}

// prepare compiles the first copy.
func (s *Schema) prepare() (v *validator, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, errCannot
		}
	}()
	if s.counted, s.costs, err = counted(s.doc); err != nil {
		return nil, err
	}
	if v, err = s.compile(); err == nil {
		s.chain, err = longestChain(v.schema)
	}
	if err == nil {
		s.objects = takesObjects(v.schema, map[*jsonschema.Schema]bool{})
	}
	return v, err
}

var errCannot = errors.New("the schema cannot be compiled")

func (s *Schema) compile() (v *validator, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, errCannot
		}
	}()
	v = &validator{}
	c := compiler()
	for i := range s.costs {
		c.RegisterFormat(&jsonschema.Format{Name: formatOf(i), Validate: func(value any) error {
			v.spend(s.costs[i].of(value))
			return nil
		}})
	}
	if err := c.AddResource(resource, s.counted); err != nil {
		return nil, err
	}
	v.schema, err = c.Compile(resource)
	return v, err
}

// spend ends the check where it takes too many steps: references and choices can double the
// work at every level, which no cap on size bounds.
func (v *validator) spend(steps int) {
	if v.left -= steps; v.left < 0 {
		panic(tooMuch{})
	}
}

func compiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(refuseAll{})
	c.UseRegexpEngine(pattern)
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: DataPath, Validate: checkDataPath})
	return c
}

// refuseAll is the loader of references: the default one would read files.
type refuseAll struct{}

func (refuseAll) Load(string) (any, error) {
	return nil, errors.New("references must begin with # and stay in this schema")
}

// Check reports what is wrong with value, nil if nothing is. Numbers in value are
// json.Number, objects map[string]any, arrays []any. Numbers must have been
// bounded before (the exponents too): they are compared exactly. A check takes at most
// so many steps; see [Faults.Over].
func (s *Schema) Check(value any, steps int) *Faults {
	var v *validator
	select {
	case v = <-s.idle:
	default:
		var err error
		if v, err = s.compile(); err != nil { // it compiled before; fail closed
			return whole("cannot be checked", "")
		}
	}
	v.left = steps
	over := s.chain*depthOf(value) > maxLevels
	var err error
	if !over {
		err, over = v.check(value)
	}
	select {
	case s.idle <- v:
	default:
	}
	switch ve, ok := errors.AsType[*jsonschema.ValidationError](err); {
	case over:
		faults := whole("takes too many steps to validate", "a smaller value, or a simpler schema")
		faults.Over = true
		return faults
	case err == nil:
		return nil
	case ok:
		r := &reporter{doc: s.doc, faults: Faults{Forbidden: leavesData(ve)}}
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

// Properties gives the names that the schema declares at its top, in their order.
func (s *Schema) Properties() []string { return sortedKeys(s.properties()) }

// Has reports whether the schema declares a name at its top.
func (s *Schema) Has(name string) bool {
	_, ok := s.properties()[name]
	return ok
}

func (s *Schema) properties() map[string]any {
	top, _ := s.doc.(map[string]any)
	props, _ := top["properties"].(map[string]any)
	return props
}

func compileErrors(err error) []*SchemaError {
	var invalid *jsonschema.SchemaValidationError
	var ve *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &ve) {
		r := &reporter{}
		r.walk(ve)
		var out []*SchemaError
		for _, f := range r.faults.Fields {
			msg := f.Problem
			if f.Expected != "" {
				msg += " (accepted: " + f.Expected + ")"
			}
			out = append(out, &SchemaError{f.Field, msg})
		}
		if len(out) > 0 {
			return out
		}
	}
	if re, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		_, pointer, _ := strings.Cut(re.URL, "#")
		return []*SchemaError{{pointer, "the pattern is not a regular expression that RE2 accepts (no lookaround, no backreferences)"}}
	}
	msg := err.Error()
	msg = strings.ReplaceAll(msg, resource, "")
	return []*SchemaError{{"", "not a valid JSON Schema: " + msg}}
}
