// Package safeyaml reads YAML as plain data: one document of maps, lists and
// scalars, small, shallow, without anchors, aliases, tags or merge keys.
//
// The rules hold before anything is decoded, because decoding is where YAML
// hurts: aliases multiply, a flat map costs the square of its keys, tags choose
// types, a second document is silently ignored. Every departure is reported with
// its line, all of them at once.
package safeyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"openskill/sdk/skill"
)

// The limits of a document. They are part of the manifest's contract.
const (
	MaxBytes   = 64 << 10 // of one document
	MaxKeys    = 256      // of one map
	MaxDepth   = 64       // of maps and lists within each other
	MaxReports = 50       // problems that are listed before the rest is only counted
)

// A Problem is one thing wrong, at one line (1 is the first; 0 is the whole file).
type Problem struct {
	Line    int
	Message string
}

// Parse reads one document and returns its root. Without problems the root is
// never nil and everything below it is a mapping with distinct string keys, a
// sequence, or a scalar with the tag !!str, !!int, !!float, !!bool or !!null.
// With problems the root is nil.
func Parse(src []byte) (root *yaml.Node, problems []Problem) {
	if len(src) > MaxBytes {
		return nil, []Problem{{0, fmt.Sprintf("the file is too large: %d bytes, the limit is %d", len(src), MaxBytes)}}
	}
	if !utf8.Valid(src) {
		return nil, []Problem{{lineOfInvalid(src), "the file is not valid UTF-8"}}
	}
	// The parser is not ours and its input is hostile: a panic of it is a
	// malformed document, not the end of the process.
	defer func() {
		if p := recover(); p != nil {
			root, problems = nil, []Problem{{0, "not valid YAML"}}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, []Problem{{0, "the file is empty"}}
		}
		return nil, []Problem{syntaxProblem(err)}
	}
	var next yaml.Node
	if err := dec.Decode(&next); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, []Problem{syntaxProblem(err)}
		}
		return nil, []Problem{{next.Line, "a second document begins here; use exactly one"}}
	}
	w := &walker{}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, []Problem{{0, "the file is empty"}}
	}
	w.node(doc.Content[0], 1)
	if w.count > len(w.problems) {
		w.problems = append(w.problems, Problem{0, fmt.Sprintf("and %d more problems", w.count-len(w.problems))})
	}
	if len(w.problems) > 0 {
		return nil, w.problems
	}
	return doc.Content[0], nil
}

type walker struct {
	problems []Problem
	count    int
}

func (w *walker) report(line int, format string, args ...any) {
	w.count++
	if len(w.problems) < MaxReports {
		w.problems = append(w.problems, Problem{line, fmt.Sprintf(format, args...)})
	}
}

func (w *walker) node(n *yaml.Node, depth int) {
	if n.Anchor != "" {
		w.report(n.Line, "anchors (&name) are not accepted; write the value out")
	}
	if n.Kind == yaml.AliasNode {
		w.report(n.Line, "aliases (*name) are not accepted; write the value out")
		return
	}
	if n.Style&yaml.TaggedStyle != 0 {
		w.report(n.Line, "tags (!name) are not accepted")
	}
	if depth > MaxDepth {
		w.report(n.Line, "nested more than %d deep", MaxDepth)
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.mapping(n, depth)
	case yaml.SequenceNode:
		for _, c := range n.Content {
			w.node(c, depth+1)
		}
	case yaml.ScalarNode:
		w.scalar(n)
	default:
		w.report(n.Line, "only maps, lists and plain values are accepted")
	}
}

func (w *walker) mapping(n *yaml.Node, depth int) {
	if len(n.Content)/2 > MaxKeys {
		w.report(n.Line, "a map has too many keys: %d, the limit is %d", len(n.Content)/2, MaxKeys)
		return
	}
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge":
			w.report(k.Line, "merge keys (<<) are not accepted; write the values out")
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str":
			w.report(k.Line, "keys must be strings; put %s in quotes", Quote(k.Value))
		default:
			if first, twice := lines[k.Value]; twice {
				w.report(k.Line, "the key %s appears twice; it is first set at line %d", Quote(k.Value), first)
			} else {
				lines[k.Value] = k.Line
			}
			w.node(k, depth+1)
		}
		w.node(v, depth+1)
	}
}

func (w *walker) scalar(n *yaml.Node) {
	switch n.ShortTag() {
	case "!!str":
		// None of these belongs in text that people approve and models read.
		if r, found := skill.Unseen(n.Value); found {
			w.report(n.Line, "the text has the invisible or control character U+%04X", r)
		}
	case "!!timestamp":
		// Unquoted dates are text here: JSON, which this becomes, has no dates.
		n.Tag = "!!str"
	case "!!int", "!!float", "!!bool", "!!null":
	default:
		w.report(n.Line, "only strings, numbers, true, false and null are accepted as values")
	}
}

// Quote gives s in quotes for a message, cut to 60 bytes, with everything that
// cannot be seen escaped.
func Quote(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

var yamlLine = regexp.MustCompile(`line (\d+): *`)

// syntaxProblem takes the line out of the parser's text, which is all it gives.
func syntaxProblem(err error) Problem {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := yamlLine.FindStringSubmatchIndex(msg); m != nil {
		line, _ = strconv.Atoi(msg[m[2]:m[3]])
		msg = msg[:m[0]] + msg[m[1]:]
	}
	if r := []rune(msg); len(r) > 160 {
		msg = string(r[:160]) + "…"
	}
	if strings.Contains(msg, "mapping values are not allowed") {
		msg = strings.TrimSpace(msg) + "; text with a colon in it needs quotes"
	}
	return Problem{line, "not valid YAML: " + strings.TrimSpace(msg)}
}

func lineOfInvalid(src []byte) int {
	line := 1
	for len(src) > 0 {
		r, size := utf8.DecodeRune(src)
		if r == utf8.RuneError && size == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		src = src[size:]
	}
	return line
}
