package capability

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"openskill/host/pyast"
	"openskill/host/tools/ordered"
	"openskill/sdk/skill"
)

// noFormError says that values of a type cannot be written as JSON.
type noFormError struct{ what string }

func (e *noFormError) Error() string { return e.what + " has no form in JSON" }

func without(what string) error { return &noFormError{skill.CleanText(what, 80)} }

// errTooMany says that a type has too many parts for a schema. Values of it may well be
// written as JSON: what has such a type accepts anything.
var errTooMany = errors.New("its type has too many parts for a schema")

// typer makes schemas of the types of one module.
type typer struct {
	m *pyast.Module
	// output says that the schema is of a result: what comes out is not held to formats,
	// nor to the fields that are known.
	output    bool
	within    []string        // classes and aliases whose schema is being made
	self      []*pyast.Class  // the classes of those, for Self
	recursive map[string]bool // those that contain themselves
	defs      *ordered.Object // their schemas
	vars      map[string]*pyast.Expr
	notes     []string // what accepts anything
	spent     int      // steps; see spend
}

// maxSteps bounds the work on one schema: classes that have each other twice would double
// it thirty times over.
const maxSteps = 20_000

// spend reports whether there is a step left.
func (t *typer) spend() bool {
	t.spent++
	return t.spent <= maxSteps
}

func newTyper(m *pyast.Module, output bool) *typer {
	return &typer{m: m, output: output, recursive: map[string]bool{}, defs: &ordered.Object{}, vars: map[string]*pyast.Expr{}}
}

// again unwinds to where a schema is begun: a class or an alias was found to contain itself.
type again struct{ name string }

// whole makes a schema by build, as often as there are classes and aliases that contain
// themselves.
func (t *typer) whole(build func() error) (err error) {
	for {
		repeat := false
		err = func() (err error) {
			defer func() {
				switch p := recover().(type) {
				case nil:
				case again:
					t.recursive[p.name], repeat = true, true
					t.within, t.self, t.notes, t.defs = nil, nil, nil, &ordered.Object{}
				default:
					panic(p)
				}
			}()
			return build()
		}()
		if !repeat {
			t.open()
			return err
		}
	}
}

// simpleName is a name as Python has it, with those of its modules.
var simpleName = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)

// anything is the schema of what no schema says, with a note.
func (t *typer) anything(why string) *ordered.Object {
	if note := why + ", which accepts anything"; !slices.Contains(t.notes, note) {
		t.notes = append(t.notes, note)
	}
	return &ordered.Object{}
}

// open takes out of a type what is only itself again: A = Union["A", int] is int. Where more is
// in the way no schema says it, and it accepts anything.
func (t *typer) open() {
	for i := range t.defs.Members {
		name := t.defs.Members[i].Key
		if s := t.defs.Object(name); len(s.Members) == 1 && s.Has("anyOf") {
			var others []*ordered.Object
			for _, e := range s.List("anyOf") {
				if o, ok := e.(*ordered.Object); ok && o.Text("$ref") != "#/$defs/"+name {
					others = append(others, o)
				}
			}
			if len(others) > 0 {
				t.defs.Members[i].Value = anyOf(others)
			}
		}
		if t.reaches(t.defs.Object(name), "#/$defs/"+name, map[string]bool{}) {
			t.defs.Members[i].Value = t.anything("the type " + name + " is only itself again")
		}
	}
}

// reaches reports whether a schema leads to a reference at one and the same value.
func (t *typer) reaches(s *ordered.Object, ref string, seen map[string]bool) bool {
	if s == nil {
		return false
	}
	if to := s.Text("$ref"); to != "" {
		if to == ref {
			return true
		}
		if !seen[to] {
			seen[to] = true
			return t.reaches(t.resolved(s), ref, seen)
		}
	}
	return slices.ContainsFunc(s.List("anyOf"), func(e any) bool {
		o, _ := e.(*ordered.Object)
		return t.reaches(o, ref, seen)
	})
}

// resolved is the schema that a reference leads to, and any other as it is.
func (t *typer) resolved(s *ordered.Object) *ordered.Object {
	if name, ok := strings.CutPrefix(s.Text("$ref"), "#/$defs/"); ok {
		return t.defs.Object(name)
	}
	return s
}

// libraries are modules whose names are told apart by their last part.
var libraries = []string{"builtins.", "typing.", "typing_extensions.", "collections.abc.", "collections.", "types."}

// canonical is a type's name without the library that it comes from, where that is one of
// types.
func canonical(name string) string {
	for _, l := range libraries {
		if rest, ok := strings.CutPrefix(name, l); ok {
			return rest
		}
	}
	return name
}

// typed makes {"type": …} with more members.
func typed(name string, pairs ...any) *ordered.Object {
	return ordered.Of(append([]any{"type", name}, pairs...)...)
}

// plain are the types that are one word.
var plain = map[string]string{
	"str": "string", "Text": "string", "AnyStr": "string", "LiteralString": "string",
	"int": "integer", "SupportsInt": "number", "SupportsIndex": "integer",
	"float": "number", "SupportsFloat": "number", "numbers.Number": "number", "numbers.Real": "number", "numbers.Integral": "integer",
	"bool": "boolean", "None": "null", "NoneType": "null",
	"pathlib.Path": "string", "pathlib.PurePath": "string", "pathlib.PosixPath": "string", "pathlib.PurePosixPath": "string", "os.PathLike": "string",
	"ipaddress.IPv4Address": "string", "ipaddress.IPv6Address": "string", "fractions.Fraction": "string",
	"re.Pattern": "string", "Pattern": "string", "zoneinfo.ZoneInfo": "string",
}

// formats are the texts with a form.
var formats = map[string]string{
	"datetime.datetime": "date-time", "datetime.date": "date", "datetime.time": "time", "datetime.timedelta": "duration", "uuid.UUID": "uuid",
}

// arrays are the types with elements of one kind; true for those whose elements differ.
var arrays = map[string]bool{
	"list": false, "List": false, "Sequence": false, "MutableSequence": false, "Iterable": false, "Collection": false, "Container": false,
	"Iterator": false, "Generator": false, "AsyncIterator": false, "AsyncIterable": false, "AsyncGenerator": false, "Reversible": false,
	"deque": false, "Deque": false, "ValuesView": false, "array.array": false,
	"set": true, "Set": true, "frozenset": true, "FrozenSet": true, "AbstractSet": true, "MutableSet": true, "KeysView": true,
}

// maps are the types with keys.
var maps = map[string]bool{
	"dict": true, "Dict": true, "Mapping": true, "MutableMapping": true, "OrderedDict": true, "defaultdict": true, "DefaultDict": true,
	"ChainMap": true, "Counter": true, "MappingProxyType": true,
}

// wrappers are words around a type that say nothing of its values.
var wrappers = map[string]bool{
	"Final": true, "ClassVar": true, "Required": true, "NotRequired": true, "ReadOnly": true, "InitVar": true, "dataclasses.InitVar": true,
	"Awaitable": true, "Coroutine": true,
}

// schema makes the schema of a type. The error is a *noFormError, or errTooMany.
func (t *typer) schema(e *pyast.Expr) (*ordered.Object, error) {
	if e == nil {
		return &ordered.Object{}, nil
	}
	if !t.spend() {
		return nil, errTooMany
	}
	switch e.Kind {
	case pyast.KindValue:
		if e.IsNone() {
			return typed("null"), nil
		}
		if text, ok := e.Text(); ok { // within a call, where Python reads it as text
			if simpleName.MatchString(text) {
				return t.named(text, nil)
			}
			return t.anything(skill.CleanText(text, 80) + " is text in the place of a type"), nil
		}
	case pyast.KindName:
		return t.named(e.Name, nil)
	case pyast.KindGeneric:
		return t.named(e.Name, e.Of)
	case pyast.KindUnion:
		return t.union(e.Of)
	case pyast.KindCall:
		if canonical(e.Name) == "NewType" && len(e.Of) == 2 {
			return t.schema(e.Of[1])
		}
		return nil, without(e.Name + "(…)")
	}
	what := e.Source
	switch {
	case what != "":
	case e.Value != nil:
		what = string(e.Value)
	default:
		what = "a " + e.Kind
	}
	return nil, without(what + " in the place of a type")
}

func (t *typer) named(name string, of []*pyast.Expr) (*ordered.Object, error) {
	if bound, ok := t.vars[name]; ok && of == nil {
		return t.schema(bound)
	}
	if c := t.m.Class(name); c != nil {
		return t.class(c)
	}
	if a := t.m.Alias(name); a != nil && a.Value != nil && !a.Value.IsNone() {
		return t.alias(a)
	}
	short := canonical(name)
	if word, ok := plain[short]; ok {
		return typed(word), nil
	}
	if format, ok := formats[short]; ok {
		if t.output {
			return typed("string"), nil
		}
		return typed("string", "format", format), nil
	}
	switch unique, isArray := arrays[short]; {
	case isArray:
		items := &ordered.Object{}
		if len(of) > 0 {
			var err error
			if items, err = t.schema(of[0]); err != nil {
				return nil, err
			}
		}
		s := typed("array", "items", items)
		if unique {
			s.Set("uniqueItems", true)
		}
		return s, nil
	case maps[short]:
		return t.mapping(short, of)
	case wrappers[short]:
		if len(of) == 0 {
			return &ordered.Object{}, nil
		}
		return t.schema(of[len(of)-1]) // of Coroutine[…] the last is what it gives
	}
	switch short {
	case "Any", "object", "Hashable", "JSON", "Unpack", "pydantic.JsonValue":
		return &ordered.Object{}, nil
	case "Self":
		if len(t.self) > 0 {
			return t.class(t.self[len(t.self)-1])
		}
	case "tuple", "Tuple":
		return t.tuple(of)
	case "Optional":
		if len(of) == 0 {
			return &ordered.Object{}, nil
		}
		return t.union(append(slices.Clone(of), none))
	case "Union":
		return t.union(of)
	case "Literal":
		return t.literal(of)
	case "Annotated":
		if len(of) == 0 {
			return &ordered.Object{}, nil
		}
		s, err := t.schema(of[0])
		if err != nil {
			return nil, err
		}
		for _, e := range of[1:] {
			t.annotate(s, e)
		}
		return s, nil
	case "decimal.Decimal":
		if t.output {
			return ordered.Of("type", []any{"string", "number"}), nil
		}
		return ordered.Of("type", []any{"number", "string"}), nil
	case "bytes", "bytearray":
		return typed("string", "contentEncoding", "base64"), nil
	case "TypedDict", "ByteString":
		return typed("object"), nil
	}
	if len(of) > 0 {
		name += "[…]"
	}
	return nil, without(name)
}

var none = &pyast.Expr{Kind: pyast.KindValue, Value: json.RawMessage("null")}

// once makes the schema of a class or an alias. One that contains itself has it in $defs.
func (t *typer) once(name string, build func() (*ordered.Object, error)) (*ordered.Object, error) {
	if t.recursive[name] {
		ref := ordered.Of("$ref", "#/$defs/"+name)
		if t.defs.Has(name) {
			return ref, nil
		}
		t.defs.Set(name, &ordered.Object{}) // begun
		s, err := build()
		if err != nil {
			return nil, err
		}
		t.defs.Set(name, s)
		return ref, nil
	}
	if slices.Contains(t.within, name) {
		panic(again{name})
	}
	t.within = append(t.within, name)
	s, err := build()
	t.within = t.within[:len(t.within)-1]
	return s, err
}

// alias follows a name that was given a type.
func (t *typer) alias(a *pyast.Alias) (*ordered.Object, error) {
	return t.once(a.Name, func() (*ordered.Object, error) { return t.aliased(a) })
}

func (t *typer) aliased(a *pyast.Alias) (*ordered.Object, error) {
	for _, p := range a.TypeParams {
		t.vars[p.Name] = p.Bound
	}
	if v := a.Value; v.Kind == pyast.KindCall {
		switch canonical(v.Name) {
		case "TypeVar":
			if b := v.Keyword("bound"); b != nil {
				return t.schema(b)
			}
			if len(v.Of) > 1 {
				return t.union(v.Of[1:])
			}
			return &ordered.Object{}, nil
		case "TypedDict":
			return t.typedDictCall(v)
		case "namedtuple", "NamedTuple":
			return t.namedTupleCall(v)
		}
		if enums[v.Name] {
			return t.enumCall(v)
		}
	}
	return t.schema(a.Value)
}

func (t *typer) mapping(name string, of []*pyast.Expr) (*ordered.Object, error) {
	s := typed("object")
	if name == "Counter" {
		s.Set("additionalProperties", typed("integer"))
		return s, nil
	}
	if len(of) < 2 {
		return s, nil
	}
	keys, err := t.schema(of[0])
	if err != nil {
		return nil, err
	}
	values, err := t.schema(of[1])
	if err != nil {
		return nil, err
	}
	switch {
	case keys.Has("enum"):
		s.Set("propertyNames", ordered.Of("enum", keys.Get("enum")))
	case keys.Text("type") == "integer":
		s.Set("propertyNames", ordered.Of("pattern", "^-?[0-9]+$"))
	}
	if len(values.Members) > 0 {
		s.Set("additionalProperties", values)
	}
	return s, nil
}

func (t *typer) tuple(of []*pyast.Expr) (*ordered.Object, error) {
	if len(of) == 0 {
		return typed("array", "items", &ordered.Object{}), nil
	}
	if len(of) == 2 && of[1].Kind == "ellipsis" {
		items, err := t.schema(of[0])
		if err != nil {
			return nil, err
		}
		return typed("array", "items", items), nil
	}
	if len(of) == 1 && of[0].Kind == pyast.KindTuple { // tuple[()]
		return typed("array", "maxItems", 0), nil
	}
	list := make([]any, len(of))
	for i, e := range of {
		s, err := t.schema(e)
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return typed("array", "prefixItems", list, "minItems", len(of), "maxItems", len(of)), nil
}

// annotate adds what is said of a type within Annotated.
func (t *typer) annotate(s *ordered.Object, e *pyast.Expr) {
	if text, ok := e.Text(); ok {
		describe(s, text)
		return
	}
	if e.Kind != pyast.KindCall {
		return
	}
	first := func() json.RawMessage {
		if len(e.Of) > 0 {
			return e.Of[0].Value
		}
		return nil
	}
	switch e.Last() {
	case "Doc", "doc":
		if text, ok := t.firstText(e); ok {
			describe(s, text)
		}
	case "Gt", "Ge", "Lt", "Le", "MultipleOf", "MinLen", "MaxLen":
		bound(s, map[string]string{"Gt": "gt", "Ge": "ge", "Lt": "lt", "Le": "le", "MultipleOf": "multiple_of", "MinLen": "min_length", "MaxLen": "max_length"}[e.Last()], first())
	case "Len":
		bound(s, "min_length", first())
		if len(e.Of) > 1 {
			bound(s, "max_length", e.Of[1].Value)
		}
	}
	for _, k := range e.Keywords {
		switch k.Name {
		case "description", "doc", "documentation", "help":
			if text, ok := k.Value.Text(); ok {
				describe(s, text)
			}
		case "title":
			if text, ok := k.Value.Text(); ok {
				s.Set("title", skill.CleanText(text, 200))
			}
		case "examples":
			if list, ok := k.Value.List(); ok && len(list) > 0 {
				s.Set("examples", k.Value.Value)
			}
		default:
			bound(s, k.Name, k.Value.Value)
		}
	}
}

func (t *typer) firstText(e *pyast.Expr) (string, bool) {
	if len(e.Of) == 0 {
		return "", false
	}
	return e.Of[0].Text()
}

// bounds are the words of bounds as Python has them, of which length depends on the type.
var bounds = map[string]string{
	"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum", "multiple_of": "multipleOf",
	"min_items": "minItems", "max_items": "maxItems", "pattern": "pattern", "regex": "pattern",
}

// bound adds a bound to a schema, if it is one that the schema can have.
func bound(s *ordered.Object, name string, value json.RawMessage) {
	if len(value) == 0 {
		return
	}
	word := bounds[name]
	if name == "min_length" || name == "max_length" {
		word = map[bool]string{true: "Length", false: "Items"}[!isA(s, "array")]
		word = strings.TrimSuffix(name, "_length") + word
	}
	switch kind := wordOf(value); {
	case word == "":
	case word == "pattern":
		var text string
		if json.Unmarshal(value, &text) != nil {
			return
		}
		if _, err := regexp.Compile(text); err == nil && len(text) <= 500 {
			s.Set(word, text)
		}
	case kind == "integer" && value[0] != '-' || (kind == "integer" || kind == "number") && !strings.HasSuffix(word, "Length") && !strings.HasSuffix(word, "Items"):
		s.Set(word, value)
	}
}

// isA reports whether values of the schema may be of a type.
func isA(s *ordered.Object, word string) bool {
	switch of := s.Get("type").(type) {
	case string:
		return of == word
	case []any:
		return slices.Contains(of, any(word))
	}
	return slices.ContainsFunc(s.List("anyOf"), func(e any) bool {
		o, ok := e.(*ordered.Object)
		return ok && isA(o, word)
	})
}

// The lengths in bytes at which texts for models are cut.
const (
	maxDescription = 1000
	maxParameter   = 600
)

// describe says what a value is for, if nothing has said so.
func describe(s *ordered.Object, text string) {
	if text = skill.CleanText(text, maxParameter); text != "" && !s.Has("description") {
		s.Set("description", text)
	}
}
