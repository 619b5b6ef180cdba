package tools

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"openskill/internal/ordered"
)

// Modern says a schema of any draft in the words of 2020-12, which models and clients take it
// for once $schema is gone:
//
//   - References by the name of an anchor, of $dynamicRef and $recursiveRef, and within a part
//     that has an $id, lead to the same place by its path from the top.
//   - A list of items is prefixItems, what additionalItems says is items; dependencies are
//     dependentRequired and dependentSchemas; a bound of draft 04 that excludes is a number.
//   - What stands beside a reference of draft 07 or before does not count there, and is left out.
//   - nullable, which OpenAPI has, is the type null.
func Modern(o *ordered.Object) {
	old := strings.Contains(o.Text("$schema"), "/draft-0")
	m := &moderniser{old: old, lists: old || strings.Contains(o.Text("$schema"), "/2019-09/"), anchors: map[string]string{}}
	m.find(o, "", "", 0)
	m.change(o, "", "", 0)
}

type moderniser struct {
	old     bool              // of draft 07 or before
	lists   bool              // of 2019-09 or before, which had lists of items
	anchors map[string]string // by the place of the part that has an $id, "#" and the name
}

// base is the place that the references in o begin at.
func (m *moderniser) base(o *ordered.Object, at, base string) string {
	id := o.Text("$id")
	if id == "" && m.old {
		id = o.Text("id")
	}
	if id == "" || strings.HasPrefix(id, "#") {
		return base
	}
	return at
}

// find notes the anchors.
func (m *moderniser) find(o *ordered.Object, at, base string, depth int) {
	if depth > maxDepth {
		return
	}
	base = m.base(o, at, base)
	names := []string{o.Text("$anchor"), o.Text("$dynamicAnchor")}
	if m.old {
		names = []string{strings.TrimPrefix(o.Text("$id"), "#"), strings.TrimPrefix(o.Text("id"), "#")}
	}
	for _, name := range names {
		if _, known := m.anchors[base+"#"+name]; name != "" && !known {
			m.anchors[base+"#"+name] = at
		}
	}
	each(o, func(s *ordered.Object, in string) { m.find(s, at+in, base, depth+1) })
}

func (m *moderniser) change(o *ordered.Object, at, base string, depth int) {
	if depth > maxDepth {
		return
	}
	base = m.base(o, at, base)
	each(o, func(s *ordered.Object, in string) { m.change(s, at+in, base, depth+1) })
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := strings.CutPrefix(o.Text(key), "#"); ok {
			m.refer(o, key, ref, base)
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor", "$recursiveAnchor"} {
		o.Delete(key)
	}
	if m.old {
		o.Delete("id")
	}
	if m.old && o.Text("$ref") != "" {
		o.Members = slices.DeleteFunc(slices.Clone(o.Members), func(member ordered.Member) bool {
			return !slices.Contains([]string{"$ref", "$schema", "definitions", "$defs", "title", "description"}, member.Key)
		})
		return
	}
	if m.lists {
		older(o)
	}
	nullable(o)
}

// place is a path as a reference.
func place(path string) string {
	return "#" + (&url.URL{Fragment: tuple.ReplaceAllString(path, "/prefixItems/$1")}).EscapedFragment()
}

// refer leads a reference to the same place by its path.
func (m *moderniser) refer(o *ordered.Object, key, ref, base string) {
	switch {
	case ref == "":
		ref = base
	case strings.HasPrefix(ref, "/"):
		if plain, err := url.PathUnescape(ref); err == nil {
			ref = plain
		}
		ref = base + ref
	default:
		found, ok := m.anchors[base+"#"+ref]
		if !ok {
			return
		}
		ref = found
	}
	if key != "$ref" {
		if o.Has("$ref") { // both hold
			o.Delete(key)
			all := o.List("allOf")
			o.Set("allOf", append(slices.Clone(all), ordered.Of("$ref", place(ref))))
			return
		}
		for i := range o.Members {
			if o.Members[i].Key == key {
				o.Members[i].Key = "$ref"
			}
		}
	}
	o.Set("$ref", place(ref))
}

// tuple is a place in a list of items.
var tuple = regexp.MustCompile(`/items/([0-9]+)`)

// older says the keywords of one schema as 2020-12 does.
func older(o *ordered.Object) {
	if list := o.List("items"); list != nil {
		o.Delete("items")
		o.Set("prefixItems", list)
		if rest := o.Get("additionalItems"); rest != nil {
			o.Set("items", rest)
		}
	}
	o.Delete("additionalItems")
	if d := o.Object("dependencies"); d != nil {
		names, schemas := &ordered.Object{}, &ordered.Object{}
		for _, member := range d.Members {
			if _, list := member.Value.([]any); list {
				names.Set(member.Key, member.Value)
			} else {
				schemas.Set(member.Key, member.Value)
			}
		}
		o.Delete("dependencies")
		if len(names.Members) > 0 {
			o.Set("dependentRequired", names)
		}
		if len(schemas.Members) > 0 {
			o.Set("dependentSchemas", schemas)
		}
	}
	for _, bounds := range [][2]string{{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}} {
		bound, excluded := bounds[0], bounds[1]
		flag, is := o.Get(excluded).(bool)
		if !is {
			continue
		}
		o.Delete(excluded)
		if n, number := o.Get(bound).(json.Number); flag && number {
			o.Delete(bound)
			o.Set(excluded, n)
		}
	}
}

func nullable(o *ordered.Object) {
	flag, is := o.Get("nullable").(bool)
	if !is {
		return
	}
	o.Delete("nullable")
	list, ok := o.Get("type").([]any)
	if t, one := o.Get("type").(string); one {
		list, ok = []any{t}, true
	}
	if flag && ok && !slices.Contains(list, any("null")) {
		o.Set("type", append(slices.Clone(list), "null"))
	}
}

// each visits the schemas directly within one, with the path to them.
func each(o *ordered.Object, visit func(s *ordered.Object, in string)) {
	list := func(key string) {
		for i, e := range o.List(key) {
			if s, ok := e.(*ordered.Object); ok {
				visit(s, "/"+key+"/"+strconv.Itoa(i))
			}
		}
	}
	for _, key := range append([]string{"additionalItems"}, schemaKeys...) {
		if s := o.Object(key); s != nil {
			visit(s, "/"+key)
		}
	}
	for _, key := range append([]string{"items"}, schemaListKeys...) {
		list(key)
	}
	for _, key := range append([]string{"dependencies"}, namedKeys...) {
		named := o.Object(key)
		if named == nil {
			continue
		}
		for _, member := range named.Members {
			if s, ok := member.Value.(*ordered.Object); ok {
				visit(s, "/"+key+"/"+strings.ReplaceAll(strings.ReplaceAll(member.Key, "~", "~0"), "/", "~1"))
			}
		}
	}
}
