// Package guest is a skill's own side of the contract: one call on standard
// input, one answer on standard output, files below ./data only.
//
// It is compiled into the skills that are written in Go, so it imports the
// standard library only. Every message in it is the same, word for word, as in
// the Python form of those skills.
package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The codes that a skill of ours answers with.
const (
	InvalidArgument = "INVALID_ARGUMENT"
	ForbiddenPath   = "FORBIDDEN_PATH"
	Internal        = "INTERNAL"
)

// Fault is why a call was not answered, in the words that its caller reads.
type Fault struct { //nolint:errname // named for what it is to the caller
	Code    string
	Field   string // the input's field, as a.b or a[0]; "" for the call as a whole
	Reason  string // one word for programs: missing, type, range, not_found …
	Message string // what was wrong and what is accepted
}

func (f *Fault) Error() string { return f.Message }

// Invalid is an INVALID_ARGUMENT about one field.
func Invalid(field, reason, message string) *Fault {
	return &Fault{Code: InvalidArgument, Field: field, Reason: reason, Message: message}
}

type answer struct {
	Success bool     `json:"success"`
	Data    any      `json:"data"`
	Error   *problem `json:"error"`
}

type problem struct {
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Details map[string]string `json:"details"`
}

// Serve reads one call from r, gives its input to run, writes the answer to w
// and returns the exit code: 0 for success, 1 for a failure.
func Serve(r io.Reader, w io.Writer, run func(*Input) (any, error)) int {
	var a answer
	in, err := readCall(r)
	if err == nil {
		a.Data, err = run(in)
	}
	if err != nil {
		f := new(Fault)
		if !errors.As(err, &f) {
			f = &Fault{Code: Internal, Reason: "failed", Message: "the skill failed; its standard error says why"}
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
		p := &problem{Code: f.Code, Message: f.Message, Details: map[string]string{"reason": f.Reason}}
		if f.Field != "" {
			p.Details["field"] = f.Field
		}
		a = answer{Error: p}
	}
	a.Success = a.Error == nil
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil || !a.Success {
		return 1
	}
	return 0
}

// Rehearse makes an answer that nobody sees, before any input is read. A host that
// starts a skill once for all its calls keeps what that made: what Go's runtime and
// packages make at their first use, such as encoding/json of each type, is then not
// made anew in each call. run must not depend on its input, nor on the time.
func Rehearse(run func(*Input) (any, error)) {
	_ = Serve(strings.NewReader(`{"input":{"path":"./data/x","limit":1}}`), io.Discard, run) // what it says is nobody's
}

// Input is an object of a call, one raw JSON value a field. Its readers keep the first
// mistake of the call, which Err gives; what they return after one is of no use.
type Input struct {
	Fields map[string]json.RawMessage
	within string // before the names of its fields: "", or the object's own name and a dot
	first  *error
}

// Err is the first mistake, or nil.
func (in *Input) Err() error { return *in.first }

// Fail notes a mistake, if err is one and none came before it.
func (in *Input) Fail(err error) {
	if *in.first == nil {
		*in.first = err
	}
}

func readCall(r io.Reader) (*Input, error) {
	malformed := &Fault{
		Code: InvalidArgument, Reason: "malformed",
		Message: `standard input must be one JSON object in UTF-8: {"input": {…}}`,
	}
	raw, err := io.ReadAll(r)
	if err != nil || !Text(raw) {
		return nil, malformed
	}
	// A map, because a struct would take "INPUT" for "input".
	var call map[string]json.RawMessage
	if json.Unmarshal(raw, &call) != nil || call == nil {
		return nil, malformed
	}
	if call["input"] == nil {
		return nil, Invalid("input", "missing", "input: required, an object")
	}
	var none error
	in := &Input{first: &none}
	in.Fields = in.object(call["input"], "input", "")
	return in, in.Err()
}

// Object is an object field, without fields when it is absent; shape is shown in the
// message about what is none.
func (in *Input) Object(name, shape string) *Input {
	inner := &Input{within: in.within + name + ".", first: in.first}
	if raw, ok := in.Fields[name]; ok {
		inner.Fields = in.object(raw, in.within+name, shape)
	}
	return inner
}

func (in *Input) object(raw json.RawMessage, field, shape string) (fields map[string]json.RawMessage) {
	if raw[0] != '{' || json.Unmarshal(raw, &fields) != nil {
		in.Fail(Invalid(field, "type", field+": must be an object"+shape))
	}
	return fields
}

// Text reports whether JSON bytes hold text only: UTF-8, and no half of a
// surrogate pair, for which encoding/json would quietly put U+FFFD.
func Text(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // the character behind the backslash
		switch u := escape(raw, i); {
		case u < 0xd800 || u > 0xdfff:
		case u >= 0xdc00:
			return false
		default:
			if i+5 >= len(raw) || raw[i+5] != '\\' {
				return false
			}
			if low := escape(raw, i+6); low < 0xdc00 || low > 0xdfff {
				return false
			}
			i += 10
		}
	}
	return true
}

// escape is the number in uXXXX at raw[i:], or -1.
func escape(raw []byte, i int) int64 {
	if i+5 > len(raw) || raw[i] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(n)
}

// Only refuses every field that is not one of names.
func (in *Input) Only(names ...string) {
	where := ""
	if in.within != "" {
		where = " in " + strings.TrimSuffix(in.within, ".")
	}
	for _, name := range slices.Sorted(maps.Keys(in.Fields)) {
		if !slices.Contains(names, name) {
			in.Fail(Invalid(in.within+head(name, 64), "unknown", "unknown field; accepted"+where+": "+strings.Join(names, ", ")))
		}
	}
}

// String is a string field of lo to hi characters; without a fallback it is required.
func (in *Input) String(name string, lo, hi int, fallback ...string) string {
	raw, ok := in.Fields[name]
	switch {
	case ok:
		return in.StringOf(raw, in.within+name, lo, hi)
	case fallback == nil:
		in.Fail(Invalid(name, "missing", name+": required, a string"))
		return ""
	}
	return fallback[0]
}

// StringOf reads raw as a JSON string of lo to hi characters.
func (in *Input) StringOf(raw json.RawMessage, field string, lo, hi int) string {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		in.Fail(Invalid(field, "type", field+": must be a string"))
	} else if n := utf8.RuneCountInString(s); n < lo || n > hi {
		in.Fail(Invalid(field, "length", fmt.Sprintf("%s: must be %d to %d characters long", field, lo, hi)))
	} else {
		return s
	}
	return ""
}

// Choice is a string field that must be one of accepted; absent is the value when it is
// absent.
func (in *Input) Choice(name, absent string, accepted ...string) string {
	if _, ok := in.Fields[name]; !ok {
		return absent
	}
	s := in.String(name, 0, math.MaxInt)
	if !slices.Contains(accepted, s) {
		in.Fail(Invalid(name, "unsupported", name+": must be one of "+strings.Join(accepted, ", ")))
	}
	return s
}

// Integer is an integer field from lo to hi; 5.0 is the integer 5, as in JSON Schema.
func (in *Input) Integer(name string, fallback, lo, hi int) int {
	raw, ok := in.Fields[name]
	if !ok {
		return fallback
	}
	reason := "type"
	var n json.Number
	if raw[0] != '"' && string(raw) != "null" && json.Unmarshal(raw, &n) == nil {
		f, err := strconv.ParseFloat(n.String(), 64)
		switch {
		case err == nil && f != math.Trunc(f), err != nil && strings.ContainsAny(n.String(), ".eE"):
		case f < float64(lo) || f > float64(hi):
			reason = "range"
		default:
			return int(f)
		}
	}
	in.Fail(Invalid(name, reason, fmt.Sprintf("%s: must be an integer from %d to %d", name, lo, hi)))
	return 0
}

// head is the first n characters of s.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
