package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"openskill/internal/measure"

	"github.com/google/uuid"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/records"
	"openskill/lab/httpbench"
	"openskill/lab/skillbench"
	"openskill/sdk/skill"
)

// budgeted is a call whose time is taken apart.
type budgeted struct {
	name, input string
	id          skill.ID
	skills      func() (folder string, err error) // a folder of skills, which the host removes
	below       func(ctx context.Context, b *skillbench.Bench, input string) (*skillbench.Below, error)
	floor       func(ctx context.Context, b *skillbench.Bench, n *skillbench.Native, input string, fuel uint64) string // of the guest
}

// benchBudget is the suite budget: where the time of a warm call goes from the
// client's socket to the guest and back. Ways that have one thing more than the one
// before are measured in turn; a part is the difference of their medians.
func (a *cli) benchBudget(ctx context.Context, s *config.Settings, o *benchOptions, n *skillbench.Native) (rows []measure.Row, err error) {
	calls := []budgeted{
		{
			name: "a Rust call", id: "echo", input: `{"text":"hello"}`,
			skills: func() (string, error) { return unlimitedEcho(filepath.Join(s.SkillsDir, "echo")) },
			below: func(ctx context.Context, b *skillbench.Bench, input string) (*skillbench.Below, error) {
				return b.BelowRust(ctx, input)
			},
			floor: func(_ context.Context, _ *skillbench.Bench, _ *skillbench.Native, _ string, fuel uint64) string {
				return fmt.Sprintf("%d units of fuel: %s at four a nanosecond", fuel, measure.Span(int64(fuel/4)))
			},
		},
		{
			name: "a Python call", id: sandboxed, input: `{"op":"echo","text":"hello"}`,
			skills: pythonSkills,
			below: func(ctx context.Context, b *skillbench.Bench, input string) (*skillbench.Below, error) {
				return b.BelowPython(ctx, input)
			},
			floor: func(ctx context.Context, b *skillbench.Bench, n *skillbench.Native, input string, _ uint64) string {
				if n == nil {
					return ""
				}
				d, err := b.Again(ctx, n, input)
				if err != nil {
					return err.Error()
				}
				return "native Python, started and with all imported: " + measure.Span(int64(d))
			},
		},
	}
	for _, c := range calls {
		if !o.wanted("budget", c.name) {
			continue
		}
		a.say("budget: %s", c.name)
		r, err := a.budget(ctx, s, o, n, &c)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			a.say("budget: %v", err)
			continue
		}
		rows = append(rows, r...)
	}
	return rows, nil
}

// way is one of the ways that are measured in turn: times of single calls, by name.
type way func(ctx context.Context, n int) (map[string][]time.Duration, error)

// The ways, each with one thing more than the one before; the last ones are below the
// door.
const (
	wayTCP    = "tcp"
	wayHTTP   = "http"
	wayEdge   = "edge"
	wayHere   = "here"   // the whole host over HTTP, skills in its process
	wayApart  = "apart"  // the same, skills in worker processes
	wayDoor   = "door"   // Invoke, skills in the process
	wayRecord = "record" // its two records by themselves
	wayRunner = "runner" // the runner by itself
	wayTake   = "take"
	wayGuest  = "guest"
	wayBack   = "back"
	wayHand   = "hand" // two processes that hand bytes over
)

func (a *cli) budget(ctx context.Context, s *config.Settings, o *benchOptions, n *skillbench.Native, c *budgeted) (rows []measure.Row, err error) {
	var stops []func()
	defer func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}()
	b, stop, err := skillBench(s, o)
	if err != nil {
		return nil, err
	}
	stops = append(stops, stop)
	below, err := c.below(ctx, b, c.input)
	if err != nil {
		return nil, err
	}
	stops = append(stops, func() { _ = below.Close() }) // the bench ends
	serve := func(inProcess bool) (*app.Host, string, error) {
		own := *s
		own.InProcess = inProcess
		skills, err := c.skills()
		if err != nil {
			return nil, "", err
		}
		h, addr, stop, err := a.serveSkills(ctx, &own, skills, map[skill.ID]string{c.id: c.input})
		if err != nil {
			return nil, "", err
		}
		stops = append(stops, stop)
		return h, addr, nil
	}
	here, hereAddr, err := serve(true)
	if err != nil {
		return nil, err
	}
	_, apartAddr, err := serve(false)
	if err != nil {
		return nil, err
	}
	path, body := "/skills/"+string(c.id)+":invoke", `{"input":`+c.input+`}`
	answer, err := httpbench.Ask(hereAddr, path, body)
	if err != nil {
		return nil, err
	}
	request := skill.Request{SkillID: c.id, Input: json.RawMessage(c.input), TraceID: "bench"}
	result := here.Invoke(ctx, skill.Local(), request)
	addrs, err := fakes(ctx, here, result, answer, &stops)
	if err != nil {
		return nil, err
	}
	send := func(name, addr string) way {
		return func(ctx context.Context, n int) (map[string][]time.Duration, error) {
			all := make([]time.Duration, 0, n)
			d, err := httpbench.Each(ctx, addr, path, body, n)
			return map[string][]time.Duration{name: append(all, d...)}, err
		}
	}
	ways := []way{
		func(ctx context.Context, n int) (map[string][]time.Duration, error) {
			d, err := httpbench.Sockets(ctx, len(body)+150, len(answer), n)
			return map[string][]time.Duration{wayTCP: {d}}, err
		},
		send(wayHTTP, addrs[0]), send(wayEdge, addrs[1]), send(wayHere, hereAddr), send(wayApart, apartAddr),
		func(ctx context.Context, n int) (map[string][]time.Duration, error) {
			var all []time.Duration
			for range n {
				began := time.Now()
				if r := here.Invoke(ctx, skill.Local(), request); !r.Success {
					return nil, errors.New(r.Error.Message)
				}
				all = append(all, time.Since(began))
			}
			return map[string][]time.Duration{wayDoor: all}, nil
		},
		func(ctx context.Context, n int) (map[string][]time.Duration, error) {
			d, err := recordTimes(ctx, here.Record(), c, n)
			return map[string][]time.Duration{wayRecord: d}, err
		},
		func(ctx context.Context, n int) (map[string][]time.Duration, error) {
			parts, err := below.Calls(ctx, n)
			times := map[string][]time.Duration{}
			for _, p := range parts {
				times[wayRunner] = append(times[wayRunner], p.Runner)
				times[wayTake] = append(times[wayTake], p.Take)
				times[wayGuest] = append(times[wayGuest], p.Guest)
				times[wayBack] = append(times[wayBack], p.Back)
			}
			return times, err
		},
		func(ctx context.Context, n int) (map[string][]time.Duration, error) {
			d, err := skillbench.HandOver(ctx, 300, n)
			return map[string][]time.Duration{wayHand: {d}}, err
		},
	}
	rounds, each := 30, 100
	if o.quick {
		rounds, each = 2, 5
	}
	times, err := inTurn(ctx, ways, rounds, each)
	if err != nil {
		return nil, err
	}
	guest := c.floor(ctx, b, n, c.input, below.Fuel)
	return budgetRows(c.name, rounds*each, times, guest), nil
}

// recordTimes measures what it takes to have runs on record, one at a time.
func recordTimes(ctx context.Context, log *records.Log, c *budgeted, n int) (all []time.Duration, err error) {
	p := skill.Local()
	for range n {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, err
		}
		s := &records.Started{
			ExecutionID: id.String(), Tenant: p.Tenant, Principal: p.ID, PrincipalType: p.Type, TraceID: "bench", Session: id.String(),
			Skill: string(c.id), Version: "0.1.0", Digest: "sha256:0",
		}
		f := &records.Finished{Status: records.Success, Runner: skill.WasmWASI}
		began := time.Now()
		if err := log.Started(ctx, s, []byte(c.input)); err != nil {
			return nil, err
		}
		if err := log.Finished(ctx, s, f, []byte(c.input)); err != nil {
			return nil, err
		}
		all = append(all, time.Since(began))
	}
	return all, nil
}

// fakes serves what HTTP, and what the edge takes alone.
func fakes(ctx context.Context, h *app.Host, result *skill.Result, answer []byte, stops *[]func()) (addrs []string, err error) {
	for i := range 2 {
		var listen net.ListenConfig
		ln, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		var stop func() error
		if i == 0 {
			_, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
			stop = httpbench.Constant(ln, body)
		} else if stop, err = httpbench.Edge(ln, h.Catalogue(), result); err != nil { // a server has those of its requests
			return nil, errors.Join(err, ln.Close())
		}
		*stops = append(*stops, func() { _ = stop() }) // the bench ends
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs, nil
}

// inTurn measures all ways, a round after the other, each beginning with another way.
func inTurn(ctx context.Context, ways []way, rounds, each int) (map[string][]time.Duration, error) {
	times := map[string][]time.Duration{}
	for round := -1; round < rounds; round++ {
		for i := range ways {
			got, err := ways[(i+round+len(ways))%len(ways)](ctx, each)
			if err != nil {
				return nil, err
			}
			if round < 0 {
				continue // what is done first is slower
			}
			for name, some := range got {
				times[name] = append(times[name], some...)
			}
		}
	}
	return times, nil
}

// budgetRows are the parts, and the whole.
func budgetRows(name string, n int, times map[string][]time.Duration, guest string) (rows []measure.Row) {
	median, least := map[string]int64{}, map[string]int64{}
	for name, all := range times {
		slices.Sort(all)
		median[name], least[name] = int64(all[len(all)/2]), int64(all[0])
	}
	whole := median[wayApart]
	sum, sumLeast := int64(0), int64(0)
	row := func(part, note string, with []string, without ...string) {
		r := measure.Row{Suite: "budget", Case: name, Variant: part, Baseline: "the whole", N: n, Note: note}
		for _, w := range with {
			r.P50NS, r.MinNS = r.P50NS+median[w], r.MinNS+least[w]
		}
		for _, w := range without {
			r.P50NS, r.MinNS = r.P50NS-median[w], r.MinNS-least[w]
		}
		sum, sumLeast = sum+r.P50NS, sumLeast+r.MinNS
		r.Ratio = float64(r.P50NS*1000/whole) / 1000
		rows = append(rows, r)
	}
	one := func(w string) []string { return []string{w} }
	row("the kernel's sockets", "this is a floor: bytes there and back over one connection", one(wayTCP))
	row("HTTP", "fasthttp on both sides, with one answer for all", one(wayHTTP), wayTCP)
	row("the edge", "floor: to read and write the JSON", one(wayEdge), wayHTTP)
	row("the door", "floor: both schemas, and the line in the log", one(wayDoor), wayRunner, wayRecord)
	row("the record", "two appends to the journal, one before the run and one after it", one(wayRecord))
	row("the hop to a worker and back", "floor: two processes that hand bytes over: "+measure.Span(median[wayHand])+", at best "+measure.Span(least[wayHand]), one(wayApart), wayHere)
	row("the runner", "floor: to see that the skill's files are the same", one(wayRunner), wayTake, wayGuest, wayBack)
	row("an instance is taken", "floor: to set limits, clock and streams", one(wayTake))
	row("the guest", guest, one(wayGuest))
	row("it is put back", "floor: to copy the pages that were written", one(wayBack))
	rest := measure.Row{Suite: "budget", Case: name, Variant: "between the parts", Baseline: "the whole", N: n, P50NS: whole - sum, MinNS: least[wayApart] - sumLeast}
	rest.Ratio, rest.Note = float64(rest.P50NS*1000/whole)/1000, "what no part has by itself: caches, and waking threads"
	return append(rows, rest, measure.Row{Suite: "budget", Case: name, Variant: "the whole", Baseline: "the whole", N: n, P50NS: whole, MinNS: least[wayApart], Ratio: 1})
}
