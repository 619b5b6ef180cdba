package capability

import (
	"context"
	"encoding/json"

	"openskill/host/pysource"
	"openskill/sdk/skill"
)

// Script is what a script's parser of the command line takes.
type Script struct {
	Description string          `json:"description"` // of the parser, or of the script; ""
	Input       json.RawMessage `json:"input_schema"`
	// Partial says that the parser was not followed to its end: it may take more. The
	// schema then lets more through.
	Partial bool `json:"partial,omitempty"`

	options []option // for tests, which make command lines of them
	command string   // the name of the subcommand's argument; "": there are none
}

// option is one argument of a parser.
type option struct {
	Name       string `json:"name"`       // in the schema: of the longest flag without its dashes, or of the place
	Flag       string `json:"flag"`       // as it is written, --name; "" for one that goes by its place
	Off        string `json:"off"`        // --no-name, of BooleanOptionalAction
	Set        bool   `json:"set"`        // a flag without a value, given when true
	Count      bool   `json:"count"`      // the flag is repeated so many times
	List       bool   `json:"list"`       // several values
	Repeat     bool   `json:"repeat"`     // the flag is repeated for each of them
	Subcommand string `json:"subcommand"` // whose option it is; "" of all
}

// Command makes a schema of the parser of a script's command line. It is nil where the
// script has none that could be followed.
//
// Options are named by their longest flag without dashes, and arguments without a flag by
// their own name. Those of subcommands are all there, each saying in its description whose
// it is.
func Command(ctx context.Context, a Analyzer, tenant string, source []byte) (*Script, []Problem, error) {
	m, problems, err := ask(ctx, a, tenant, source, pysource.Question{CommandLine: true})
	if err != nil || problems != nil {
		return nil, problems, err
	}
	var s *struct {
		Script
		Options []option `json:"options"`
		Command string   `json:"command"`
	}
	if err = json.Unmarshal(m.Script, &s); err == nil && s == nil {
		return nil, nil, nil
	}
	if err == nil {
		err = fit(&s.Input)
	}
	if err != nil {
		return nil, nil, &skill.Error{Op: "capability.Command", Code: skill.Internal, Err: err}
	}
	s.options, s.command = s.Options, s.Command
	s.Description = skill.CleanText(s.Description, maxDescription)
	return &s.Script, nil, nil
}
