// Package vectorstest is what the guest SDKs have in common: twelve calls, and what a
// skill that is written with any of them answers. README.md has the format.
package vectorstest

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"path"
	"strings"
)

//go:embed *.json
var files embed.FS

// Vector is one call of a vector skill and what belongs to it.
type Vector struct {
	Name  string `json:"name"`
	Shows string `json:"shows"`
	// Exactly one of these: the value of "input", or all of standard input as text.
	Input json.RawMessage `json:"input,omitempty"`
	Stdin *string         `json:"stdin,omitempty"`
	// The files of the data folder by their paths in it; nil: it is not granted.
	Files   map[string]string `json:"files,omitempty"`
	Scratch bool              `json:"scratch,omitempty"` // it is granted
	Want    Want              `json:"want"`
}

// Want is what a vector skill leaves behind.
type Want struct {
	Success   bool            `json:"success"`
	Data      json.RawMessage `json:"data,omitempty"` // of a success
	Error     *Error          `json:"error,omitempty"`
	Exit      int             `json:"exit"`
	Artifacts []Artifact      `json:"artifacts,omitempty"` // all, in order of name
	Logs      []string        `json:"logs,omitempty"`      // lines of standard error, in this order; others may be between
}

// Error is what a skill reports. Details are compared where a vector has them.
type Error struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Artifact is a file that a skill leaves.
type Artifact struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Got is what a run of a vector skill left behind.
type Got struct {
	Stdout, Stderr []byte
	Exit           int
	Artifacts      []Artifact // in order of name
}

// Call is the standard input of a vector's call.
func (v *Vector) Call() []byte {
	if v.Stdin != nil {
		return []byte(*v.Stdin)
	}
	return []byte(`{"input": ` + string(v.Input) + `, "skill_id": "vectors", "trace_id": "t-1"}`)
}

// All gives the vectors in their order.
func All() ([]Vector, error) {
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		return nil, err
	}
	all := make([]Vector, 0, len(names))
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		v, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, is, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".json"), "_"); is != v.Name {
			return nil, fmt.Errorf("%s: its name is %q", name, v.Name)
		}
		all = append(all, *v)
	}
	return all, nil
}

func parse(raw []byte) (*Vector, error) {
	var v Vector
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if (v.Input == nil) == (v.Stdin == nil) {
		return nil, errors.New(`one of "input" and "stdin" must be there`)
	}
	if v.Want.Success != (v.Want.Error == nil) || v.Want.Success != (v.Want.Data != nil) {
		return nil, errors.New(`a success has "data", and a failure "error"`)
	}
	for _, raw := range []*json.RawMessage{&v.Input, &v.Want.Data} {
		if *raw == nil {
			continue
		}
		value, err := decode(*raw)
		if err == nil {
			*raw, err = encode(repeated(value))
		}
		if err != nil {
			return nil, err
		}
	}
	return &v, nil
}

// repeated puts a text in the place of each {"$repeat": text, "$times": n}.
func repeated(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = repeated(v[i])
		}
	case map[string]any:
		text, isText := v["$repeat"].(string)
		times, isNumber := v["$times"].(json.Number)
		if n, err := times.Int64(); isText && isNumber && err == nil && len(v) == 2 {
			return strings.Repeat(text, int(n))
		}
		for key := range v {
			v[key] = repeated(v[key])
		}
	}
	return v
}

// Check says what is not as the vector has it, nil if all is.
func (v *Vector) Check(got *Got) error {
	var errs []error
	wrong := func(what string, want, got any) {
		errs = append(errs, fmt.Errorf("%s: want %s, got %s", what, short(want), short(got)))
	}
	if got.Exit != v.Want.Exit {
		wrong("exit code", v.Want.Exit, got.Exit)
	}
	if err := v.Want.answer(got.Stdout); err != nil {
		errs = append(errs, err)
	}
	if fmt.Sprint(got.Artifacts) != fmt.Sprint(v.Want.Artifacts) {
		wrong("artifacts", v.Want.Artifacts, got.Artifacts)
	}
	lines := strings.Split(string(got.Stderr), "\n")
	for _, want := range v.Want.Logs {
		for len(lines) > 0 && strings.TrimSuffix(lines[0], "\r") != want {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			wrong("standard error", want, string(got.Stderr))
			break
		}
		lines = lines[1:]
	}
	return errors.Join(errs...)
}

// answer compares standard output, which must be a whole result and nothing else.
func (w *Want) answer(stdout []byte) error {
	value, err := decode(stdout)
	if err != nil {
		return fmt.Errorf("standard output is no JSON: %w: %s", err, short(string(stdout)))
	}
	want := map[string]any{"success": w.Success, "data": nil, "error": nil}
	if w.Data != nil {
		if want["data"], err = decode(w.Data); err != nil {
			return err
		}
	}
	got, _ := value.(map[string]any)
	if w.Error != nil {
		fault := map[string]any{"code": w.Error.Code, "message": w.Error.Message}
		if w.Error.Details != nil {
			if fault["details"], err = decode(w.Error.Details); err != nil {
				return err
			}
		} else if reported, ok := got["error"].(map[string]any); ok {
			delete(reported, "details")
		}
		want["error"] = fault
	}
	if at := different(want, value, "answer"); at != "" {
		return errors.New(at)
	}
	return nil
}

// different says where two values differ first, "" if they do not. Numbers are the
// same if they are equal, however they are written.
func different(want, got any, at string) string {
	differ := fmt.Sprintf("%s: want %s, got %s", at, short(want), short(got))
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return differ
		}
		for key := range w {
			if _, there := g[key]; !there {
				return differ
			}
			if d := different(w[key], g[key], at+"."+key); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return differ
		}
		for i := range w {
			if d := different(w[i], g[i], fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
		return ""
	case json.Number:
		g, ok := got.(json.Number)
		if ok && (g == w || equal(w, g)) {
			return ""
		}
		return differ
	}
	if want != got {
		return differ
	}
	return ""
}

// equal compares numbers: integers exactly, others as the doubles that they are.
func equal(a, b json.Number) bool {
	x, okX := new(big.Rat).SetString(a.String())
	y, okY := new(big.Rat).SetString(b.String())
	if !okX || !okY {
		return false
	}
	if x.IsInt() && y.IsInt() && !strings.ContainsAny(a.String()+b.String(), "eE") {
		return x.Cmp(y) == 0
	}
	f, errF := a.Float64()
	g, errG := b.Float64()
	return errF == nil && errG == nil && f == g
}

func decode(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	return v, nil
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// short is a value as JSON, or the beginning of it.
func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	const most = 1000
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
