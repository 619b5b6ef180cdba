package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"openskill/host/manifest"
	"openskill/sdk/skill"
)

// Scripts is where the door looks scripts of Agent Skills up.
type Scripts interface {
	// Script finds one as a skill whose target is the script. Its version may be "". The
	// error is a *skill.Error.
	Script(ctx context.Context, p skill.Principal, name, script string) (*manifest.Skill, error)
	// AgentFolder returns the folder of an Agent Skill with the files that p may read.
	AgentFolder(ctx context.Context, p skill.Principal, name string) (skill.Folder, error)
	// CodePackages returns the folder of the packages that code sees ("": none), and those of runtimes that it
	// requires: the packages of run_code or of one of the Agent Skills. names must be among them.
	CodePackages(ctx context.Context, p skill.Principal, language string, names, agents []string) (set string, requires []string, err error)
}

// The most that the command line of a script may have.
const (
	maxArgs    = 256
	maxArg     = 128 << 10 // bytes of one
	maxAllArgs = 1 << 20   // bytes of all
)

// RunScript is Invoke for a script of an Agent Skill. The data of its result is
// {"output": what it printed}, with "encoding": "base64" where that is not UTF-8; one that
// ends with another exit code than 0 is GUEST_EXIT, and the end of its standard error is
// the message.
func (d *Dispatcher) RunScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest) *skill.Result {
	return d.StartScript(ctx, p, r, nil)
}

// StartScript is Start for a script.
func (d *Dispatcher) StartScript(ctx context.Context, p skill.Principal, r skill.ScriptRequest, began func(executionID string)) *skill.Result {
	return d.script(ctx, p, r, began).result
}

// Script is RunScript for who passes streams and exit code of the script on. There is
// no reply where the script has not run.
func (d *Dispatcher) Script(ctx context.Context, p skill.Principal, r skill.ScriptRequest) (*skill.Result, *skill.Reply) {
	c := d.script(ctx, p, r, nil)
	return c.result, c.reply
}

func (d *Dispatcher) script(ctx context.Context, p skill.Principal, r skill.ScriptRequest, began func(executionID string)) *call {
	c := d.newScript(p, r)
	c.began = began
	_ = d.handleScript(ctx, c) // the outermost layer has put it into the result
	return c
}

// newScript begins the run of a script.
func (d *Dispatcher) newScript(p skill.Principal, r skill.ScriptRequest) *call {
	return d.newCall(&call{
		principal: p, script: &r,
		request: skill.Request{SkillID: skill.ID(r.Skill), TraceID: r.TraceID, Limits: r.Limits, Turn: r.Turn, ExecutionID: r.ExecutionID},
	})
}

// scriptStack is the door for scripts, from the outside in. It differs from that for
// skills in what is looked up and checked, and in who must have approved.
func (d *Dispatcher) scriptStack() handler {
	return d.answered(
		d.recovered(
			d.authorized(
				d.lineChecked( // 400, 413
					d.scriptFound( // 404
						d.admitted( // 429
							d.within( // 429, before an approval of one call is used up
								d.withFiles( // 404
									d.withWorkspace( // 409
										d.approved( // 403
											d.recorded( // 503
												d.recovered(
													d.saveWorkspace(
														d.observed(
															d.kept(
																d.run)))))))))))))))
}

func (d *Dispatcher) lineChecked(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if err := d.checkLine(c.script); err != nil {
			return err
		}
		c.fileRefs, c.workspaceRef, c.asked = c.script.Files, c.script.Workspace, c.script.Asked
		c.joinConversation()
		if err := c.checkFiles(""); err != nil {
			return err
		}
		return next(ctx, c)
	}
}

func (d *Dispatcher) checkLine(r *skill.ScriptRequest) error {
	refuse := func(code skill.Code, format string, args ...any) error {
		return &skill.Error{Op: "dispatch.checkLine", Code: code, Message: fmt.Sprintf(format, args...)}
	}
	if len(r.Args) > maxArgs {
		return refuse(skill.InvalidArgument, "too many arguments: %d, the limit is %d", len(r.Args), maxArgs)
	}
	all := 0
	for i, a := range r.Args {
		all += len(a)
		switch {
		case len(a) > maxArg || all > maxAllArgs:
			return refuse(skill.PayloadTooLarge,
				"argument %d is too large: %d bytes, the limit is %d for one and %d for all; send long text on stdin", i+1, len(a), maxArg, maxAllArgs)
		case strings.ContainsRune(a, 0):
			return refuse(skill.InvalidArgument, "argument %d has a NUL character; remove it", i+1)
		}
	}
	if len(r.Stdin) > d.o.MaxInput {
		return refuse(skill.PayloadTooLarge, "the standard input is too large: %d bytes, the limit is %d", len(r.Stdin), d.o.MaxInput)
	}
	return nil
}

func (d *Dispatcher) scriptFound(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if d.o.Scripts == nil {
			return &skill.Error{Op: "dispatch.scriptFound", Code: skill.NotFound, Message: "this host has no Agent Skills"}
		}
		_, c.admission = d.o.Trace.Start(ctx, "admission")
		s, err := d.o.Scripts.Script(ctx, c.principal, c.script.Skill, c.script.Script)
		if err != nil {
			return err
		}
		c.skill, c.target = s, s.Primary
		if !s.Descriptor.Enabled {
			return disabled(&s.Descriptor)
		}
		return next(ctx, c)
	}
}

func (d *Dispatcher) approved(next handler) handler {
	return func(ctx context.Context, c *call) error {
		if d.o.Approve != nil {
			if err := d.o.Approve(ctx, c.principal, c.skill, c.script); err != nil {
				return err
			}
		}
		return next(ctx, c)
	}
}

// printed is what a script's run came to.
func (d *Dispatcher) printed(s *manifest.Skill, reply *skill.Reply, limits skill.Limits) (outcome, error) {
	switch {
	case reply.Code != "":
		return outcome{truncated: reply.Code == skill.OutputLimit}, d.ended(s, reply)
	case uint64(len(reply.Stdout)) > limits.Output:
		return outcome{truncated: true}, endedWith(skill.OutputLimit,
			fmt.Sprintf("the script printed more than its limit of %d bytes", limits.Output), reply.Stdout[:limits.Output])
	case reply.ExitCode != 0:
		return outcome{}, d.scriptExited(s, reply)
	}
	data, err := json.Marshal(skill.OutputFields(reply.Stdout))
	if err != nil {
		return outcome{}, fmt.Errorf("dispatch.printed: %w", err)
	}
	return outcome{data: data}, nil
}

// scriptExited is the error of a script that ended with an exit code: its own words
// are what a model can mend its call by. The whole error stays within maxError.
func (d *Dispatcher) scriptExited(s *manifest.Skill, reply *skill.Reply) error {
	e := &skill.Error{
		Op: "dispatch.printed", Code: skill.GuestExit, Details: map[string]any{"exit_code": reply.ExitCode},
		Err: logError(fmt.Sprintf("the script exited with code %d", reply.ExitCode)),
	}
	said := reply.Stderr
	if len(strings.TrimSpace(string(said))) == 0 {
		said = reply.Stdout
	}
	for room := 360; room >= 20; room /= 2 {
		if e.Message = d.tail(said, s.Folder, room); e.Message == "" {
			break
		}
		b, err := json.Marshal(skill.ResultError{Code: e.Code, Status: e.Code.Status(), Message: e.Message, Details: e.Details})
		if err == nil && len(b) <= maxError {
			return e
		}
	}
	e.Message = fmt.Sprintf("the script exited with code %d and no printable output", reply.ExitCode)
	return e
}

// codeFiles are the endings and names of files that Python, Node and the shell load as code, or that say what to load.
var codeFiles = []string{
	".py", ".pyc", ".pyd", ".pth", ".so", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".wasm", ".sh", ".bash", "/package.json", "/tsconfig.json",
}

// replacesCode reports whether a file of the caller could change which code a script of an Agent Skill runs. The script
// has grants and approvals for the files of its skill alone.
func (c *call) replacesCode(name string) bool {
	lower := "/" + strings.ToLower(name)
	if slices.ContainsFunc(codeFiles, func(end string) bool { return strings.HasSuffix(lower, end) }) {
		return true
	}
	first, _, _ := strings.Cut(name, "/")
	// Node loads ./helper before ./helper.js, and any file of node_modules.
	return slices.Contains(strings.Split(lower, "/"), "node_modules") || slices.ContainsFunc(append([]string{""}, codeFiles...), func(end string) bool {
		_, err := os.Lstat(filepath.Join(c.skill.Folder, first+end))
		return !errors.Is(err, fs.ErrNotExist)
	})
}
