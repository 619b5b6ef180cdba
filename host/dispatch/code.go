package dispatch

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"openskill/host/manifest"
	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// code is what a caller has run: the program, which is the first of the files, and others.
type code struct {
	target skill.Target
	files  []skill.File
}

// languages are the runners of code, and the names that it has as a file.
var languages = map[string]skill.Target{
	"python":     {Kind: skill.WasmPython, Entry: "main.py"},
	"javascript": {Kind: skill.WasmJavaScript, Entry: "main.js"},
	"typescript": {Kind: skill.WasmJavaScript, Entry: "main.ts"},
	"shell":      {Kind: skill.WasmShell, Entry: "main.sh"},
}

// readCode takes the code out of the input of a call, which its schema has passed.
func (c *call) readCode() error {
	if c.code != nil {
		return nil
	}
	var in struct {
		Language, Code string
		Files          []struct {
			Name         string
			Text, Base64 *string
		}
	}
	if err := json.Unmarshal(c.request.Input, &in); err != nil {
		return &skill.Error{Op: "dispatch.readCode", Code: skill.InvalidArgument, Message: "the input must be an object with language and code", Err: err}
	}
	target, ok := languages[in.Language]
	if !ok {
		return &skill.Error{Op: "dispatch.readCode", Code: skill.InvalidArgument, Subject: "language", Message: "unknown language"}
	}
	read := &code{target: target, files: []skill.File{{Name: target.Entry, Data: []byte(in.Code)}}}
	for i, f := range in.Files {
		refuse := func(problem string) error {
			field := fmt.Sprintf("/files/%d", i)
			return &skill.Error{
				Op: "dispatch.readCode", Code: skill.InvalidArgument, Subject: field, Message: field + " " + problem,
				Details: map[string]any{"fields": []map[string]string{{"field": field, "problem": problem, "expected": "a file with a name of its own, and either text or base64"}}},
			}
		}
		file := skill.File{Name: f.Name}
		switch {
		case !fs.ValidPath(f.Name) || f.Name == "." || strings.ContainsAny(f.Name, "\\\x00"):
			return refuse("has a name that leaves the working folder; use one such as data/in.csv")
		case slices.ContainsFunc(read.files, func(o skill.File) bool { return o.Name == f.Name }):
			return refuse("has the name of another file, or of the code")
		case (f.Text == nil) == (f.Base64 == nil):
			return refuse("must have either text or base64")
		case f.Text != nil:
			file.Data = []byte(*f.Text)
		default:
			var err error
			if file.Data, err = base64.StdEncoding.DecodeString(*f.Base64); err != nil {
				return refuse("has base64 that cannot be decoded")
			}
		}
		read.files = append(read.files, file)
	}
	c.code = read
	return nil
}

// computed is what a run of code came to. Who wrote it is told all of what it printed before it
// failed.
func (d *Dispatcher) computed(s *manifest.Skill, reply *skill.Reply, limits skill.Limits) (outcome, error) {
	out, err := d.printed(s, reply, limits)
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Code == skill.GuestExit {
		maps.Copy(e.Details, skill.OutputFields(beginning(reply.Stdout)))
		e.Details["stderr"] = d.lines(reply.Stderr, s.Folder)
	}
	if err != nil {
		return out, err
	}
	data := map[string]any{"stdout": string(reply.Stdout)}
	if !utf8.Valid(reply.Stdout) {
		data["stdout"], data["encoding"] = base64.StdEncoding.EncodeToString(reply.Stdout), "base64"
	}
	if len(reply.Stderr) > 0 {
		data["stderr"] = strings.ToValidUTF8(string(reply.Stderr), "\uFFFD")
	}
	if reply.Value != nil {
		mendPairs(reply.Value)
		_, err := strictjson.Decode(reply.Value, maxOutputDepth, func(key, value []byte) error {
			if k := string(key); k == "value" || k == "repr" {
				data[k] = json.RawMessage(value)
			}
			return nil
		})
		if err != nil {
			return outcome{}, &skill.Error{
				Op: "dispatch.computed", Code: skill.InvalidOutput, Err: logError("the value of the last expression is not valid JSON"),
				Message: "the value of the last expression is nested too deeply for JSON here, or is none; print it, or write it to a file",
			}
		}
	}
	if out.data, err = json.Marshal(data); err != nil {
		return outcome{}, fmt.Errorf("dispatch.computed: %w", err)
	}
	return out, nil
}
