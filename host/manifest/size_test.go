package manifest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// many joins n parts.
func many(n int, part string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(part, "@", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// largest is the schema of a shape with as many parts as are accepted.
func largest(t *testing.T, shape, part string) *Schema {
	t.Helper()
	var found *Schema
	for low, high := 0, MaxSchemaBytes; low < high-1; {
		n := (low + high) / 2
		if s, problems := CompileSchema([]byte(strings.Replace(shape, "*", many(n, part), 1))); problems == nil {
			low, found = n, s
		} else {
			high = n
		}
	}
	if found == nil {
		t.Fatalf("no schema of this shape is accepted: %s", shape)
	}
	return found
}

func heap() int {
	runtime.GC()
	runtime.GC() // what was pooled, too
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Compiled schemas of one skill took 41 MB, of 9,800 subschemas in 29 KB of text.
func TestCompiledSchemasAreAsLargeAsTheySay(t *testing.T) {
	for name, c := range map[string][2]string{
		"empty":       {`{"anyOf":[*]}`, `{}`},
		"booleans":    {`{"anyOf":[*]}`, `true`},
		"in others":   {`{"anyOf":[*]}`, `{"not":{"not":{}}}`},
		"unknown":     {`{"anyOf":[*]}`, `{"x":{}}`},
		"properties":  {`{"properties":{*}}`, `"@":{"type":"string"}`},
		"long names":  {`{"properties":{"` + strings.Repeat("n", 8<<10) + `":{"anyOf":[*]}}}`, `{}`},
		"escapes":     {`{"properties":{"` + strings.Repeat("%/", 4<<10) + `":{"anyOf":[*]}}}`, `{}`},
		"references":  {`{"$defs":{"a":{}},"allOf":[*]}`, `{"$ref":"#/$defs/a"}`},
		"of draft 7":  {`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}},"allOf":[*]}`, `{"$ref":"#/definitions/a"}`},
		"nullable":    {`{"allOf":[*]}`, `{"type":"string","nullable":true}`},
		"resources":   {`{"$defs":{*}}`, `"@":{"$id":"mem:///@"}`},
		"anchors":     {`{"$defs":{*}}`, `"@":{"$dynamicAnchor":"a@"}`},
		"names":       {`{"patternProperties":{*}}`, `"@":{}`},
		"patterns":    {`{"allOf":[*]}`, `{"pattern":"^a@(b|c)*$"}`},
		"one pattern": {`{"pattern":"` + strings.Repeat("[a-c]{900}", 3) + `","enum":[*]}`, `1`},
		"required":    {`{"required":[*]}`, `"@"`},
		"dependent":   {`{"dependentRequired":{*}}`, `"@":["a"]`},
		"enum":        {`{"enum":[*]}`, `@`},
		"bounds":      {`{"allOf":[*]}`, `{"minimum":@.5}`},
		"default":     {`{"default":[*]}`, `{}`},
		"types":       {`{"anyOf":[*]}`, `{"type":["string","null"]}`},
		"formats":     {`{"anyOf":[*]}`, `{"format":"date"}`},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			s := largest(t, c[0], c[1])
			for range maxIdle - 1 {
				v := musttest.Get(s.compile())(t)
				s.idle <- v
			}
			got := heap() - before
			t.Logf("%d kB are taken of %d", got>>10, s.Size()>>10)
			if got > s.Size() || s.Size() > maxIdle*MaxSchemaSize {
				t.Errorf("%d bytes are taken; %d are told", got, s.Size())
			}
			runtime.KeepAlive(s)
		})
	}
}

func TestRefusesSchemasThatAreLargeCompiled(t *testing.T) {
	for _, src := range []string{
		`{"anyOf":[` + many(9800, `{}`) + `]}`,
		`{"properties":{"` + strings.Repeat("n", 15<<10) + `":{"anyOf":[` + many(5000, `{}`) + `]}}}`,
	} {
		_, problems := CompileSchema([]byte(src))
		if len(problems) != 1 || !strings.Contains(problems[0].Message, "2048 KiB of memory") {
			t.Errorf("%v", problems)
		}
	}
	if _, problems := CompileSchema([]byte(`{"type":"object","properties":{` + many(900, `"property_@":{"type":"string"}`) + `}}`)); problems != nil {
		t.Errorf("900 properties: %v", problems[0])
	}
}
