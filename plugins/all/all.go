// Package all lists the runners of this host, in one function that can be read
// whole: nothing else makes one.
package all

import (
	"context"
	"errors"

	"openskill/plugins/cli"
	"openskill/plugins/extism"
	"openskill/plugins/javascript"
	"openskill/plugins/python"
	"openskill/plugins/remote"
	"openskill/plugins/shell"
	"openskill/plugins/wasi"
	"openskill/plugins/wasi/sandbox"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Options configure the runners. Zero fields mean the defaults of the runner that they are for.
type Options struct {
	// Engine is shared by the runners of the sandbox; the caller closes it, after them. nil: they
	// prepare calls that are run elsewhere.
	Engine   *wasm.Engine
	StateDir string // of the host; holds runtimes/
	Python   string // the machine's interpreter, for cli:python and the supervisor of cli:exec; "" means python3
	TempDir  string // for the folders of runs outside of the sandbox; "" means the system's

	// Outgoing makes the requests of guests in the sandbox, and those to remote skills;
	// nil: there is no network.
	Outgoing skill.Outgoing
	// Imports finds what a script in Python imports, as in [python.Options].
	Imports func(ctx context.Context, s *skill.Spec, script []byte) ([]string, error)
}

// Runners makes every runner. None starts anything yet. The caller closes each one.
func Runners(o Options) []skill.Runner { return append(Sandboxed(o), Outside(o)...) }

// Outside makes the runners that execute nothing in the engine's sandbox: native code in
// processes of its own, and skills on other machines. They are in the host's process.
func Outside(o Options) []skill.Runner {
	scripts := cli.New(&cli.Options{Python: o.Python, TempDir: o.TempDir})
	return []skill.Runner{scripts, scripts.Programs(), remote.New(o.Outgoing)}
}

// Sandboxed makes the runners that execute nothing outside the engine's sandbox:
// those of a worker process.
func Sandboxed(o Options) []skill.Runner { return sandboxed(o, &sandbox.Programs{}) }

// Programs are the names of the programs that scripts in the sandbox can start, sorted, whether
// or not their runtimes are installed.
func Programs() []string {
	programs := &sandbox.Programs{}
	for _, r := range sandboxed(Options{}, programs) {
		defer r.Close()
	}
	return programs.Names()
}

func sandboxed(o Options, programs *sandbox.Programs) []skill.Runner {
	return []skill.Runner{
		wasi.New(o.Engine, &wasi.Options{Outgoing: o.Outgoing}),
		javascript.New(o.Engine, &javascript.Options{Outgoing: o.Outgoing, Programs: programs}),
		python.New(o.Engine, &python.Options{StateDir: o.StateDir, Outgoing: o.Outgoing, Imports: o.Imports, Programs: programs}),
		shell.New(o.Engine, &shell.Options{Programs: programs, StateDir: o.StateDir, Outgoing: o.Outgoing}),
		extism.New(o.Engine, &extism.Options{Outgoing: o.Outgoing}),
	}
}

// Status is what an operator wants to know of a runner.
type Status struct {
	Kind skill.Kind `json:"kind"`
	// Missing says in one line what keeps this runner from running any skill, and
	// how to get it; "" means that it can.
	Missing string `json:"missing,omitempty"`
}

// Statuses asks each runner whether this machine has what it needs, which it may start an
// interpreter for.
func Statuses(ctx context.Context, runners []skill.Runner) []Status {
	all := make([]Status, 0, len(runners))
	for _, r := range runners {
		all = append(all, Status{Kind: r.Kind(), Missing: missing(ctx, r)})
	}
	return all
}

func missing(ctx context.Context, r skill.Runner) string {
	_, err := r.Prepare(ctx, &skill.Spec{})
	var e *skill.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return skill.CleanText(e.Message, skill.MaxMessage)
	default:
		return "it did not answer in time"
	}
}
