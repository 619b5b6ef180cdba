package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// Options configure a [Runner]. The zero value is usable.
type Options struct {
	// Python is the interpreter, a name on PATH or an absolute path. Empty
	// means python3.
	Python string

	// TempDir is where each run's folder is made and removed. Empty means
	// os.TempDir().
	TempDir string
}

const (
	maxProcesses   = 64  // and threads of a run, where the system counts them for each; see Protections
	maxDescriptors = 256 // of a process
)

// Runner executes scripts with the machine's Python, or executable files. It is safe
// for concurrent use.
type Runner struct {
	*machine
	program bool // entries are executable files

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup
}

// machine is what the runners of a host know of it together.
type machine struct {
	opts   Options
	guards []*guard // to try, strongest first
	now    func() time.Time

	ask   sync.Mutex // held while the interpreter is asked
	ready *setup     // what was found out; nil until it worked
	fault error      // why it did not work
	asked time.Time  // when it did not
}

// setup is what a machine offers, found out once.
type setup struct {
	python *python
	guard  *guard // how processes are held; depends on the system
}

var _ skill.Runner = (*Runner)(nil)

// New makes a runner. It starts nothing: the interpreter is looked for at the
// first call of Prepare, Run or Protections.
func New(opts *Options) *Runner {
	r := &Runner{machine: &machine{guards: allGuards(), now: time.Now}}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Python == "" {
		r.opts.Python = "python3"
	}
	if r.opts.TempDir == "" {
		r.opts.TempDir = os.TempDir()
	}
	return r
}

// Programs gives the runner of cli:exec, which executes files by the rules of r, and
// knows what r knows of the machine.
func (r *Runner) Programs() *Runner { return &Runner{machine: r.machine, program: true} }

// Kind is cli:python, or cli:exec.
func (r *Runner) Kind() skill.Kind {
	if r.program {
		return skill.CLIExec
	}
	return skill.CLIPython
}

// again is how long a finding that Python does not work is believed.
const again = 10 * time.Second

// setup finds out about the machine, once; a failure is tried again later.
func (r *machine) setup() (*setup, error) {
	r.ask.Lock()
	defer r.ask.Unlock()
	if r.ready != nil {
		return r.ready, nil
	}
	if r.fault != nil && r.now().Sub(r.asked) < again {
		return nil, r.fault
	}
	// Not the context of a call: the answer is for all calls.
	s, err := r.findOut(context.Background())
	r.ready, r.fault, r.asked = s, err, r.now()
	return s, err
}

func (r *machine) findOut(ctx context.Context) (*setup, error) {
	sweep(r.opts.TempDir, r.now())
	p, err := ask(ctx, r.opts.Python)
	if err != nil {
		return nil, err
	}
	g, err := r.firstGuard(ctx, p, r.guards)
	if err != nil {
		return nil, &skill.Error{Op: "cli.setup", Code: skill.ToolInvocationError, Subject: "python3", Message: "python3 does not start under the limits of this host; see openskill doctor", Err: err}
	}
	return &setup{python: p, guard: g}, nil
}

// Prepare implements [skill.Runner]. The first call starts the interpreter a few
// times to find out what the machine allows; after that it looks at the entry only.
func (r *Runner) Prepare(_ context.Context, s *skill.Spec) (skill.Plan, error) {
	if s.Entry != "" || s.Folder != "" {
		if _, err := r.entry(s.Folder, s.Entry); err != nil {
			return skill.Plan{}, err
		}
	}
	_, err := r.setup()
	return skill.Plan{}, err
}

// Close waits for the runs under way. It may be called twice.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.runs.Wait()
	return nil
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &skill.Error{Op: "cli.Run", Code: skill.Internal, Message: "the runner is closed"}
	}
	r.runs.Add(1)
	return nil
}

// Run implements [skill.Runner].
func (r *Runner) Run(ctx context.Context, call *skill.Call) (*skill.Reply, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.runs.Done()
	if call.Trust < skill.Trusted {
		return nil, &skill.Error{
			Op: "cli.Run", Code: skill.Forbidden, Subject: string(call.SkillID),
			Message: "community skills run only in the sandbox; " + string(r.Kind()) + " is only for skills in the operator's own folders",
		}
	}
	if call.Ahead {
		return &skill.Reply{}, nil
	}
	path, err := r.entry(call.Folder, call.Entry)
	if err != nil {
		return nil, err
	}
	s, err := r.setup()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return &skill.Reply{Code: skill.Cancelled, Message: cancelled}, nil
	}
	ctx, stop := context.WithTimeoutCause(ctx, call.Limits.Timeout, errTimeout)
	defer stop()
	reply, err := r.run(ctx, s.python, s.guard, call, path, r.program)
	if err != nil {
		message := "cannot start the script"
		if errors.Is(err, errLeft) {
			message = "cannot remove leftover files of the script"
		}
		return nil, &skill.Error{Op: "cli.Run", Code: skill.Internal, Subject: string(call.SkillID), Message: message, Err: err}
	}
	return reply, nil
}

const cancelled = "the client disconnected before the skill finished"

var errTimeout = errors.New("timeout")

// run makes the folder of a run, executes the script in it, and removes it.
func (r *machine) run(ctx context.Context, p *python, g *guard, call *skill.Call, path string, program bool) (_ *skill.Reply, err error) {
	dir, err := os.MkdirTemp(r.opts.TempDir, runPrefix)
	if err != nil {
		return nil, err
	}
	release := hold(dir)
	defer func() {
		if e := remove(dir); e != nil && err == nil {
			err = e
		}
		release()
	}()
	if call.Grants.Data != "" {
		at := filepath.Join(dir, "data", filepath.FromSlash(call.Grants.DataAt))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(call.Grants.Data, at)); err != nil {
			return nil, err
		}
	}
	j := &job{
		python: p, script: path, program: program, args: call.Args, stdin: call.Stdin,
		folder: call.Folder, dir: dir, data: call.Grants.Data, limits: call.Limits,
		env: call.Grants.Env,
	}
	if call.Grants.Scratch {
		j.work = filepath.Join(dir, "work")
		if err := os.Mkdir(j.work, 0o700); err != nil {
			return nil, err
		}
	}
	end, err := j.execute(ctx, g)
	if err != nil {
		return nil, err
	}
	reply := end.reply(call.Limits)
	if j.work != "" {
		if err = filled(j.work, call.Limits.Scratch); err == nil {
			reply.Artifacts, err = collect(j.work, call.Limits.Scratch)
		}
		if errors.Is(err, errScratch) {
			reply.Artifacts = nil
			reply.stop(skill.OutputLimit, scratchMessage(call.Limits))
		} else if err != nil {
			return nil, err
		}
	}
	return reply.Reply, nil
}

// runPrefix begins the names of runs' folders.
const runPrefix = "openskill-run-"

// The modes of boot.py: who ends what a script leaves behind.
const (
	modeInit   = iota // the kernel, with the PID namespace
	modeReaper        // the host, going through the descendants of the supervisor
	modeGroup         // the host, by the process group
)

// job is one execution.
type job struct {
	python      *python
	script      string
	program     bool // the script is an executable file
	args        []string
	stdin       []byte
	folder, dir string
	data, work  string // "" where not granted
	limits      skill.Limits
	env         []string // of the script
}

// environ is what the supervisor starts with: what the script may see, and which
// names that are, since an interpreter adds some of its own.
func (j *job) environ() []string {
	if len(j.env) == 0 {
		return []string{}
	}
	names := make([]string, len(j.env))
	for i, v := range j.env {
		names[i], _, _ = strings.Cut(v, "=")
	}
	return append([]string{"OPENSKILL_ENV=" + strings.Join(names, ",")}, j.env...)
}

// asked is what a guard leaves to boot.py.
type asked struct {
	mode     int
	readonly bool // make all files but those of ./work read-only
	landlock bool // restrict itself by the rules in descriptor 4
	counts   bool // limit the number of processes
}

// reserved is the address space that an executable file may have beside its memory.
const reserved = 4 << 30

// argv is the command line of the supervisor; see boot.py.
func (j *job) argv(a asked) []string {
	bit := map[bool]int{true: 1}
	processes := 0 // no limit: one that counts all of a user's processes would hit at random
	if a.counts {
		processes = maxProcesses
	}
	var file uint64
	if j.work != "" {
		file = j.limits.Scratch
	}
	// A backstop should the host not be able to kill: a script may use all
	// processors for the whole of its time.
	cpu := (uint64(j.limits.Timeout/time.Second) + 2) * uint64(runtime.NumCPU())
	address, data := j.python.Address+j.limits.Memory, uint64(0)
	if j.program {
		// Runtimes of compiled languages reserve address space by the gigabyte: what is
		// limited is what they may write to, and what is shared, which the kernel does not
		// count there, by twice as much and what they reserve.
		address, data = 2*j.limits.Memory+reserved, j.limits.Memory
	}
	settings := fmt.Sprintf("%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", a.mode, bit[a.readonly], bit[a.landlock], bit[j.program],
		address, data, cpu, file, maxDescriptors, processes)
	argv := append([]string{j.python.Path}, flags...)
	return append(append(argv, "-c", boot, settings, j.dir, j.script), j.args...)
}
