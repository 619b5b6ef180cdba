package parity

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// Verdict says how two runs of a case compare.
type Verdict string

// The verdicts.
const (
	Same     Verdict = "same"
	Differs  Verdict = "differs"
	NoNative Verdict = "no_native" // the native run did not end by itself: there is nothing to compare with
)

// Difference is one thing in which two runs differ. All text in it is clean.
type Difference struct {
	What    string `json:"what"`           // stdout, exit, end, or a file's path
	Native  string `json:"native"`         // in short
	Sandbox string `json:"sandbox"`        // in short
	Diff    string `json:"diff,omitempty"` // lines with - (native) and + (sandbox), not all where there are many
}

// Compared is the outcome of one case.
type Compared struct {
	Name        string       `json:"name"`
	Script      string       `json:"script"`
	Verdict     Verdict      `json:"verdict"`
	Exit        int          `json:"exit"`        // of the native run
	Stdout      int          `json:"stdout"`      // its bytes
	Files       int          `json:"files"`       // that it made or changed
	Ignored     []string     `json:"ignored"`     // as the case says, never nil
	Differences []Difference `json:"differences"` // never nil
	Stderr      string       `json:"stderr"`      // the last line of the sandbox's, where they differ
	NativeMS    int64        `json:"native_ms"`
	SandboxMS   int64        `json:"sandbox_ms"`
}

// Report is the outcome of all cases of a folder.
type Report struct {
	Native   string     `json:"native"` // the version of this machine's Python
	Cases    []Compared `json:"cases"`  // in their order, never nil
	Same     int        `json:"same"`
	Differs  int        `json:"differs"`
	NoNative int        `json:"no_native"`
}

// Run runs every case twice. The error is the machine's failure alone.
func Run(ctx context.Context, folder string, cases []Case, native, sandbox Runner) (*Report, error) {
	r := &Report{Cases: []Compared{}}
	for i := range cases {
		c, err := one(ctx, folder, &cases[i], native, sandbox)
		if err != nil {
			return nil, err
		}
		switch c.Verdict {
		case Same:
			r.Same++
		case Differs:
			r.Differs++
		case NoNative:
			r.NoNative++
		}
		r.Cases = append(r.Cases, *c)
	}
	return r, nil
}

func one(ctx context.Context, folder string, c *Case, native, sandbox Runner) (*Compared, error) {
	var outcomes [2]*Outcome
	for i, runner := range []Runner{native, sandbox} {
		temp, err := os.MkdirTemp("", "openskill-parity-")
		if err != nil {
			return nil, err
		}
		// The last part of its path is often printed: it is the folder's own.
		own := filepath.Join(temp, filepath.Base(folder))
		if err = copyFolder(folder, own, c.Files); err == nil {
			outcomes[i], err = runner.Run(ctx, own, c)
		}
		_ = os.RemoveAll(temp) // the system's folder of temporary files
		if err != nil {
			return nil, err
		}
		if i == 0 && outcomes[0].Failed != "" {
			n := outcomes[0]
			return &Compared{
				Name: skill.CleanText(c.title(), 200), Script: skill.CleanText(c.Script, 200), Verdict: NoNative, Ignored: append([]string{}, c.Ignore...),
				Differences: []Difference{{What: "end", Native: skill.CleanText(n.Failed, 200)}},
				Stderr:      last(n.Stderr), NativeMS: n.Took.Milliseconds(),
			}, nil
		}
	}
	return Compare(c, outcomes[0], outcomes[1]), nil
}

// Compare compares two runs of a case, of which the native one ended by itself.
func Compare(c *Case, native, sandbox *Outcome) *Compared {
	r := &Compared{
		Name: skill.CleanText(c.title(), 200), Script: skill.CleanText(c.Script, 200), Verdict: Same,
		Exit: native.Exit, Stdout: len(native.Stdout), Files: len(native.Files),
		Ignored: append([]string{}, c.Ignore...), Differences: []Difference{},
		NativeMS: native.Took.Milliseconds(), SandboxMS: sandbox.Took.Milliseconds(),
	}
	if sandbox.Failed != "" {
		r.differ("end", fmt.Sprintf("exit code %d", native.Exit), sandbox.Failed, "")
	} else if native.Exit != sandbox.Exit && !c.ignores(IgnoreExit) {
		r.differ("exit", fmt.Sprintf("exit code %d", native.Exit), fmt.Sprintf("exit code %d", sandbox.Exit), "")
	}
	if a, b := c.shown(native), c.shown(sandbox); !c.ignores(IgnoreStdout) && !bytes.Equal(a, b) {
		r.differ("stdout", fmt.Sprintf("%d bytes", len(native.Stdout)), fmt.Sprintf("%d bytes", len(sandbox.Stdout)), diff(a, b))
	}
	if !c.ignores(IgnoreFiles) {
		c.files(r, native.Files, sandbox.Files)
	}
	if r.Verdict == Differs {
		r.Stderr = last(sandbox.Stderr)
	}
	return r
}

func (r *Compared) differ(what, native, sandbox, diff string) {
	r.Verdict = Differs
	r.Differences = append(r.Differences, Difference{
		What: skill.CleanText(what, 200), Native: skill.CleanText(native, 200), Sandbox: skill.CleanText(sandbox, 300), Diff: diff,
	})
}

func (c *Case) files(r *Compared, native, sandbox map[string]string) {
	all := maps.Clone(native)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, sandbox)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a, b := native[name], sandbox[name]; a != b && !c.ignoresFile(name) {
			r.differ(name, sumOr(a), sumOr(b), "")
		}
	}
}

func (c *Case) ignoresFile(name string) bool {
	return slices.ContainsFunc(c.Ignore, func(word string) bool {
		glob, ok := strings.CutPrefix(word, ignoreFile)
		match, err := path.Match(glob, name)
		return ok && err == nil && match
	})
}

func sumOr(sum string) string {
	if sum == "" {
		return "not made"
	}
	return "sha256:" + sum[:min(16, len(sum))] + "…"
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?|\b\d\d:\d\d:\d\d(\.\d+)?\b|\b\d+(\.\d+)?(e-\d+)? ?(s|ms|µs|us|ns|seconds?)\b`)

// shown is standard output as a case wants it compared.
func (c *Case) shown(o *Outcome) []byte {
	out := o.Stdout
	if c.ignores(IgnoreFolder) {
		// The longest first: one may be a part of another.
		names := slices.SortedFunc(slices.Values(o.Folders), func(a, b string) int { return len(b) - len(a) })
		for _, name := range names {
			if name != "" && name != "/" {
				out = bytes.ReplaceAll(out, []byte(name), []byte("{folder}"))
			}
		}
	}
	if c.ignores(IgnoreTime) {
		out = times.ReplaceAll(out, []byte("{time}"))
	}
	if c.ignores(IgnoreOrder) {
		lines := bytes.Split(out, []byte("\n"))
		slices.SortFunc(lines, bytes.Compare)
		out = bytes.Join(lines, []byte("\n"))
	}
	return out
}
