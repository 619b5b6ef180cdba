package app

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/packages"
	"openskill/host/records"
	"openskill/host/workers"
	"openskill/plugins/all"
	"openskill/plugins/extism"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/check"
)

// The names of the subcommands that are processes of a host. They are no commands
// for people.
const (
	workerCommand  = "worker"
	compileCommand = "compile-module"
	guardCommand   = "try-guard-pages"
)

// hasWorkers says whether this platform can have worker processes.
const hasWorkers = runtime.GOOS == "linux" && !interpreted

// isolated says whether skills run in worker processes.
func isolated(s *config.Settings) bool { return hasWorkers && !s.InProcess }

// Child runs the process of a host that args ask for, if they do: who calls it does
// so before anything else, and exits with the code.
func Child(args []string) (code int, is bool) {
	if len(args) == 0 {
		return 0, false
	}
	var run func([]string) error
	switch args[0] {
	case workerCommand:
		run = workerMain
	case compileCommand:
		run = compileMain
	case guardCommand:
		run = func([]string) error { return wasm.TryGuardPages() }
	default:
		return 0, false
	}
	if err := run(args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "openskill %s: %v\n", args[0], err)
		return 3, true
	}
	return 0, true
}

// self is this program as a command. The name is what tests of the command line go by.
func self(command string) ([]string, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("host: find this program, to start it again: %w", err)
	}
	return []string{path, command}, nil
}

// folders are a flag that may be given many times.
type folders []string

func (f *folders) String() string     { return fmt.Sprint([]string(*f)) }
func (f *folders) Set(s string) error { *f = append(*f, s); return nil }

// workerMain is the life of a worker process.
func workerMain(args []string) error {
	var (
		c       workers.Confinement
		modules string
		state   string
		read    folders
	)
	flags := flag.NewFlagSet(workerCommand, flag.ContinueOnError)
	flags.StringVar(&modules, "modules", "", "folder of compiled modules")
	flags.StringVar(&state, "state", "", "state folder of the host")
	flags.Var(&read, "read", "folder that may be read")
	flags.Uint64Var(&c.Files, "files", 0, "limit of each file in memory, in bytes")
	flags.BoolVar(&c.Apart, "apart", false, "in a mount namespace of its own")
	guarded := flags.Bool(guardedFlag, false, "use guard pages instead of checks of addresses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	link, err := workers.Inherited()
	if err != nil {
		return err
	}
	defer link.Close()
	// The engine is opened before the doors are closed: it makes folders, and asks the
	// kernel for what it will need.
	e, err := wasm.Open(&wasm.Options{CacheDir: modules, CompiledOnly: true, ShareCode: true, GuardPages: *guarded})
	if err != nil {
		return err
	}
	c.Read = append(read, modules)
	held, err := workers.Confine(&c)
	if err != nil {
		return err
	}
	outside := &workers.HostServices{}
	list := all.Sandboxed(all.Options{Engine: e, StateDir: state, Outgoing: outside})
	debug.FreeOSMemory()
	duty := &workers.WorkerConfig{
		Runners: list, Protections: held, HostServices: outside,
		Images: func() workers.Images { return workers.Images(e.Images()) },
	}
	if workers.Narrows {
		duty.Narrow = workers.Narrow
	}
	return workers.Serve(context.Background(), link, duty)
}

// compileMain compiles one module, and ends.
func compileMain(args []string) error {
	c := workers.Confinement{Background: true}
	opts, file, function := wasm.CompileOptions{}, "", ""
	flags := flag.NewFlagSet(compileCommand, flag.ContinueOnError)
	flags.StringVar(&c.Write, "into", "", "empty folder for what is made")
	flags.Uint64Var(&c.Memory, "memory", 0, "limit of memory, in bytes")
	flags.Uint64Var(&c.Seconds, "seconds", 0, "limit of processor time")
	flags.BoolVar(&opts.Trusted, "trusted", false, "lift the caps for strangers")
	flags.StringVar(&opts.Digest, "digest", "", "digest that what is made is called by")
	flags.StringVar(&file, "file", "", "digest of the module")
	flags.StringVar(&function, "function", "", "function that a plug-in of Extism is called for")
	flags.BoolVar(&c.Apart, "apart", false, "in a mount namespace of its own")
	guarded := flags.Bool(guardedFlag, false, "use guard pages instead of checks of addresses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	debug.SetMemoryLimit(int64(c.Memory / 4 * 3))
	say := func(out *workers.Compiled) error { return json.NewEncoder(os.Stdout).Encode(out) }
	e, err := wasm.Open(&wasm.Options{CacheDir: c.Write, ShareCode: true, GuardPages: *guarded})
	if err != nil {
		return say(&workers.Compiled{Failed: err.Error()})
	}
	before := left(c.Write)
	if _, err := workers.Confine(&c); err != nil {
		return err
	}
	module, err := workers.ModuleToCompile(file)
	if errors.Is(err, workers.ErrOther) {
		return say(&workers.Compiled{Other: true})
	}
	if err != nil {
		return err
	}
	var out workers.Compiled
	report, err := admit(e, module, opts, file, function)
	if out.Report, _ = json.Marshal(report); err == nil && left(c.Write) < before+2 {
		// An engine goes on without files that it could not write.
		return say(&workers.Compiled{Failed: "some compiled files could not be written to the state folder; check its free disk space"})
	}
	switch refused, ok := errors.AsType[*check.Error](err); {
	case ok:
		details, _ := json.Marshal(map[string]any{"module": report}) // without them it is still refused
		out.Refused = &workers.Refusal{
			Op: "wasm.Check", Code: skill.Code(refused.Code), Message: skill.CleanText(refused.Msg, skill.MaxMessage),
			Cause: skill.CleanText(err.Error(), 1000), Details: details,
		}
	case err != nil:
		return err
	}
	return say(&out)
}

// admit checks a module and compiles it, or the command that is made of it.
func admit(e *wasm.Engine, module []byte, opts wasm.CompileOptions, file, function string) (check.Report, error) {
	if function == "" {
		return e.Admit(context.Background(), module, opts)
	}
	report, err := e.Check(module, &wasm.CompileOptions{Digest: file})
	if err != nil {
		return report, err
	}
	command, err := extism.Command(module, function)
	if err == nil {
		_, err = e.Compile(context.Background(), command, &opts)
	}
	return report, err
}

// left counts the files that an engine has made: a metered module, and code, of which
// it has some of its own.
func left(dir string) int {
	metered, _ := fs.Glob(os.DirFS(dir), "metered/*") // the patterns are good ones
	code, _ := fs.Glob(os.DirFS(dir), "code/*/*")
	n := 0
	for _, path := range append(metered, code...) {
		if !strings.HasSuffix(path, ".tmp") {
			n++
		}
	}
	return n
}

// processes are the workers of a host, and what they run on.
type processes struct {
	dir     string // of their folders
	modules *workers.Modules
	pool    *workers.Pool
	// outgoing makes the requests of guests, and of runners outside of the workers.
	outgoing skill.Outgoing
}

// openWorkers makes the pool; no process is started yet.
func (h *Host) openWorkers(s *config.Settings, d state) (err error) {
	w := &processes{outgoing: h.traced(calling{outgoing(s, h.log, h.alone, h.denied), h})}
	compile, err := guest(compileCommand)
	if err != nil {
		return err
	}
	work, err := guest(workerCommand)
	if err != nil {
		return err
	}
	if w.modules, err = OpenModules(d.root, compile, h); err != nil {
		return err
	}
	if err := guardPages(); err != nil && runtime.GOARCH == "amd64" && len(wasm.CompilerEdits()) > 0 {
		h.log.Warn("skills compute more slowly: their accesses of memory are checked one by one", slog.String("reason", err.Error()))
	}
	h.workers = w
	h.owns(w.close)
	sweepWorkers(d)
	if w.dir, err = os.MkdirTemp(d.temp, workersPrefix+strconv.Itoa(os.Getpid())+"-"); err != nil {
		return err
	}
	for _, dir := range []string{uploadsDir(h.settings.StateDir), packages.Sets(d.root), filepath.Join(d.root, "files")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	caps := s.Caps()
	// Images are kept in such files, of a memory whose limit is a power of two.
	work = append(work, "--files", strconv.FormatUint(max(s.WorkerMemoryMB<<20, 2*caps.Memory), 10))
	o := workers.Options{
		Command: append(work, "--state", d.root), Dir: w.dir, Modules: w.modules,
		Folders: h.readable(s, d), Key: keyOf(s.Workers, uploadsDir(h.settings.StateDir)), Max: s.WorkersMax, Alone: h.alone, Spares: h.spares, Brief: h.brief,
		Memory: s.WorkerMemoryMB << 20, MaxReply: uint32(min(2*caps.Output+caps.Scratch+mostRecorded(s)+records.MostSessionBytes, 1<<31-1)), // bounded
		FoldersOf: h.foldersOf(s, d), Outgoing: w.outgoing, Log: h.log, Trace: h.trace,
	}
	if w.pool, err = workers.New(o); err != nil {
		return err
	}
	return nil
}

// OpenModules opens the compiled modules of a state folder.
func OpenModules(stateDir string, command []string, h *Host) (*workers.Modules, error) {
	o := workers.ModulesOptions{Dir: filepath.Join(stateDir, "modules"), Version: moduleVersion(), Command: command, Name: wasm.PreparedName}
	if h != nil {
		o.Log, o.Alone = h.log, h.alone
	}
	return workers.OpenModules(o)
}

// CompileRuntime leaves the module of a language runtime compiled where hosts of this
// state folder look for it.
func CompileRuntime(ctx context.Context, stateDir, path, digest string) error {
	if !hasWorkers {
		return compileHere(ctx, stateDir, path, digest)
	}
	compile, err := guest(compileCommand)
	if err != nil {
		return err
	}
	m, err := OpenModules(stateDir, compile, nil)
	if err != nil {
		return err
	}
	_, err = m.Ensure(ctx, &workers.Source{Module: skill.Module{Digest: digest, File: digest, Trusted: true, Open: func() (io.ReadCloser, error) { return os.Open(path) }}})
	return errors.Join(err, m.Close())
}

func compileHere(ctx context.Context, stateDir, path, digest string) error {
	module, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if wasm.Digest(module) != digest {
		return &skill.Error{Op: "host.CompileRuntime", Code: skill.Conflict, Message: "the runtime changed while it was read; retry"}
	}
	e, err := OpenEngine(CacheDir(stateDir)) // nothing to wait for
	if err != nil {
		return err
	}
	_, err = e.Compile(ctx, module, &wasm.CompileOptions{Trusted: true, Digest: digest})
	return errors.Join(err, e.Close())
}

// moduleVersion names what makes modules: a program that makes them otherwise does
// not take these.
func moduleVersion() string {
	checks := ""
	if guardPages() == nil {
		checks = "-guarded"
	}
	return fmt.Sprintf("%s-%s-%s-pages%s", wasm.Generation(), runtime.GOARCH, wasm.CompilerVersion(), checks)
}

func (w *processes) runners(h *Host, s *config.Settings, d state) (list []skill.Runner) {
	o := all.Options{StateDir: d.root, Python: s.Python, TempDir: d.temp, Outgoing: w.outgoing, Imports: h.importsOf()}
	for _, r := range all.Sandboxed(o) {
		list = append(list, w.pool.Runner(r))
	}
	return append(list, all.Outside(o)...)
}

func (w *processes) close() error {
	var err error
	if w.pool != nil {
		err = w.pool.Close()
	}
	if w.dir != "" {
		_ = os.Remove(w.dir) // if it is not empty, the next host of this state folder removes it
	}
	return errors.Join(err, w.modules.Close())
}

const workersPrefix = "workers-"

// sweepWorkers removes what hosts left that were killed.
func sweepWorkers(d state) {
	left, _ := fs.Glob(os.DirFS(d.temp), workersPrefix+"*") // the pattern is a good one
	for _, name := range left {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, workersPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && alive(pid) {
			continue
		}
		_ = os.RemoveAll(filepath.Join(d.temp, name)) // it is tried again at the next start
	}
}

// alive reports whether there is a process of this number; one that cannot be asked is.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release() //nolint:errcheck // a handle
	return !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// ownerOf is the folder of the tenant whose upload a folder is; "" for the
// operator's own skills.
func ownerOf(uploads, folder string) string {
	rel, err := filepath.Rel(uploads, folder)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	owner, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return filepath.Join(uploads, owner)
}

// keyOf says whose calls share a process. What a tenant runs of another's uploads,
// after an operator approved it, is apart from what is its own.
func keyOf(i config.Isolation, uploads string) func(*skill.Call) string {
	switch i {
	case config.Shared:
		return func(*skill.Call) string { return "" }
	case config.PerSkill:
		return func(c *skill.Call) string {
			return catalogue.Folder(c.Tenant) + "\x00" + string(c.SkillID) + "\x00" + c.Digest
		}
	case config.PerTenant:
	}
	return func(c *skill.Call) string {
		tenant := catalogue.Folder(c.Tenant) // a name that no two tenants have, whatever is in theirs
		if owner := ownerOf(uploads, c.Folder); owner != "" && owner != filepath.Join(uploads, tenant) {
			return tenant + "\x00" + owner
		}
		return tenant
	}
}

// readable are the folders that any worker may read, before it is somebody's.
func (h *Host) readable(s *config.Settings, d state) []string {
	list := []string{filepath.Join(d.root, "runtimes"), packages.Sets(d.root), AnalysisDir(d.root), codeDir(s), filepath.Join(d.root, "files"), approvedDir(d.root), uploadsDir(h.settings.StateDir)}
	list = append(list, h.own()...)
	for _, path := range []string{s.CLIDir, s.DataRoot} {
		if path != "" {
			list = append(list, path)
		}
	}
	return list
}

// own are the operator's folders of skills. The kernel's rules are for folders that are
// there.
func (h *Host) own() (list []string) {
	for _, r := range h.roots {
		list = append(list, r.Path)
	}
	for _, path := range h.agentDirs {
		if !slices.Contains(list, path) && !missing(path) {
			list = append(list, path)
		}
	}
	return list
}

// foldersOf are those that a worker of one key may go on reading.
func (h *Host) foldersOf(s *config.Settings, d state) func(string, *skill.Call) []string {
	if s.Workers == config.Shared {
		return nil
	}
	return func(_ string, call *skill.Call) []string {
		list := []string{filepath.Join(d.root, "runtimes"), packages.Sets(d.root), AnalysisDir(d.root), codeDir(s)}
		owner := ownerOf(uploadsDir(h.settings.StateDir), call.Folder)
		switch own := filepath.Join(uploadsDir(h.settings.StateDir), catalogue.Folder(call.Tenant)); {
		case s.Workers == config.PerSkill:
			list = append(list, call.Folder) // of an approved script, the copy that it runs from
		case owner != "" && owner != own:
			list = append(list, owner)
		default:
			list = append(append(list, approvedDir(d.root)), h.own()...) // copies are of what is the operator's
			// It may have no uploads yet, and the kernel's rule is for a folder that is there.
			if err := os.MkdirAll(own, 0o700); err != nil {
				h.log.Warn("cannot create a tenant's folder", slog.String("tenant", skill.CleanText(call.Tenant, 80)), slog.String("reason", err.Error()))
			}
			list = append(list, own)
		}
		files := filesDir(s, call.Tenant)
		if err := os.MkdirAll(files, 0o700); err != nil {
			h.log.Warn("cannot create a tenant's folder", slog.String("tenant", skill.CleanText(call.Tenant, 80)), slog.String("reason", err.Error()))
		}
		list = append(list, files)
		if s.DataRoot != "" {
			list = append(list, s.DataRoot)
		}
		return list
	}
}

// Workers tells of the worker processes of this host; false where it has none.
func (h *Host) Workers() (workers.Stats, bool) {
	if h.workers == nil {
		return workers.Stats{}, false
	}
	return h.workers.pool.Stats(), true
}
