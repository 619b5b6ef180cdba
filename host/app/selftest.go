package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"openskill/examples/hostile"
	"openskill/host/admission"
	"openskill/host/app/config"
	"openskill/host/catalogue"
	"openskill/host/selftest"
	"openskill/sdk/skill"
)

// SelfTest holds a host with these settings to the hostile corpus. The host is one of
// its own: it listens on a free port of loopback, keeps its state and data in a
// temporary folder, and takes from the operator's state only what was compiled and
// installed before, to read it. What that host logs goes to log; nil: nowhere.
func SelfTest(ctx context.Context, s *config.Settings, o selftest.Options, log *slog.Logger) (*selftest.Report, error) {
	dir, err := os.MkdirTemp("", "openskill-selftest-")
	if err != nil {
		return nil, fmt.Errorf("no temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	t, err := openTested(ctx, s, dir, log)
	if err != nil {
		return nil, err
	}
	o.Protections, o.Script = t.protections, t.script
	report, err := selftest.Run(ctx, t, o)
	return report, errors.Join(err, t.close())
}

// tested is a host that a self-test may do harm to.
type tested struct {
	host    *Host
	dir     string // of all of its files
	data    string
	address string
	client  *http.Client
	tree    selftest.Tree
	served  chan error
	stop    context.CancelFunc
	servers func() error // ends those that secrets are sent to
	settled atomic.Int64 // resident memory, in bytes, after it was last given back
}

func openTested(ctx context.Context, s *config.Settings, dir string, log *slog.Logger) (*tested, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	own := *s
	own.Listen = "127.0.0.1:0"
	// Nobody else can reach it, and what it does is not for the records of this host.
	own.Auth, own.DatabaseURL = config.AuthNone, ""
	own.StateDir, own.DataRoot = filepath.Join(dir, "state"), filepath.Join(dir, "data")
	own.CLIDir, own.SkillConfigPath = "", ""
	if err := errors.Join(own.Allow(hostile.DataAllow()), os.Mkdir(own.StateDir, 0o700), os.Mkdir(own.DataRoot, 0o700)); err != nil {
		return nil, err
	}
	if err := hostile.Plant(own.DataRoot); err != nil {
		return nil, fmt.Errorf("cannot fill the data folder of the test: %w", err)
	}
	if err := borrow(s.StateDir, own.StateDir); err != nil {
		return nil, fmt.Errorf("what was compiled cannot be used: %w", err)
	}
	scripts := filepath.Join(dir, hostile.ScriptSkill)
	if err := os.Mkdir(scripts, 0o700); err != nil {
		return nil, err
	}
	if err := hostile.PlantScripts(scripts); err != nil {
		return nil, fmt.Errorf("cannot write the scripts of the test: %w", err)
	}
	servers, urls, err := tellServers(ctx)
	if err != nil {
		return nil, err
	}
	granted, err := hostile.ScriptGrants(urls[0], urls[1])
	if err != nil {
		return nil, errors.Join(err, servers())
	}
	h, err := Open(&own, &Options{Log: log, Roots: []string{}, AgentRoots: []string{scripts}, Scripts: granted, Mode: Serving, tenants: true})
	if err != nil {
		return nil, errors.Join(err, servers())
	}
	t := &tested{
		host: h, servers: servers, dir: dir, data: own.DataRoot, served: make(chan error, 1), tree: selftest.Tree{PID: os.Getpid()},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
	}
	serving, stop := context.WithCancel(ctx)
	t.stop = stop
	ready := make(chan net.Addr, 1)
	go func() { t.served <- h.Serve(serving, func(a net.Addr) { ready <- a }) }()
	select {
	case a := <-ready:
		t.address = a.String()
		return t, nil
	case err := <-t.served:
		stop()
		return nil, errors.Join(err, servers())
	}
}

func (t *tested) close() error {
	t.client.CloseIdleConnections()
	t.stop()
	return errors.Join(<-t.served, t.servers())
}

// borrow shows a temporary state what another one has compiled and installed.
func borrow(from, to string) error {
	if _, err := os.Stat(filepath.Join(from, "runtimes")); err == nil {
		if err := os.Symlink(filepath.Join(from, "runtimes"), filepath.Join(to, "runtimes")); err != nil {
			return err
		}
	}
	return errors.Join(second(CacheDir(from), CacheDir(to)), second(filepath.Join(from, "modules"), filepath.Join(to, "modules")))
}

// second gives the files of a folder a second name, or copies them. Such files are
// replaced and never written to.
func second(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was compiled yet, or it goes away meanwhile
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type().IsRegular() && os.Link(path, target) != nil:
			return copyOf(path, target)
		}
		return nil
	})
}

func copyOf(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Invoke implements selftest.Target, as do those below.
func (t *tested) Invoke(ctx context.Context, tenant string, id skill.ID, input json.RawMessage) *skill.Result {
	return t.host.Invoke(ctx, of(tenant), skill.Request{SkillID: id, Input: input})
}

// script runs a hostile script, when its runtime is ready.
func (t *tested) script(ctx context.Context, tenant, name string, limits skill.Limits) (*skill.Result, *skill.Reply) {
	t.host.PrepareScript(ctx, hostile.ScriptSkill, name)
	return t.host.RunScript(ctx, of(tenant), skill.ScriptRequest{Skill: hostile.ScriptSkill, Script: name, Limits: limits})
}

// of is who calls and uploads for a tenant.
func of(tenant string) skill.Principal {
	return skill.Principal{
		ID: tenant, Type: skill.Agent, Tenant: tenant,
		Scopes: []string{skill.ScopeRead, skill.ScopeInvoke, skill.ScopeUpload},
	}
}

func (t *tested) Health(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.address+"/healthz", nil)
	if err != nil {
		return err
	}
	res, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("/healthz answers %d", res.StatusCode)
	}
	return err
}

// Usage gives memory back only where there is some to give: a collection after every
// case would be the most of what the test costs.
func (t *tested) Usage(context.Context) selftest.Usage {
	const worth = 24 << 20
	u := t.tree.Usage()
	if last := t.settled.Load(); last == 0 || u.Memory > last+worth {
		debug.FreeOSMemory()
		u = t.tree.Usage()
		t.settled.Store(u.Memory)
	}
	u.Goroutines = runtime.NumGoroutine()
	return u
}

func (t *tested) CPU() time.Duration   { return t.tree.CPU() }
func (t *tested) Memory() int64        { return t.tree.Memory() }
func (t *tested) Busy() []int          { return t.tree.Busy() }
func (t *tested) Crash(but []int) bool { return t.tree.Crash(but) }
func (t *tested) Planted() string      { return t.data }
func (t *tested) Address() string      { return t.address }

func (t *tested) Secrets() []string {
	secrets := []string{t.dir, t.host.settings.StateDir, strings.TrimSpace(hostile.SecretText)}
	if exe, err := os.Executable(); err == nil {
		secrets = append(secrets, filepath.Dir(exe))
	}
	return secrets
}

// State is the data folder byte by byte.
func (t *tested) State(context.Context) (string, error) { return selftest.DataState(t.data) }

// Add uploads as the edge does, and enables.
func (t *tested) Add(ctx context.Context, tenant string, u *hostile.Upload) (skill.ID, error) {
	if err := t.admit(ctx, tenant, u); err != nil && (skill.CodeOf(err) != skill.Conflict || u.ID == "") {
		return "", err // CONFLICT: it is there since a first try
	}
	_, err := t.host.uploads.Decide(catalogue.Decision{Action: catalogue.Enable, By: of(tenant), ID: u.ID})
	return u.ID, err
}

func (t *tested) admit(ctx context.Context, tenant string, u *hostile.Upload) error {
	place, err := t.host.uploads.Begin(of(tenant))
	if err != nil {
		return err
	}
	defer place.Close()
	parts := admission.Source{Manifest: u.Manifest}
	for _, p := range []struct {
		content []byte
		to      **os.File
	}{{u.Archive, &parts.Archive}, {u.Module, &parts.Module}} {
		if p.content == nil {
			continue
		}
		f, err := place.File()
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Write(p.content)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err != nil {
			return err
		}
		*p.to = f
	}
	_, err = place.Admit(ctx, parts, false)
	return err
}

// Remove deletes the one version.
func (t *tested) Remove(_ context.Context, tenant string, id skill.ID) {
	_, _ = t.host.uploads.Decide(catalogue.Decision{Action: catalogue.Delete, By: of(tenant), ID: id, Version: hostile.Version}) // the folder is temporary
}

// protections are what holds the workers now; see [Protections].
func (t *tested) protections() []selftest.Protection {
	all := Protections(t.host.settings)
	if t.host.workers == nil {
		return all
	}
	for _, held := range t.host.workers.pool.Stats().Held {
		p := selftest.Protection{Name: held.Name, On: held.On, Detail: held.Detail, Optional: held.Name == memoryBound || held.Name == closedNames}
		i := slices.IndexFunc(all, func(x selftest.Protection) bool { return x.Name == p.Name })
		if i < 0 {
			all = append(all, p)
		} else {
			all[i] = p
		}
	}
	return all
}

// memoryBound and closedNames are the protections that hosts do without where the kernel does
// not offer them: the engine's own limits hold, and Landlock.
const (
	memoryBound = "memory"
	closedNames = "names"
)

// Protections are the layers around the sandbox, and whether settings have them; what
// the kernel of this machine grants is known when a worker runs.
func Protections(s *config.Settings) []selftest.Protection {
	workers := selftest.Protection{Name: "worker processes", On: true, Detail: "a process for each " + string(s.Workers)}
	switch {
	case !isolated(s):
		workers.On, workers.Detail = false, "this platform has none: skills run in the host's own process"
	case s.Workers == config.Shared:
		workers.On, workers.Detail = false, "OPENSKILL_WORKERS is shared: tenants share a process"
	}
	all := []selftest.Protection{workers}
	for _, name := range []string{"capabilities", closedNames, "landlock", "seccomp", memoryBound} {
		one := selftest.Protection{Name: name, On: true}
		if !isolated(s) {
			one.On, one.Detail = false, "no worker process to protect"
		}
		all = append(all, one)
	}
	return all
}
