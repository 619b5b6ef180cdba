package tools

import (
	"testing"

	"openskill/internal/musttest"
	"openskill/internal/ordered"
)

func TestModern(t *testing.T) {
	const d7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for name, c := range map[string]struct{ from, want string }{
		"2020-12 stays": {
			`{"type":"object","properties":{"a":{"prefixItems":[{}],"items":false},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"exclusiveMinimum":1}}}`,
			`{"type":"object","properties":{"a":{"prefixItems":[{}],"items":false},"b":{"$ref":"#/$defs/b"}},"$defs":{"b":{"exclusiveMinimum":1}}}`,
		},
		"an anchor": {
			`{"properties":{"a":{"$ref":"#t"}},"$defs":{"x":{"$anchor":"t","type":"string"}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`,
		},
		"a dynamic reference": {
			`{"$dynamicAnchor":"node","properties":{"down":{"$dynamicRef":"#node"}}}`,
			`{"properties":{"down":{"$ref":"#"}}}`,
		},
		"a recursive reference": {
			`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"properties":{"down":{"$recursiveRef":"#"}}}`,
			`{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"down":{"$ref":"#"}}}`,
		},
		"an anchor by $id": {
			`{` + d7 + `"properties":{"a":{"$ref":"#t"}},"definitions":{"x y":{"$id":"#t","type":"string"}}}`,
			`{` + d7 + `"properties":{"a":{"$ref":"#/definitions/x%20y"}},"definitions":{"x y":{"$id":"#t","type":"string"}}}`,
		},
		"within a part of its own": {
			`{"properties":{"a":{"$id":"a","$defs":{"s":{"type":"string"}},"properties":{"b":{"$ref":"#/$defs/s"},"c":{"$ref":"#"}}}}}`,
			`{"properties":{"a":{"$id":"a","$defs":{"s":{"type":"string"}},"properties":{"b":{"$ref":"#/properties/a/$defs/s"},"c":{"$ref":"#/properties/a"}}}}}`,
		},
		"beside a reference": {
			`{` + d7 + `"properties":{"a":{"$ref":"#/definitions/s","maxLength":1,"description":"d"}},"definitions":{"s":{"type":"string"}}}`,
			`{` + d7 + `"properties":{"a":{"$ref":"#/definitions/s","description":"d"}},"definitions":{"s":{"type":"string"}}}`,
		},
		"a tuple": {
			`{` + d7 + `"properties":{"a":{"items":[{"type":"string"},{"$ref":"#/properties/a/items/0"}],"additionalItems":false},"b":{"additionalItems":false}}}`,
			`{` + d7 + `"properties":{"a":{"prefixItems":[{"type":"string"},{"$ref":"#/properties/a/prefixItems/0"}],"items":false},"b":{}}}`,
		},
		"dependencies": {
			`{` + d7 + `"dependencies":{"a":["b"],"c":{"required":["d"]}}}`,
			`{` + d7 + `"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`,
		},
		"bounds of draft 04": {
			`{"$schema":"http://json-schema.org/draft-04/schema","id":"x","properties":{"a":{"minimum":1,"exclusiveMinimum":true},"b":{"maximum":1,"exclusiveMaximum":false},"id":{"type":"string"}}}`,
			`{"$schema":"http://json-schema.org/draft-04/schema","properties":{"a":{"exclusiveMinimum":1},"b":{"maximum":1},"id":{"type":"string"}}}`,
		},
		"nullable": {
			`{"properties":{"a":{"type":"string","nullable":true},"b":{"type":["null"],"nullable":true},"nullable":{"type":"boolean"}}}`,
			`{"properties":{"a":{"type":["string","null"]},"b":{"type":["null"]},"nullable":{"type":"boolean"}}}`,
		},
		"nothing there": {`{"properties":{"a":{"$ref":"#none"}}}`, `{"properties":{"a":{"$ref":"#none"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := musttest.Get(ordered.DecodeObject([]byte(c.from)))(t)
			Modern(o)
			if got, _ := ordered.Encode(o); string(got) != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
