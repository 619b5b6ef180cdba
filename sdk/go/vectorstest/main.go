// Command vectors is the vector skill in Go: what the calls in sdk/vectorstest ask for, by
// the SDK alone.
package main

import (
	"errors"
	"os"

	"openskill/sdk/go/guest"
)

// Input has the arguments of all operations.
type Input struct {
	Op      string         `json:"op"`
	Item    *Item          `json:"item"`
	Code    string         `json:"code,omitempty"`
	Message string         `json:"message,omitempty"`
	Details map[string]any `json:"details,omitempty"`
	Path    string         `json:"path,omitempty"`
	Paths   []string       `json:"paths,omitempty"`
	Files   []File         `json:"files,omitempty"`
	Value   any            `json:"value,omitempty"`
}

// Item has a field of each kind.
type Item struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Ratio float64  `json:"ratio"`
	On    bool     `json:"on"`
	Tags  []string `json:"tags"`
	Note  *string  `json:"note"`
}

// File is an artifact to be written.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func run(call *guest.Call, in Input) (map[string]any, error) {
	switch in.Op {
	case "echo":
		return map[string]any{"item": in.Item, "skill_id": call.SkillID, "trace_id": call.TraceID}, nil
	case "fail":
		return nil, &guest.Error{Code: in.Code, Message: in.Message, Details: in.Details}
	case "panic":
		call.Info("about to fail")
		panic(in.Message)
	case "read":
		text, err := call.ReadData(in.Path)
		return map[string]any{"text": string(text), "bytes": len(text)}, err
	case "probe":
		refused := []*refusal{}
		for _, path := range in.Paths {
			_, err := call.ReadData(path)
			refused = append(refused, refusalOf(err))
		}
		return map[string]any{"errors": refused}, nil
	case "write":
		return write(call, in.Files), nil
	case "value":
		return map[string]any{"value": in.Value}, nil
	}
	return nil, guest.Invalid("op", "unsupported", "op: must be one of echo, fail, panic, read, probe, write, value")
}

func write(call *guest.Call, files []File) map[string]any {
	call.Debug("writing", "files", len(files))
	call.Info("größe 😀")
	call.Warn("two\nlines")
	refused := []*refusal{}
	for _, f := range files {
		err := call.WriteArtifact(f.Name, []byte(f.Text))
		if err != nil {
			call.Error("refused", "name", f.Name, "why", nil)
		}
		refused = append(refused, refusalOf(err))
	}
	return map[string]any{"errors": refused}
}

func refusalOf(err error) *refusal {
	var e *guest.Error
	if !errors.As(err, &e) {
		return nil
	}
	return &refusal{e.Code, e.Message}
}

func main() { os.Exit(guest.Serve(run)) }
