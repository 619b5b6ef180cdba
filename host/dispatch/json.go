package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// The bounds of a JSON value at the door. A value within them costs the host a
// known amount of memory and time, whoever wrote it.
const (
	maxInputDepth  = 64
	maxOutputDepth = 512
	maxNumber      = 256     // bytes of one number
	maxExponent    = 400     // of one number: a double's range, with room to be told so
	maxUnits       = 500_000 // a scalar costs 1, a name 1, an array 2, an object 8: what each weighs in memory
)

// jsonError is what is wrong with a value: at is a JSON pointer, as far as known.
type jsonError struct {
	offset int
	what   string
}

func (e *jsonError) Error() string { return fmt.Sprintf("%s at byte %d", e.what, e.offset) }

// member is one member of the object at the top.
type member struct {
	raw   []byte // its value as it was written
	value any
}

// parseObject reads exactly one JSON object. Unlike encoding/json it refuses
// names that appear twice (after unescaping), text that is not UTF-8, numbers
// that a double cannot hold, and depth; unlike it, it compares names exactly. The
// values are as for jsonschema: map[string]any, []any, string, json.Number, bool
// and nil.
func parseObject(src []byte, maxDepth int) (map[string]member, map[string]any, error) {
	p := &jsonParser{src: src, maxDepth: maxDepth, units: maxUnits}
	p.space()
	if p.pos == len(src) {
		return nil, nil, p.fail("nothing")
	}
	if src[p.pos] != '{' {
		if _, err := p.value(1); err != nil {
			return nil, nil, err
		}
		return nil, nil, &jsonError{0, "a value that is not an object"}
	}
	p.top = map[string]member{}
	v, err := p.value(1)
	if err != nil {
		return nil, nil, err
	}
	p.space()
	if p.pos < len(src) {
		return nil, nil, p.fail("more text after the value")
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, nil, errors.New("not an object")
	}
	return p.top, object, nil
}

type jsonParser struct {
	src      []byte
	pos      int
	maxDepth int
	units    int
	top      map[string]member // filled for the outermost object
}

func (p *jsonParser) fail(what string) error { return &jsonError{p.pos, what} }

func (p *jsonParser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// next gives the next byte that is not white space, 0 at the end.
func (p *jsonParser) next() byte {
	p.space()
	if p.pos == len(p.src) {
		return 0
	}
	return p.src[p.pos]
}

func (p *jsonParser) spend(n int) error {
	if p.units -= n; p.units < 0 {
		return p.fail("too many values")
	}
	return nil
}

func (p *jsonParser) value(depth int) (any, error) {
	if depth > p.maxDepth {
		return nil, p.fail(fmt.Sprintf("nesting deeper than %d", p.maxDepth))
	}
	switch c := p.next(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		if err := p.spend(1); err != nil {
			return nil, err
		}
		return p.text()
	case c == '-' || c >= '0' && c <= '9':
		if err := p.spend(1); err != nil {
			return nil, err
		}
		return p.number()
	case c == 't':
		return true, p.word("true")
	case c == 'f':
		return false, p.word("false")
	case c == 'n':
		return nil, p.word("null")
	case c == 0 && p.pos == len(p.src):
		return nil, p.fail("an unexpected end")
	default:
		return nil, p.fail("text that is not JSON")
	}
}

func (p *jsonParser) word(w string) error {
	if err := p.spend(1); err != nil {
		return err
	}
	if len(p.src)-p.pos < len(w) || string(p.src[p.pos:p.pos+len(w)]) != w {
		return p.fail("text that is not JSON")
	}
	p.pos += len(w)
	return nil
}

func (p *jsonParser) object(depth int) (any, error) {
	if err := p.spend(8); err != nil {
		return nil, err
	}
	p.pos++ // {
	m := map[string]any{}
	if p.next() == '}' {
		p.pos++
		return m, nil
	}
	for {
		if p.next() != '"' {
			return nil, p.fail("no name of a member")
		}
		at := p.pos
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		if _, twice := m[name]; twice {
			return nil, &jsonError{at, "a name that appears twice in one object"}
		}
		if err := p.spend(1); err != nil {
			return nil, err
		}
		if p.next() != ':' {
			return nil, p.fail("no colon after a name")
		}
		p.pos++
		p.space()
		start := p.pos
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		m[name] = v
		if depth == 1 && p.top != nil {
			p.top[name] = member{raw: p.src[start:p.pos:p.pos], value: v}
		}
		switch p.next() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return m, nil
		default:
			return nil, p.fail("neither a comma nor the end of an object")
		}
	}
}

func (p *jsonParser) array(depth int) (any, error) {
	if err := p.spend(2); err != nil {
		return nil, err
	}
	p.pos++ // [
	list := []any{}
	if p.next() == ']' {
		p.pos++
		return list, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch p.next() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return list, nil
		default:
			return nil, p.fail("neither a comma nor the end of an array")
		}
	}
}

// text reads a string. Escapes are left to encoding/json, which knows them.
func (p *jsonParser) text() (string, error) {
	start := p.pos
	escaped := false
	for i := start + 1; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			raw := p.src[start+1 : i]
			if !utf8.Valid(raw) {
				return "", p.fail("text that is not UTF-8")
			}
			s := string(raw)
			if escaped {
				if err := json.Unmarshal(p.src[start:i+1], &s); err != nil {
					return "", p.fail("a wrong escape in a string")
				}
			}
			p.pos = i + 1
			return s, nil
		case c == '\\':
			escaped = true
			i++
		case c < 0x20:
			p.pos = i
			return "", p.fail("a control character in a string")
		}
	}
	p.pos = len(p.src)
	return "", p.fail("a string without an end")
}

func (p *jsonParser) number() (any, error) {
	start := p.pos
	digits := func() int {
		from := p.pos
		for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
			p.pos++
		}
		return p.pos - from
	}
	at := func(set string) bool {
		if p.pos == len(p.src) {
			return false
		}
		for i := range len(set) {
			if p.src[p.pos] == set[i] {
				return true
			}
		}
		return false
	}
	if at("-") {
		p.pos++
	}
	leadingZero := at("0")
	if n := digits(); n == 0 || leadingZero && n > 1 {
		return nil, p.fail("a number that is not JSON")
	}
	if at(".") {
		p.pos++
		if digits() == 0 {
			return nil, p.fail("a number that is not JSON")
		}
	}
	exponent := ""
	if at("eE") {
		p.pos++
		from := p.pos
		if at("+-") {
			p.pos++
		}
		if digits() == 0 {
			return nil, p.fail("a number that is not JSON")
		}
		exponent = string(p.src[from:p.pos])
	}
	text := string(p.src[start:p.pos])
	if len(text) > maxNumber {
		return nil, &jsonError{start, fmt.Sprintf("a number of more than %d characters", maxNumber)}
	}
	// The schema compares numbers exactly, as fractions: 1e999999999 would fill
	// the memory of the host.
	if exponent != "" {
		if e, err := strconv.Atoi(exponent); err != nil || e > maxExponent || e < -maxExponent {
			return nil, &jsonError{start, "a number beyond the range of a double"}
		}
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return nil, &jsonError{start, "a number beyond the range of a double"}
	}
	return json.Number(text), nil
}
