package runnertest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// Harness tells the suite about one runner.
type Harness struct {
	// New makes a runner. The suite closes it. It is called for several
	// checks, so what is dear (a compiled runtime) belongs outside.
	New func(t testing.TB) skill.Runner

	// Write puts a guest that does p into the skill folder dir and returns its
	// entry, relative to dir and slash-separated. A guest may ignore p and go by
	// the call's arguments, which are always p.Arguments().
	Write func(t testing.TB, dir string, p Program) (entry string)

	// Skip names the checks that do not apply, each with the reason.
	// A name is the name of a subtest of Run without its parents.
	Skip map[string]string

	// Trust is the trust of the calls; the zero value is Community.
	Trust skill.Trust

	// Limits are the limits of a call unless a check lowers one. Fields that
	// are zero take the value of [DefaultLimits].
	Limits skill.Limits

	// Start is how long a program may take to begin, on a busy machine; checks
	// of the timeout give it at least this long. Zero means 500 ms.
	Start time.Duration

	// Metered runners count fuel: Usage.Fuel is not zero, and a loop without an
	// end runs out of it.
	Metered bool

	// ExitBits is how many low bits of an exit code the runner carries: 8 for a
	// process of a Unix system. Zero means 32.
	ExitBits int

	// Env are the names of variables that the runner documents as set. Zero
	// means that a guest sees none at all.
	Env []string
}

// DefaultLimits are roomy enough for every program that is not after a limit.
func DefaultLimits() skill.Limits {
	return skill.Limits{
		Timeout: 60 * time.Second,
		Memory:  256 << 20,
		Fuel:    1 << 50,
		Output:  4 << 20,
		Scratch: 4 << 20,
	}
}

// slack is the upper bound for "soon" in this suite. The contract says 250 ms;
// a loaded machine that runs several suites at once is given seconds, because
// the checks are after ends that never come, not after late ones.
const slack = 8 * time.Second

// bench is one runner under test.
type bench struct {
	Harness
	t      *testing.T
	runner skill.Runner
}

func (h Harness) bench(t *testing.T) *bench {
	t.Helper()
	h.Limits = h.Limits.Or(DefaultLimits())
	r := h.New(t)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &bench{Harness: h, t: t, runner: r}
}

// option changes a call before it is made.
type option func(*skill.Call)

func stdin(b []byte) option              { return func(c *skill.Call) { c.Stdin = b } }
func limit(l func(*skill.Limits)) option { return func(c *skill.Call) { l(&c.Limits) } }
func timeout(d time.Duration) option     { return limit(func(l *skill.Limits) { l.Timeout = d }) }
func output(n uint64) option             { return limit(func(l *skill.Limits) { l.Output = n }) }
func data(dir string) option             { return func(c *skill.Call) { c.Grants.Data = dir } }
func scratch(n uint64) option {
	return func(c *skill.Call) { c.Grants.Scratch, c.Limits.Scratch = true, n }
}

// call makes the call of program p, in a skill folder of its own.
func (b *bench) call(p Program, opts ...option) *skill.Call {
	b.t.Helper()
	dir := b.t.TempDir()
	c := &skill.Call{
		SkillID: "conformance", TraceID: "trace-1", ExecutionID: "execution-1",
		Folder: dir, Entry: b.Write(b.t, dir, p), Digest: "sha256:" + filepath.Base(dir),
		Trust: b.Trust, Args: p.Arguments(), Limits: b.Limits,
	}
	for _, o := range opts {
		o(c)
	}
	return c
}

func (h Harness) start() time.Duration {
	if h.Start == 0 {
		return 500 * time.Millisecond
	}
	return h.Start
}

// run makes a call that the runner must be able to do its part of.
func (b *bench) run(p Program, opts ...option) *skill.Reply {
	b.t.Helper()
	return b.do(context.Background(), b.call(p, opts...))
}

func (b *bench) do(ctx context.Context, c *skill.Call) *skill.Reply {
	b.t.Helper()
	r, err := Do(ctx, b.runner, c)
	if err != nil {
		b.t.Fatalf("Run(%q): the host failed: %v", c.Args, err)
	}
	if r == nil {
		b.t.Fatalf("Run(%q): neither a reply nor an error", c.Args)
	}
	return r
}

// ended checks that the guest ended by itself with the exit code.
func (b *bench) ended(r *skill.Reply, exit uint32) {
	b.t.Helper()
	if b.ExitBits > 0 {
		exit &= 1<<b.ExitBits - 1
	}
	if r.Code != "" || r.ExitCode != exit {
		b.t.Errorf("code %q (%s), exit code %#x; want no code and %#x\nstderr: %.600s", r.Code, r.Message, r.ExitCode, exit, r.Stderr)
	}
}

// stopped checks that the run was ended by the host for one of the reasons,
// with a message fit for a caller.
func (b *bench) stopped(r *skill.Reply, codes ...skill.Code) {
	b.t.Helper()
	for _, c := range codes {
		if r.Code == c {
			b.message(r.Message)
			return
		}
	}
	b.t.Errorf("code %q (%s), exit code %#x; want %q\nstdout: %.200q\nstderr: %.600s", r.Code, r.Message, r.ExitCode, codes, r.Stdout, r.Stderr)
}

// message checks that a message can be shown to a caller.
func (b *bench) message(m string) {
	b.t.Helper()
	if m == "" || len(m) > 512 || skill.CleanText(m, 1024) != m {
		b.t.Errorf("message %q; want one clean line of 1 to 512 bytes", m)
	}
	if strings.Contains(m, os.TempDir()) {
		b.t.Errorf("message %q tells a path of the host", m)
	}
}

// healthy checks that the runner still works after what came before.
func (b *bench) healthy() {
	b.t.Helper()
	want := fmt.Sprintf("still here after %s", b.t.Name())
	r := b.run(Program{Do: Echo}, stdin([]byte(want)))
	b.ended(r, 0)
	if string(r.Stdout) != want {
		b.t.Errorf("the next call printed %.200q; want %q", r.Stdout, want)
	}
}

// Do prepares a call for a skill that requires these packages, and runs it.
func Do(ctx context.Context, r skill.Runner, c *skill.Call, requires ...string) (*skill.Reply, error) {
	spec := c.Spec()
	spec.Requires = requires
	plan, err := r.Prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	planned := *c
	planned.Plan = plan
	return r.Run(ctx, &planned)
}

// Look prepares a target, and runs nothing.
func Look(ctx context.Context, r skill.Runner, folder, entry string) error {
	_, err := r.Prepare(ctx, &skill.Spec{Folder: folder, Entry: entry})
	return err
}

// Ready waits until a runner's runtime is compiled, for skills that require these packages.
func Ready(ctx context.Context, r skill.Runner, requires ...string) error {
	_, err := r.Prepare(ctx, &skill.Spec{Requires: requires, Wait: true})
	return err
}
