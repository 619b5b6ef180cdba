package safeyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

// JSON writes a node of a parsed document as JSON, keys in the order of the
// file. Numbers that JSON cannot hold (.inf, .nan) are problems.
func JSON(n *yaml.Node) ([]byte, []Problem) {
	var e encoder
	e.node(n)
	if len(e.problems) > 0 {
		return nil, e.problems
	}
	return e.buf.Bytes(), nil
}

type encoder struct {
	buf      bytes.Buffer
	problems []Problem
}

func (e *encoder) node(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		e.buf.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				e.buf.WriteByte(',')
			}
			e.text(n.Content[i].Value)
			e.buf.WriteByte(':')
			e.node(n.Content[i+1])
		}
		e.buf.WriteByte('}')
	case yaml.SequenceNode:
		e.buf.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				e.buf.WriteByte(',')
			}
			e.node(c)
		}
		e.buf.WriteByte(']')
	default:
		e.scalar(n)
	}
}

func (e *encoder) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		e.buf.WriteString("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			e.problem(n, "is neither true nor false")
			return
		}
		e.buf.WriteString(strconv.FormatBool(b))
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) && len(n.Value) <= 64 {
			e.buf.WriteString(n.Value)
			return
		}
		var i int64 // 0x10, 0o7, 1_000
		if err := n.Decode(&i); err == nil && n.ShortTag() == "!!int" {
			e.buf.WriteString(strconv.FormatInt(i, 10))
			return
		}
		var f float64 // .5, 1., +2.5
		if err := n.Decode(&f); err == nil {
			if b, err := json.Marshal(f); err == nil {
				e.buf.Write(b)
				return
			}
		}
		e.problem(n, "is not a number that JSON can hold")
	default:
		e.text(n.Value)
	}
}

func (e *encoder) text(s string) {
	enc := json.NewEncoder(&e.buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)               // a string always encodes
	e.buf.Truncate(e.buf.Len() - 1) // the line end that Encode adds
}

func (e *encoder) problem(n *yaml.Node, what string) {
	e.problems = append(e.problems, Problem{n.Line, fmt.Sprintf("%s %s", Quote(n.Value), what)})
}

// ParseJSON is [Parse] of a document that is JSON, whose lines it keeps. JSON is YAML but for
// tabs, and for characters that are written as two halves.
func ParseJSON(src []byte) (root *yaml.Node, problems []Problem) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	if len(src) <= MaxBytes && utf8.Valid(src) {
		var v any
		if err := json.Unmarshal(src, &v); err != nil {
			line := 0
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				line = 1 + bytes.Count(src[:syntax.Offset], []byte("\n"))
			}
			return nil, []Problem{{line, "not valid JSON: " + err.Error()}}
		}
		src = joinHalves(bytes.ReplaceAll(src, []byte("\t"), []byte(" "))) // valid JSON has none in its text
	}
	return Parse(src)
}

var escaped = regexp.MustCompile(`\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)`)

// joinHalves writes out what YAML has no escape for: the slash, and the characters beyond the
// first 65,536, each an escape of two.
func joinHalves(src []byte) []byte {
	return escaped.ReplaceAllFunc(src, func(b []byte) []byte {
		var s string
		if len(b) != len(`\ud83d\ude00`) && string(b) != `\/` {
			return b
		}
		if err := json.Unmarshal(slices.Concat([]byte(`"`), b, []byte(`"`)), &s); err != nil {
			return b
		}
		return []byte(s)
	})
}
