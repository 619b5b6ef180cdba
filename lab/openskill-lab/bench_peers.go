package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"openskill/internal/measure"

	"openskill/host/app/config"
	"openskill/lab/bench"
	"openskill/lab/httpbench"
	"openskill/lab/skillbench"
	"openskill/sdk/skill"
)

// benchPeers is the suite peers: other ways to run the same scripts, in one run.
func (a *cli) benchPeers(ctx context.Context, s *config.Settings, o *benchOptions) ([]measure.Row, error) {
	native, err := skillbench.FindNative(ctx, s.Python)
	if err != nil {
		return nil, err // everything is compared with it
	}
	folder, err := filepath.Abs(o.peers)
	if err != nil {
		return nil, err
	}
	b, stop, err := skillBench(s, o)
	if err != nil {
		return nil, err
	}
	defer stop()
	a.say("peers: starting them; each compiles its module the first time")
	peers, missing := b.Peers(ctx, folder)
	for _, m := range missing {
		a.say("%s", m)
	}
	cases, missing := b.PeerCases(ctx, native, peers, o.wanted)
	for _, m := range missing {
		a.say("%s", m)
	}
	rows, err := a.measure(ctx, cases)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	computed := computing(rows)
	for _, r := range computed {
		if m, ok := measure.Mean(computed, "peers", r.Variant); ok && !seen[r.Variant] && r.Variant != r.Baseline {
			seen[r.Variant] = true
			rows = append(rows, m)
		}
	}
	web, err := a.peersHTTP(ctx, s, o, native, peers)
	if err != nil {
		return nil, err
	}
	rows = append(rows, web...)
	for _, p := range peers {
		_ = p.Close() // it has no error
	}
	held, err := a.peersMemory(ctx, s, o, b, native, folder)
	return append(rows, held...), err
}

// computing are the rows of programs that compute.
func computing(rows []measure.Row) (out []measure.Row) {
	for _, r := range rows {
		if r.Case != skillbench.FreshCall {
			out = append(out, r)
		}
	}
	return out
}

// peersHTTP measures a small skill over HTTP: openskill's own server, peers behind
// a small server of their language, and one that starts native Python.
func (a *cli) peersHTTP(ctx context.Context, s *config.Settings, o *benchOptions, n *skillbench.Native, peers []*skillbench.Peer) ([]measure.Row, error) {
	var cases []measure.Case
	for _, clients := range []int{1, 8, mostClients} {
		if name := fmt.Sprintf("HTTP, %d clients", clients); o.wanted("peers", name) {
			cases = append(cases, measure.Case{Suite: "peers", Name: name, N: 3})
		}
	}
	if len(cases) == 0 {
		return nil, nil
	}
	type server struct {
		name, addr, path string
		slow             bool
	}
	nativeAddr, stop, err := serveNative(ctx, n)
	if err != nil {
		return nil, err
	}
	defer stop()
	servers := []server{{"native python3 " + n.Version, nativeAddr, "/", true}}
	skills, err := pythonSkills()
	if err != nil {
		return nil, err
	}
	_, addr, stopOurs, err := a.serveSkills(ctx, s, skills, map[skill.ID]string{sandboxed: textInput})
	if err != nil {
		return nil, err
	}
	defer stopOurs()
	servers = append(servers, server{"openskill", addr, "/skills/" + sandboxed + ":invoke", false})
	for _, p := range peers {
		answer, err := p.Do(map[string]any{"do": "serve", "script": "stdlib.py"})
		if err != nil {
			a.say("%s: %v", p.Name, err)
			continue
		}
		servers = append(servers, server{p.Name, answer.Addr, "/", true})
	}
	for i := range cases {
		c := &cases[i]
		var clients int
		if _, err := fmt.Sscanf(c.Name, "HTTP, %d clients", &clients); err != nil {
			return nil, err
		}
		for _, at := range servers {
			requests := max(clients, 10)
			switch {
			case o.quick:
				requests = clients
			case !at.slow:
				requests = 2000
			}
			c.Variants = append(c.Variants, measure.Variant{
				Name: at.name,
				Run: func(ctx context.Context) (time.Duration, error) {
					d, err := httpbench.Send(ctx, at.addr, at.path, `{"input":`+textInput+`}`, clients, requests)
					return d / time.Duration(requests), err
				},
				Note: func() string { return fmt.Sprintf("time of a call, of %d a run", requests) },
			})
		}
	}
	return a.measure(ctx, cases)
}

// serveNative serves a script by a process of native Python for each call, which
// is what many hosts of skills do.
func serveNative(ctx context.Context, n *skillbench.Native) (addr string, stop func(), err error) {
	script, err := filepath.Abs(filepath.Join(benchScripts, "stdlib.py"))
	if err != nil {
		return "", nil, err
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cmd := n.Command(r.Context(), script, nil)
		cmd.Stdin = r.Body
		out, err := cmd.Output()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = writeCompact(w, out) // the client has gone
	})}
	go server.Serve(ln) //nolint:errcheck // it ends when stop is called
	return ln.Addr().String(), func() { _ = server.Close() }, nil
}

func writeCompact(w http.ResponseWriter, data json.RawMessage) error {
	return json.NewEncoder(w).Encode(map[string]any{"success": true, "data": data})
}

// peersMemory measures sandboxes that wait for input with their imports made, of
// processes that do nothing else. Where a thousand would take more than half of
// what the machine has left, that is said instead.
func (a *cli) peersMemory(ctx context.Context, s *config.Settings, o *benchOptions, b *skillbench.Bench, n *skillbench.Native, folder string) (rows []measure.Row, err error) {
	few, many := 100, o.sandboxes
	if o.quick {
		few, many = 3, 5
	}
	if !o.wanted("peers", fmt.Sprintf("memory, %d sandboxes", few)) && !o.wanted("peers", fmt.Sprintf("memory, %d sandboxes", many)) {
		return nil, nil
	}
	add := func(name string, hold func(count int) (int64, error)) {
		per := int64(0)
		for _, count := range []int{few, many} {
			r := measure.Row{Suite: "peers", Case: fmt.Sprintf("memory, %d sandboxes", count), Variant: name, Baseline: name, N: 1}
			if need := per * int64(count); need > skillbench.FreeMemory()/2 {
				r.N, r.Note = 0, "not tried: it would need about "+measure.Bytes(need)
				rows = append(rows, r)
				continue
			}
			a.say("peers: %s, %s", r.Case, name)
			held, err := hold(count)
			if err != nil {
				a.say("%s: %v", name, err)
				r.N, r.Note = 0, "failed: "+skill.CleanText(err.Error(), 60)
				rows = append(rows, r)
				continue
			}
			per = held / int64(count)
			r.Bytes, r.Note = held, measure.Bytes(per)+" each"
			rows = append(rows, r)
		}
	}
	add("native python3 "+n.Version, func(count int) (int64, error) { return b.HoldNative(ctx, n, count) })
	add("openskill", func(count int) (int64, error) {
		held := *o
		held.sandboxes, held.filter = count, "memory"
		rows, err := a.memoryApart(ctx, s, &held, n)
		if err != nil || len(rows) < 2 {
			return 0, errors.Join(err, errors.New("nothing was measured"))
		}
		// Of peers, too, the first sandbox with the compiled module is not counted.
		return (rows[1].Bytes - rows[0].Bytes) * int64(count) / int64(max(count-1, 1)), nil
	})
	// Peers are started anew for each count.
	peers, _ := b.Peers(ctx, folder)
	for _, p := range peers {
		first := p
		add(p.Name, func(count int) (int64, error) {
			if first == nil {
				again, _ := b.Peers(ctx, folder)
				for _, q := range again {
					if q.Name == p.Name {
						first = q
						continue
					}
					_ = q.Close() // it has no error
				}
			}
			if first == nil {
				return 0, errors.New("it did not start again")
			}
			held, err := b.HoldPeer(first, count)
			_ = first.Close() // it has no error
			first = nil
			return held, err
		})
		if first != nil {
			_ = first.Close() // it has no error
		}
	}
	return rows, nil
}

// peerPlot draws what the rows of the suite peers say.
func peerPlot(rows []measure.Row) []byte {
	var charts []bench.Chart
	chart := func(title, name string, value func(*measure.Row) (float64, string)) {
		c := bench.Chart{Title: title}
		for _, r := range rows {
			if r.Suite != "peers" || r.Case != name {
				continue
			}
			if v, shown := value(&r); v > 0 {
				c.Bars = append(c.Bars, bench.Bar{Name: r.Variant, Shown: shown, Value: v, Ours: r.Variant == "openskill"})
			}
		}
		if len(c.Bars) > 0 {
			charts = append(charts, c)
		}
	}
	chart("A fresh call of a small Python skill, median (shorter is better)", skillbench.FreshCall, func(r *measure.Row) (float64, string) {
		return float64(r.P50NS), measure.Span(r.P50NS)
	})
	chart("Calls a second over HTTP, 64 clients (longer is better)", fmt.Sprintf("HTTP, %d clients", mostClients), func(r *measure.Row) (float64, string) {
		q := 1e9 / float64(max(r.P50NS, 1))
		return q, fmt.Sprintf("%.0f", q)
	})
	chart("Programs that compute, times native Python (shorter is better)", "geometric mean", func(r *measure.Row) (float64, string) {
		return r.Ratio, fmt.Sprintf("%.2f", r.Ratio)
	})
	chart("Memory of 100 sandboxes that wait (shorter is better)", "memory, 100 sandboxes", func(r *measure.Row) (float64, string) {
		return float64(r.Bytes), measure.Bytes(r.Bytes)
	})
	if len(charts) == 0 {
		return nil
	}
	return bench.Plot(charts)
}

// writeBench writes the tables into a document, and the plot of peers beside it.
func writeBench(file string, rows []measure.Row) error {
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	doc, err = bench.Markdown(doc, rows, func(suite string) string {
		if suite == "peers" {
			return "`make bench-peers`\n\n![A fresh call, calls a second, programs that compute, memory](benchmarks/peers.svg)"
		}
		return "`openskill-lab bench --filter " + suite + "/`"
	})
	if err != nil {
		return err
	}
	if plot := peerPlot(rows); plot != nil {
		folder := filepath.Join(filepath.Dir(file), "benchmarks")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "peers.svg"), plot, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(file, doc, 0o644)
}
