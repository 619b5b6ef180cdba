package manifest

import (
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The validator goes into subschemas and values by recursion, and a stack that is used up ends the
// whole process: no recover sees that. So how deep it can go is known before it goes.
const (
	MaxChain  = 100    // subschemas one in another, or one by a reference from another, at one and the same value
	maxLevels = 10_000 // that number times the depth of a value; some 25 MB of stack
)

var (
	errLoop  = errors.New("a reference loops without descending into the value")
	errChain = fmt.Errorf("more than %d chained subschemas apply to one value", MaxChain)
)

// chains finds the longest way through subschemas that stays at one value.
type chains struct {
	anchors map[string][]*jsonschema.Schema // by $dynamicAnchor
	seen    map[*jsonschema.Schema]bool
	length  map[*jsonschema.Schema]int // 0: it is being found
}

func longestChain(root *jsonschema.Schema) (int, error) {
	c := &chains{map[string][]*jsonschema.Schema{}, map[*jsonschema.Schema]bool{}, map[*jsonschema.Schema]int{}}
	c.find(root)
	most := 0
	for s := range c.seen {
		n, err := c.from(s)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	if most > MaxChain {
		return 0, errChain
	}
	return most, nil
}

// find collects all subschemas.
func (c *chains) find(s *jsonschema.Schema) {
	if c.seen[s] {
		return
	}
	c.seen[s] = true
	if s.DynamicAnchor != "" {
		c.anchors[s.DynamicAnchor] = append(c.anchors[s.DynamicAnchor], s)
	}
	for _, next := range append(atOnce(s), within(s)...) {
		c.find(next)
	}
	if s.DynamicRef != nil {
		c.find(s.DynamicRef.Ref)
	}
}

func (c *chains) from(s *jsonschema.Schema) (int, error) {
	if n, ok := c.length[s]; ok {
		if n == 0 {
			return 0, errLoop
		}
		return n, nil
	}
	c.length[s] = 0
	next := atOnce(s)
	if d := s.DynamicRef; d != nil {
		next = append(append(next, d.Ref), c.anchors[d.Anchor]...) // one of these, as the way here says
	}
	most := 0
	for _, t := range next {
		n, err := c.from(t)
		if err != nil {
			return 0, err
		}
		most = max(most, n)
	}
	c.length[s] = most + 1
	return most + 1, nil
}

// atOnce are the subschemas that see the same value as s.
func atOnce(s *jsonschema.Schema) (all []*jsonschema.Schema) {
	for _, list := range [][]*jsonschema.Schema{{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf} {
		for _, t := range list {
			if t != nil {
				all = append(all, t)
			}
		}
	}
	for _, t := range s.DependentSchemas {
		all = append(all, t)
	}
	for _, d := range s.Dependencies {
		if t, ok := d.(*jsonschema.Schema); ok {
			all = append(all, t)
		}
	}
	return all
}

// within are those that see what is in the value.
func within(s *jsonschema.Schema) (all []*jsonschema.Schema) {
	for _, t := range append([]*jsonschema.Schema{
		s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
	}, s.PrefixItems...) {
		if t != nil {
			all = append(all, t)
		}
	}
	for _, t := range s.Properties {
		all = append(all, t)
	}
	for _, t := range s.PatternProperties {
		all = append(all, t)
	}
	for _, other := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch t := other.(type) {
		case *jsonschema.Schema:
			all = append(all, t)
		case []*jsonschema.Schema:
			all = append(all, t...)
		}
	}
	return all
}

// depthOf is how deep a value is nested.
func depthOf(v any) int {
	most := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			most = max(most, depthOf(e))
		}
	case []any:
		for _, e := range v {
			most = max(most, depthOf(e))
		}
	}
	return most + 1
}
