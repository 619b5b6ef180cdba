package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"openskill/internal/measure"

	"github.com/spf13/cobra"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/internal/cases"
	"openskill/internal/cliflag"
	"openskill/sdk/skill"
)

// benchReport is what skill bench prints with --json.
type benchReport struct {
	SkillID  skill.ID    `json:"skill_id"`
	Version  string      `json:"version"`
	Digest   string      `json:"digest"`
	Case     string      `json:"case"`
	Variants []benchCall `json:"variants"`                   // the skill, and its fallback
	Missing  string      `json:"fallback_missing,omitempty"` // why that was not measured
}

// benchCall is one way to run the skill. Times are of the call through the door, without
// HTTP; First is the one before all others, whose process had not begun yet.
type benchCall struct {
	Runner     skill.Kind `json:"runner"`
	N          int        `json:"n"`
	FirstNS    int64      `json:"first_ns"`
	MinNS      int64      `json:"min_ns"`
	P50NS      int64      `json:"p50_ns"`
	P99NS      int64      `json:"p99_ns,omitempty"` // 0: fewer calls than can tell
	Fuel       uint64     `json:"fuel_used"`        // of the last call
	MemoryPeak uint64     `json:"memory_peak_bytes"`
	Ratio      float64    `json:"ratio"` // of its median to the skill's own
}

type skillBenchOptions struct {
	name, file         string
	n                  *cliflag.Count
	noFallback, asJSON bool
}

func (a *cli) skillBenchCommand() *cobra.Command {
	o := skillBenchOptions{n: &cliflag.Count{Value: 200, Low: 5, High: 100_000, Name: "N"}}
	cmd := &cobra.Command{
		Use:   "bench FOLDER",
		Short: "Benchmark calls of a skill",
		Long: `Call the skill in FOLDER many times with the input of one of its cases, as a host does
but without HTTP. Print the time of the first call, which starts a process, the minimum,
median and 99th percentile of the others, and the fuel and memory of a call. A fallback
is measured in turn with it.

It ends after N calls of each, or after 30 seconds. Runtimes are prepared in advance.`,
		Example: "  openskill skill bench ./my-skill\n  openskill skill bench ./my-skill --case 'greets by name' --n 1000",
		Args:    takes(1, 1),
	}
	flags := bindSettings(cmd, "data", "state", "python", "debug")
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.name, "NAME"), "case", "case whose input is sent; default: the first one")
	f.Var(cliflag.Text(&o.file, "FILE"), "cases", "cases file; default: "+cases.FileName+" in the folder")
	f.Var(o.n, "n", "number of calls")
	f.BoolVar(&o.noFallback, "no-fallback", false, "omit the skill's fallback")
	f.BoolVar(&o.asJSON, "json", false, `print {"skill_id": …, "case": …, "variants": [{"runner": …, "p50_ns": …}]}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		return a.benchSkill(cmd.Context(), s, args[0], &o)
	}
	return cmd
}

func (a *cli) benchSkill(ctx context.Context, s *config.Settings, folder string, o *skillBenchOptions) error {
	file, err := a.readCases(folder, o.file)
	if err != nil {
		return err
	}
	c, err := file.named(o.name)
	if err != nil {
		return err
	}
	// What is measured is not for the records of this machine's hosts.
	dir, err := os.MkdirTemp("", "openskill-bench-")
	if err != nil {
		return hostFailed(plain(err))
	}
	defer os.RemoveAll(dir)
	own := *s
	own.DatabaseURL = "sqlite:" + filepath.Join(dir, "bench.db")
	t, err := a.openTrial(ctx, &own, folder, !o.noFallback)
	if err != nil {
		return err
	}
	defer t.close()
	m, err := t.measure(ctx, c, int(o.n.Value)) // at most 100,000
	if err != nil {
		return err
	}
	if o.asJSON {
		return a.printJSON(m)
	}
	return a.tellMeasured(m, t)
}

// named is the case of a name, or the first one for "".
func (f *caseFile) named(name string) (*cases.Case, error) {
	names := make([]string, len(f.list))
	for i := range f.list {
		if names[i] = quote(f.list[i].Name); name == "" || f.list[i].Name == name {
			return &f.list[i], nil
		}
	}
	return nil, usage("%s has no case %s; use %s", quote(f.name), quote(name), skill.CleanText(strings.Join(names, ", "), 300))
}

// measure calls the skill, and its fallback, n times each.
func (t *trial) measure(ctx context.Context, c *cases.Case, n int) (*benchReport, error) {
	m := &benchReport{SkillID: t.id, Case: c.Name, Missing: t.missing}
	work := &measure.Case{Suite: string(t.id), Name: c.Name, N: n}
	for i, h := range []*app.Host{t.main, t.fallback} {
		if h == nil {
			continue
		}
		limits := c.Limits
		if i > 0 { // they are for the sandbox
			limits = skill.Limits{}
		}
		began := time.Now()
		first := t.call(ctx, h, c.Input, limits)
		v := benchCall{Runner: first.Meta.Runner, FirstNS: time.Since(began).Nanoseconds()}
		if !cases.Comparable(first) || !first.Meta.Ran && first.Error != nil {
			return nil, failed(first.Error.Code, "cannot measure the case %s: %s", quote(c.Name), first.Error.Message)
		}
		m.Version, m.Digest = first.Meta.Version, first.Meta.Digest
		k := len(m.Variants)
		m.Variants = append(m.Variants, v)
		work.Variants = append(work.Variants, measure.Variant{Name: string(v.Runner), Run: func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			got := t.call(ctx, h, c.Input, limits)
			took := time.Since(began)
			if got.Success != first.Success || got.Error != nil && got.Error.Code != first.Error.Code {
				return 0, fmt.Errorf("a call ended differently from the first: %s", endedAs(got))
			}
			m.Variants[k].Fuel, m.Variants[k].MemoryPeak = got.Meta.FuelUsed, max(m.Variants[k].MemoryPeak, got.Meta.MemoryPeakBytes)
			return took, nil
		}})
	}
	rows, err := work.Measure(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, failed(skill.Cancelled, "interrupted")
	case err != nil:
		return nil, failed(skill.ToolInvocationError, "%v", err)
	}
	for i := range rows {
		v, r := &m.Variants[i], &rows[i]
		v.N, v.MinNS, v.P50NS, v.P99NS, v.Ratio = r.N, r.MinNS, r.P50NS, r.P99NS, r.Ratio
	}
	return m, nil
}

// endedAs is how a call ended, in a few words.
func endedAs(r *skill.Result) string {
	if r.Success {
		return "it succeeded"
	}
	return string(r.Error.Code) + ": " + r.Error.Message
}

func (a *cli) tellMeasured(m *benchReport, t *trial) error {
	tab := newTable("RUNNER", "FIRST CALL", "MINIMUM", "MEDIAN", "P99", "RATIO", "FUEL", "MEMORY", "CALLS")
	for i := range m.Variants {
		v := &m.Variants[i]
		row := []any{v.Runner, measure.Span(v.FirstNS), measure.Span(v.MinNS), measure.Span(v.P50NS), measure.Span(v.P99NS), measure.Ratio(v.Ratio), "", "", v.N}
		if v.Fuel > 0 { // a process has none
			row[6] = v.Fuel
		}
		if v.MemoryPeak > 0 {
			row[7] = measure.Bytes(int64(v.MemoryPeak)) // at most some GiB
		}
		tab.row(row...)
	}
	if err := a.print("%s\n%s %s: %s\n", tab, m.SkillID, m.Version, m.Case); err != nil {
		return err
	}
	if m.Missing != "" {
		a.say("openskill: the fallback %s was not measured: %s", t.skill.Fallback.Kind, m.Missing)
	}
	return nil
}
