package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"openskill/host/packages"
	"openskill/host/pysource"
	"openskill/host/pysource/preflight"
	"openskill/plugins/all"
	"openskill/plugins/javascript"
	"openskill/plugins/python/runtimes"
	"openskill/plugins/shell"
	"openskill/sdk/skill"
)

// preflightTime bounds what a look at the scripts of an upload may take.
const preflightTime = 5 * time.Second

// AnalysisDir is the folder of the program that reads programs, in a state folder.
func AnalysisDir(stateDir string) string { return filepath.Join(stateDir, "pyast") }

// ahead says what scripts need that the sandbox has not.
type ahead struct {
	host    *Host
	options func() (*preflight.Options, error) // once there is a Python
}

func newAhead(h *Host, d state) *ahead {
	a := &ahead{host: h}
	a.options = sync.OnceValues(func() (*preflight.Options, error) { return a.make(d) })
	return a
}

func (a *ahead) make(d state) (*preflight.Options, error) {
	o, err := PreflightOptions(runtimes.New(d.root))
	if err != nil {
		return nil, err
	}
	o.Python, err = a.host.analyzer()
	return o, err
}

// PreflightOptions are those of this program: the modules, programs and commands of the runtimes,
// installed or not. Python and Tenant are the caller's.
func PreflightOptions(store *runtimes.Store) (*preflight.Options, error) {
	homes, err := preflightModules(store)
	if err != nil {
		return nil, err
	}
	return &preflight.Options{Modules: homes, Node: javascript.HasNode(), Commands: among(all.Programs()), Builtins: among(shell.Builtins())}, nil
}

// WithPackages has the packages that a folder was given count as there. It lists them, too.
func WithPackages(o *preflight.Options, store *packages.Store, folder string) (*preflight.Options, []string, error) {
	given, err := store.Given(folder)
	if err != nil {
		return nil, nil, err
	}
	own := *o
	own.NPM = given.NPM
	own.Modules = func(name string) (preflight.Home, bool) {
		if given.Modules[name] {
			return preflight.Home{Runtime: "slim"}, true
		}
		return o.Modules(name)
	}
	return &own, given.Lock.Names(), nil
}

// among reports whether a name is in a sorted list.
func among(names []string) func(name string) bool {
	return func(name string) bool { _, ok := slices.BinarySearch(names, name); return ok }
}

// preflightModules says in which runtime a module of Python is.
func preflightModules(store *runtimes.Store) (func(name string) (preflight.Home, bool), error) {
	homes := map[string]preflight.Home{}
	for _, name := range []string{"slim", "scientific"} { // the smaller one first
		library, packages, err := store.Modules(name)
		if err != nil {
			return nil, err
		}
		add := func(module, pkg string) {
			if _, ok := homes[module]; !ok {
				homes[module] = preflight.Home{Runtime: name, Package: pkg}
			}
		}
		for _, m := range library {
			add(m, "")
		}
		for _, p := range packages {
			for _, m := range p.Imports {
				add(m, p.Name)
			}
		}
	}
	return func(name string) (preflight.Home, bool) { h, ok := homes[name]; return h, ok }, nil
}

// look gives what is known of a folder's scripts, as JSON; nil where it has none, or
// where they cannot be read here. Given says that the folder has packages. It refuses nothing.
func (a *ahead) look(ctx context.Context, folder, tenant string, given bool) json.RawMessage {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil
	}
	defer root.Close()
	o, err := a.options()
	if err == nil && given {
		o, _, err = WithPackages(o, a.host.packages, folder)
	}
	if err == nil {
		own := *o
		own.Tenant = tenant
		ctx, stop := context.WithTimeout(ctx, preflightTime)
		defer stop()
		var report *preflight.Report
		if report, err = preflight.Check(ctx, root, &own); err == nil {
			if len(report.Scripts) == 0 {
				return nil
			}
			var text []byte
			if text, err = json.Marshal(report); err == nil {
				return text
			}
		}
	}
	a.host.log.LogAttrs(ctx, slog.LevelInfo, "the scripts of an upload were not checked", slog.Any("reason", err))
	return nil
}

// Python is the host's runner of scripts in Python, for who reads programs by it; their
// folder is [AnalysisDir].
func (h *Host) Python() (skill.Runner, error) {
	for _, r := range h.all {
		if r.Kind() == skill.WasmPython {
			return r, nil
		}
	}
	return nil, &skill.Error{Op: "host.Python", Code: skill.Internal, Message: "no Python runner is available"}
}

// analyzer reads programs in Python.
func (h *Host) analyzer() (*pysource.Analyzer, error) {
	r, err := h.Python()
	if err != nil {
		return nil, err
	}
	root := h.settings.StateDir
	return pysource.New(pysource.Options{Runner: r, Dir: AnalysisDir(root), Cache: filepath.Join(CacheDir(root), "imports")}), nil
}

// importsOf finds what a script imports, by which its runtime is chosen: as
// [python.Options] wants it.
func (h *Host) importsOf() func(ctx context.Context, s *skill.Spec, script []byte) ([]string, error) {
	analyzer := sync.OnceValues(h.analyzer)
	return func(ctx context.Context, s *skill.Spec, script []byte) ([]string, error) {
		a, err := analyzer()
		if err != nil {
			return nil, err
		}
		return a.Imports(ctx, s, script)
	}
}
