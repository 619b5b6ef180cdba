package tools

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"openskill/internal/ordered"
	"openskill/internal/suggest"
	"openskill/sdk/skill"
)

// maxFields is how many wrong fields a model is told at once.
const maxFields = 20

// fieldsOf are the wrong fields that an error tells of; nil where it tells none. Their
// words are the door's, and hold names of the schema and of the model.
func fieldsOf(e *skill.ResultError) (list []field) {
	b, err := json.Marshal(e.Details["fields"])
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil
	}
	return list[:min(len(list), maxFields)]
}

// advise adds to each field how it could be mended.
func advise(schema, args json.RawMessage, list []field) {
	root, err := ordered.DecodeObject(schema)
	if err != nil {
		root = &ordered.Object{}
	}
	given, err := ordered.DecodeObject(args)
	if err != nil {
		given = &ordered.Object{}
	}
	a := advisor{root: root, given: given}
	for i := range list {
		if f := &list[i]; f.Suggestion == "" {
			f.Suggestion = skill.CleanText(a.suggest(f), 400)
		}
	}
}

// advisor knows the schema of a tool, and what was given to it.
type advisor struct {
	root  *ordered.Object
	given *ordered.Object
	spent int // schemas that were looked at
}

// maxLooks bounds the work for one call: choices of references to choices have no end.
const maxLooks = 4000

// look counts a schema, and follows its references; nil: not there, or too much.
func (a *advisor) look(o *ordered.Object, depth int) *ordered.Object {
	if a.spent++; a.spent > maxLooks || depth > maxNested {
		return nil
	}
	return a.resolved(o)
}

func (a *advisor) suggest(f *field) string {
	at := tokens(f.Field)
	if len(at) == 0 {
		return "send an object such as " + example(a.root)
	}
	last := at[len(at)-1]
	switch f.Problem {
	case "is missing":
		return `add "` + last + `"` + a.about(at)
	case "is not known":
		return a.rename(at[:len(at)-1], last)
	case "is not one of the accepted values":
		return a.choose(at)
	case "leaves the data folder":
		return "begin the path with ./data/"
	}
	if strings.HasPrefix(f.Problem, "is a ") || strings.HasPrefix(f.Problem, "is an ") || f.Problem == "is null" {
		v, ok := a.valueAt(at)
		if !ok {
			return ""
		}
		return convert(v, strings.Split(f.Expected, " or "))
	}
	return ""
}

// about says what a field is, in the words of the schema.
func (a *advisor) about(at []string) string {
	o := a.schemaAt(at)
	if o == nil {
		return ""
	}
	said := ""
	if k := kindOf(o); k != "" {
		said = ", " + article(k) + " " + k
	}
	if list := o.List("enum"); len(list) > 0 {
		var values []string
		for _, v := range list[:min(len(list), 10)] {
			if s, ok := compact(v); ok {
				values = append(values, s)
			}
		}
		said += ", one of " + strings.Join(values, ", ")
	}
	if d := o.Text("description"); d != "" {
		said += ": " + d
	}
	return said
}

func article(word string) string {
	if strings.ContainsAny(word[:1], "aeio") {
		return "an"
	}
	return "a"
}

// rename offers the names that there are near one that there is not.
func (a *advisor) rename(parent []string, name string) string {
	var known []string
	if o := a.schemaAt(parent); o != nil {
		known = a.properties(o, 0)
	}
	if v, ok := a.valueAt(parent); ok {
		if o, ok := v.(*ordered.Object); ok { // what is there already was not meant
			known = slices.DeleteFunc(known, func(k string) bool { return o.Has(k) })
		}
	}
	if list := suggest.Names(name, known); len(list) > 0 {
		return `did you mean "` + strings.Join(list, `" or "`) + `"?`
	}
	return `leave "` + name + `" out`
}

// choose offers the accepted value near one that is not accepted.
func (a *advisor) choose(at []string) string {
	o := a.schemaAt(at)
	v, ok := a.valueAt(at)
	if o == nil || !ok {
		return ""
	}
	s, isText := v.(string)
	var texts []string
	for _, e := range o.List("enum") {
		if text, ok := e.(string); ok {
			texts = append(texts, text)
		} else if b, err := ordered.Encode(e); err == nil && isText && string(b) == s {
			return "send " + s + ` instead of "` + s + `"`
		}
	}
	if list := suggest.Names(s, texts); len(list) > 0 {
		return `did you mean "` + strings.Join(list, `" or "`) + `"?`
	}
	return ""
}

// convert says what a value would be in a type that is wanted.
func convert(v any, wanted []string) string {
	instead := func(to any) string {
		was, ok := compact(v)
		is, fits := compact(to)
		if !ok || !fits {
			return ""
		}
		return "send " + is + " instead of " + was
	}
	for _, want := range wanted {
		switch v := v.(type) {
		case nil:
			return "leave it out, or give " + article(want) + " " + want
		case string:
			if to, ok := parsed(strings.TrimSpace(v), want); ok {
				if want == "array" || want == "object" {
					return "send the " + want + " itself, and not a text that holds it"
				}
				return instead(to)
			}
		case json.Number:
			if want == "string" {
				return instead(v.String())
			}
			if f, err := v.Float64(); err == nil && want == "integer" && f == float64(int64(f)) {
				return instead(json.Number(strconv.FormatInt(int64(f), 10)))
			}
		case bool:
			if want == "string" {
				return instead(strconv.FormatBool(v))
			}
		case []any:
			if len(v) == 1 && kindOfValue(v[0]) == want {
				return instead(v[0])
			}
		}
		if want == "array" && kindOfValue(v) != "array" {
			return instead([]any{v})
		}
	}
	return ""
}

// parsed reads a text as a value of another type.
func parsed(s, want string) (any, bool) {
	switch want {
	case "boolean":
		s = strings.ToLower(s)
	case "integer", "number", "array", "object", "null":
	default:
		return nil, false
	}
	v, err := ordered.Decode([]byte(s))
	if err != nil {
		return nil, false
	}
	kind := kindOfValue(v)
	if n, ok := v.(json.Number); ok && want == "integer" {
		_, err := n.Int64()
		return v, err == nil
	}
	return v, kind == want
}

func kindOfValue(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// tokens are the parts of a JSON pointer.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	list := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := range list {
		list[i] = strings.ReplaceAll(strings.ReplaceAll(list[i], "~1", "/"), "~0", "~")
	}
	return list
}

// valueAt is what was given there.
func (a *advisor) valueAt(at []string) (any, bool) {
	var v any = a.given
	for _, token := range at {
		switch node := v.(type) {
		case *ordered.Object:
			if !node.Has(token) {
				return nil, false
			}
			v = node.Get(token)
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			v = node[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// schemaAt is what the schema says of a place, nil where it says nothing.
func (a *advisor) schemaAt(at []string) *ordered.Object {
	o := a.root
	for _, token := range at {
		if o = a.below(o, token, 0); o == nil {
			return nil
		}
	}
	return a.resolved(o)
}

// maxNested is how many references and choices are followed at one place.
const maxNested = 4

// below finds what a schema says of one of its members.
func (a *advisor) below(o *ordered.Object, token string, depth int) *ordered.Object {
	if o = a.look(o, depth); o == nil {
		return nil
	}
	if p := o.Object("properties"); p != nil && p.Object(token) != nil {
		return p.Object(token)
	}
	if i, err := strconv.Atoi(token); err == nil {
		if list := o.List("prefixItems"); i >= 0 && i < len(list) {
			s, _ := list[i].(*ordered.Object)
			return s
		}
		if s := o.Object("items"); s != nil {
			return s
		}
	}
	for _, part := range parts(o) {
		if s := a.below(part, token, depth+1); s != nil {
			return s
		}
	}
	return o.Object("additionalProperties")
}

// properties are the names that a schema declares.
func (a *advisor) properties(o *ordered.Object, depth int) (found []string) {
	if o = a.look(o, depth); o == nil {
		return nil
	}
	if p := o.Object("properties"); p != nil {
		for _, m := range p.Members {
			found = append(found, m.Key)
		}
	}
	for _, part := range parts(o) {
		found = append(found, a.properties(part, depth+1)...)
	}
	return found
}

// parts are the schemas of which a schema is made.
func parts(o *ordered.Object) (list []*ordered.Object) {
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		for _, e := range o.List(key) {
			if s, ok := e.(*ordered.Object); ok {
				list = append(list, s)
			}
		}
	}
	for _, key := range []string{"then", "else"} {
		if s := o.Object(key); s != nil {
			list = append(list, s)
		}
	}
	return list
}

// resolved follows references within the schema.
func (a *advisor) resolved(o *ordered.Object) *ordered.Object {
	for range maxNested {
		ref := o.Text("$ref")
		if ref == "" {
			return o
		}
		to := a.root
		for _, token := range tokens(strings.TrimPrefix(ref, "#")) {
			if to = to.Object(token); to == nil {
				return nil
			}
		}
		o = to
	}
	return nil
}
