package skillbench

import (
	"archive/zip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"openskill/internal/measure"

	"openskill/lab/bench"
	"openskill/plugins/python/runtimes"
)

// programs compute, and measure themselves: to start is not part of it. Of each,
// how much it does, so that native Python takes about a tenth of a second.
var programs = []struct {
	name string
	n    int
}{
	{"nbody", 20000}, {"fannkuch", 8}, {"spectral", 220}, {"objects", 4000}, {"jsons", 120}, {"regex", 80}, {"dicts", 30},
}

// scriptsAt is where bare runtimes show the folder of scripts.
const scriptsAt = "/scripts"

// Wazero is a Python runtime on bare wazero.
type Wazero struct {
	w    *bench.Wazero
	args []string
}

// Bare compiles a runtime for bare wazero.
func (b *Bench) Bare(ctx context.Context, name string) (*Wazero, error) {
	r, err := b.store.Open(name)
	if err != nil {
		return nil, err
	}
	p := bench.Program{Mounts: map[string]fs.FS{scriptsAt: os.DirFS(b.o.Scripts)}, Init: r.Init, Entry: r.Entry}
	if p.Module, err = os.ReadFile(r.Module.Path); err != nil {
		return nil, err
	}
	for _, m := range r.Mounts {
		z, err := zip.OpenReader(m.Path) // open as long as the process
		if err != nil {
			return nil, err
		}
		p.Mounts[m.Guest] = z
	}
	for _, v := range r.Env {
		key, value, _ := strings.Cut(v, "=")
		p.Env = append(p.Env, [2]string{key, value})
	}
	w, err := bench.OpenWazero(ctx, &p, b.o.CacheDir)
	if err != nil {
		return nil, err
	}
	return &Wazero{w: w, args: []string{r.Args0, "-B", "-s", "-X", "utf8"}}, nil
}

// Run is a whole call of a script.
func (w *Wazero) Run(ctx context.Context, script string, stdin []byte) ([]byte, time.Duration, error) {
	return w.w.Run(ctx, append(w.args[:len(w.args):len(w.args)], scriptsAt+"/"+script), stdin)
}

// way is one way to run a script: what it printed, and what a whole call took.
type way struct {
	name string
	run  func(ctx context.Context, script string, stdin []byte) ([]byte, time.Duration, error)
}

func (b *Bench) native(n *Native) way {
	return way{n.name(), func(ctx context.Context, script string, stdin []byte) ([]byte, time.Duration, error) {
		return n.Run(ctx, filepath.Join(b.o.Scripts, script), stdin)
	}}
}

func (b *Bench) own() way {
	return way{"openskill", func(ctx context.Context, script string, stdin []byte) ([]byte, time.Duration, error) {
		call := b.script(script, "")
		call.Stdin = stdin
		reply, took, err := once(ctx, b.python, call)
		if err != nil {
			return nil, 0, err
		}
		return reply.Stdout, took, nil
	}}
}

// Python are the cases of programs that compute, metered, against native Python;
// and beside them the same module on bare wazero.
func (b *Bench) Python(ctx context.Context, n *Native, wanted func(suite, name string) bool) (cases []measure.Case, missing []string) {
	var some bool
	for _, p := range programs {
		some = some || wanted("python", p.name)
	}
	if !some {
		return nil, nil
	}
	if n == nil {
		return nil, []string{"python: there is no native python3 to compare with"}
	}
	if _, _, err := once(ctx, b.python, b.script("stdlib.py", text)); err != nil {
		return nil, []string{"python: " + err.Error()}
	}
	ways := []way{b.native(n), b.own()}
	if w, err := b.Bare(ctx, runtimes.Slim); err != nil {
		missing = append(missing, "python, bare wazero: "+err.Error())
	} else {
		ways = append(ways, way{"wazero, unmetered", w.Run})
	}
	return b.computing("python", ways, wanted), missing
}

// computing are the programs, each run in all of the ways.
func (b *Bench) computing(suite string, ways []way, wanted func(suite, name string) bool) (cases []measure.Case) {
	for _, p := range programs {
		if !wanted(suite, p.name) {
			continue
		}
		in := stdin(fmt.Sprintf(`{"n":%d}`, b.few(p.n, 1+p.n/40)))
		a := &agree{}
		c := measure.Case{Suite: suite, Name: p.name, N: b.few(7, 2)}
		for _, w := range ways {
			c.Variants = append(c.Variants, measure.Variant{Name: w.name, Run: func(ctx context.Context) (time.Duration, error) {
				out, _, err := w.run(ctx, p.name+".py", in)
				if err != nil {
					return 0, err
				}
				return selfTimed(out, a)
			}})
		}
		cases = append(cases, c)
	}
	return cases
}
