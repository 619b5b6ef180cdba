package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"openskill/internal/cliflag"
	"openskill/lab/load"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// The most that one client is asked for: beyond it, it is the client that is measured.
const (
	mostRate        = 200_000
	mostConnections = 4096
	mostLoaded      = 64
	mostInput       = 16 << 20
)

// loadOptions are the flags of bench load.
type loadOptions struct {
	rate, plot, histogram, key string
	skills, inputs             []string
	remote, asJSON             bool
}

func (a *cli) benchLoadCommand() *cobra.Command {
	length, warmup := &cliflag.Duration{Value: 10 * time.Second}, &orNone{cliflag.Duration{Value: 2 * time.Second}}
	timeout := &cliflag.Duration{Value: 30 * time.Second}
	connections := &cliflag.Count{Value: 256, Low: 1, High: mostConnections, Name: "N"}
	o := loadOptions{rate: "100"}
	cmd := &cobra.Command{
		Use:   "load [URL]",
		Short: "Calls a running host at a steady rate, and measures how long answers take",
		Long: `Sends calls to a running host at a rate that does not depend on its answers, and
prints the latency by percentiles, from when a call was due: a host that stands still
is seen by all calls that were due meanwhile. Latency is that of calls that succeeded,
and of those that were never sent or answered, for as long as they waited. Failures are
counted by status and code. Where the rate is not reached, or this client itself was
late, it says so.

--skill echo=3 --skill calculator=1 calls three times as much of echo. The built-in skills
have an input; others need one: --input '{"text":"hi"}' for all, --input 'mine={}' for one.

Without a URL, the host is the one at OPENSKILL_HTTP_BASE_URL in the environment.
Only hosts on this machine are called, unless --remote is given: ask who runs it first.
Interrupted, it prints what there is. The exit code is 1 if calls failed or were not sent.`,
		Example: "  openskill-lab bench load http://127.0.0.1:8000 --rate 200 --duration 30s --skill echo=3 --skill calculator=1\n" +
			"  openskill-lab bench load http://127.0.0.1:8000 --rate 500 --plot latency.svg --histogram latency.hgrm",
		Args: takes(0, 1),
	}
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.rate, "N"), "rate", "calls a second, from 0.1 to 200000; default 100")
	f.Var(length, "duration", "how long to measure; default 10s")
	f.Var(warmup, "warmup", "how long to call before that, which is not measured; default 2s")
	f.Var(timeout, "timeout", "how long to wait for one answer; default 30s")
	f.Var(cliflag.Texts(&o.skills, "ID[=WEIGHT]"), "skill", "skill to call, and how often beside others; default echo")
	f.Var(cliflag.Texts(&o.inputs, "[ID=]JSON|@FILE"), "input", "input of all skills, or of one")
	f.Var(connections, "connections", "most calls that wait for an answer at once, each on a connection; default 256")
	f.Var(cliflag.Text(&o.key, "KEY|@FILE"), "key", "API key or JWT; @FILE keeps it out of the list of processes")
	f.BoolVar(&o.remote, "remote", false, "call a host on another machine")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	f.Var(cliflag.Text(&o.plot, "FILE"), "plot", "draw the latency by percentile into this SVG file")
	f.Var(cliflag.Text(&o.histogram, "FILE"), "histogram", "write the distribution into this file (.hgrm, in ms)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p := &load.Plan{Duration: length.Value, Warmup: warmup.Value, Timeout: timeout.Value, Connections: int(connections.Value)} // bounded
		var err error
		if p.Rate, err = strconv.ParseFloat(o.rate, 64); err != nil || !(p.Rate >= 0.1 && p.Rate <= mostRate) {
			return usage("--rate is %s; want calls a second, from 0.1 to %d", quote(o.rate), mostRate)
		}
		if p.Skills, err = loadSkills(o.skills, o.inputs); err != nil {
			return err
		}
		if o.key, err = readKey(o.key); err != nil {
			return err
		}
		url := cmp.Or(append(args, os.Getenv(client.BaseURLVariable))...)
		if url == "" {
			return usage("name the address of the host, like http://127.0.0.1:8000, or set %s", client.BaseURLVariable)
		}
		t, err := load.Open(url, load.Options{Key: o.key, Connections: p.Connections, Timeout: p.Timeout, Remote: o.remote})
		if errors.Is(err, load.ErrNotLoopback) {
			return usage("%s is not on this machine; --remote calls it all the same", quote(url))
		}
		if err != nil {
			return usage("%s is %v", quote(url), err)
		}
		return a.runLoad(cmd.Context(), p, t, &o)
	}
	return cmd
}

// orNone is a duration that may be none at all.
type orNone struct{ cliflag.Duration }

// Set implements pflag.Value.
func (n *orNone) Set(s string) error {
	if d, err := time.ParseDuration(s); err == nil && d == 0 {
		n.Value = 0
		return nil
	}
	return n.Duration.Set(s)
}

// runLoad runs a plan and prints what came of it.
func (a *cli) runLoad(ctx context.Context, p *load.Plan, t *load.Target, o *loadOptions) error {
	p.Progress = func(g load.Progress) {
		a.say("load: %s: %d sent, %d succeeded, %d failed, p99 %s", g.Since.Round(time.Second), g.Sent, g.Answered, g.Failed, g.P99.Round(10*time.Microsecond))
	}
	r := p.Do(ctx, t)
	if o.plot != "" {
		svg, err := r.Plot(fmt.Sprintf("Latency at %g calls a second, for %s", p.Rate, r.Took.Round(time.Millisecond)))
		if err == nil {
			err = os.WriteFile(o.plot, svg, 0o644)
		}
		if err != nil {
			return hostFailed(err)
		}
	}
	if o.histogram != "" {
		var b strings.Builder
		_, err := r.All.Latency.PercentilesPrint(&b, 5, 1000)
		if err == nil {
			err = os.WriteFile(o.histogram, []byte(b.String()), 0o644)
		}
		if err != nil {
			return hostFailed(err)
		}
	}
	if o.asJSON {
		if err := a.printJSON(loadJSON(p, r)); err != nil {
			return err
		}
	} else if err := a.print("%s", loadText(p, r)); err != nil {
		return err
	}
	for _, line := range loadDoubts(p, r) {
		a.say("load: %s", line)
	}
	switch bad := r.Failed + r.Unsent; {
	case bad > 0:
		return failed(skill.Internal, "%d of %d calls failed or were not sent", bad, r.Due)
	case r.Open > 0 && !r.Cut:
		return failed(skill.Internal, "%d of %d calls had no answer", r.Open, r.Due)
	}
	return nil
}

// loadSkills reads --skill and --input.
func loadSkills(chosen, inputs []string) ([]load.Skill, error) {
	if len(chosen) == 0 {
		chosen = []string{"echo"}
	}
	if len(chosen) > mostLoaded {
		return nil, usage("--skill is given %d times; at most %d skills are called", len(chosen), mostLoaded)
	}
	own := map[string]string{
		"echo":          `{"text": "hello"}`,
		"file_search":   `{"query": "openSkill", "root_dir": "./data"}`,
		"calculator":    `{"numbers": [10.5, 9.9, 11.2], "ops": ["mean", "max"]}`,
		"log_transform": `{"input_path":"./data/logs/app.log"}`,
	}
	given, all := map[string]string{}, ""
	for _, in := range inputs {
		id, text := "", in
		if !strings.HasPrefix(in, "{") && !strings.HasPrefix(in, "@") {
			var ok bool
			if id, text, ok = strings.Cut(in, "="); !ok || id == "" {
				return nil, usage("--input %s is neither a JSON object nor @FILE, nor one of them after ID=", quote(in))
			}
		}
		if file, ok := strings.CutPrefix(text, "@"); ok {
			b, err := readSmall(file)
			if err != nil {
				return nil, usage("--input: %v", err)
			}
			text = string(b)
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil || object == nil {
			return nil, usage("--input %s is not a JSON object", quote(in))
		}
		if id == "" {
			all = text
		} else {
			given[id] = text
		}
	}
	var out []load.Skill
	for _, c := range chosen {
		for one := range strings.SplitSeq(c, ",") {
			id, weight, weighs := strings.Cut(one, "=")
			s := load.Skill{ID: id, Weight: 1}
			if weighs {
				var err error
				if s.Weight, err = strconv.Atoi(weight); err != nil || s.Weight < 1 || s.Weight > load.MostWeight {
					return nil, usage("--skill %s: a weight is a whole number from 1 to %d", quote(one), load.MostWeight)
				}
			}
			if id == "" || len(id) > 200 {
				return nil, usage("--skill %s names no skill", quote(one))
			}
			input, ok := given[id]
			if !ok && all != "" {
				input, ok = all, true
			}
			if !ok {
				input, ok = own[id]
			}
			if !ok {
				return nil, usage("the skill %s needs an --input", quote(id))
			}
			delete(given, id)
			s.Body = []byte(`{"input":` + input + `}`)
			out = append(out, s)
		}
	}
	for id := range given {
		return nil, usage("--input is for the skill %s, which is not called", quote(id))
	}
	return out, nil
}

// readKey is a key as --key gives it, or the file after @.
func readKey(key string) (string, error) {
	if file, ok := strings.CutPrefix(key, "@"); ok {
		b, err := readSmall(file)
		if err != nil {
			return "", usage("--key: %v", err)
		}
		key = strings.TrimSpace(string(b))
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usage("--key holds what no key has")
	}
	return key, nil
}

// readSmall reads a file that a flag names, up to the size of the largest body.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostInput {
		return nil, fmt.Errorf("%s is not a file of up to 16 MiB", quote(path))
	}
	return os.ReadFile(path)
}

// loadPercentiles are those that are shown.
var loadPercentiles = []float64{50, 90, 99, 99.9, 99.99}

func loadText(p *load.Plan, r *load.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%g calls a second asked for, %.1f sent, over %s: %d succeeded, %d failed, %d not sent, %d without an answer\n\n",
		p.Rate, r.Reached(), r.Took.Round(time.Millisecond), r.Succeeded, r.Failed, r.Unsent, r.Open)
	t := newTable("SKILL", "SUCCEEDED", "P50", "P90", "P99", "P99.9", "P99.99", "MAX")
	add := func(m *load.Measured) {
		row := table.Row{skill.CleanText(m.ID, 80), m.Succeeded}
		for _, q := range loadPercentiles {
			row = append(row, micros(m.Latency.ValueAtPercentile(q)))
		}
		t.AppendRow(append(row, micros(m.Latency.Max())))
	}
	all := r.All
	all.ID = "all"
	add(&all)
	if len(r.Skills) > 1 {
		for i := range r.Skills {
			add(&r.Skills[i])
		}
	}
	b.WriteString(t.Render() + "\n")
	if len(r.Failures) > 0 {
		t := newTable("STATUS", "CODE", "FAILED")
		for _, f := range r.Failures {
			t.AppendRow(table.Row{f.Status, f.Code, f.Count})
		}
		b.WriteString("\n" + t.Render() + "\n")
	}
	return b.String()
}

func micros(us int64) string {
	d := time.Duration(us) * time.Microsecond
	if d >= 100*time.Millisecond {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// lateTime: a client that sends one call in a hundred later than this has
// added to what it measured.
const lateTime = time.Millisecond

// loadDoubts are what a reader of the numbers must know.
func loadDoubts(p *load.Plan, r *load.Report) (lines []string) {
	if r.Took <= 0 {
		return []string{"it was ended before anything was measured"}
	}
	if r.Cut {
		lines = append(lines, "it was ended before its time")
	}
	if late := time.Duration(r.Late.ValueAtPercentile(99)) * time.Microsecond; late > lateTime {
		lines = append(lines, fmt.Sprintf("this client itself was late by %s and more at one call in a hundred, which is in the latency: the machine is busy, or the rate too high for one client", late.Round(100*time.Microsecond)))
	}
	if r.Busy > 0 {
		lines = append(lines, fmt.Sprintf("%d calls were due while all %d connections waited for answers, and were sent later, which is in the latency", r.Busy, p.Connections))
	}
	if r.Unsent > 0 {
		lines = append(lines, fmt.Sprintf("the rate was not reached: %d calls were due and never sent; what they had waited is in the latency", r.Unsent))
	}
	for _, f := range r.Failures {
		if f.Code == string(skill.RateLimited) {
			lines = append(lines, "RATE_LIMITED: a skill's own limit a minute, a quota, or more at once than the host takes; the host's log and the answer's message say which")
		}
	}
	return lines
}

// loadReport is what --json prints. Latencies are in microseconds.
type loadReport struct {
	Rate        float64        `json:"rate"`         // asked for, calls a second
	RateReached float64        `json:"rate_reached"` // sent
	Seconds     float64        `json:"seconds"`      // that were measured
	Due         int64          `json:"due"`
	Sent        int64          `json:"sent"`
	Succeeded   int64          `json:"succeeded"`
	Failed      int64          `json:"failed"`
	Unsent      int64          `json:"unsent"`
	Unanswered  int64          `json:"unanswered"`
	Busy        int64          `json:"busy"`
	LateP99     int64          `json:"client_late_p99_us"`
	EndedEarly  bool           `json:"ended_early"`
	Failures    []load.Failure `json:"failures"`
	Latency     latencies      `json:"latency_us"`
	Skills      []skillLoad    `json:"skills"`
}

type latencies struct {
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P99   int64 `json:"p99"`
	P999  int64 `json:"p99_9"`
	P9999 int64 `json:"p99_99"`
	Max   int64 `json:"max"`
}

type skillLoad struct {
	ID        string    `json:"skill_id"`
	Succeeded int64     `json:"succeeded"`
	Latency   latencies `json:"latency_us"`
}

func latenciesOf(m *load.Measured) latencies {
	h := m.Latency
	return latencies{
		h.ValueAtPercentile(50), h.ValueAtPercentile(90), h.ValueAtPercentile(99),
		h.ValueAtPercentile(99.9), h.ValueAtPercentile(99.99), h.Max(),
	}
}

func loadJSON(p *load.Plan, r *load.Report) *loadReport {
	out := &loadReport{
		Rate: p.Rate, RateReached: r.Reached(), Seconds: r.Took.Seconds(), Due: r.Due, Sent: r.Sent, Succeeded: r.Succeeded,
		Failed: r.Failed, Unsent: r.Unsent, Unanswered: r.Open, Busy: r.Busy, LateP99: r.Late.ValueAtPercentile(99), EndedEarly: r.Cut,
		Failures: append([]load.Failure{}, r.Failures...), Latency: latenciesOf(&r.All), Skills: []skillLoad{},
	}
	for i := range r.Skills {
		out.Skills = append(out.Skills, skillLoad{r.Skills[i].ID, r.Skills[i].Succeeded, latenciesOf(&r.Skills[i])})
	}
	return out
}
