// Package yamledit changes one entry of a YAML document and leaves all other text as it is.
package yamledit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"openskill/internal/safeyaml"
)

// Set changes one entry of a map in a document: the last part of at is its key, those
// before it lead to the map, keys as strings and places in lists as ints. The entry is
// called key afterwards and has this value, in JSON.
//
// All other text stays as it is, with its comments and its order. Where the new value
// has the shape of the old one only the values in it that differ are written. What was
// written is read back: an error leaves the document as it was, and is given for a
// document or a value that this file does not accept, too.
func Set(src []byte, at []any, key string, value []byte) ([]byte, error) {
	root, problems := safeyaml.Parse(src)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].Message)
	}
	want, err := plainOf(root)
	if err != nil {
		return nil, err
	}
	v, err := decode(value)
	if err != nil {
		return nil, fmt.Errorf("the value is not JSON: %w", err)
	}
	e := newEditor(src, root)
	entry, err := find(root, want, at)
	if err != nil {
		return nil, err
	}
	old := entry.in[entry.key]
	delete(entry.in, entry.key)
	if _, twice := entry.in[key]; twice {
		return nil, fmt.Errorf("the entry %s already exists", safeyaml.Quote(key))
	}
	entry.in[key] = v
	switch {
	case key == entry.key && reflect.DeepEqual(old, v):
		return src, nil
	case key == entry.key && (len(entry.v.Content) > 0) == composite(v):
		e.change(entry.v, old, v)
	default:
		e.whole(entry, key, v)
	}
	out := e.apply()
	root, problems = safeyaml.Parse(out)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].Message)
	}
	got, err := plainOf(root)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(want, got) {
		return nil, errors.New("the surrounding text cannot be changed automatically")
	}
	return out, nil
}

// plainOf is a document as the values of encoding/json, with its numbers as written.
func plainOf(n *yaml.Node) (any, error) {
	b, problems := safeyaml.JSON(n)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].Message)
	}
	return decode(b)
}

func decode(b []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

func composite(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// entry is one of a map.
type entry struct {
	key  string
	k, v *yaml.Node
	in   map[string]any // the map, as plain data
}

func find(n *yaml.Node, plain any, at []any) (*entry, error) {
	missing := errors.New("entry not found")
	for i, part := range at {
		switch part := part.(type) {
		case int:
			list, ok := plain.([]any)
			if !ok || part < 0 || part >= len(list) || i == len(at)-1 {
				return nil, missing
			}
			n, plain = n.Content[part], list[part]
		case string:
			m, ok := plain.(map[string]any)
			if !ok {
				return nil, missing
			}
			k := 0
			for k < len(n.Content) && n.Content[k].Value != part {
				k += 2
			}
			switch {
			case k >= len(n.Content):
				return nil, missing
			case i == len(at)-1:
				return &entry{part, n.Content[k], n.Content[k+1], m}, nil
			}
			n, plain = n.Content[k+1], m[part]
		default:
			return nil, missing
		}
	}
	return nil, missing
}

// editor gathers changes of a text.
type editor struct {
	src    []byte
	begins map[*yaml.Node]int
	all    []int               // the same, ascending
	flow   map[*yaml.Node]bool // is within {…} or […]
	edits  []edit
}

type edit struct {
	from, to int
	text     string
}

func newEditor(src []byte, root *yaml.Node) *editor {
	e := &editor{src: src, begins: map[*yaml.Node]int{}, flow: map[*yaml.Node]bool{}}
	lines := []int{0}
	for i, c := range src {
		if c == '\n' {
			lines = append(lines, i+1)
		}
	}
	// Columns count characters. Nodes come in the order of the text, so that each line is
	// gone through once.
	line, column, at := 1, 1, 0
	var walk func(n *yaml.Node, flow bool)
	walk = func(n *yaml.Node, flow bool) {
		if n.Line != line || n.Column < column {
			line, column, at = n.Line, 1, len(src)
			if n.Line >= 1 && n.Line <= len(lines) {
				at = lines[n.Line-1]
			}
		}
		for ; column < n.Column; column++ {
			_, size := utf8.DecodeRune(src[at:])
			at += size
		}
		e.begins[n], e.flow[n], e.all = at, flow, append(e.all, at)
		for _, c := range n.Content {
			walk(c, flow || n.Style&yaml.FlowStyle != 0)
		}
	}
	walk(root, false)
	slices.Sort(e.all)
	return e
}

// begin is where a node is.
func (e *editor) begin(n *yaml.Node) int { return e.begins[n] }

// char is what a node begins with; 0 at the end of the text.
func (e *editor) char(n *yaml.Node) byte {
	if at := e.begin(n); at < len(e.src) {
		return e.src[at]
	}
	return 0
}

// end is where the text of a node ends: a quoted value with its quote, {…} and […] with
// their brackets, a plain value before a comment or what separates it from the next; all
// else where the next node's line begins, without the empty lines and comments before that.
func (e *editor) end(n *yaml.Node) int {
	at := e.begin(n)
	switch c := e.char(n); {
	case n.Style&yaml.FlowStyle != 0:
		at++
		if len(n.Content) > 0 {
			at = e.end(n.Content[len(n.Content)-1])
		}
		for at < len(e.src) && e.src[at] != c+2 { // in ASCII [ and ], { and } are two apart
			if e.src[at] == '#' {
				at = e.lineEnd(at)
			} else {
				at++
			}
		}
		return min(at+1, len(e.src))
	case c == '"' || c == '\'':
		return e.quoted(at, c)
	case len(n.Content) > 0 || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return e.blockEnd(n)
	}
	to := e.lineEnd(at)
	for i := at; i < to; i++ {
		c := e.src[i]
		if e.flow[n] && strings.IndexByte(",[]{}", c) >= 0 || c == '#' && i > at && isBlank(e.src[i-1]) {
			to = i
		}
	}
	return at + len(bytes.TrimRight(e.src[at:to], " \t\r"))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// quoted is the end of a text in quotes. In single ones two of them are one of the text;
// in double ones a backslash takes the next character with it.
func (e *editor) quoted(at int, quote byte) int {
	for at++; at < len(e.src); at++ {
		switch c := e.src[at]; {
		case c == '\\' && quote == '"':
			at++
		case c == quote && quote == '\'' && at+1 < len(e.src) && e.src[at+1] == c:
			at++
		case c == quote:
			return at + 1
		}
	}
	return len(e.src)
}

func (e *editor) lineEnd(at int) int {
	if i := bytes.IndexByte(e.src[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(e.src)
}

func (e *editor) lineBegin(at int) int { return bytes.LastIndexByte(e.src[:at], '\n') + 1 }

// column is how far a place is within its line, in characters.
func (e *editor) column(at int) int { return utf8.RuneCount(e.src[e.lineBegin(at):at]) }

func (e *editor) blockEnd(n *yaml.Node) int {
	last := n
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	begins, to := e.begin(last), len(e.src)
	if i, _ := slices.BinarySearch(e.all, begins+1); i < len(e.all) {
		to = e.lineBegin(e.all[i])
	}
	for to > begins {
		line := e.lineBegin(to - 1)
		text := bytes.TrimSpace(e.src[line:to])
		if line <= begins || len(text) > 0 && text[0] != '#' {
			break
		}
		to = line
	}
	return e.begin(n) + len(bytes.TrimRight(e.src[e.begin(n):to], " \t\r\n"))
}

// change writes what differs between a node's value and the one that it is to have.
func (e *editor) change(n *yaml.Node, old, now any) {
	if reflect.DeepEqual(old, now) {
		return
	}
	switch now := now.(type) {
	case map[string]any:
		if was, ok := old.(map[string]any); ok && sameKeys(was, now) {
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i].Value
				e.change(n.Content[i+1], was[key], now[key])
			}
			return
		}
	case []any:
		if was, ok := old.([]any); ok && len(was) == len(now) {
			for i := range now {
				e.change(n.Content[i], was[i], now[i])
			}
			return
		}
	}
	from, text := e.begin(n), flow(now)
	given, isText := now.(string)
	switch {
	case isText && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		text = jsonText(given)
	case n.Style&yaml.LiteralStyle != 0:
		text = literal(now, e.indent(from)+2)
	case len(n.Content) > 0 && n.Style&yaml.FlowStyle == 0 && !e.flow[n]: // it has lines of its own
		text = block(now, e.column(from))
	}
	e.edits = append(e.edits, edit{from, e.end(n), text})
}

// indent is how far the line of a place is indented, a dash of a list included.
func (e *editor) indent(at int) int {
	line := e.src[e.lineBegin(at):at]
	return len(line) - len(bytes.TrimLeft(line, " -"))
}

func sameKeys(a, b map[string]any) bool {
	for k := range a {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// widest is how many characters a line may have before a value gets lines of its own.
const widest = 110

// whole writes an entry anew, with its key.
func (e *editor) whole(old *entry, key string, now any) {
	from, text := e.begin(old.k), word(key)+": "+flow(now)
	column := e.column(from)
	if !e.flow[old.k] && column+utf8.RuneCountInString(text) > widest && composite(now) {
		text = word(key) + ":\n" + strings.Repeat(" ", column+2) + block(now, column+2)
	}
	e.edits = append(e.edits, edit{from, e.end(old.v), text})
}

func (e *editor) apply() []byte {
	slices.SortFunc(e.edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, d := range e.edits {
		if d.from < at || d.to < d.from { // then it would not read back either
			continue
		}
		out = append(append(out, e.src[at:d.from]...), d.text...)
		at = d.to
	}
	return append(out, e.src[at:]...)
}

// plainWord is text that is no other value without quotes, whichever YAML reads it.
var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*$`)

var otherValues = map[string]bool{"null": true, "true": true, "false": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true}

// word is text, without quotes where it needs none.
func word(s string) string {
	if plainWord.MatchString(s) && len(s) <= 100 && !otherValues[strings.ToLower(s)] {
		return s
	}
	return jsonText(s)
}

// jsonText is text in quotes, which YAML reads as JSON does.
func jsonText(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// flow writes a value into one line.
func flow(v any) string {
	switch v := v.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, word(k)+": "+flow(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = flow(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return word(v)
	case nil:
		return "null"
	}
	return fmt.Sprint(v) // a number as it is written, true or false
}

// block writes a map or a list into lines, the first without its indentation. What fits
// into one of them is not cut further.
func block(v any, indent int) string {
	room := widest - indent
	var parts []string
	add := func(before string, v any) {
		switch text := flow(v); {
		case !composite(v) || utf8.RuneCountInString(before+text) < room:
			parts = append(parts, before+" "+text)
		case before == "-":
			parts = append(parts, "- "+block(v, indent+2))
		default:
			parts = append(parts, before+"\n"+strings.Repeat(" ", indent+2)+block(v, indent+2))
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			add(word(k)+":", v[k])
		}
	case []any:
		for _, item := range v {
			add("-", item)
		}
	}
	if len(parts) == 0 {
		return flow(v)
	}
	return strings.Join(parts, "\n"+strings.Repeat(" ", indent))
}

// literal writes text in lines of its own, and any other value into one.
func literal(v any, indent int) string {
	s, ok := v.(string)
	body := strings.TrimRight(s, "\n")
	head := map[int]string{0: "|-", 1: "|"}[len(s)-len(body)]
	if !ok || head == "" || body == "" || strings.ContainsAny(body[:1], " \t\n") || strings.ContainsRune(s, '\r') {
		return flow(v)
	}
	var b strings.Builder
	b.WriteString(head)
	for _, line := range strings.Split(body, "\n") {
		b.WriteByte('\n')
		if line != "" {
			b.WriteString(strings.Repeat(" ", indent) + line)
		}
	}
	return b.String()
}
