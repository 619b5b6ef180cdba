package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"openskill/host/agent/tools"
	"openskill/host/pysource"
	"openskill/internal/ordered"
	"openskill/sdk/skill"
)

// A Problem is one thing that keeps code from being a tool. It is written for the author.
type Problem struct {
	File    string `json:"file"` // as it was named; "" where there is one alone
	Line    int    `json:"line"` // from 1; 0: the whole
	Message string `json:"message"`
}

func at(line int, message string) Problem { return Problem{Line: line, Message: message} }

// String gives file:line: message.
func (p Problem) String() string {
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
	case p.File != "":
		return p.File + ": " + p.Message
	case p.Line > 0:
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return p.Message
}

// The lengths in bytes at which texts are cut.
const (
	maxDescription = 1000 // for models, of a function
	maxParameter   = 600  // the same, of a parameter
	maxProblem     = 1000
)

// Analyzer reads programs; *pysource.Analyzer is one.
type Analyzer interface {
	Ask(ctx context.Context, tenant string, source []byte, q pysource.Question) (*pysource.Module, error)
}

// Function is a function as a tool: what it takes and gives, in JSON Schema 2020-12.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"` // of its docstring, or of its module's; ""
	Line        int             `json:"line"`
	Input       json.RawMessage `json:"input_schema"`  // of an object with its parameters
	Output      json.RawMessage `json:"output_schema"` // of {"result": …}
	// Notes say what was left out, or accepts anything: parameters that no JSON could be given
	// for, or whose type no schema says.
	Notes []string `json:"notes,omitempty"`
	// Types tells whether any parameter has a type that was said, and not guessed.
	Types bool `json:"types"`

	hinted     []string          // the parameters with type hints
	parameters [][2]string       // names and kinds, as module inspect has them
	imports    []pysource.Import // of the module
}

// Extract makes a tool of a function at the top of a module. With name "" it is the one
// public function that there is, or else one of the names main, run, execute and
// entry. Without problems and an error the function is not nil.
func Extract(ctx context.Context, a Analyzer, tenant string, source []byte, name string) (*Function, []Problem, error) {
	m, problems, err := ask(ctx, a, tenant, source, pysource.Question{Function: &name})
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Code == skill.InvalidArgument { // it is too much to be read
		return nil, []Problem{at(0, e.Message)}, nil
	}
	if err != nil || problems != nil {
		return nil, problems, err
	}
	var f struct {
		Function
		Hinted     []string    `json:"hinted"`
		Parameters [][2]string `json:"parameters"`
	}
	err = json.Unmarshal(m.Function, &f)
	if err == nil && f.Name == "" {
		err = errors.New("the answer has no function")
	}
	if err = errors.Join(err, fit(&f.Input), fit(&f.Output)); err != nil {
		return nil, nil, &skill.Error{Op: "capability.Extract", Code: skill.Internal, Err: err}
	}
	f.hinted, f.parameters, f.imports = f.Hinted, f.Parameters, m.Imports
	f.Description = skill.CleanText(f.Description, maxDescription)
	for i := range f.Notes {
		f.Notes[i] = skill.CleanText(f.Notes[i], maxProblem)
	}
	return &f.Function, nil, nil
}

// fit cleans a schema of an answer, which may be forged.
func fit(s *json.RawMessage) error {
	*s = tools.Schema(*s)
	o, err := ordered.DecodeObject(*s)
	if err == nil && o.Object("properties") == nil {
		err = errors.New("the answer has no schema")
	}
	return err
}

// ask has a program read.
func ask(ctx context.Context, a Analyzer, tenant string, source []byte, q pysource.Question) (*pysource.Module, []Problem, error) {
	m, err := a.Ask(ctx, tenant, source, q)
	if err != nil {
		return nil, nil, err
	}
	if m.Problem != nil {
		what := map[string]string{"syntax": "this is not Python: ", "encoding": "the text is not in the encoding that it says: "}[m.Problem.Kind]
		return nil, []Problem{at(m.Problem.Line, what+skill.CleanText(m.Problem.Message, 200))}, nil
	}
	var problems []Problem
	for _, p := range m.Problems {
		problems = append(problems, at(p.Line, skill.CleanText(p.Message, maxProblem)))
	}
	return m, problems, nil
}
