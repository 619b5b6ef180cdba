package main

import (
	"slices"
	"strconv"
	"strings"
)

// translate checks that a pattern keeps to the regular expressions that mean the
// same in Go and in Python, and returns it in Go's spelling. The problem is ""
// or says what is not accepted.
//
// Accepted are literals, . ^ $ | ( ) (?: ) (?P<name> ), classes as [0-9a-f] and
// [^ ], the escapes \d \D \w \W \s \S \b \B \t and escaped punctuation, and the
// quantifiers * + ? {n} {n,} {n,m}, also lazy. Left out are what Go cannot do
// (lookaround, backreferences), what the two read differently, and a repetition
// without an end inside another, over which a backtracking matcher explodes.
func translate(pattern string) (goPattern, problem string) {
	t := &translator{in: []rune(pattern)}
	t.run()
	return t.out.String(), t.problem
}

const (
	maxRepeat = 1000 // of one thing, nested repetitions multiplied; Go's own bound
	maxGroups = 10
)

// atom is the thing that a quantifier would repeat.
type atom struct {
	there   bool // something that may be repeated
	weight  int  // how often its dearest part is repeated already
	endless bool // it holds a repetition without an end
}

type translator struct {
	in      []rune
	at      int
	out     strings.Builder
	problem string
	groups  int
	names   []string
	stack   []atom // for each open group what it holds so far
	last    atom
}

func (t *translator) peek(i int) rune {
	if t.at+i < len(t.in) {
		return t.in[t.at+i]
	}
	return 0
}

func (t *translator) fail(why string) {
	if t.problem == "" {
		t.problem = why
	}
}

func (t *translator) run() {
	for t.at < len(t.in) && t.problem == "" {
		c := t.in[t.at]
		t.at++
		switch c {
		case '(':
			t.open()
		case ')':
			t.close()
		case '[':
			t.class()
		case '\\':
			t.escape()
		case '*', '+', '?', '{':
			t.quantifier(c)
		case '|', '^', '$':
			t.out.WriteRune(c)
			t.last = atom{}
		default:
			if c < ' ' {
				t.fail("must not hold control characters")
			}
			t.out.WriteRune(c)
			t.last = atom{there: true, weight: 1}
		}
	}
	if len(t.stack) > 0 {
		t.fail("has a ( without its )")
	}
}

func (t *translator) open() {
	if t.groups++; t.groups > maxGroups {
		t.fail("must not hold more than 10 groups")
	}
	t.stack = append(t.stack, atom{there: true, weight: 1})
	t.last = atom{}
	t.out.WriteByte('(')
	if t.peek(0) != '?' {
		return
	}
	switch {
	case t.peek(1) == ':':
		t.at += 2
		t.out.WriteString("?:")
	case t.peek(1) == 'P' && t.peek(2) == '<':
		end := t.at + 3
		for end < len(t.in) && (letter(t.in[end]) || end > t.at+3 && digit(t.in[end])) {
			end++
		}
		if end == t.at+3 || end >= len(t.in) || t.in[end] != '>' {
			t.fail("has a group name that is not of letters, digits and _")
			return
		}
		name := string(t.in[t.at : end+1])
		if slices.Contains(t.names, name) {
			t.fail("must not use a group's name twice") // Go would take it, Python not
		}
		t.names = append(t.names, name)
		t.out.WriteString(name)
		t.at = end + 1
	default:
		t.fail("must not hold (? but as (?: or (?P<name>: no lookaround, no flags")
	}
}

func (t *translator) close() {
	if len(t.stack) == 0 {
		t.fail("has a ) without its (")
		return
	}
	t.out.WriteByte(')')
	t.last = t.stack[len(t.stack)-1]
	t.stack = t.stack[:len(t.stack)-1]
	t.hold(t.last)
}

// hold notes in the group around it what was just repeated.
func (t *translator) hold(a atom) {
	if n := len(t.stack); n > 0 {
		t.stack[n-1].weight = max(t.stack[n-1].weight, a.weight)
		t.stack[n-1].endless = t.stack[n-1].endless || a.endless
	}
}

func (t *translator) quantifier(c rune) {
	if !t.last.there {
		t.fail("has a quantifier with nothing before it to repeat; escape a literal one")
		return
	}
	text, most, endless := string(c), 1, false
	switch c {
	case '*', '+':
		endless = true
	case '{':
		end := t.at
		for end < len(t.in) && t.in[end] != '}' {
			end++
		}
		if end == len(t.in) {
			end--
		}
		text += string(t.in[t.at : end+1])
		t.at = end + 1
		var ok bool
		if most, endless, ok = counts(text); !ok {
			t.fail("has a { that is not {n}, {n,} or {n,m} with n <= m <= 1000; escape a literal one")
			return
		}
	}
	a := atom{weight: t.last.weight * most, endless: t.last.endless || endless}
	if t.last.endless && (endless || most > 1) {
		t.fail("must not repeat a group that holds *, + or {n,}")
	}
	if a.weight > maxRepeat {
		t.fail("must not repeat anything more than 1000 times")
	}
	t.out.WriteString(text)
	if t.peek(0) == '?' {
		t.at++
		t.out.WriteByte('?')
	}
	t.hold(a)
	t.last = atom{} // a quantifier may not be repeated itself
}

// counts reads {n}, {n,} or {n,m}; most is the largest number in it.
func counts(text string) (most int, endless, ok bool) {
	body := strings.TrimSuffix(text[1:], "}")
	if len(body) == len(text)-1 {
		return 0, false, false
	}
	low, high, comma := strings.Cut(body, ",")
	least, ok := count(low)
	if !ok {
		return 0, false, false
	}
	if !comma || high == "" {
		return max(least, 1), comma, true
	}
	most, ok = count(high)
	return max(most, 1), false, ok && least <= most
}

func count(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil && len(s) <= 4 && n <= maxRepeat
}

// Go's \s leaves out the vertical tab, so it is spelled out.
const spaces = `\t\n\v\f\r `

func (t *translator) escape() {
	c := t.peek(0)
	t.at++
	t.last = atom{there: true, weight: 1}
	switch {
	case strings.ContainsRune("dDwWt", c) && c != 0:
		t.out.WriteString(`\` + string(c))
	case c == 's':
		t.out.WriteString("[" + spaces + "]")
	case c == 'S':
		t.out.WriteString("[^" + spaces + "]")
	case c == 'b' || c == 'B':
		t.out.WriteString(`\` + string(c))
		t.last = atom{}
	case punctuation(c):
		t.out.WriteString(`\` + string(c))
	default:
		t.fail(`has an escape that is not accepted; known are \d \D \w \W \s \S \b \B \t and escaped punctuation`)
	}
}

// class reads a class behind its [.
func (t *translator) class() {
	t.out.WriteByte('[')
	if t.peek(0) == '^' {
		t.at++
		t.out.WriteByte('^')
	}
	for items := 0; t.problem == ""; items++ {
		c := t.peek(0)
		if t.at >= len(t.in) {
			t.fail("has a [ without its ]")
			return
		}
		if c == ']' {
			t.at++
			if items == 0 {
				t.fail(`has an empty class; write \] for a literal ]`)
			}
			break
		}
		from, set := t.member(items)
		if t.peek(0) != '-' || t.peek(1) == ']' || t.at+1 >= len(t.in) || set {
			continue
		}
		t.at++
		t.out.WriteByte('-')
		to, set := t.member(-1)
		if set || to < from {
			t.fail("has a class with a range that does not go up")
		}
	}
	t.out.WriteByte(']')
	t.last = atom{there: true, weight: 1}
}

// member reads one character or set of a class; items is how many came before
// it, or -1 for the end of a range.
func (t *translator) member(items int) (c rune, set bool) {
	c = t.peek(0)
	t.at++
	switch {
	case c == '[', c == '&' && t.peek(0) == '&', c == '~' && t.peek(0) == '~', c == '|' && t.peek(0) == '|', c < ' ':
		t.fail(`must not hold [, &&, ~~, || or control characters in a class; write \[ for a literal [`)
	case c == '-' && t.peek(0) != ']' && items != 0:
		t.fail(`must not hold a - in the midst of a class; write \-`)
	case c != '\\':
		t.out.WriteString(quote(c))
		return c, false
	}
	c = t.peek(0)
	t.at++
	switch {
	case strings.ContainsRune("dDwW", c) && c != 0:
		t.out.WriteString(`\` + string(c))
		return c, true
	case c == 's':
		t.out.WriteString(spaces)
		return c, true
	case c == 't':
		t.out.WriteString(`\t`)
		return '\t', false
	case punctuation(c):
		t.out.WriteString(`\` + string(c))
	default:
		t.fail(`has an escape in a class that is not accepted; known are \d \D \w \W \s \t and escaped punctuation`)
	}
	return c, false
}

// quote keeps a plain character of a class plain in Go as well.
func quote(c rune) string {
	if c == '^' || c == '-' {
		return `\` + string(c)
	}
	return string(c)
}

func letter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func digit(c rune) bool  { return c >= '0' && c <= '9' }

func punctuation(c rune) bool {
	return c >= ' ' && c < 0x7f && !letter(c) && !digit(c) || c == '_'
}
