package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"openskill/host/agent"
	"openskill/host/agent/llm"
	"openskill/host/agentskills"
	"openskill/host/api"
	"openskill/host/app/config"
	"openskill/host/app/metrics"
	"openskill/host/catalogue"
	"openskill/host/dispatch"
	"openskill/host/dispatch/allow"
	"openskill/host/dispatch/approval"
	"openskill/host/internal/gate"
	"openskill/host/internal/table"
	"openskill/host/internal/tracing"
	"openskill/host/manifest"
	"openskill/host/packages"
	"openskill/host/records/replay"
	"openskill/plugins/all"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// Mode is what a host is opened for.
type Mode int

// The modes of hosts.
const (
	Local   Mode = iota // calls of whoever runs this program
	Watched             // the same, with metrics, and traces as the settings say
	Serving             // calls of others too: with uploads, metrics, traces and reloading
)

// Options of a Host beside its settings; nil and zero fields mean the defaults.
type Options struct {
	Mode Mode
	Log  *slog.Logger // nil: slog.Default()
	// Roots are folders of skills instead of the settings' own; nil: those of the
	// settings.
	Roots []string
	// AgentRoots are folders of Agent Skills instead of the settings' own; nil: those of
	// the settings.
	AgentRoots []string
	// Scripts is what scripts in AgentRoots are granted, instead of what the database has.
	Scripts *skill.Grants
	// Trial is for those who try skills that they write; nil: skills run as always. A
	// host that serves has none.
	Trial *Trial

	Spares int // worker processes that wait for the next tenant; 0: 1, negative: none
	// Brief hosts are closed after the calls at hand: they prepare nothing for later ones.
	Brief bool

	tenants bool // calls are of several tenants, though nobody is asked who calls: in self-tests

	exporter tracing.Exporter // takes spans whatever the settings say, for tests
}

// Host holds the parts of one host. It is safe for concurrent use.
type Host struct {
	settings   *config.Settings
	log        *slog.Logger
	engine     *wasm.Engine // nil where calls run in workers
	workers    *processes   // nil where calls run here
	spares     int
	brief      bool
	roots      []manifest.Root
	runners    *dispatch.Set
	all        []skill.Runner
	skills     *catalogue.Definitions // the operator's own
	uploads    *uploads               // nil: opened without them
	agents     *agentskills.Provider
	packages   *packages.Store
	grants     *allow.Store  // what scripts of Agent Skills are allowed
	tries      bool          // Agent Skills are of folders that a command names
	tried      *skill.Grants // what their scripts are granted
	models     *llm.Models
	agent      *agent.Agent
	approvals  *approval.Store
	copies     approved
	trial      *Trial
	kept       kept
	recordings *replay.Recordings
	door       *dispatch.Dispatcher
	alone      bool // all callers are one tenant, for whom nothing is kept of any gate
	lately     lately
	warming    atomic.Pointer[[]string]
	check      *gate.Gate // of chains that the console verifies
	rates      *api.Rates
	schemas    *manifest.Schemas       // of skills, compiled
	lists      *table.Cache            // of the catalogue, in the forms that callers get
	indexes    *table.Cache            // of searches
	ended      []func(*dispatch.Ended) // told of every call; complete before the door is made
	metrics    *metrics.Metrics        // nil: nobody reads them
	trace      *tracing.Tracer         // nil: nothing is traced

	agentDirs []string // of Agent Skills
	hidden    sync.Map // why an Agent Skill is not offered, as it was logged last, by its folder

	live      atomic.Pointer[config.Settings] // with what was reloaded; settings has what the host was opened with
	given     []manifest.Root                 // roots as they were named
	reloading sync.Mutex

	ends   []func() error // of its parts, in the order in which they were made
	close  sync.Once
	closed error
}

// Open builds a host. It reads the skills, but compiles nothing and starts no
// process. The caller closes it.
func Open(s *config.Settings, o *Options) (*Host, error) {
	if o == nil {
		o = &Options{}
	}
	h := &Host{settings: s, check: gate.New(chainChecks), lists: table.NewCache(mostKept), indexes: table.NewCache(maxSearchable), schemas: manifest.NewSchemas(), log: o.Log, packages: packages.New(s.StateDir), trial: o.Trial, spares: o.Spares, brief: o.Brief, alone: (s.Auth == config.AuthNone || o.Mode != Serving) && !o.tenants}
	h.live.Store(s)
	h.rates = api.NewRates(s.RateRequests, nil)
	if h.log == nil {
		h.log = slog.Default()
	}
	if err := h.open(Roots(s, o.Roots), o); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// open makes the parts of a host, each of which is made of those before it.
func (h *Host) open(roots []manifest.Root, o *Options) error {
	s := h.settings
	if o.Mode == Serving && o.Trial != nil {
		return errors.New("host.Open: a host that serves tries nothing")
	}
	dirs, err := stateDirs(s.StateDir)
	if err != nil {
		return err
	}
	sweepBackups(dirs)
	steps := []func() error{func() error { return h.openRoots(roots) }}
	serving := func(step func() error) {
		if o.Mode == Serving {
			steps = append(steps, step)
		}
	}
	if o.Mode != Local {
		steps = append(steps, h.openMetrics, func() error { return h.openTraces(o.exporter) })
	}
	steps = append(steps, h.openLately, h.openKept, h.openRecordings)
	serving(h.callable)
	steps = append(steps,
		func() error { return h.openAgentSkills(o.AgentRoots, o.Scripts) },
		func() error { return h.openApprovals(context.Background(), dirs) },
		func() error { return h.openRunners(s, dirs) },
		func() error { return h.openDefinitions(roots, o.Roots != nil) })
	serving(h.openUploads)
	steps = append(steps, h.openDoor, h.openAgent)
	serving(h.watch) // others are gone before anything changes
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("host.Open: %w", err)
		}
	}
	return nil
}

// openRoots keeps the folders of skills as they were named, and where they are: a worker has
// another working folder, and problems name roots as they were given.
func (h *Host) openRoots(roots []manifest.Root) error {
	h.given = roots
	for _, r := range roots {
		path, err := filepath.Abs(r.Path)
		if err != nil {
			return err
		}
		h.roots = append(h.roots, manifest.Root{Path: path, Trust: r.Trust})
	}
	return nil
}

// openDoor makes the way of every call.
func (h *Host) openDoor() (err error) {
	s := h.settings
	h.door, err = dispatch.New(dispatch.Options{
		Most:   s.Caps(),
		Skills: tried{h.finds(), h.trial}, Observer: h.observer(), Runners: h.runners, DataRoot: s.DataRoot, Allowed: s.Allowed(),
		MaxInput: s.MaxBody(), Bounds: callBounds(s), Alone: h.alone, Log: h.log,
		Files: callFiles{&h.kept}, Workspaces: h.kept.spaces, Sessions: h.kept.sessions, Scripts: scripts{h}, Approve: h.approve(), Recorder: h.metrics.Recorder(h.kept.log), Executions: h.trial.hears(h.kept.executions), Quotas: h.trial.counts(h.kept.quotas), Recordings: h.records(),
		Watch: h.watchCalls(), Trace: h.trace,
	})
	return err
}

// owns has the host end a part when it is closed, before those that were made earlier.
func (h *Host) owns(end func() error) { h.ends = append(h.ends, end) }

// watchCalls hands what the door tells of calls to every part that wants to know; nil
// where none does.
func (h *Host) watchCalls() func(*dispatch.Ended) {
	if len(h.ended) == 0 {
		return nil
	}
	return func(e *dispatch.Ended) {
		for _, tell := range h.ended {
			tell(e)
		}
	}
}

// openRunners makes what executes skills: in worker processes, or here.
func (h *Host) openRunners(s *config.Settings, d state) error {
	if isolated(s) {
		if err := h.openWorkers(s, d); err != nil {
			return err
		}
		h.all = h.workers.runners(h, s, d)
	} else {
		var err error
		if h.engine, err = OpenEngine(d.cache); err != nil {
			return err
		}
		h.owns(h.engine.Close)
		h.all = all.Runners(all.Options{
			Engine: h.engine, StateDir: d.root, Python: s.Python, TempDir: d.temp,
			Outgoing: h.traced(calling{outgoing(s, h.log, h.alone, h.denied), h}), Imports: h.importsOf(),
		})
	}
	set, err := dispatch.NewSet(h.all...)
	if err != nil {
		return err
	}
	h.runners = set
	h.owns(set.Close)
	return nil
}

// interpreted says that there is no compiler for this processor.
const interpreted = runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64"

// OpenEngine opens an engine as hosts on this machine have it. cacheDir "" keeps
// nothing; see [CacheDir].
func OpenEngine(cacheDir string) (*wasm.Engine, error) {
	return wasm.Open(&wasm.Options{CacheDir: cacheDir, Interpreter: interpreted})
}

// OpenWorkerEngine opens an engine as worker processes of this machine have it, for measuring.
func OpenWorkerEngine(cacheDir string) (*wasm.Engine, error) {
	return wasm.Open(&wasm.Options{CacheDir: cacheDir, Interpreter: interpreted, GuardPages: guardPages() == nil})
}

// Roots are the folders of skills that settings name, or those given instead.
// All of them are the operator's own, so what is in them is trusted. The default
// folder may be missing: a host without skills is a host.
func Roots(s *config.Settings, given []string) []manifest.Root {
	if given == nil {
		if s.Origin("OPENSKILL_SKILLS_DIR") == config.FromDefault && missing(s.SkillsDir) {
			return nil
		}
		given = []string{s.SkillsDir}
	}
	roots := make([]manifest.Root, len(given))
	for i, path := range given {
		roots[i] = manifest.Root{Path: path, Trust: skill.Trusted}
	}
	return roots
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// Catalogue reads the skills of roots and of the CLI folder, for those who only
// want to look at them.
func Catalogue(s *config.Settings, roots []manifest.Root) (*manifest.Registry, error) {
	return manifest.Open(readOptions(s, roots, nil))
}

// state are the folders of the host's own files.
type state struct {
	root  string
	cache string // of compiled modules
	temp  string // of work in progress
}

// CacheDir is the folder of compiled modules in a state folder.
func CacheDir(stateDir string) string { return filepath.Join(stateDir, "cache") }

func stateDirs(root string) (state, error) {
	if err := ownFolder(root); err != nil {
		return state{}, err
	}
	d := state{root: root, cache: CacheDir(root), temp: filepath.Join(root, "tmp")}
	for _, dir := range []string{d.root, d.temp, AnalysisDir(d.root), approvedDir(d.root)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return d, fmt.Errorf("host.Open: cannot create the state folder: %w", err)
		}
	}
	return d, nil
}

// Invoke runs one call through the door. The result is never nil.
func (h *Host) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	return h.door.Invoke(ctx, p, r)
}

// Catalogue is what the host's skills look like from outside.
func (h *Host) Catalogue() View { return View{h.finds()} }

// Problems lists the skills that were skipped, and why.
func (h *Host) Problems() []manifest.Problem { return h.skills.Now().Problems() }

// Close waits for calls under way and frees everything. It may be called twice.
func (h *Host) Close() error {
	h.close.Do(func() {
		var errs []error
		for _, end := range slices.Backward(h.ends) {
			errs = append(errs, end())
		}
		h.closed = errors.Join(errs...)
	})
	return h.closed
}
