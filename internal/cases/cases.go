// Package cases says what a skill must answer: inputs with the data or the error that
// belong to them, written by its author into the file cases.yaml of its folder, and how an
// answer differs from that.
package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"openskill/internal/safeyaml"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// FileName is the file with the cases in a skill's folder.
const FileName = "cases.yaml"

// MaxFile is the length in bytes of the longest file of cases.
const MaxFile = safeyaml.MaxBytes

// Case is one call and what belongs to it: Data, or Error.
type Case struct {
	Name   string
	Line   int             // of the file
	Input  json.RawMessage // an object
	Limits skill.Limits    // that the call asks for; zero: none
	Data   json.RawMessage // an object; nil: an error is expected
	Error  *Error
}

// Error is an error that is expected. What is "" or nil may be anything.
type Error struct {
	Code    skill.Code
	Message string
	Details json.RawMessage
}

// Problem is what is wrong with a file of cases, and the line of the case that it is in.
type Problem struct {
	Line    int
	Message string
}

// String gives the problem with its line.
func (p Problem) String() string { return fmt.Sprintf("%d: %s", p.Line, p.Message) }

// Parse reads a file of cases. With problems there are none.
func Parse(src []byte) ([]Case, []Problem) {
	root, bad := safeyaml.Parse(src)
	var text []byte
	if root != nil {
		text, bad = safeyaml.JSON(root)
	}
	if len(bad) > 0 {
		problems := make([]Problem, len(bad))
		for i, p := range bad {
			problems[i] = Problem(p)
		}
		return nil, problems
	}
	r := &reader{line: root.Line}
	if !bytes.HasPrefix(text, []byte("[")) || len(root.Content) == 0 {
		r.report("the file must be a list of cases, each with name, input, and data or error")
		return nil, r.problems
	}
	all := make([]Case, 0, len(root.Content))
	seen := map[string]bool{}
	for _, n := range root.Content {
		r.line = n.Line
		text, _ := safeyaml.JSON(n) // a part of what was read
		c := r.read(text)
		if seen[c.Name] {
			r.report("duplicate case name %s", safeyaml.Quote(c.Name))
		}
		seen[c.Name] = true
		all = append(all, c)
	}
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return all, nil
}

// reader reads cases and gathers problems.
type reader struct {
	line     int // of the case that is read
	problems []Problem
}

func (r *reader) report(format string, args ...any) {
	r.problems = append(r.problems, Problem{r.line, fmt.Sprintf(format, args...)})
}

// fields goes through an object whose keys are known.
func (r *reader) fields(text []byte, what string, known map[string]func([]byte)) {
	if text[0] != '{' {
		r.report("%s must be a map of keys and values", what)
		return
	}
	err := strictjson.Object(text, func(key, value []byte) error {
		if read, ok := known[string(key)]; ok {
			read(value)
		} else {
			r.report("the key %s is not known in %s", safeyaml.Quote(string(key)), what)
		}
		return nil
	})
	if err != nil { // such as a number that no double is near
		r.report("cannot read %s: %v", what, err)
	}
}

func (r *reader) read(text []byte) Case {
	c := Case{Line: r.line, Input: json.RawMessage("{}")}
	var limits skill.LimitsJSON
	r.fields(text, "a case", map[string]func([]byte){
		"name":   func(b []byte) { r.text(b, "name", &c.Name) },
		"input":  func(b []byte) { r.object(b, "input", &c.Input) },
		"data":   func(b []byte) { r.object(b, "data", &c.Data) },
		"error":  func(b []byte) { c.Error = r.error(b) },
		"limits": func(b []byte) { r.limits(b, &limits) },
	})
	c.Limits = limits.Limits()
	switch {
	case strings.TrimSpace(c.Name) == "" || len(c.Name) > 200 || skill.CleanText(c.Name, 200) != c.Name:
		r.report("a case needs a name of one line, up to 200 bytes")
	case (c.Data == nil) == (c.Error == nil):
		r.report("the case %s needs either data or error", safeyaml.Quote(c.Name))
	}
	return c
}

func (r *reader) text(b []byte, what string, to *string) {
	if b[0] != '"' || json.Unmarshal(b, to) != nil {
		r.report("%s must be a string", what)
	}
}

func (r *reader) object(b []byte, what string, to *json.RawMessage) {
	if b[0] != '{' {
		r.report("%s must be an object", what)
	}
	*to = bytes.Clone(b)
}

// error reads an expected error: a code, or a map with one.
func (r *reader) error(b []byte) *Error {
	e := &Error{}
	var code string
	if b[0] != '{' {
		r.text(b, "error", &code)
	} else {
		r.fields(b, "error", map[string]func([]byte){
			"code":    func(b []byte) { r.text(b, "error.code", &code) },
			"message": func(b []byte) { r.text(b, "error.message", &e.Message) },
			"details": func(b []byte) { r.object(b, "error.details", &e.Details) },
		})
	}
	if e.Code = skill.Code(code); !e.Code.Known() {
		r.report("unknown error code %s: use a code such as INVALID_ARGUMENT", safeyaml.Quote(code))
	}
	return e
}

func (r *reader) limits(b []byte, to *skill.LimitsJSON) {
	known := map[string]func([]byte){}
	for _, f := range to.Fields() {
		known[f.Name] = func(b []byte) {
			v, err := strconv.ParseUint(string(b), 10, 64)
			if err != nil || v == 0 || v > f.Most {
				r.report("limits.%s must be a whole number from 1 to %d", f.Name, f.Most)
				return
			}
			*f.Value = v
		}
	}
	r.fields(b, "limits", known)
}
