package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"openskill/host/manifest"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// The lengths in bytes at which words of strangers are cut before a model sees them.
const (
	maxDescription = 1000
	maxWords       = 300 // of one text within a schema
	maxName        = 64  // of a property
	maxSchema      = 8 << 10
)

var anyObject = json.RawMessage(`{"type":"object"}`)

// toolOf is the tool of a skill as models see it.
func toolOf(d *skill.Descriptor) skill.Tool {
	t := Of(&skill.Descriptor{ID: d.ID, Runner: d.Runner, Fallback: d.Fallback, Permissions: d.Permissions})
	t.Name, t.Description, t.InputSchema = NameOf(d.ID), line(d.Description, maxDescription), schemaOf(d.InputSchema)
	t.OutputSchema = nil // of no use before a call, and after it the data is there
	t.Cost = d.Cost      // three numbers
	return t
}

// line makes one line of words of others, with nothing hidden and no marks in it.
func line(s string, most int) string {
	w := writer{most: 4 * most}
	w.text(s, false)
	return skill.CleanText(string(w.b), most)
}

// asItIs reports whether a text can be shown without a change: a value that is shown in
// another way than it is compared would be a wrong one.
func asItIs(s string) bool {
	w := writer{most: maxWords}
	w.text(s, false)
	return !w.full && string(w.b) == s && !strings.ContainsRune(s, 0xfffd)
}

// schemaOf makes a schema that a stranger wrote fit for models. It is made anew of the
// keywords that there are, so that nothing else can be said in it. One that is too long
// loses its descriptions; and what is then too long, or no schema, is that of any object.
func schemaOf(raw json.RawMessage) json.RawMessage {
	if len(raw) > 2*manifest.MaxSchemaBytes {
		return anyObject
	}
	o, err := ordered.DecodeObject(raw)
	if err != nil {
		return anyObject
	}
	Modern(o)
	for _, bare := range []bool{false, true} {
		made := builder{bare}.schema(o, 0)
		if made.Text("type") != "object" {
			made.First("type", "object")
		}
		if b, err := ordered.Encode(made); err == nil && len(b) <= maxSchema {
			return b
		}
	}
	return anyObject
}

// kind is what the value of a keyword is.
type kind int

const (
	ofWords    kind = iota + 1 // for who reads it
	ofExamples                 // values, for who reads them
	ofText                     // that is compared
	ofRef
	ofNumber
	ofFlag
	ofTypes
	ofValue
	ofValues
	ofNames
	ofNameLists
	ofSchema
	ofSchemas
	ofNamed
)

// keywords are those of JSON Schema that say something to a model, except for those that
// hold schemas.
var keywords = map[string]kind{
	"title": ofWords, "description": ofWords, "examples": ofExamples,
	"type": ofTypes, "enum": ofValues, "const": ofValue, "default": ofValue,
	"pattern": ofText, "format": ofText, "contentEncoding": ofText, "contentMediaType": ofText,
	"minimum": ofNumber, "maximum": ofNumber, "exclusiveMinimum": ofNumber, "exclusiveMaximum": ofNumber, "multipleOf": ofNumber,
	"minLength": ofNumber, "maxLength": ofNumber, "minItems": ofNumber, "maxItems": ofNumber, "minProperties": ofNumber, "maxProperties": ofNumber,
	"minContains": ofNumber, "maxContains": ofNumber,
	"uniqueItems": ofFlag, "deprecated": ofFlag, "readOnly": ofFlag, "writeOnly": ofFlag,
	"required": ofNames, "dependentRequired": ofNameLists,
	"$ref": ofRef,
}

var typeNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// builder makes schemas. bare ones have no words for who reads them.
type builder struct{ bare bool }

func (b builder) schema(from *ordered.Object, depth int) *ordered.Object {
	to := &ordered.Object{}
	if depth > maxDepth {
		return to
	}
	required := names(from.List("required"))
	for _, m := range from.Members {
		if v, ok := b.value(&m, required, depth); ok {
			to.Members = append(to.Members, ordered.Member{Key: m.Key, Value: v}) // a decoder gives a key once
		}
	}
	return to
}

// kindOfKey is what the value of a keyword is; 0: it says nothing to a model.
func kindOfKey(key string) kind {
	switch {
	case slices.Contains(schemaKeys, key):
		return ofSchema
	case slices.Contains(schemaListKeys, key):
		return ofSchemas
	case slices.Contains(namedKeys, key):
		return ofNamed
	}
	return keywords[key]
}

// value is that of a keyword as it is shown; false: it is left out.
func (b builder) value(m *ordered.Member, required []string, depth int) (any, bool) {
	switch kindOfKey(m.Key) {
	case ofWords:
		s, _ := m.Value.(string)
		s = line(s, maxWords)
		return s, s != "" && !b.bare
	case ofExamples:
		list, _ := m.Value.([]any)
		list = fitting(list)
		return list, len(list) > 0 && !b.bare
	case ofText:
		s, ok := m.Value.(string)
		return s, ok && asItIs(s) && (m.Key != "format" || s != manifest.DataPath) // which is the host's own
	case ofRef:
		s, _ := m.Value.(string)
		return s, strings.HasPrefix(s, "#") && asItIs(s)
	case ofNumber:
		n, ok := m.Value.(json.Number)
		return n, ok && len(n) <= maxName
	case ofFlag:
		_, ok := m.Value.(bool)
		return m.Value, ok
	case ofTypes:
		return types(m.Value)
	case ofValue:
		return m.Value, fits(m.Value)
	case ofValues:
		list, _ := m.Value.([]any)
		list = fitting(list)
		return list, len(list) > 0
	case ofNames:
		list := shownNames(required)
		return list, len(list) > 0
	case ofNameLists:
		return nameLists(m.Value)
	case ofSchema:
		if _, ok := m.Value.(bool); ok {
			return m.Value, true
		}
		o, ok := m.Value.(*ordered.Object)
		if !ok {
			return nil, false
		}
		return b.schema(o, depth+1), true
	case ofSchemas:
		return b.schemas(m.Value, depth)
	case ofNamed:
		return b.named(m, required, depth)
	}
	return nil, false
}

func (b builder) schemas(v any, depth int) (any, bool) {
	list, _ := v.([]any)
	made := []any{}
	for _, e := range list {
		switch e := e.(type) {
		case bool:
			made = append(made, e)
		case *ordered.Object:
			made = append(made, b.schema(e, depth+1))
		}
	}
	return made, len(made) > 0
}

// named are schemas by name. A property whose name is not plain is left out, unless every
// call must have it.
func (b builder) named(m *ordered.Member, required []string, depth int) (any, bool) {
	from, ok := m.Value.(*ordered.Object)
	if !ok {
		return nil, false
	}
	to := &ordered.Object{}
	for _, p := range from.Members {
		switch m.Key {
		case "properties":
			if !plain(p.Key) && !(slices.Contains(required, p.Key) && needed(p.Key)) {
				continue
			}
		case "patternProperties":
			if !asItIs(p.Key) {
				continue
			}
		default:
			if !plain(p.Key) {
				continue
			}
		}
		switch v := p.Value.(type) {
		case bool:
			to.Members = append(to.Members, ordered.Member{Key: p.Key, Value: v})
		case *ordered.Object:
			to.Members = append(to.Members, ordered.Member{Key: p.Key, Value: b.schema(v, depth+1)})
		}
	}
	return to, true
}

// plain reports whether a name is one word, in any language.
func plain(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, r := range name {
		if !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("_-.$@", r) || hidden(r) {
			return false
		}
	}
	return true
}

// needed reports whether a name that every call must have can be shown, plain or not.
func needed(name string) bool { return len(name) <= 2*maxName && asItIs(name) }

func names(list []any) (found []string) {
	for _, v := range list {
		if s, ok := v.(string); ok {
			found = append(found, s)
		}
	}
	return found
}

// shownNames are those of names that can be shown.
func shownNames(list []string) []any {
	shown := []any{}
	for _, s := range list {
		if needed(s) {
			shown = append(shown, s)
		}
	}
	return shown
}

func nameLists(v any) (any, bool) {
	from, ok := v.(*ordered.Object)
	if !ok {
		return nil, false
	}
	to := &ordered.Object{}
	for _, m := range from.Members {
		list, _ := m.Value.([]any)
		if shown := shownNames(names(list)); plain(m.Key) && len(shown) > 0 {
			to.Members = append(to.Members, ordered.Member{Key: m.Key, Value: shown})
		}
	}
	return to, len(to.Members) > 0
}

func types(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, slices.Contains(typeNames, v)
	case []any:
		list := slices.DeleteFunc(slices.Clone(v), func(e any) bool {
			s, ok := e.(string)
			return !ok || !slices.Contains(typeNames, s)
		})
		return list, len(list) > 0
	}
	return nil, false
}

// fits reports whether a value can be shown as it is.
func fits(v any) bool {
	b, err := ordered.Encode(v)
	return err == nil && len(b) <= maxWords && seen(v)
}

func fitting(list []any) []any {
	return slices.DeleteFunc(slices.Clone(list), func(v any) bool { return !fits(v) })
}

func seen(v any) bool {
	switch v := v.(type) {
	case string:
		return asItIs(v)
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !seen(e) })
	case *ordered.Object:
		return !slices.ContainsFunc(v.Members, func(m ordered.Member) bool { return !asItIs(m.Key) || !seen(m.Value) })
	}
	return true
}
