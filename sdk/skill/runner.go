package skill

import (
	"context"
	"errors"
	"io"
	"slices"
)

// Runner is one way to execute skills: Prepare looks at files in the host, Run is where the
// guest runs, which may be another process. Implementations are safe for concurrent
// use; plugins/runnertest is the suite that each one passes.
type Runner interface {
	// Kind is the key under which the runner is listed.
	Kind() Kind

	// Prepare says how calls of a target are run. It runs nothing of the skill, and must be
	// cheap: it is asked before every call. The error is an *Error whose message names, in one
	// line, what is missing (a runtime, a built module) and how to get it; the host then takes
	// the skill's fallback if it has one.
	Prepare(ctx context.Context, s *Spec) (Plan, error)

	// Run executes one call and returns when the guest is gone: no process,
	// thread or descriptor of it is left, at the latest at the call's timeout
	// + 250 ms. The end of ctx ends the run, as Cancelled. What the guest
	// did wrong is in the Reply; the error is non-nil only when the host could
	// not do its part, and then the Reply is nil.
	Run(ctx context.Context, call *Call) (*Reply, error)

	// Close releases caches and processes. It waits for runs under way and may
	// be called twice.
	Close() error
}

// Spec is what a runner is asked to prepare: a target of a skill, or, where Entry is "", the
// runtime alone.
type Spec struct {
	SkillID  ID
	Tenant   string // on whose behalf
	Folder   string // absolute path of the skill's folder
	Entry    string // relative to Folder
	Digest   string // of the folder
	Trust    Trust
	Requires []string // packages that the manifest names, which choose the runtime
	Script   bool     // as in [Call]
	Code     []byte   // content of the Entry of a Code call; nil: the Entry is a file of Folder
	Folders  []Folder // of Agent Skills, whose files a Code call sees
	// Session says that the Code goes on with the memory of another call, or that another call will do so. Imports is
	// Plan.Imports of the first of these calls; nil: this is the first.
	Session bool
	Imports []string
	// Module is the digest of the entry's file, where whoever asks has verified it, as that of an
	// upload is; "": Prepare reads the file.
	Module string
	// Wait says that Prepare is to wait until what has to be compiled is, until ctx ends. NoWait
	// says that it must not wait for anything, since the skill has a fallback.
	Wait, NoWait bool
}

// Plan says how calls of a target are run. The zero value is that of runners that need
// nothing to be compiled.
type Plan struct {
	Runtime string   // of a language, by its name; "" where skills bring their own module
	Imports []string // modules that a script in Python imports, as far as that was asked
	Module  Module
	// Programs are those that a script can start.
	Programs []Program

	// Missing is why a call would have to wait, though it can be run: an *Error. It stays in
	// the host, which takes the skill's fallback then if it has one.
	Missing error
}

// Program is a language runtime that a script can start as a process.
type Program struct {
	Kind    Kind // of the runner whose it is
	Runtime string
	Module  Module
}

// Module is what a call's sandbox is made of.
type Module struct {
	Digest  string // names what is compiled; "": there is no module
	Trusted bool   // a language runtime of the host's own choice

	// These stay in the host, for who compiles it: File is the digest of what Open gives, and
	// Function, if not "", is what a plug-in of Extism is called for; the module that is
	// compiled is made of both.
	File     string
	Function string
	Open     func() (io.ReadCloser, error)
}

// ErrUnusable is what a runner says of a compiled module that it was given and cannot load:
// it is missing or damaged.
var ErrUnusable = errors.New("the compiled module is of no use")

// Compiling is the Missing of a [Plan] whose module is being compiled.
func Compiling() *Error {
	return &Error{
		Op: "skill.Prepare", Code: ToolInvocationError,
		Message: "the runtime is still compiling, which takes seconds the first time; retry shortly",
	}
}

// Spec is what the plan of a call is made of.
func (c *Call) Spec() *Spec {
	return &Spec{
		SkillID: c.SkillID, Tenant: c.Tenant, Folder: c.Folder, Entry: c.Entry, Digest: c.Digest, Trust: c.Trust, Script: c.Script,
		Code: c.code(),
	}
}

// code returns the content of the entry of a Code call, else nil.
func (c *Call) code() []byte {
	if i := slices.IndexFunc(c.Files, func(f File) bool { return f.Name == c.Entry }); c.Code && i >= 0 {
		return c.Files[i].Data
	}
	return nil
}
