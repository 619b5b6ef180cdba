package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"openskill/sdk/skill"
)

// reporter turns the validator's tree of errors into a flat list of fields.
type reporter struct {
	doc    any // the schema, to say what a missing field should be; may be nil
	faults Faults
}

// maxText bounds what is said of a field, in bytes. Lists that would be cut are not made.
const maxText = 200

func (r *reporter) add(at []string, problem, expected string) {
	r.faults.Total++
	if len(r.faults.Fields) < MaxFields {
		r.faults.Fields = append(r.faults.Fields, Field{
			Field:    skill.CleanText(pointer(at), 200),
			Problem:  problem,
			Expected: skill.CleanText(expected, maxText),
		})
	}
}

func (r *reporter) walk(e *jsonschema.ValidationError) {
	if len(r.faults.Fields) == MaxFields && len(e.Causes) == 0 {
		r.count(e) // a large value can be wrong in 100,000 places: words cost time
		return
	}
	// The validator goes through objects as Go's maps do; a caller who asks twice
	// reads the same answer twice.
	slices.SortStableFunc(e.Causes, func(a, b *jsonschema.ValidationError) int {
		return slices.Compare(a.InstanceLocation, b.InstanceLocation)
	})
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		if len(r.faults.Fields) == MaxFields {
			r.count(e)
			return
		}
		if len(e.Causes) > 0 {
			r.oneOf(e)
			return
		}
		r.add(e.InstanceLocation, "matches more than one of the accepted forms", "exactly one of them")
		return
	case *kind.Required:
		for _, name := range k.Missing {
			r.add(with(e.InstanceLocation, name), "is missing", r.property(e, name))
		}
		return
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			r.add(with(e.InstanceLocation, name), "is missing", "needed where "+cut(k.Prop, 60)+" is given")
		}
		return
	case *kind.AdditionalProperties:
		known := r.known(e)
		slices.Sort(k.Properties)
		for i, name := range k.Properties {
			if len(r.faults.Fields) == MaxFields {
				r.faults.Total += len(k.Properties) - i
				break
			}
			r.add(with(e.InstanceLocation, name), "is not known", known)
		}
		return
	case *kind.Format:
		if k.Want == DataPath {
			r.add(e.InstanceLocation, errDataPath.Error(), dataPathExpected)
			return
		}
	case *kind.PropertyNames:
		r.add(with(e.InstanceLocation, k.Property), "has a name that is not accepted", "")
		return
	}
	if len(e.Causes) > 0 {
		for _, c := range e.Causes {
			r.walk(c)
		}
		return
	}
	problem, expected := describe(e.ErrorKind)
	r.add(e.InstanceLocation, problem, expected)
}

// leavesData reports whether a path that leaves the data folder is among what is wrong.
func leavesData(e *jsonschema.ValidationError) bool {
	f, ok := e.ErrorKind.(*kind.Format)
	return ok && f.Want == DataPath || slices.ContainsFunc(e.Causes, leavesData)
}

// count counts an error without words.
func (r *reporter) count(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		r.faults.Total += len(k.Missing)
	case *kind.DependentRequired:
		r.faults.Total += len(k.Missing)
	case *kind.AdditionalProperties:
		r.faults.Total += len(k.Properties)
	default:
		r.faults.Total++
	}
}

// oneOf tells the branches of a choice in one line: a list of everything that is
// wrong with every branch helps nobody.
func (r *reporter) oneOf(e *jsonschema.ValidationError) {
	var forms []string
	length := 0
	for _, c := range e.Causes {
		if length > maxText {
			break
		}
		sub := &reporter{doc: r.doc}
		sub.walk(c)
		for _, f := range sub.faults.Fields {
			form := f.Expected
			if form == "" {
				form = "not one that " + f.Problem
			}
			if f.Field != pointer(e.InstanceLocation) {
				form = f.Field + ": " + form
			}
			if !slices.Contains(forms, form) {
				forms = append(forms, form)
				length += len(form)
			}
		}
	}
	r.add(e.InstanceLocation, "matches none of the accepted forms", strings.Join(forms, ", or "))
}

// describe says what failed and what would pass, never what the value was.
func describe(k jsonschema.ErrorKind) (problem, expected string) {
	atLeast := func(n int, of string) (string, string) { return "is too short", "at least " + plural(n, of) }
	atMost := func(n int, of string) (string, string) { return "is too long", "at most " + plural(n, of) }
	switch k := k.(type) {
	case *kind.Type:
		return isOf(k.Got), strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "is not one of the accepted values", values(k.Want)
	case *kind.Const:
		return "is not the accepted value", values([]any{k.Want})
	case *kind.Format:
		if k.Want == "regex" {
			return "is not a regular expression", "RE2 syntax: no lookaround, no backreferences"
		}
		return "is not a valid " + cut(k.Want, 40), cut(k.Want, 40)
	case *kind.Pattern:
		return "does not match the pattern", "text that matches " + cut(k.Want, 120)
	case *kind.MinLength:
		return atLeast(k.Want, "character")
	case *kind.MaxLength:
		return atMost(k.Want, "character")
	case *kind.MinItems:
		return atLeast(k.Want, "item")
	case *kind.MaxItems:
		return atMost(k.Want, "item")
	case *kind.MinProperties:
		return "has too few fields", "at least " + plural(k.Want, "field")
	case *kind.MaxProperties:
		return "has too many fields", "at most " + plural(k.Want, "field")
	case *kind.Minimum:
		return "is too small", "at least " + number(k.Want)
	case *kind.Maximum:
		return "is too large", "at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "is too small", "more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "is too large", "less than " + number(k.Want)
	case *kind.MultipleOf:
		return "is not a multiple", "a multiple of " + number(k.Want)
	case *kind.UniqueItems:
		return "has equal items", "every item once"
	case *kind.FalseSchema:
		return "is not accepted here", "no value"
	case *kind.Not:
		return "has a form that is not accepted", ""
	case *kind.Contains, *kind.MinContains:
		return "has no item that it must contain", ""
	case *kind.MaxContains:
		return "has too many items of one form", ""
	case *kind.AdditionalItems:
		return "has too many items", ""
	default:
		return "does not match the schema", ""
	}
}

// isOf says of what type a value is.
func isOf(kind string) string {
	switch kind {
	case "null":
		return "is null"
	case "object", "array", "integer":
		return "is an " + kind
	}
	return "is a " + kind
}

// property says what the schema wants of one property, from the schema that
// reported the error.
func (r *reporter) property(e *jsonschema.ValidationError, name string) string {
	s, _ := r.at(e.SchemaURL).(map[string]any)
	props, _ := s["properties"].(map[string]any)
	p, _ := props[name].(map[string]any)
	return wanted(p)
}

func (r *reporter) known(e *jsonschema.ValidationError) string {
	s, _ := r.at(e.SchemaURL).(map[string]any)
	props, _ := s["properties"].(map[string]any)
	if len(props) == 0 {
		return "no such field"
	}
	return "one of " + cut(strings.Join(sortedKeys(props), ", "), maxText)
}

func wanted(p map[string]any) string {
	if list, ok := p["enum"].([]any); ok {
		return values(list)
	}
	t, _ := p["type"].(string)
	if items, ok := p["items"].(map[string]any); ok && t == "array" {
		if of := wanted(items); of != "" {
			return "array of " + of
		}
	}
	if t == "" {
		return "a value"
	}
	return t
}

// at finds the subschema that an absolute location names.
func (r *reporter) at(location string) any {
	_, fragment, _ := strings.Cut(location, "#")
	v := r.doc
	if fragment == "" {
		return v
	}
	for _, token := range strings.Split(strings.TrimPrefix(fragment, "/"), "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch node := v.(type) {
		case map[string]any:
			v = node[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			v = node[i]
		default:
			return nil
		}
	}
	return v
}

func values(list []any) string {
	var parts []string
	length := 0
	for _, v := range list {
		if length > maxText {
			break
		}
		b, err := json.Marshal(v)
		if err != nil {
			continue
		}
		part := cut(string(b), 40)
		parts, length = append(parts, part), length+len(part)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "one of " + strings.Join(parts, ", ")
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func with(at []string, name string) []string { return append(slices.Clone(at), name) }

func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + escape(t))
	}
	return b.String()
}

func escape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// cut shortens s to about n bytes at a character's edge.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
