package replay_test

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/dispatch"
	"openskill/host/dispatch/grants"
	"openskill/host/manifest"
	"openskill/host/records"
	"openskill/host/records/replay"
	"openskill/plugins/all"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// TestMain lets this test program be the process that records, too.
func TestMain(m *testing.M) {
	if dir := os.Getenv("OPENSKILL_TEST_RECORD_IN"); dir != "" {
		if err := recordIn(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := shared.close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// shared is the engine of all houses: a runtime is loaded once.
var shared engine

type engine struct {
	once   sync.Once
	opened *wasm.Engine
	err    error
}

func (e *engine) open() (*wasm.Engine, error) {
	e.once.Do(func() {
		e.opened, e.err = wasm.Open(&wasm.Options{CacheDir: filepath.Join(stateDir(), "cache", "wasm")})
	})
	return e.opened, e.err
}

func (e *engine) close() error {
	if e.opened == nil {
		return nil
	}
	return e.opened.Close()
}

// records has executions on record, in memory.
type recs struct {
	mu  sync.Mutex
	all map[string]*records.Execution
}

func (r *recs) Started(_ context.Context, s *records.Started, _ []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]*records.Execution{}
	}
	r.all[s.ExecutionID] = &records.Execution{Started: *s}
	return nil
}

func (r *recs) Finished(_ context.Context, of *records.Started, f *records.Finished, _ []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[of.ExecutionID].Finished = f
	return nil
}

// Execution implements [replay.Executions] for callers who see their tenant's.
func (r *recs) Execution(_ context.Context, p skill.Principal, id string) (*records.Execution, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.all[id]
	if e == nil || e.Tenant != p.Tenant || !p.May(skill.ScopeAllExecutions) {
		return nil, &skill.Error{Code: skill.NotFound, Message: "execution not found"}
	}
	return e, nil
}

// house is a host as far as replays see one.
type house struct {
	records  *recs
	store    replay.Store
	keeps    *replay.Recordings
	door     *dispatch.Dispatcher
	replayer *replay.Replayer
	close    func() error
}

type plan struct {
	roots    []string
	data     string
	most     uint64
	key      []byte
	outgoing skill.Outgoing
	allowed  *grants.Allowed
	records  *recs
	store    replay.Store
	runner   func(skill.Runner) skill.Runner // put in front of each; nil: none
	clock    func() time.Time
}

var limits = skill.Limits{Timeout: time.Minute, Memory: 512 << 20, Fuel: 1e12, Output: 4 << 20, Scratch: 16 << 20}

func stateDir() string {
	if dir := os.Getenv("OPENSKILL_STATE_DIR"); dir != "" {
		return dir
	}
	return filepath.Join("..", "..", "..", ".openskill")
}

func build(p plan) (*house, error) {
	h := &house{records: p.records, store: p.store}
	if h.records == nil {
		h.records = &recs{}
	}
	e, err := shared.open()
	if err != nil {
		return nil, err
	}
	list := all.Runners(all.Options{Engine: e, StateDir: stateDir(), Outgoing: p.outgoing})
	for i := range list {
		_, _ = list[i].Prepare(context.Background(), &skill.Spec{Wait: true}) // of what is there
		if p.runner != nil {
			list[i] = p.runner(list[i])
		}
	}
	set, err := dispatch.NewSet(list...)
	if err != nil {
		return nil, err
	}
	h.close = set.Close
	var roots []manifest.Root
	for _, r := range p.roots {
		roots = append(roots, manifest.Root{Path: r, Trust: skill.Trusted})
	}
	skills, err := manifest.Open(manifest.Options{Roots: roots, Defaults: limits, Caps: limits})
	if err != nil {
		return nil, err
	}
	h.keeps, err = replay.New(replay.Options{Store: h.store, Executions: h.records, Most: p.most, Key: p.key, Now: p.clock})
	if err != nil {
		return nil, err
	}
	h.door, err = dispatch.New(dispatch.Options{
		Skills: manifest.Shared{Registry: skills}, Runners: set, DataRoot: p.data, Allowed: p.allowed, Recorder: h.records, Recordings: h.keeps,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	h.replayer = h.keeps.Replayer(h.door)
	return h, nil
}

func open(t testing.TB, p plan) *house {
	t.Helper()
	if p.store == nil {
		p.store = replay.NewStore(storetest.SQLite(t))
	}
	h := musttest.Get(build(p))(t)
	t.Cleanup(func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) call(id string, input string) *skill.Result {
	return h.door.Invoke(context.Background(), skill.Local(), skill.Request{SkillID: skill.ID(id), Input: json.RawMessage(input), TraceID: "trace-1"})
}

// again replays an execution.
func (h *house) again(t testing.TB, id string) *replay.Report {
	t.Helper()
	r, err := h.replayer.Replay(t.Context(), skill.Local(), id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return r
}

// identical holds that a replay ends as it did.
func (h *house) identical(t testing.TB, id string) *replay.Report {
	t.Helper()
	r := h.again(t, id)
	if !r.Identical || len(r.Differences) > 0 || r.ReplayID == "" || r.ReplayID == id {
		t.Errorf("%+v", r)
	}
	return r
}

// job is what a process that records is told to do, and said is what it says of it.
type job struct {
	Plan  string // folder of data
	Roots []string
	Calls []asked
}

type asked struct{ Skill, Input string }

type said struct {
	Results    []*skill.Result
	Executions map[string]*records.Execution
	Rows       map[string]replay.Row
}

func recordIn(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "job.json"))
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	db, err := store.Open(context.Background(), store.Options{StateDir: dir})
	if err != nil {
		return err
	}
	defer db.Close()
	h, err := build(plan{roots: j.Roots, data: j.Plan, store: replay.NewStore(db)})
	if err != nil {
		return err
	}
	s := said{Rows: map[string]replay.Row{}}
	for _, c := range j.Calls {
		r := h.call(c.Skill, c.Input)
		s.Results = append(s.Results, &skill.Result{Success: r.Success, SkillID: r.SkillID, Data: r.Data, Meta: skill.Meta{ExecutionID: r.Meta.ExecutionID, Runner: r.Meta.Runner}})
		row, err := h.store.Get(context.Background(), "local", r.Meta.ExecutionID)
		if err != nil {
			return err
		}
		if row != nil {
			s.Rows[r.Meta.ExecutionID] = *row
		}
	}
	s.Executions = h.records.all
	f, err := os.Create(filepath.Join(dir, "said.gob"))
	if err != nil {
		return err
	}
	return errors.Join(gob.NewEncoder(f).Encode(s), f.Close(), h.close(), shared.close())
}

// elsewhere makes calls in another process, which ends, and gives what it recorded.
func elsewhere(t *testing.T, j job) *said {
	t.Helper()
	dir := t.TempDir()
	raw, err := json.Marshal(j)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "job.json"), raw, 0o600)
	}
	musttest.Do(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "OPENSKILL_TEST_RECORD_IN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f := musttest.Get(os.Open(filepath.Join(dir, "said.gob")))(t)
	defer f.Close()
	var s said
	musttest.Do(t, gob.NewDecoder(f).Decode(&s))
	return &s
}

// take has a house know what another process recorded.
func (h *house) take(t *testing.T, s *said) {
	t.Helper()
	h.records.all = s.Executions
	for _, r := range s.Rows {
		musttest.Do(t, h.store.Keep(t.Context(), &r))
	}
}
