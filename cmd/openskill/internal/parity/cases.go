package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"openskill/internal/safeyaml"
)

// Case is one command line.
type Case struct {
	Name   string            `json:"name"`            // for the table; "": the script and its arguments
	Script string            `json:"script"`          // its path in the folder, with /
	Args   []string          `json:"args,omitempty"`  // without the script's own name
	Stdin  string            `json:"stdin,omitempty"` // text
	Files  map[string]string `json:"files,omitempty"` // text of files that are put into the folder before, by path
	Ignore []string          `json:"ignore,omitempty"`
	// TimeoutMS ends each of the two runs; 0: 10,000. At most 600,000.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// What a case may leave out of the comparison.
const (
	IgnoreStdout = "stdout" // standard output
	IgnoreExit   = "exit"   // the exit code
	IgnoreFiles  = "files"  // files; file:GLOB leaves out those whose path matches
	IgnoreOrder  = "order"  // the order of the lines of standard output
	IgnoreFolder = "folder" // the folder's own path: it is {folder} in both outputs
	IgnoreTime   = "time"   // dates, times of day and durations: they are {time} in both outputs

	ignoreFile = "file:"
)

// The bounds of a file of cases.
const (
	MaxCases   = 10_000
	MaxBytes   = 4 << 20 // of a file in JSON; one in YAML has the smaller bound of safeyaml
	maxTimeout = 600_000
)

func (c *Case) timeout() time.Duration {
	if c.TimeoutMS <= 0 {
		return 10 * time.Second
	}
	return time.Duration(min(c.TimeoutMS, maxTimeout)) * time.Millisecond
}

func (c *Case) ignores(what string) bool { return slices.Contains(c.Ignore, what) }

// title is how the case is called in a table.
func (c *Case) title() string {
	if c.Name != "" {
		return c.Name
	}
	return strings.Join(append([]string{path.Base(c.Script)}, c.Args...), " ")
}

// Parse reads cases from YAML or JSON: a list of them, or an object with the key
// cases. The error says what is wrong and where.
func Parse(text []byte) ([]Case, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !json.Valid(text) {
		root, problems := safeyaml.Parse(text)
		if len(problems) > 0 {
			return nil, fmt.Errorf("line %d: %s", problems[0].Line, problems[0].Message)
		}
		if text, problems = safeyaml.JSON(root); len(problems) > 0 {
			return nil, fmt.Errorf("line %d: %s", problems[0].Line, problems[0].Message)
		}
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the file is too large: %d bytes, the limit is %d", len(text), MaxBytes)
	}
	var list []loose
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		var file struct {
			Cases []loose `json:"cases"`
		}
		if err := strict(text, &file); err != nil {
			return nil, err
		}
		list = file.Cases
	} else if err := strict(text, &list); err != nil {
		return nil, err
	}
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("no cases: use cases: [{script: scripts/x.py, args: […]}]")
	case len(list) > MaxCases:
		return nil, fmt.Errorf("too many cases: %d, the limit is %d", len(list), MaxCases)
	}
	cases := make([]Case, len(list))
	for i := range list {
		c, err := list[i].tight()
		if err != nil {
			return nil, fmt.Errorf("case %d: %w", i+1, err)
		}
		cases[i] = *c
	}
	return cases, nil
}

func strict(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("cannot read the cases: %s; a case has the keys args, files, ignore, name, script, stdin and timeout_ms",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// loose is a case as it is written: an argument may be a number.
type loose struct {
	Case
	Args []json.RawMessage `json:"args"`
}

func (l *loose) tight() (*Case, error) {
	c := l.Case
	for _, raw := range l.Args {
		arg := string(raw)
		switch {
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &arg); err != nil {
				return nil, err
			}
		case raw[0] == '{' || raw[0] == '[' || arg == "null":
			return nil, fmt.Errorf("an argument must be a string or number, not %.80s", raw)
		}
		c.Args = append(c.Args, arg)
	}
	return &c, c.check()
}

// check refuses what could not be run, or would leave the folder.
func (c *Case) check() error {
	if !inside(c.Script) {
		return fmt.Errorf("script %.80q must be a relative path in the folder, with / and no .. in it", c.Script)
	}
	for name := range c.Files {
		if !inside(name) {
			return fmt.Errorf("the file %.80q must be a relative path in the folder, with / and no .. in it", name)
		}
	}
	for _, arg := range c.Args {
		if strings.ContainsRune(arg, 0) || !utf8.ValidString(arg) {
			return fmt.Errorf("the argument %.80q has a NUL character", arg)
		}
	}
	for _, word := range c.Ignore {
		glob, isFile := strings.CutPrefix(word, ignoreFile)
		if _, err := path.Match(glob, ""); isFile && err == nil {
			continue
		}
		if !slices.Contains(ignorable, word) {
			return fmt.Errorf("ignore: %.80q is not known; accepted are %s and file:GLOB", word, strings.Join(ignorable, ", "))
		}
	}
	if c.TimeoutMS < 0 || c.TimeoutMS > maxTimeout {
		return fmt.Errorf("timeout_ms: want 1 to %d", maxTimeout)
	}
	return nil
}

var ignorable = []string{IgnoreStdout, IgnoreExit, IgnoreFiles, IgnoreOrder, IgnoreFolder, IgnoreTime}

// inside reports whether a name is that of a file below a folder.
func inside(name string) bool {
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != "." && name != ".." &&
		!strings.HasPrefix(name, "../") && !strings.ContainsAny(name, "\\\x00")
}
