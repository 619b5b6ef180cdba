package app

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"openskill/host/manifest"
	"openskill/internal/cases"
	"openskill/internal/digest"
	"openskill/internal/ordered"
	"openskill/internal/safeyaml"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// The bounds of a proposal.
const (
	maxProposed = 256 << 10 // bytes of its arguments
	maxCases    = 20
)

// programs are the languages of proposals.
var programs = map[string]struct{ runtime, entry string }{
	"python": {"python", "main.py"}, "javascript": {"javascript", "main.js"}, "shell": {"shell", "main.sh"},
}

// proposal is a skill that a model proposes.
type proposal struct {
	id            skill.ID
	description   string
	language      string
	code          string
	input, output json.RawMessage
	list          []byte // the file of cases
	cases         []cases.Case
}

// badProposal refuses an argument.
func badProposal(field, problem, expected string) error {
	return &skill.Error{
		Op: "host.propose", Code: skill.InvalidArgument, Subject: field, Message: skill.CleanText(field+" "+problem, skill.MaxMessage),
		Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": skill.CleanText(problem, skill.MaxMessage), "expected": expected}}},
	}
}

func readProposal(args json.RawMessage) (*proposal, error) {
	if len(args) > maxProposed {
		return nil, badProposal("arguments", fmt.Sprintf("have %d bytes", len(args)), fmt.Sprintf("at most %d", maxProposed))
	}
	w := &proposal{output: json.RawMessage(`{"type":"object"}`)}
	name, given := "", json.RawMessage("[]")
	text := func(to *string) func([]byte) bool {
		return func(b []byte) bool { return b[0] == '"' && json.Unmarshal(b, to) == nil }
	}
	raw := func(to *json.RawMessage, begin byte) func([]byte) bool {
		return func(b []byte) bool { *to = slices.Clone(b); return b[0] == begin }
	}
	known := map[string]struct {
		read     func([]byte) bool
		expected string
	}{
		"name": {text(&name), "a string"}, "description": {text(&w.description), "a string"}, "language": {text(&w.language), "python, javascript or shell"},
		"code": {text(&w.code), "the text of the program"}, "input_schema": {raw(&w.input, '{'), "an object"}, "output_schema": {raw(&w.output, '{'), "an object"},
		"cases": {raw(&given, '['), "a list"},
	}
	err := strictjson.Object(args, func(key, value []byte) error {
		k := string(key)
		field, ok := known[k]
		if !ok {
			return badProposal(skill.CleanText(k, 64), "is unknown", "one of name, description, language, code, input_schema, output_schema, cases")
		}
		if !field.read(value) {
			return badProposal(k, "has the wrong type", field.expected)
		}
		return nil
	})
	switch {
	case err != nil && skill.CodeOf(err) == skill.Internal: // of strictjson
		return nil, badProposal("arguments", "cannot be read: "+err.Error(), "a JSON object")
	case err != nil:
		return nil, err
	case w.code == "":
		return nil, badProposal("code", "is missing", "the whole program")
	case w.input == nil:
		return nil, badProposal("input_schema", "is missing", "a JSON Schema of an object")
	case programs[w.language].entry == "":
		return nil, badProposal("language", "is unknown", "python, javascript or shell")
	}
	if w.id, err = skill.ParseID(name); err != nil {
		return nil, badProposal("name", "is not a skill id", "1 to 64 of a-z, 0-9, _ and -")
	}
	if w.list, err = safeyaml.Format(given); err != nil {
		return nil, badProposal("cases", "cannot be read: "+err.Error(), "a list of cases")
	}
	var problems []cases.Problem
	if w.cases, problems = cases.Parse(w.list); len(problems) > 0 {
		return nil, badProposal("cases", problems[0].Message, "a list of cases, each with name, input, and data or error")
	}
	if len(w.cases) > maxCases {
		return nil, badProposal("cases", fmt.Sprintf("are %d", len(w.cases)), fmt.Sprintf("at most %d", maxCases))
	}
	return w, nil
}

// proposedFile is a file of a proposal.
type proposedFile struct{ name, text string }

// files returns the version of the proposal, which is made of its content, and the files of its folder.
func (w *proposal) files() (version string, files []proposedFile, err error) {
	of := programs[w.language]
	about, err := ordered.Encode(ordered.Of("id", string(w.id), "description", w.description, "type", "wasm", "runtime", of.runtime, "entry", of.entry))
	if err != nil {
		return "", nil, badProposal("description", "cannot be read: "+err.Error(), "a string")
	}
	with := func(version string) ([]byte, error) {
		return safeyaml.Format(fmt.Appendf(nil, "%s,\"version\":%q,\"input_schema\":%s,\"output_schema\":%s}", bytes.TrimSuffix(about, []byte("}")), version, w.input, w.output))
	}
	b, err := with("")
	if err != nil {
		return "", nil, badProposal("input_schema", "or output_schema cannot be read: "+err.Error(), "a JSON Schema")
	}
	sum := digest.Of(slices.Concat(b, []byte{0}, []byte(w.code), []byte{0}, w.list))
	version = "0.0.0-sha" + strings.TrimPrefix(sum, "sha256:")[:40]
	if b, err = with(version); err != nil {
		return "", nil, err
	}
	return version, []proposedFile{{manifest.ManifestFile, string(b)}, {of.entry, w.code}, {cases.FileName, string(w.list)}}, nil
}

// archive writes files as a zip.
func archive(to io.Writer, files []proposedFile) error {
	z := zip.NewWriter(to)
	for _, f := range files {
		one, err := z.Create(f.name)
		if err == nil {
			_, err = io.WriteString(one, f.text)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}
