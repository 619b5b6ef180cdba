package main

import (
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

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

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

// appendValue writes what encoding/json decoded; ok is false for what cannot be
// a record: a number beyond the doubles, or nesting deeper than maxDepth.
func appendValue(b []byte, v any, depth int) (_ []byte, ok bool) {
	if depth > maxDepth {
		return nil, false
	}
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), true
	case bool:
		return strconv.AppendBool(b, v), true
	case string:
		return appendString(b, v), true
	case json.Number:
		return appendNumber(b, v.String())
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = appendValue(b, item, depth+1); !ok {
				return nil, false
			}
		}
		return append(b, ']'), true
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			if b, ok = appendValue(b, v[key], depth+1); !ok {
				return nil, false
			}
		}
		return append(b, '}'), true
	default:
		return nil, false
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
