package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"openskill/internal/measure"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/lab/httpbench"
	"openskill/lab/skillbench"
	"openskill/sdk/skill"
)

// benchScripts is where the scripts are that are measured, in a clone.
var benchScripts = filepath.Join("examples", "bench", "python")

// skillBench opens what measures skills, on an engine of its own.
func skillBench(s *config.Settings, o *benchOptions) (b *skillbench.Bench, stop func(), err error) {
	cache := app.CacheDir(s.StateDir)
	e, err := app.OpenWorkerEngine(cache)
	if err != nil {
		return nil, nil, err
	}
	b, err = skillbench.New(&skillbench.Options{
		Engine: e, StateDir: s.StateDir, CacheDir: filepath.Join(cache, "bench"),
		Scripts: benchScripts, Skills: s.SkillsDir, Data: s.DataRoot, Quick: o.quick,
	})
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	return b, func() { _, _ = b.Close(), e.Close() }, nil // nothing is written by it
}

// benchSkills runs the suites that are about skills.
func (a *cli) benchSkills(ctx context.Context, s *config.Settings, o *benchOptions) (rows []measure.Row, err error) {
	native, err := skillbench.FindNative(ctx, s.Python)
	if err != nil {
		a.say("%v; what is compared with it is left out", err)
		native = nil
	}
	b, stop, err := skillBench(s, o)
	if err != nil {
		return nil, err
	}
	cases, missing := b.Image(ctx, native, o.wanted)
	more, missingToo := b.Python(ctx, native, o.wanted)
	cases, missing = append(cases, more...), append(missing, missingToo...)
	more, missingToo, err = b.Programs(ctx, native, o.wanted)
	for _, m := range append(missing, missingToo...) {
		a.say("%s", m)
	}
	if err == nil {
		rows, err = a.measure(ctx, append(cases, more...))
	}
	stop()
	if err != nil {
		return nil, err
	}
	for _, v := range []struct {
		variant string
		goals   []measure.Goal
	}{{"openskill", []measure.Goal{measure.AtMost(2.2)}}, {"wazero, unmetered", nil}} {
		if r, ok := measure.Mean(rows, "python", v.variant); ok {
			for _, g := range v.goals {
				r.Goals = append(r.Goals, g.Of(&r, &r))
			}
			rows = append(rows, r)
		}
	}
	for _, suite := range []func(context.Context, *config.Settings, *benchOptions, *skillbench.Native) ([]measure.Row, error){
		a.memoryApart, a.benchStart, a.benchPythonHTTP, a.benchCode, a.benchSessions, a.benchUpload, a.benchWorkers, a.benchTenants, a.benchObserve, a.benchBudget,
	} {
		r, err := suite(ctx, s, o, native)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// measure runs cases, and says which. What cannot be measured is said too, and
// costs the others nothing: some of them have run for minutes.
func (a *cli) measure(ctx context.Context, cases []measure.Case) (rows []measure.Row, err error) {
	for i := range cases {
		a.say("%s: %s", cases[i].Suite, cases[i].Name)
		r, err := cases[i].Measure(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			a.say("%v", err)
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// benchMemory is the suite memory, in this process.
func (a *cli) benchMemory(ctx context.Context, s *config.Settings, o *benchOptions) ([]measure.Row, error) {
	b, stop, err := skillBench(s, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	return b.Memory(ctx, o.sandboxes)
}

// memoryApart runs that in a process that has done nothing else.
func (a *cli) memoryApart(ctx context.Context, s *config.Settings, o *benchOptions, _ *skillbench.Native) (rows []measure.Row, err error) {
	if !o.wanted("memory", fmt.Sprintf("%d idle Python sandboxes", o.sandboxes)) {
		return nil, nil
	}
	a.say("memory: %d sandboxes that wait", o.sandboxes)
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, self, "bench", "--memory-inside", "--json", "--sandboxes", fmt.Sprint(o.sandboxes),
		"--state", s.StateDir, "--skills", s.SkillsDir, "--data", s.DataRoot).Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		a.say("memory: %s", skill.CleanText(strings.TrimSpace(string(ended.Stderr)), 300))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		var r measure.Row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// openskill returns a command of the program that is measured, with these settings.
func openskill(ctx context.Context, s *config.Settings, args ...string) *exec.Cmd {
	args = append(args, "--state", s.StateDir, "--skills", s.SkillsDir, "--data", s.DataRoot)
	return exec.CommandContext(ctx, beside("openskill"), args...)
}

// beside returns the path of a program in the folder of this one, or its name, which is
// then searched for in PATH.
func beside(name string) string {
	if self, err := os.Executable(); err == nil {
		if path := filepath.Join(filepath.Dir(self), name); isFile(path) {
			return path
		}
	}
	return name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// The skills that are measured over HTTP: one script by two runners.
const (
	sandboxed = "stdlib"
	processes = "stdlib_cli"
	textInput = `{"text":"The quick brown fox jumps over the lazy dog, and the dog does not mind."}`
)

// pythonSkills makes a folder with them, which the caller removes.
func pythonSkills() (string, error) {
	script, err := os.ReadFile(filepath.Join(benchScripts, "stdlib.py"))
	if err != nil {
		return "", err
	}
	skills, err := os.MkdirTemp("", "openskill-bench-")
	if err != nil {
		return "", err
	}
	for id, typ := range map[string]string{sandboxed: "wasm", processes: "cli"} {
		text := "id: " + id + "\nversion: 0.1.0\ndescription: Counts words.\ntype: " + typ + "\nruntime: python\nentry: stdlib.py\nlimits: {timeout_ms: 60000}\n"
		folder := filepath.Join(skills, id)
		err := os.Mkdir(folder, 0o700)
		for name, text := range map[string][]byte{manifest.ManifestFile: []byte(text), "stdlib.py": script} {
			old := time.Now().Add(-time.Hour) // as in copyUnlimited
			path := filepath.Join(folder, name)
			err = errors.Join(err, os.WriteFile(path, text, 0o600), os.Chtimes(path, old, old))
		}
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(skills))
		}
	}
	return skills, nil
}

// benchPythonHTTP measures a Python skill over HTTP against the CLI runner with the
// same script, and against starting native Python without any host.
func (a *cli) benchPythonHTTP(ctx context.Context, s *config.Settings, o *benchOptions, n *skillbench.Native) ([]measure.Row, error) {
	var cases []measure.Case
	for _, clients := range []int{1, 8, mostClients} {
		if name := fmt.Sprintf("a Python skill, %d clients", clients); o.wanted("http", name) {
			cases = append(cases, measure.Case{Suite: "http", Name: name, N: 5})
		}
	}
	if len(cases) == 0 || n == nil {
		return nil, nil
	}
	skills, err := pythonSkills()
	if err != nil {
		return nil, err
	}
	runner := map[skill.ID]string{sandboxed: textInput, processes: textInput}
	_, addr, stop, err := a.serveSkills(ctx, s, skills, runner)
	if err != nil {
		a.say("http: %v", err)
		return nil, nil
	}
	defer stop()
	for i := range cases {
		c := &cases[i]
		var clients int
		if _, err := fmt.Sscanf(c.Name, "a Python skill, %d clients", &clients); err != nil {
			return nil, err
		}
		variant := func(id skill.ID, requests int, goals ...measure.Goal) measure.Variant {
			if o.quick {
				requests = max(requests/20, 2)
			}
			return measure.Variant{
				Name: runner[id],
				Run: func(ctx context.Context) (time.Duration, error) {
					d, err := httpbench.Send(ctx, addr, "/skills/"+string(id)+":invoke", `{"input":`+textInput+`}`, clients, requests)
					return d / time.Duration(requests), err
				},
				Note:  func() string { return fmt.Sprintf("time of a call, of %d a run", requests) },
				Goals: goals,
			}
		}
		switch clients {
		case 1:
			started := n.Started(filepath.Join(benchScripts, "stdlib.py"), []byte(`{"input":`+textInput+`}`), nil)
			started.Times = 5
			c.Variants = []measure.Variant{started, variant(processes, 10), variant(sandboxed, 500, measure.Faster(30))}
		case mostClients:
			c.Variants = []measure.Variant{variant(processes, 2*mostClients), variant(sandboxed, 2000, measure.Faster(40))}
		default:
			c.Variants = []measure.Variant{variant(processes, 64), variant(sandboxed, 2000)}
		}
	}
	return a.measure(ctx, cases)
}

// benchStart measures how soon a host listens whose caches are warm, and when it
// has answered the first call of a Python skill.
func (a *cli) benchStart(ctx context.Context, s *config.Settings, o *benchOptions, _ *skillbench.Native) ([]measure.Row, error) {
	const ready, first = "a host is ready", "the first Python call of a host"
	if !o.wanted("start", ready) && !o.wanted("start", first) {
		return nil, nil
	}
	skills, err := pythonSkills()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(skills)
	own := *s
	own.SkillsDir = skills
	var called time.Duration
	serve := measure.Case{Suite: "start", Name: ready, N: 5, Variants: []measure.Variant{{
		Name: "openskill", Goals: []measure.Goal{measure.Median(500 * time.Millisecond)},
		Run: func(ctx context.Context) (took time.Duration, err error) {
			took, called, err = a.startOnce(ctx, &own)
			return took, err
		},
	}}}
	// The round that does not count fills the caches. The calls are those of the same starts.
	var calls []time.Duration
	run := serve.Variants[0].Run
	serve.Variants[0].Run = func(ctx context.Context) (time.Duration, error) {
		d, err := run(ctx)
		calls = append(calls, called)
		return d, err
	}
	rows, err := a.measure(ctx, []measure.Case{serve})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	next := 0
	again, err := (&measure.Case{Suite: "start", Name: first, N: len(calls) - 1, Variants: []measure.Variant{{
		Name: "openskill", Goals: []measure.Goal{measure.Median(time.Second)},
		Run: func(context.Context) (time.Duration, error) {
			next++
			return calls[next-1], nil
		},
		Note: func() string {
			return "asked from when the host was ready until it answered; the runtime's compiled form is in the cache"
		},
	}}}).Measure(ctx)
	return append(rows, again...), err
}

// startOnce starts a host, calls it once, and stops it. Ready is the time until it
// said its address; called is how long the call took that was sent then.
func (a *cli) startOnce(ctx context.Context, s *config.Settings) (ready, called time.Duration, err error) {
	cmd := openskill(ctx, s, "serve", "--listen", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		err = errors.Join(err, cmd.Wait())
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	ready = time.Since(began)
	_, url, ok := strings.Cut(strings.TrimSpace(line), "http://")
	if err != nil || !ok {
		return 0, 0, fmt.Errorf("the host did not say where it listens: %q, %w", line, err)
	}
	began = time.Now()
	err = patiently(ctx, 2*time.Minute, func() error {
		_, err := httpbench.Send(ctx, url, "/skills/"+sandboxed+":invoke", `{"input":`+textInput+`}`, 1, 1)
		return err
	})
	return ready, time.Since(began), err
}
