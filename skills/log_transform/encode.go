package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// This file writes JSON in one spelling, that of Python's json.dumps with sorted
// keys, no blanks and no ASCII escapes, so that both forms of the skill agree on
// every byte, and thereby on where a limit in bytes falls.

// maxDepth is how deep a JSON line may be nested to be a record.
const maxDepth = 64

func appendOptional(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendString(b, *s)
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		default:
			if c < ' ' {
				b = fmt.Appendf(b, `\u%04x`, c)
			} else {
				b = append(b, c)
			}
		}
	}
	return append(b, '"')
}

// appendValue writes a raw JSON value anew; ok is false for what cannot be a
// record: no JSON, a number beyond the doubles, nesting deeper than maxDepth.
// level renames the string in the field level of the outermost object.
//
// It goes level by level over raw values, because decoding into any costs several
// times as much, and this runs for every line.
func appendValue(b []byte, raw json.RawMessage, depth int, level func(string) string) (_ []byte, ok bool) {
	if depth > maxDepth || len(raw) == 0 {
		return nil, false
	}
	switch raw[0] {
	case '{':
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return nil, false
		}
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(object)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			value := object[key]
			if depth == 0 && key == "level" && value[0] == '"' {
				var name string
				if json.Unmarshal(value, &name) != nil {
					return nil, false
				}
				b = appendString(b, level(name))
				continue
			}
			if b, ok = appendValue(b, value, depth+1, level); !ok {
				return nil, false
			}
		}
		return append(b, '}'), true
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
		b = append(b, '[')
		for i, item := range list {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = appendValue(b, item, depth+1, level); !ok {
				return nil, false
			}
		}
		return append(b, ']'), true
	case '"':
		if bytes.IndexByte(raw, '\\') < 0 {
			return append(b, raw...), true // nothing in it is spelled in two ways
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return nil, false
		}
		return appendString(b, s), true
	case 't', 'f', 'n':
		return append(b, raw...), true
	default:
		return appendNumber(b, string(raw))
	}
}

// appendNumber keeps an integer's digits and writes any other number as the
// shortest one that reads back as the same double, in Python's layout.
func appendNumber(b []byte, literal string) ([]byte, bool) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, false
	}
	if !strings.ContainsAny(literal, ".eE") {
		if literal == "-0" {
			literal = "0"
		}
		return append(b, literal...), true
	}
	exp := strconv.FormatFloat(f, 'e', -1, 64)
	power, err := strconv.Atoi(exp[strings.IndexByte(exp, 'e')+1:])
	if err != nil {
		return nil, false
	}
	if power < -4 || power >= 16 {
		return append(b, exp...), true
	}
	fixed := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(fixed, ".") {
		fixed += ".0"
	}
	return append(b, fixed...), true
}
