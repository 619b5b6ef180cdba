package workers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"openskill/host/internal/gate"
	"openskill/internal/digest"
	"openskill/sdk/skill"
)

// Modules keeps what was compiled of modules, and has it made by processes that do
// nothing else. It is safe for concurrent use.
type Modules struct {
	o     ModulesOptions
	root  string // of this version
	spawn *spawner
	held  *bounds
	slots *gate.Gate    // of strangers' modules
	own   chan struct{} // of the host's own: they take long, and nobody else waits for them

	mu       sync.Mutex
	inFlight map[string]*compilation // that wait for their turn or have it, by module, tenant and time
	having   map[string]*compilation // that have their turn, by module and time
	refused  map[string]*verdict
	looked   map[string]time.Time // when it was last looked whether a module is damaged
	closed   bool
	running  sync.WaitGroup
	stop     context.CancelFunc
	ctx      context.Context //nolint:containedctx // that of all compilations, which outlive the calls that wait
}

// ModulesOptions configure [Modules]. Dir, Command, Version and Name are required;
// other zero fields mean the defaults.
type ModulesOptions struct {
	Dir     string   // where compiled modules are kept; made with mode 0700
	Version string   // of what makes them; what another version made is removed
	Command []string // the program that compiles one module, which is its descriptor 3
	// Name is what the files are called that a compiler leaves of the module with a digest,
	// beside its code: it leaves none of another name.
	Name   func(digest string, trusted bool) string
	AtOnce int  // compilations of strangers' modules at once; 0: 2. Beside them one of the host's own
	Alone  bool // all callers are one tenant, which may have all of these
	// Strangers and Trusted bound the compilation of one module.
	Strangers, Trusted CompileLimits
	Bytes              int64 // that are kept; beyond it the tenant that has the most loses some; 0: 4 GiB
	Log                *slog.Logger
}

// CompileLimits bound one compilation.
type CompileLimits struct {
	CPU    time.Duration // of all processors together, in whole seconds; 0: 10 s for strangers, 10 minutes for the host's own
	Wall   time.Duration // where others use the processors; 0: a minute, and 15
	Memory uint64        // bytes; 0: 768 MiB, and 4 GiB
}

// Source is a module that is to be compiled, of a plan.
type Source struct {
	skill.Module

	Tenant string // on whose behalf a stranger's module is compiled; they take turns
	// Spent is how much of the processor time of one compilation is gone already, in what
	// came before it; what this one takes is added. Those of one upload share it. nil: none
	// is, and nobody asks.
	Spent *time.Duration
}

// compilation is one under way.
type compilation struct {
	done   chan struct{}
	limits CompileLimits
	spent  time.Duration // of limits.CPU, before it began
	took   time.Duration // of processors, when done; of the clock where that is not known
	report json.RawMessage
	err    error
}

// verdict is a refusal that is remembered.
type verdict struct {
	err error
	at  time.Time
}

const (
	// maxRefused bounds the memory of verdicts; beyond it all are forgotten.
	maxRefused = 10_000
	// remembered is how long a refusal holds without a new look: the limits may change.
	remembered = 10 * time.Minute
	// mostCompilations may wait.
	mostCompilations = 10_000
	// maxReport bounds what a compiling process may say.
	maxReport = 4 << 20
)

// OpenModules opens the folder, and removes what was left half made.
func OpenModules(o ModulesOptions) (*Modules, error) {
	if o.Dir == "" || o.Version == "" || len(o.Command) == 0 || o.Name == nil {
		return nil, errors.New("worker.OpenModules: Dir, Version, Command and Name are required")
	}
	def := func(l *CompileLimits, cpu, wall time.Duration, memory uint64) {
		if l.CPU <= 0 {
			l.CPU = cpu
		}
		if l.Wall <= 0 {
			l.Wall = wall
		}
		if l.Memory == 0 {
			l.Memory = memory
		}
	}
	def(&o.Strangers, 10*time.Second, time.Minute, 768<<20)
	def(&o.Trusted, 10*time.Minute, 15*time.Minute, 4<<30)
	if o.AtOnce <= 0 {
		o.AtOnce = 2
	}
	if o.Bytes <= 0 {
		o.Bytes = 4 << 30
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	m := &Modules{
		o: o, root: filepath.Join(o.Dir, o.Version), spawn: newSpawner(), held: newBounds(), slots: gate.New(gate.Options{Places: o.AtOnce, Queue: mostCompilations, Alone: o.Alone}), own: make(chan struct{}, 1),
		inFlight: map[string]*compilation{}, having: map[string]*compilation{}, refused: map[string]*verdict{}, looked: map[string]time.Time{},
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	if err := os.MkdirAll(m.root, 0o700); err != nil {
		m.held.close()
		return nil, fmt.Errorf("worker.OpenModules: %w", err)
	}
	m.sweep()
	return m, nil
}

// sweep removes what other versions made. What a process of another host is making
// right now is in a folder that is younger than the longest compilation.
func (m *Modules) sweep() {
	entries, err := os.ReadDir(m.o.Dir)
	if err != nil {
		return // it is tried again at the next start
	}
	old := time.Now().Add(-m.o.Trusted.Wall - time.Minute)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.Name() == m.o.Version || !info.ModTime().Before(old) {
			continue
		}
		_ = os.RemoveAll(filepath.Join(m.o.Dir, e.Name()))
	}
	entries, err = os.ReadDir(m.root)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "new-") && info.ModTime().Before(old) {
			_ = os.RemoveAll(filepath.Join(m.root, e.Name()))
		}
	}
}

// Close ends the compilations under way. It may be called twice.
func (m *Modules) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.running.Wait()
	m.spawn.close()
	m.held.close()
	return nil
}

// name is that of the folder of a module.
func name(digest string, trusted bool) (string, error) {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if b, err := hex.DecodeString(sum); !ok || err != nil || len(b) != sha256.Size || sum != strings.ToLower(sum) {
		return "", fmt.Errorf("worker: %q is no digest of a module", skill.CleanText(digest, 80))
	}
	if trusted {
		return sum + trustedSuffix, nil
	}
	return sum, nil
}

// trustedSuffix is at the end of the names of the host's own modules.
const trustedSuffix = "-trusted"

const reportFile = "report.json"

// Has reports whether a module is compiled.
func (m *Modules) Has(digest string, trusted bool) bool {
	n, err := name(digest, trusted)
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(m.root, n, reportFile))
	return err == nil
}

// Ensure has a module compiled, unless it is, and gives the report of its admission, as the
// compiling process wrote it. Tenants that want the same module wait for their own turns and
// share the process of the first turn, which goes on when ctx ends, to its own limits. A
// compilation whose time is spent in part is shared only with those that have as much left.
// The error is a *skill.Error with the verdict against the module, or another one if the
// host failed, or the cause of ctx.
func (m *Modules) Ensure(ctx context.Context, src *Source) (json.RawMessage, error) {
	n, err := name(src.Digest, src.Trusted)
	if err != nil {
		return nil, err
	}
	if report, err := os.ReadFile(filepath.Join(m.root, n, reportFile)); err == nil {
		m.shared(n, src.Tenant)
		return report, nil
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil, errors.New("worker: the modules are closed")
	}
	if v := m.refused[n]; v != nil && time.Since(v.at) < remembered {
		m.mu.Unlock()
		return nil, v.err
	}
	c, shared := m.begin(src), n
	if c.spent > 0 {
		shared += fmt.Sprintf(" in %d s", c.seconds())
	}
	flight := shared + " of " + src.Tenant
	switch going := m.inFlight[flight]; {
	case going != nil:
		c = going
	case c.seconds() < 1:
		m.mu.Unlock()
		return nil, c.tooLong()
	default:
		m.inFlight[flight] = c
		m.running.Add(1)
		go m.run(c, flight, shared, n, src) // it goes on for others when a caller leaves
	}
	m.mu.Unlock()
	select {
	case <-c.done:
		if src.Spent != nil {
			*src.Spent += c.took
		}
		return c.report, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin makes a compilation with the limits of its module.
func (m *Modules) begin(src *Source) *compilation {
	c := &compilation{done: make(chan struct{}), limits: m.o.Strangers}
	if src.Trusted {
		c.limits = m.o.Trusted
	}
	if src.Spent != nil {
		c.spent = *src.Spent
	}
	return c
}

// seconds is how long it may take of processors. The kernel counts whole ones: of what is
// left of a time, the rest is nobody's.
func (c *compilation) seconds() int {
	if c.spent == 0 {
		return max(1, int(c.limits.CPU/time.Second))
	}
	return int((c.limits.CPU - c.spent) / time.Second)
}

func (m *Modules) run(c *compilation, flight, shared, n string, src *Source) {
	defer m.running.Done()
	if leave, err := m.turn(src); err != nil {
		c.err = err
	} else {
		m.mu.Lock()
		first := m.having[shared]
		if first == nil {
			m.having[shared] = c
		}
		m.mu.Unlock()
		if first != nil { // another tenant's turn came sooner
			leave()
			<-first.done
			c.report, c.err, c.took = first.report, first.err, first.took
		} else {
			if c.report, err = os.ReadFile(filepath.Join(m.root, n, reportFile)); err != nil {
				c.report, c.err = m.compile(c, n, src)
			} // or another tenant's turn is over already
			leave()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.inFlight, flight)
	if m.having[shared] == c {
		delete(m.having, shared)
	}
	var e *skill.Error
	// A verdict is against the module. That somebody named another one is not, nor that it
	// had less time than others.
	if errors.As(c.err, &e) && e.Code != skill.Conflict && e.Code != skill.RateLimited && c.spent == 0 {
		if len(m.refused) >= maxRefused {
			clear(m.refused)
		}
		m.refused[n] = &verdict{c.err, time.Now()}
	}
	close(c.done)
}

// turn waits until a module may be compiled.
func (m *Modules) turn(src *Source) (leave func(), err error) {
	if src.Trusted {
		select {
		case m.own <- struct{}{}:
			return func() { <-m.own }, nil
		case <-m.ctx.Done():
			return nil, context.Cause(m.ctx)
		}
	}
	leave, err = m.slots.Enter(m.ctx, src.Tenant)
	if full := (*gate.FullError)(nil); errors.As(err, &full) {
		return nil, gate.Refusal(full, "worker.turn", "too many modules are queued for compilation")
	}
	return leave, err
}

// ModuleToCompile gives a compiling process its module, once the host has put the process
// under its bounds. It is hashed before anything looks into it: what a hostile module makes
// of a compiler cannot make it another one.
func ModuleToCompile(file string) ([]byte, error) {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return nil, err
	}
	const module = 3 // a descriptor
	b, err := io.ReadAll(os.NewFile(module, "module"))
	if err == nil && digest.Of(b) != file {
		err = ErrOther
	}
	return b, err
}

// ErrOther says that a module is not the one that was to be compiled.
var ErrOther = errors.New("workers: this is another module")

// Compiled is what a compiling process says.
type Compiled struct {
	Refused *Refusal        `json:"refused,omitempty"` // the module; it is the verdict
	Other   bool            `json:"other,omitempty"`   // the module is not the one that was to be compiled
	Failed  string          `json:"failed,omitempty"`  // what this machine lacked; the module is not to blame
	Report  json.RawMessage `json:"report,omitempty"`
}

// compile runs the process for one module.
func (m *Modules) compile(c *compilation, n string, src *Source) (json.RawMessage, error) {
	limits := c.limits
	ctx, cancel := context.WithTimeout(m.ctx, limits.Wall)
	defer cancel()
	file, err := src.Open()
	if err != nil {
		return nil, fmt.Errorf("worker: open a module: %w", err)
	}
	defer file.Close()
	// The process reads a copy of which nobody else has a name, and makes sure that it is
	// what the plan says.
	module, err := copied(file)
	if err != nil {
		return nil, err
	}
	defer module.Close()
	dir, err := os.MkdirTemp(m.root, "new-")
	if err != nil {
		return nil, fmt.Errorf("worker: make a folder for a compiled module: %w", err)
	}
	defer os.RemoveAll(dir)

	args := append(append([]string{}, m.o.Command[1:]...), "--into", dir, fmt.Sprintf("--memory=%d", limits.Memory), fmt.Sprintf("--seconds=%d", c.seconds()),
		"--digest="+src.Digest, "--file="+src.File, "--function="+src.Function)
	if src.Trusted {
		args = append(args, "--trusted")
	}
	said, errs := &capped{max: maxReport}, &tail{}
	cmd := exec.Command(m.o.Command[0], args...) //nolint:noctx // killed below
	cmd.Args[0] = ProgramName
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{}, "/", []*os.File{module}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = said, errs, time.Second
	// It reads the module when its standard input ends: until then it is under no bounds but
	// its own.
	waits, begin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("worker: start a compiler: %w", err)
	}
	cmd.Stdin = waits
	began := time.Now()
	err = m.spawn.start(cmd)
	_ = waits.Close()
	if err != nil {
		_ = begin.Close()
		return nil, fmt.Errorf("worker: start a compiler: %w", err)
	}
	group, err := m.held.hold(cmd.Process.Pid, limits.Memory)
	if err != nil {
		m.o.Log.Debug("the kernel limits a compiler's private memory only", slog.String("reason", err.Error()))
	}
	defer group.release()
	_ = begin.Close()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	over := make(chan error, 1)
	go func() { over <- watchFolder(ctx, dir, limits.Memory, cmd.Process.Kill) }()
	err = cmd.Wait()
	if c.took = time.Since(began); cmd.ProcessState != nil {
		c.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	stop()
	cancelled := ctx.Err() != nil
	cancel()
	switch left := <-over; {
	case m.ctx.Err() != nil:
		return nil, context.Cause(m.ctx)
	case left != nil:
		return nil, leftTooMuch(left, src.Trusted)
	case cancelled:
		return nil, c.tooLong()
	case err != nil && src.Trusted:
		return nil, fmt.Errorf("worker: a runtime could not be compiled: %w: %s", err, errs.text())
	case err != nil:
		// Whatever ended it, it was this module's compiler, and had no other work.
		m.o.Log.Warn("a compiler exited early", slog.String("module", src.Digest), slog.String("how", err.Error()), slog.String("said", errs.text()))
		return nil, c.tooLong()
	}
	var out Compiled
	if err := json.Unmarshal(said.b.Bytes(), &out); err != nil {
		return nil, fmt.Errorf("worker: a compiler that cannot be understood: %w", err)
	}
	switch {
	case out.Other:
		return nil, &skill.Error{Op: "workers.Compile", Code: skill.Conflict, Message: "the module file changed during the call; retry"}
	case out.Refused != nil:
		return nil, out.Refused.error()
	case out.Failed != "":
		return nil, fmt.Errorf("worker: a compiler failed: %s", skill.CleanText(out.Failed, 1000))
	}
	return out.Report, m.keep(dir, n, m.o.Name(src.Digest, src.Trusted), src.Tenant, out.Report, limits.Memory)
}

func (c *compilation) tooLong() error {
	what := "the module"
	if c.spent > 0 {
		what = "this module and the previous ones together"
	}
	return &skill.Error{
		Op: "worker.Compile", Code: skill.CompileTimeout,
		Message: fmt.Sprintf("compiling %s exceeded %d s of CPU time or %d MiB; make it smaller, or build it with less inlining (-Os)", what, int(c.limits.CPU/time.Second), c.limits.Memory>>20),
	}
}

// copied gives a copy of file's content, in memory and without a name.
func copied(file io.Reader) (*os.File, error) {
	f, err := nameless()
	if err != nil {
		return nil, fmt.Errorf("workers: keep a module: %w", err)
	}
	const most = 512 << 20
	_, err = io.Copy(f, io.LimitReader(file, most))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// capped keeps what is written up to a size, and fails beyond it.
type capped struct {
	b   bytes.Buffer
	max int
}

func (c *capped) Write(p []byte) (int, error) {
	if c.b.Len()+len(p) > c.max {
		return 0, errors.New("worker: a compiler says too much")
	}
	return c.b.Write(p)
}
