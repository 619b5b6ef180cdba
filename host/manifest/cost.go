package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A step is about 100 ns. What an evaluation of a subschema takes is counted before it is
// done, since nothing interrupts the validator.
const (
	stepsOfOne     = 4   // an evaluation, with what is kept for its errors
	stepsOfChild   = 10  // one that may end before its own steps are counted: its type is wrong
	stepsOfNumber  = 12  // a comparison of numbers, which is exact
	stepsOfBounds  = 30  // minimum, maximum and multipleOf
	stepsOfRegex   = 10  // a byte of text that is to be a pattern
	bytesInStep    = 16  // of text that is read
	patternInStep  = 4   // of bytes times instructions
	smallEnum      = 256 // bytes of an enum or const that may be compared before it is counted
	quadraticItems = 20  // so many items the validator compares one with another
)

// cost is what is known of the work of one subschema before there is a value.
type cost struct {
	fixed   int  // steps of each evaluation
	each    int  // steps of each member or item of the value
	pattern int  // instructions that a string is held against
	names   int  // instructions that each name is held against
	unique  bool // items are compared
}

// counted gives doc as it is compiled for checks: each subschema that the validator evaluates has
// a format, named after an entry of costs, which counts before the validator goes on. A
// format is what is asked of every value, after the type, const and enum alone.
func counted(doc any) (_ any, costs []cost, err error) {
	doc = clone(doc)
	var all []map[string]any
	seen := map[uintptr]bool{}
	c := compiler()
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "mem:///vocabulary/all",
		Compile: func(_ *jsonschema.CompilerContext, o map[string]any) (jsonschema.SchemaExt, error) {
			if p := reflect.ValueOf(o).Pointer(); !seen[p] {
				seen[p] = true
				all = append(all, o)
			}
			return nil, nil
		},
	})
	c.AssertVocabs()
	if err := c.AddResource(resource, doc); err != nil {
		return nil, nil, err
	}
	if _, err := c.Compile(resource); err != nil {
		return nil, nil, err
	}
	draft, err := draftOf(doc)
	if err != nil {
		return nil, nil, err
	}
	for i, o := range all {
		if refAlone(draft) {
			wrapRef(o)
		}
		allowNull(o)
		costs = append(costs, costOf(o))
		count(o, formatOf(i))
	}
	return doc, costs, nil
}

func formatOf(i int) string { return fmt.Sprintf("openskill:cost:%d", i) }

// count gives a subschema its format. What it had, and what the validator would compare before
// it asks for the format, goes to the end of allOf.
func count(o map[string]any, format string) {
	late := map[string]any{}
	for _, key := range []string{"enum", "const"} {
		if v, ok := o[key]; ok && sizeOf(v) > smallEnum {
			late[key] = v
			delete(o, key)
		}
	}
	if f, ok := o["format"]; ok {
		late["format"] = f
	}
	if o["format"] = format; len(late) > 0 {
		list, _ := o["allOf"].([]any)
		o["allOf"] = append(slices.Clone(list), late)
	}
}

func costOf(o map[string]any) cost {
	c := cost{fixed: stepsOfOne, each: 1}
	for key, v := range o {
		switch v := v.(type) {
		case []any:
			switch key {
			case "allOf", "anyOf", "oneOf", "prefixItems":
				c.fixed += stepsOfChild * len(v)
			case "enum":
				for _, e := range v {
					c.fixed += stepsToCompare(e)
				}
			case "required":
				c.fixed += len(v)
			}
		case map[string]any:
			switch key {
			case "dependentSchemas", "dependencies":
				c.fixed += stepsOfChild * len(v)
				for _, d := range v {
					names, _ := d.([]any) // before 2019-09
					c.fixed += len(names)
				}
			case "dependentRequired":
				c.fixed += sizeOf(v)
			case "patternProperties":
				c.each += stepsOfChild * len(v)
				for pattern := range v {
					c.names += instructions(pattern)
				}
			}
		case string:
			switch {
			case key == "pattern":
				c.pattern += instructions(v)
			case key == "format" && v == "regex":
				c.pattern += stepsOfRegex * patternInStep
			}
		case bool:
			c.unique = c.unique || key == "uniqueItems" && v
		}
		switch key {
		case "not", "if", "then", "else", "$ref", "$dynamicRef", "$recursiveRef":
			c.fixed += stepsOfChild
		case "items", "additionalItems", "contains", "properties", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties":
			c.each += stepsOfChild
		case "const":
			c.fixed += stepsToCompare(v)
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
			c.fixed += stepsOfBounds
		}
	}
	return c
}

// of is how many steps an evaluation of v takes before those of the subschemas below.
func (c *cost) of(v any) int {
	switch v := v.(type) {
	case string:
		return c.fixed + len(v)/bytesInStep + len(v)*c.pattern/patternInStep
	case map[string]any:
		n := c.fixed + len(v)*c.each
		if c.names > 0 {
			for name := range v {
				n += (len(name) + 1) * c.names / patternInStep
			}
		}
		return n
	case []any:
		n := c.fixed + len(v)*c.each
		if c.unique {
			n += stepsOfUnique(v)
		}
		return n
	}
	return c.fixed
}

// stepsOfUnique counts the comparison of items. The validator tells many apart by hashes, and
// whoever makes arrays and objects can make many of one hash.
func stepsOfUnique(items []any) int {
	n, largest, plain := 0, 0, len(items) > quadraticItems
	for _, item := range items {
		switch item.(type) {
		case map[string]any, []any:
			plain = false
		}
		steps := stepsToCompare(item)
		n, largest = n+steps, max(largest, steps)
	}
	if plain {
		return n
	}
	if len(items) > quadraticItems {
		return n + len(items)*len(items)/2
	}
	return n + len(items)*len(items)/2*largest
}

// stepsToCompare is what it takes to compare a value with another one.
func stepsToCompare(v any) int {
	switch v := v.(type) {
	case json.Number:
		if strings.ContainsAny(string(v), "eE") {
			return stepsOfBounds
		}
		return stepsOfNumber + len(v)/bytesInStep
	case string:
		return 1 + len(v)/bytesInStep
	case []any:
		n := 1
		for _, e := range v {
			n += stepsToCompare(e)
		}
		return n
	case map[string]any:
		n := 1
		for name, e := range v {
			n += 1 + len(name)/bytesInStep + stepsToCompare(e)
		}
		return n
	}
	return 1
}

// sizeOf is about the bytes of v as JSON.
func sizeOf(v any) int {
	switch v := v.(type) {
	case json.Number:
		return len(v)
	case string:
		return len(v)
	case []any:
		n := 2
		for _, e := range v {
			n += 1 + sizeOf(e)
		}
		return n
	case map[string]any:
		n := 2
		for name, e := range v {
			n += 4 + len(name) + sizeOf(e)
		}
		return n
	}
	return 4
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		v = maps.Clone(v)
		for name, e := range v {
			v[name] = clone(e)
		}
		return v
	case []any:
		v = slices.Clone(v)
		for i, e := range v {
			v[i] = clone(e)
		}
		return v
	}
	return v
}
