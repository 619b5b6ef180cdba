package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"openskill/host/records"
	"openskill/host/workers"
	"openskill/sdk/skill"
)

// overviewData are the figures of an hour.
type overviewData struct {
	records.Figures
	Tenant  string // "" of all
	Tenants []string
	Workers *workers.Stats
	Usage   *skill.TenantUsage // of Tenant; nil: not shown
	NoUsage string             // why
	Missing bool               // there are no figures
	Path    string
}

func (v *view) loadOverview() (*overviewData, error) {
	if err := v.allowed("overview"); err != nil {
		return nil, err
	}
	d := &overviewData{Missing: v.o.Recent == nil}
	all := v.p.May(skill.ScopeHost)
	if d.Tenant = v.r.URL.Query().Get("tenant"); !all {
		if d.Tenant = v.p.Tenant; d.Tenant == "" {
			return nil, &apiError{Status: http.StatusForbidden, Code: string(skill.Forbidden), Message: "You have no tenant and therefore no figures."}
		}
	}
	d.Path = string(with(link("overview", "figures"), "tenant", d.Tenant))
	if d.Missing {
		return d, nil
	}
	if d.Tenant == "" {
		d.Figures = v.o.Recent.All()
	} else {
		d.Figures = v.o.Recent.Of(d.Tenant)
	}
	if all {
		d.Tenants = v.o.Recent.Tenants()
		if v.o.Workers != nil {
			if w, ok := v.o.Workers(); ok {
				d.Workers = &w
			}
		}
	}
	return d, nil
}

func (v *view) overview() error {
	d, err := v.loadOverview()
	if err != nil {
		return err
	}
	if d.Tenant != "" {
		d.Usage = &skill.TenantUsage{}
		if err := v.ask(http.MethodGet, "/usage", values("tenant", d.Tenant), nil, d.Usage); err != nil {
			d.Usage, d.NoUsage = nil, messageOf(err)
		}
	}
	return v.show(http.StatusOK, overviewPage(v.frame("overview", "Overview"), d))
}

// storedBytes is what is shown of bytes and their limit.
func storedBytes(n, limit *int64) string {
	switch {
	case n == nil:
		return "–"
	case limit == nil:
		return size(*n)
	}
	return size(*n) + " of " + size(*limit)
}

// storedCount is the same of a number.
func storedCount(n int64, limit *int64) string {
	if limit == nil {
		return count(n)
	}
	return count(n) + " of " + count(*limit)
}

// usedToday is what was used of a limit of the day.
func usedToday(u skill.DailyUsage) string {
	shown := func(n int64) string { return amount(uint64(max(n, 0))) } // not negative
	if u.Kind == "model_cost" {
		shown = dollars
	}
	if u.Limit == nil {
		return shown(u.Used)
	}
	return shown(u.Used) + " of " + shown(*u.Limit)
}

func dollars(millionths int64) string {
	return "$" + strconv.FormatFloat(float64(millionths)/1e6, 'f', 2, 64)
}

// figures is the part of the page that changes.
func (v *view) figures() error {
	d, err := v.loadOverview()
	if err != nil {
		return err
	}
	return v.show(http.StatusOK, figuresPart(d))
}

// plot is what a plot shows, for the script that draws it and for who has none.
type plot struct {
	Title  string
	Unit   string
	Series []plotSeries
	times  []time.Time
}

type plotSeries struct {
	Name   string
	Look   string // "calls", "bad", "p50" or "p95"
	Values []float64
}

// data is the plot for the script.
func (p *plot) data() string {
	out := struct {
		X     []int64     `json:"x"`
		Y     [][]float64 `json:"y"`
		Names []string    `json:"names"`
		Looks []string    `json:"looks"`
		Unit  string      `json:"unit"`
	}{Unit: p.Unit}
	for _, t := range p.times {
		out.X = append(out.X, t.Unix())
	}
	for _, s := range p.Series {
		out.Y, out.Names, out.Looks = append(out.Y, s.Values), append(out.Names, s.Name), append(out.Looks, s.Look)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return string(b)
}

// The size of a plot that is drawn here, in units of its own.
const plotWide, plotHigh = 600.0, 120.0

func (p *plot) most() float64 {
	most := 0.0
	for _, s := range p.Series {
		for _, y := range s.Values {
			most = max(most, y)
		}
	}
	return most
}

// top says how high it goes.
func (p *plot) top() string {
	digits := 0
	if p.most() < 10 {
		digits = 2
	}
	return strconv.FormatFloat(p.most(), 'f', digits, 64) + " " + p.Unit
}

// line are the points of a series.
func (p *plot) line(s *plotSeries) string {
	most := max(p.most(), 1e-9)
	var b strings.Builder
	for i, y := range s.Values {
		x := plotWide * float64(i) / max(float64(len(s.Values)-1), 1)
		b.WriteString(strconv.FormatFloat(x, 'f', 1, 64) + "," + strconv.FormatFloat(plotHigh-(plotHigh-4)*y/most, 'f', 1, 64) + " ")
	}
	return b.String()
}

// plots are those of an hour.
func (d *overviewData) plots() []plot {
	calls := plot{Title: "Calls by minute", Unit: "calls", Series: []plotSeries{{Name: "all", Look: "calls"}, {Name: "failed", Look: "bad"}}}
	times := plot{Title: "Latency", Unit: "ms", Series: []plotSeries{{Name: "p50", Look: "p50"}, {Name: "p95", Look: "p95"}}}
	fuel := plot{Title: "Fuel by minute", Unit: "M units", Series: []plotSeries{{Name: "fuel", Look: "calls"}}}
	memory := plot{Title: "Peak memory per call", Unit: "MiB", Series: []plotSeries{{Name: "memory", Look: "p50"}}}
	for i := range d.Minutes {
		m := &d.Minutes[i]
		for _, p := range []*plot{&calls, &times, &fuel, &memory} {
			p.times = append(p.times, m.At)
		}
		add := func(p *plot, values ...float64) {
			for i, y := range values {
				p.Series[i].Values = append(p.Series[i].Values, y)
			}
		}
		add(&calls, float64(m.Calls), float64(m.Failed))
		add(&times, float64(m.P50)/1e6, float64(m.P95)/1e6)
		add(&fuel, float64(m.Fuel)/1e6)
		add(&memory, float64(m.Memory)/(1<<20))
	}
	return []plot{calls, times, fuel, memory}
}

// failedShare is how much of a hundred failed.
func failedShare(failed, all uint64) string {
	if all == 0 {
		return "–"
	}
	return strconv.FormatFloat(100*float64(failed)/float64(all), 'f', 1, 64) + " %"
}
