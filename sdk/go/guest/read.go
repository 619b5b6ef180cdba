package guest

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep a call may nest: the host takes inputs of 64 levels, and the
// object around them is one more.
const maxDepth = 65

// readCall reads all of standard input. The values are of map[string]any, []any,
// string, json.Number, bool and nil.
func readCall(r io.Reader) (id, trace string, input map[string]any, err error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return "", "", nil, malformed()
	}
	err = json.Unmarshal(raw, new(json.RawMessage))
	if err != nil && strings.HasSuffix(err.Error(), "exceeded max depth") { // of encoding/json, far above maxDepth
		return "", "", nil, tooDeep()
	}
	if err != nil || !text(raw) {
		return "", "", nil, malformed()
	}
	p := parser{raw: raw}
	v, err := p.value()
	if err != nil {
		return "", "", nil, err
	}
	call, ok := v.(map[string]any)
	if !ok {
		return "", "", nil, malformed()
	}
	id, _ = call["skill_id"].(string)
	trace, _ = call["trace_id"].(string)
	given, ok := call["input"]
	if !ok {
		return id, trace, nil, Invalid("input", "missing", "input: required")
	}
	if input, ok = given.(map[string]any); !ok {
		return id, trace, nil, Invalid("input", "type", "input: must be an object")
	}
	return id, trace, input, nil
}

// parser reads text that is known to be JSON. encoding/json takes a key that is there
// twice, and three times as long for values of any type.
type parser struct {
	raw   []byte
	i     int
	depth int // of what is being read
}

// next skips space, and what stands between values.
func (p *parser) next() byte {
	for {
		switch c := p.raw[p.i]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
			p.i++
		default:
			return c
		}
	}
}

func (p *parser) value() (any, error) {
	switch c := p.next(); c {
	case '{', '[':
		if p.depth++; p.depth > maxDepth {
			return nil, tooDeep()
		}
		read := p.object
		if c == '[' {
			read = p.list
		}
		v, err := read()
		p.depth--
		return v, err
	case '"':
		return p.text()
	case 't':
		p.i += len("true")
		return true, nil
	case 'f':
		p.i += len("false")
		return false, nil
	case 'n':
		p.i += len("null")
		return nil, nil
	default:
		return p.number()
	}
}

func (p *parser) list() (any, error) {
	p.i++
	list := []any{}
	for p.next() != ']' {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	p.i++
	return list, nil
}

func (p *parser) object() (any, error) {
	p.i++
	object := map[string]any{}
	for p.next() != '}' {
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		if _, twice := object[name]; twice {
			e := because(InvalidArgument, "duplicate", "standard input has a key twice in one object")
			e.Details["key"] = head(name, 64)
			return nil, e
		}
		if object[name], err = p.value(); err != nil {
			return nil, err
		}
	}
	p.i++
	return object, nil
}

func (p *parser) text() (s string, err error) {
	from := p.i
	escaped := false
	for p.i++; p.raw[p.i] != '"'; p.i++ {
		if p.raw[p.i] == '\\' {
			escaped = true
			p.i++
		}
	}
	p.i++
	if !escaped {
		return string(p.raw[from+1 : p.i-1]), nil
	}
	err = json.Unmarshal(p.raw[from:p.i], &s)
	return s, err
}

func (p *parser) number() (any, error) {
	from := p.i
	for p.i < len(p.raw) && (p.raw[p.i] >= '0' && p.raw[p.i] <= '9' || strings.IndexByte("+-.eE", p.raw[p.i]) >= 0) {
		p.i++
	}
	n := json.Number(p.raw[from:p.i])
	// Others are surely within the doubles.
	if len(n) > 300 || bytes.ContainsAny(p.raw[from:p.i], "eE") {
		if _, err := n.Float64(); err != nil {
			return nil, because(InvalidArgument, "range", "standard input has a number beyond the range of a double")
		}
	}
	return n, nil
}

func tooDeep() error {
	return because(InvalidArgument, "depth", "standard input is nested deeper than 65 levels")
}

// text reports whether JSON holds text only: UTF-8, and no half of a surrogate pair,
// in whose place encoding/json would put U+FFFD.
func text(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return true
		}
		raw = raw[i:]
		switch u := escape(raw); {
		case u >= 0xd800 && u < 0xdc00:
			if low := escape(raw[6:]); low < 0xdc00 || low > 0xdfff {
				return false
			}
			raw = raw[12:]
		case u >= 0xdc00 && u < 0xe000:
			return false
		default:
			raw = raw[2:]
		}
	}
}

// escape is the number of the escape \uXXXX that raw begins with, else 0.
func escape(raw []byte) uint64 {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return n
}
