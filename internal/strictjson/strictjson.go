// Package strictjson reads one JSON object without any leniency: every byte is
// checked against RFC 8259 and no object, at any depth, may hold a key twice.
//
// encoding/json matches keys without case, lets the last duplicate win and
// replaces broken text. Two readers of the same bytes (the host that checks and
// the guest that acts) could then see two different requests.
package strictjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays may nest for [Object].
const MaxDepth = 256

// The bounds of the values that [Decode] makes: one within them costs the host a
// known amount of memory and time, whoever wrote it.
const (
	maxNumber   = 256     // bytes of one number
	maxExponent = 400     // of one number: a double's range, with room to be told so
	maxWeight   = 500_000 // a scalar weighs 1, a key 1, an array 2, an object 8: about what each takes in memory
)

// mapFrom is the number of keys of one object from which a map finds
// duplicates; below it, comparing is faster and allocates nothing.
const mapFrom = 16

// Error says what is wrong and where.
type Error struct {
	Path    string // the member, as in limits.fuel or input.rows[3]; "" for the whole text
	Offset  int    // in bytes from the beginning
	Problem string
}

// Error gives all of it in one line.
func (e *Error) Error() string {
	s := e.Problem + " at byte " + strconv.Itoa(e.Offset)
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	return s
}

// Object checks that b is one JSON object and nothing more, and hands over its
// members in the order of the text. Key is unescaped; value is the part of b
// that holds the member's value, without space around it. Both are good only
// until member returns, unless b outlives it. An error of member ends the scan
// and comes back as it is; any other error is an *Error.
func Object(b []byte, member func(key, value []byte) error) error {
	s := scanner{b: b, deepest: MaxDepth}
	_, err := s.only(member)
	return err
}

// Decode is Object, and makes the value as package jsonschema takes it: of
// map[string]any, []any, string, json.Number, bool and nil. Objects and arrays may
// nest depth deep. It refuses numbers that a double cannot hold, and more values
// than a host wants to have in memory. A nil member is not called.
func Decode(b []byte, depth int, member func(key, value []byte) error) (map[string]any, error) {
	s := scanner{b: b, deepest: depth, build: true, weight: maxWeight}
	return s.only(member)
}

type scanner struct {
	b       []byte
	i       int
	depth   int
	deepest int
	keys    [][]byte // of all open objects, the innermost last; unused where values are built

	build  bool // values, and not only look at the text
	weight int  // that the rest of the values may have
}

// only reads the object that the text is.
func (s *scanner) only(member func(key, value []byte) error) (map[string]any, error) {
	s.space()
	switch {
	case s.i == len(s.b):
		return nil, s.fail("expected a JSON object, and there is nothing")
	case s.peek() != '{':
		return nil, s.fail("expected a JSON object")
	}
	o, err := s.object(member)
	if err != nil {
		return nil, err
	}
	s.space()
	if s.i < len(s.b) {
		return nil, s.fail("expected nothing after the JSON object")
	}
	return o, nil
}

func (s *scanner) fail(problem string) *Error { return &Error{Offset: s.i, Problem: problem} }

// peek gives the next byte, 0 at the end; a real 0 is never valid where it is used.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// load counts a value against what all of them may weigh.
func (s *scanner) load(weight int) error {
	if s.weight -= weight; s.build && s.weight < 0 {
		return s.fail("too many values")
	}
	return nil
}

// value reads any value. It gives nil where values are not built.
func (s *scanner) value() (any, error) {
	switch c := s.peek(); {
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array()
	case c == '"':
		text, err := s.text()
		if err != nil || !s.build {
			return nil, err
		}
		return string(text), s.load(1)
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return true, s.word("true")
	case c == 'f':
		return false, s.word("false")
	case c == 'n':
		return nil, s.word("null")
	}
	return nil, s.fail("expected a JSON value")
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return s.fail("expected a JSON value")
	}
	s.i += len(w)
	return s.load(1)
}

// enter begins an object or an array, whose first byte is next.
func (s *scanner) enter(weight int) error {
	if s.depth++; s.depth > s.deepest {
		return s.fail("nested deeper than " + strconv.Itoa(s.deepest))
	}
	s.i++
	s.space()
	return s.load(weight)
}

func (s *scanner) object(member func(key, value []byte) error) (map[string]any, error) {
	if err := s.enter(8); err != nil {
		return nil, err
	}
	var o map[string]any
	if s.build {
		o = map[string]any{}
	}
	first := len(s.keys)
	var seen map[string]struct{}
	if s.peek() == '}' {
		s.i++
		s.depth--
		return o, nil
	}
	for {
		s.space()
		at := s.i
		if s.peek() != '"' {
			return nil, s.fail("expected a key in double quotes")
		}
		key, err := s.text()
		if err != nil {
			return nil, err
		}
		if s.build {
			if _, twice := o[string(key)]; twice {
				return nil, again(key, at)
			}
		} else if seen, err = s.unique(first, key, seen, at); err != nil {
			return nil, err
		}
		s.space()
		if s.peek() != ':' {
			return nil, s.fail("expected a colon after a key")
		}
		s.i++
		s.space()
		start := s.i
		value, err := s.value()
		if err != nil {
			return nil, within(string(key), err)
		}
		if s.build {
			o[string(key)] = value
			if err := s.load(1); err != nil {
				return nil, err
			}
		}
		if member != nil {
			if err := member(key, s.b[start:s.i:s.i]); err != nil {
				return nil, err
			}
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			s.depth--
			s.keys = s.keys[:first]
			return o, nil
		default:
			return nil, s.fail("expected a comma or the end of the object")
		}
	}
}

// again says that a key was there before.
func again(key []byte, at int) error {
	return within(string(key), &Error{Offset: at, Problem: "appears more than once"})
}

// unique records key as one of the object whose keys begin at s.keys[first].
func (s *scanner) unique(first int, key []byte, seen map[string]struct{}, at int) (map[string]struct{}, error) {
	if seen != nil {
		if _, ok := seen[string(key)]; ok {
			return seen, again(key, at)
		}
		seen[string(key)] = struct{}{}
		return seen, nil
	}
	for _, k := range s.keys[first:] {
		if bytes.Equal(k, key) {
			return nil, again(key, at)
		}
	}
	s.keys = append(s.keys, key)
	if len(s.keys)-first < mapFrom {
		return nil, nil
	}
	seen = make(map[string]struct{}, 4*mapFrom)
	for _, k := range s.keys[first:] {
		seen[string(k)] = struct{}{}
	}
	return seen, nil
}

func (s *scanner) array() ([]any, error) {
	if err := s.enter(2); err != nil {
		return nil, err
	}
	var list []any
	if s.build {
		list = []any{}
	}
	if s.peek() == ']' {
		s.i++
		s.depth--
		return list, nil
	}
	for n := 0; ; n++ {
		s.space()
		value, err := s.value()
		if err != nil {
			return nil, within("["+strconv.Itoa(n)+"]", err)
		}
		if s.build {
			list = append(list, value)
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			s.depth--
			return list, nil
		default:
			return nil, s.fail("expected a comma or the end of the array")
		}
	}
}

// within puts the name of the enclosing member before the path of an *Error.
func within(name string, err error) error {
	e, ok := err.(*Error) //nolint:errorlint // made in this package, never wrapped
	if !ok {
		return err
	}
	const longest = 200 // a path is for people; keys may be huge
	switch {
	case len(e.Path) > longest:
	case len(name) > longest:
		e.Path = name[:longest] + "…"
	case e.Path == "" || e.Path[0] == '[':
		e.Path = name + e.Path
	default:
		e.Path = name + "." + e.Path
	}
	return e
}

// text reads a string and gives its bytes, unescaped.
func (s *scanner) text() ([]byte, error) {
	start := s.i
	s.i++ // "
	escaped := false
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			if !escaped {
				return s.b[start+1 : s.i-1], nil
			}
			var out string
			if err := json.Unmarshal(s.b[start:s.i], &out); err != nil {
				return nil, s.fail("expected a string")
			}
			return []byte(out), nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < 0x20:
			return nil, s.fail("a control character in a string must be escaped")
		case c < utf8.RuneSelf:
			s.i++
		default:
			r, n := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && n == 1 {
				return nil, s.fail("a string is not valid UTF-8")
			}
			s.i += n
		}
	}
	return nil, s.fail("a string does not end")
}

func (s *scanner) escape() error {
	if s.i+1 >= len(s.b) {
		return s.fail("a string does not end")
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return nil
	case 'u':
		r, ok := s.hex4(s.i + 2)
		if !ok {
			return s.fail(`\u needs four hex digits`)
		}
		if r >= 0xd800 && r < 0xe000 {
			// Readers disagree on half a pair: some replace it, some keep it.
			low, ok := s.hex4(s.i + 8)
			if !ok || r >= 0xdc00 || low < 0xdc00 || low >= 0xe000 || s.b[s.i+6] != '\\' || s.b[s.i+7] != 'u' {
				return s.fail("half of a surrogate pair in a string")
			}
			s.i += 6
		}
		s.i += 6
		return nil
	}
	return s.fail("an unknown escape in a string")
}

func (s *scanner) hex4(at int) (rune, bool) {
	if at+4 > len(s.b) {
		return 0, false
	}
	var r rune
	for _, c := range s.b[at : at+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (s *scanner) number() (any, error) {
	start := s.i
	if s.peek() == '-' {
		s.i++
	}
	switch c := s.peek(); {
	case c == '0':
		s.i++
	case c >= '1' && c <= '9':
		s.digits()
	default:
		return nil, s.fail("a number needs digits")
	}
	if s.peek() == '.' {
		s.i++
		if s.digits() == 0 {
			return nil, s.fail("a number needs digits after its point")
		}
	}
	exponent := ""
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		from := s.i
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if s.digits() == 0 {
			return nil, s.fail("a number needs digits in its exponent")
		}
		exponent = string(s.b[from:s.i])
	}
	if !s.build {
		return nil, nil
	}
	return s.double(start, exponent)
}

// double holds a number that begins at start against what a double can hold.
func (s *scanner) double(start int, exponent string) (any, error) {
	fail := func(problem string) (any, error) { return nil, &Error{Offset: start, Problem: problem} }
	const beyond = "a number is beyond the range of a double"
	if s.i-start > maxNumber {
		return fail("a number has more than " + strconv.Itoa(maxNumber) + " characters")
	}
	// Schemas compare numbers exactly, as fractions: 1e999999999 would fill the
	// memory of the host.
	if exponent != "" {
		if e, err := strconv.Atoi(exponent); err != nil || e > maxExponent || e < -maxExponent {
			return fail(beyond)
		}
	}
	text := string(s.b[start:s.i])
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return fail(beyond)
	}
	return json.Number(text), s.load(1)
}

func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}
