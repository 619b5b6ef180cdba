package capability

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"openskill/host/pyast"
	"openskill/host/tools/ordered"
)

var enums = map[string]bool{
	"enum.Enum": true, "enum.IntEnum": true, "enum.StrEnum": true, "enum.Flag": true, "enum.IntFlag": true, "enum.ReprEnum": true,
}

// kinds of classes.
const (
	plainClass = iota
	dataClass  // also of attrs and models of pydantic: fields that a constructor takes
	dictClass
	tupleClass
	enumClass
	flagClass
	wordClass // of a built-in type
)

// kind says what a class is, by its decorators and bases; word is the base of a
// wordClass, and of an enum whose values are all of a type.
func (t *typer) kind(c *pyast.Class, deep int) (kind int, word string) {
	for _, d := range c.Decorators {
		switch d.Name {
		case "dataclasses.dataclass", "dataclass", "pydantic.dataclasses.dataclass", "attr.s", "attr.attrs", "attr.define", "attr.frozen", "attrs.define", "attrs.frozen", "attrs.mutable":
			kind = dataClass
		}
	}
	for _, b := range c.Bases {
		short := canonical(b.Name)
		switch {
		case b.Name == "enum.Flag" || b.Name == "enum.IntFlag":
			kind = flagClass
		case enums[b.Name]:
			kind = enumClass
		case short == "TypedDict":
			kind = dictClass
		case short == "NamedTuple":
			kind = tupleClass
		case b.Name == "pydantic.BaseModel" || b.Name == "msgspec.Struct":
			kind = dataClass
		case kind == plainClass && plain[short] != "" && short != "None":
			kind, word = wordClass, short
		default:
			if base := t.m.Class(b.Name); base != nil && base != c && deep < 16 && t.spend() {
				if k, w := t.kind(base, deep+1); k != plainClass && kind == plainClass {
					kind, word = k, w
				}
			}
		}
	}
	return kind, word
}

func (t *typer) class(c *pyast.Class) (*ordered.Object, error) {
	return t.once(c.Name, func() (*ordered.Object, error) {
		t.self = append(t.self, c)
		s, err := t.made(c)
		t.self = t.self[:len(t.self)-1]
		return s, err
	})
}

func (t *typer) made(c *pyast.Class) (s *ordered.Object, err error) {
	for _, p := range c.TypeParams {
		t.vars[p.Name] = p.Bound
	}
	kind, word := t.kind(c, 0)
	switch kind {
	case enumClass:
		s, err = enumOf(t.members(c)), nil
	case flagClass:
		s = typed("integer", "minimum", 0)
	case wordClass:
		s = typed(plain[word])
	case dataClass, dictClass, tupleClass:
		s, err = t.fields(c, kind)
	default:
		return nil, without("the class " + c.Name)
	}
	if err != nil {
		return nil, err
	}
	if d := parseDoc(c.Docstring); d.summary != "" && !strings.HasPrefix(d.summary, c.Name+"(") {
		describe(s, d.summary)
	}
	return s, nil
}

// members are the values of an enum, in order; names where the values are no JSON of one
// word.
func (t *typer) members(c *pyast.Class) (values []json.RawMessage) {
	for _, m := range t.memberList(c) {
		values = append(values, m.value)
	}
	return values
}

type member struct {
	name  string
	value json.RawMessage
}

func (t *typer) memberList(c *pyast.Class) (list []member) {
	texts := slices.ContainsFunc(c.Bases, func(b *pyast.Expr) bool { return b.Name == "enum.StrEnum" })
	byName := false
	next := 1
	for i := range c.Fields {
		f := &c.Fields[i]
		if strings.HasPrefix(f.Name, "_") || f.Annotation != nil || f.Default == nil {
			continue
		}
		value := f.Default.Value
		if f.Default.Kind == pyast.KindCall && f.Default.Last() == "auto" {
			if texts {
				value = quoted(strings.ToLower(f.Name))
			} else {
				value = json.RawMessage(strconv.Itoa(next))
			}
		}
		if w := wordOf(value); value == nil || w == "array" || w == "object" {
			byName = true
		}
		if n, err := strconv.Atoi(string(value)); err == nil {
			next = n + 1
		}
		list = append(list, member{f.Name, value})
	}
	if byName {
		for i := range list {
			list[i].value = quoted(list[i].name)
		}
	}
	return list
}

// member is the value of Color.RED, or of Color.RED.value; nil where there is none.
func (t *typer) member(name string) json.RawMessage {
	class, rest, _ := strings.Cut(name, ".")
	rest = strings.TrimSuffix(rest, ".value")
	c := t.m.Class(class)
	if c == nil || rest == "" {
		return nil
	}
	if kind, _ := t.kind(c, 0); kind != enumClass {
		return nil
	}
	for _, m := range t.memberList(c) {
		if m.name == rest {
			return m.value
		}
	}
	return nil
}

func quoted(s string) json.RawMessage {
	b, err := ordered.Encode(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}

// enumCall is Enum("Color", "RED GREEN").
func (t *typer) enumCall(e *pyast.Expr) (*ordered.Object, error) {
	if len(e.Of) < 2 {
		return nil, without("an enum without members")
	}
	texts := e.Name == "enum.StrEnum"
	var values []json.RawMessage
	add := func(name string) {
		if texts {
			values = append(values, quoted(strings.ToLower(name)))
		} else {
			values = append(values, json.RawMessage(strconv.Itoa(len(values)+1)))
		}
	}
	names := e.Of[1]
	if text, ok := names.Text(); ok {
		for _, name := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
			add(name)
		}
		return enumOf(values), nil
	}
	if list, ok := names.List(); ok {
		for _, raw := range list {
			var name string
			var pair []json.RawMessage
			switch {
			case json.Unmarshal(raw, &name) == nil:
				add(name)
			case json.Unmarshal(raw, &pair) == nil && len(pair) == 2:
				values = append(values, pair[1])
			}
		}
		return enumOf(values), nil
	}
	if o, err := ordered.DecodeObject(names.Value); err == nil {
		for _, m := range o.Members {
			b, err := ordered.Encode(m.Value)
			if err != nil {
				return nil, without("an enum of this form")
			}
			values = append(values, b)
		}
		return enumOf(values), nil
	}
	return nil, without("an enum of this form")
}

// oneField is a field of a class, with what its class says of it.
type oneField struct {
	pyast.Field
	required bool
	doc      docParam
}

// fields makes an object of a class with fields.
func (t *typer) fields(c *pyast.Class, kind int) (*ordered.Object, error) {
	return t.object(t.gather(c, kind, 0), kind != dictClass)
}

func (t *typer) object(list []oneField, defaults bool) (*ordered.Object, error) {
	props := &ordered.Object{}
	var required []any
	for i := range list {
		f := &list[i]
		s, err := t.schema(f.Annotation)
		if err != nil {
			if errors.Is(err, errTooMany) {
				return nil, err
			}
			if !f.required {
				continue
			}
			return nil, without("the field " + f.Name + ", " + strings.TrimSuffix(err.Error(), " has no form in JSON"))
		}
		if f.Annotation == nil && f.doc.kind != "" {
			s = t.docType(f.doc.kind)
		}
		t.fieldDefault(s, f, defaults)
		describe(s, f.Docstring)
		describe(s, f.doc.text)
		props.Set(f.Name, s)
		if f.required {
			required = append(required, f.Name)
		}
	}
	s := typed("object", "properties", props)
	if len(required) > 0 {
		s.Set("required", required)
	}
	if !t.output {
		s.Set("additionalProperties", false)
	}
	return s, nil
}

// isRequired says whether a key of a TypedDict must be there.
func isRequired(e *pyast.Expr, total bool) bool {
	for ; e != nil && e.Kind == pyast.KindGeneric && len(e.Of) > 0; e = e.Of[0] {
		switch canonical(e.Name) {
		case "NotRequired":
			return false
		case "Required":
			return true
		case "ReadOnly", "Annotated":
			continue
		}
		break
	}
	return total
}

// gather lists the fields of a class and of its bases, those first.
func (t *typer) gather(c *pyast.Class, kind, deep int) (list []oneField) {
	if deep > 16 || !t.spend() {
		return nil
	}
	for _, b := range slices.Backward(c.Bases) {
		if base := t.m.Class(b.Name); base != nil && base != c {
			for _, f := range t.gather(base, kind, deep+1) {
				list = put(list, f)
			}
		}
	}
	total := true
	for _, k := range c.Keywords {
		if k.Name == "total" {
			if v, ok := k.Value.Bool(); ok {
				total = v
			}
		}
	}
	docs := parseDoc(c.Docstring)
	for _, f := range c.Fields {
		name := ""
		if f.Annotation != nil {
			name = canonical(f.Annotation.Name)
		}
		if f.Annotation == nil || name == "ClassVar" || name == "KW_ONLY" || name == "dataclasses.KW_ONLY" || strings.HasPrefix(f.Name, "__") {
			continue
		}
		one := oneField{Field: f, required: f.Default == nil, doc: docs.params[f.Name]}
		if kind == dictClass {
			one.required = isRequired(f.Annotation, total)
		}
		if d := f.Default; d != nil && d.Kind == pyast.KindCall && isField(d.Name) {
			if made, ok := d.Keyword("init").Bool(); ok && !made {
				continue
			}
			one.required = d.Keyword("default") == nil && d.Keyword("default_factory") == nil && d.Keyword("factory") == nil && (len(d.Of) == 0 || d.Of[0].Kind == "ellipsis")
		}
		list = put(list, one)
	}
	return list
}

// put replaces the field of a name in its place, or adds it.
func put(list []oneField, f oneField) []oneField {
	for i := range list {
		if list[i].Name == f.Name {
			list[i] = f
			return list
		}
	}
	return append(list, f)
}

func isField(name string) bool {
	switch name {
	case "dataclasses.field", "field", "pydantic.Field", "Field", "attr.ib", "attr.field", "attrs.field", "msgspec.field":
		return true
	}
	return false
}

// fieldDefault adds the default of a field, and what field(…) says of it.
func (t *typer) fieldDefault(s *ordered.Object, f *oneField, defaults bool) {
	d := f.Default
	if d == nil || !defaults {
		return
	}
	if d.Kind != pyast.KindCall || !isField(d.Name) {
		t.setDefault(s, d)
		return
	}
	t.annotate(s, d)
	if meta := d.Keyword("metadata"); meta != nil && meta.Value != nil {
		if o, err := ordered.DecodeObject(meta.Value); err == nil {
			for _, key := range []string{"description", "help", "doc"} {
				describe(s, o.Text(key))
			}
		}
	}
	if len(d.Of) > 0 {
		t.setDefault(s, d.Of[0])
	}
	if v := d.Keyword("default"); v != nil {
		t.setDefault(s, v)
	}
	factory := d.Keyword("default_factory")
	if factory == nil {
		factory = d.Keyword("factory")
	}
	if factory == nil || factory.Kind != pyast.KindName {
		return
	}
	if text, ok := map[string]string{"list": "[]", "dict": "{}", "set": "[]", "tuple": "[]", "str": `""`, "int": "0", "bool": "false"}[factory.Name]; ok {
		s.Set("default", json.RawMessage(text))
	}
}

// setDefault adds a default that is a literal, or a member of an enum, or a name for one.
func (t *typer) setDefault(s *ordered.Object, d *pyast.Expr) {
	v := t.literalOf(d)
	if v == nil || len(v) > maxDefault {
		return
	}
	if string(v) == "null" {
		nullable(s)
	}
	s.Set("default", v)
}

// maxDefault is the size in bytes up to which a default is told.
const maxDefault = 2000

// literalOf gives what an expression is known to be; nil: it is not known.
func (t *typer) literalOf(d *pyast.Expr) json.RawMessage {
	switch {
	case d == nil:
		return nil
	case d.Value != nil:
		return d.Value
	case d.Kind != pyast.KindName:
		return nil
	}
	if v := t.member(d.Name); v != nil {
		return v
	}
	if a := t.m.Alias(d.Name); a != nil && a.Value != nil {
		return a.Value.Value
	}
	return nil
}

// nullable lets a schema take null too: None is a default that the hint left out.
func nullable(s *ordered.Object) {
	if len(s.Members) == 0 || isA(s, "null") {
		return
	}
	switch of := s.Get("type").(type) {
	case string:
		s.Set("type", []any{of, "null"})
	case []any:
		s.Set("type", append(slices.Clone(of), "null"))
	default:
		if list := s.List("anyOf"); list != nil {
			s.Set("anyOf", append(slices.Clone(list), typed("null")))
		} else {
			inner := &ordered.Object{Members: s.Members}
			s.Members = []ordered.Member{{Key: "anyOf", Value: []any{inner, typed("null")}}}
		}
		return
	}
	if list := s.List("enum"); list != nil {
		s.Set("enum", append(slices.Clone(list), json.RawMessage("null")))
	}
}

// typedDictCall is TypedDict("T", {"a": int}, total=False).
func (t *typer) typedDictCall(e *pyast.Expr) (*ordered.Object, error) {
	if len(e.Of) < 2 || e.Of[1].Kind != pyast.KindDict {
		return typed("object"), nil
	}
	total := true
	if v, ok := e.Keyword("total").Bool(); ok {
		total = v
	}
	var list []oneField
	for i, k := range e.Of[1].Keys {
		name, ok := k.Text()
		if !ok || i >= len(e.Of[1].Of) {
			return typed("object"), nil
		}
		list = append(list, oneField{Field: pyast.Field{Name: name, Annotation: e.Of[1].Of[i]}, required: isRequired(e.Of[1].Of[i], total)})
	}
	return t.object(list, false)
}

// namedTupleCall is namedtuple("T", "a b"), or NamedTuple("T", [("a", int)]).
func (t *typer) namedTupleCall(e *pyast.Expr) (*ordered.Object, error) {
	if len(e.Of) < 2 {
		return nil, without("a named tuple without fields")
	}
	var list []oneField
	add := func(name string, hint *pyast.Expr) {
		list = append(list, oneField{Field: pyast.Field{Name: name, Annotation: hint}, required: true})
	}
	if text, ok := e.Of[1].Text(); ok {
		for _, name := range strings.Fields(strings.ReplaceAll(text, ",", " ")) {
			add(name, nil)
		}
	} else if names, ok := e.Of[1].List(); ok {
		for _, raw := range names {
			var name string
			if json.Unmarshal(raw, &name) == nil {
				add(name, nil)
			}
		}
	} else {
		for _, pair := range e.Of[1].Of {
			if len(pair.Of) == 2 {
				if name, ok := pair.Of[0].Text(); ok {
					add(name, pair.Of[1])
				}
			}
		}
	}
	if len(list) == 0 {
		return nil, without("a named tuple of this form")
	}
	return t.object(list, false)
}
