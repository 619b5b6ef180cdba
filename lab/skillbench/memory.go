package skillbench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"openskill/internal/measure"

	"openskill/sdk/skill"
	"openskill/wasm"
)

// Memory tells what n Python sandboxes of one skill take that wait for a call, and
// what a second skill takes. It measures this process, which should be one that
// does nothing else.
func (b *Bench) Memory(ctx context.Context, n int) ([]measure.Row, error) {
	before, err := Held(os.Getpid())
	if err != nil {
		return nil, err
	}
	// With its first call a skill's runtime is compiled, which is no skill's own.
	first, err := b.image(ctx, b.script("stdlib.py", text), n)
	if err != nil {
		return nil, err
	}
	defer first.Close()
	if err := first.Warm(ctx, 1); err != nil {
		return nil, err
	}
	one, err := Held(os.Getpid())
	if err != nil {
		return nil, err
	}
	heapOne := heap()
	if err := first.Warm(ctx, n); err != nil {
		return nil, err
	}
	all, err := Held(os.Getpid())
	if err != nil {
		return nil, err
	}
	heapAll := heap()
	other := b.script("jsons.py", `{"n":1}`)
	second, err := b.image(ctx, other, 1)
	if err != nil {
		return nil, err
	}
	defer second.Close()
	if err := second.Warm(ctx, 1); err != nil {
		return nil, err
	}
	two, err := Held(os.Getpid())
	if err != nil {
		return nil, err
	}
	// What was counted is alive and works.
	for _, c := range []struct {
		image *wasm.Image
		call  *skill.Call
	}{{first, b.script("stdlib.py", text)}, {second, other}} {
		if err := answers(ctx, c.image, c.call); err != nil {
			return nil, err
		}
	}
	row := func(name string, of int64, note string, goals ...measure.Goal) measure.Row {
		r := measure.Row{Suite: "memory", Case: name, Variant: "openskill", Baseline: "openskill", Bytes: of, N: 1, Note: note}
		for _, g := range goals {
			r.Goals = append(r.Goals, g.Of(&r, &r))
		}
		return r
	}
	return []measure.Row{
		row("the host with a runtime and one sandbox", one-before, "the whole process "+measure.Bytes(one)),
		row(fmt.Sprintf("%d idle Python sandboxes", n), all-before,
			fmt.Sprintf("without the runtime %s, %s each, of which %s on Go's heap",
				measure.Bytes(all-one), measure.Bytes((all-one)/int64(max(n-1, 1))), measure.Bytes((heapAll-heapOne)/int64(max(n-1, 1)))), measure.Size(1e9)),
		row("the image of a second skill", two-all, "with one sandbox", measure.Size(20e6)),
	}, nil
}

// heap is what lives on Go's heap and on the stacks of goroutines, in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func (b *Bench) image(ctx context.Context, call *skill.Call, n int) (*wasm.Image, error) {
	if err := planned(ctx, b.python, call); err != nil {
		return nil, err
	}
	p, err := b.python.Program(ctx, call)
	if err != nil {
		return nil, err
	}
	return b.o.Engine.Image(p, &wasm.ImageOptions{Instances: n, Spare: -1}), nil
}

func answers(ctx context.Context, im *wasm.Image, call *skill.Call) error {
	out, err := im.Run(ctx, &wasm.Call{
		Stdin:  strings.NewReader(string(call.Stdin)),
		Limits: wasm.Limits{Fuel: call.Limits.Fuel, Timeout: call.Limits.Timeout, Output: int64(call.Limits.Output)},
	})
	if err != nil {
		return err
	}
	if out.Ended != wasm.Exited || out.ExitCode != 0 || len(out.Stdout) == 0 {
		return fmt.Errorf("a sandbox that waited: %v, exit code %d: %.300s", out.Ended, out.ExitCode, out.Stderr)
	}
	return nil
}

// Held is the memory of a process in bytes: its proportional set, in which a page
// that several have, or that one has several times, counts once. What a memfd has
// in pages that nobody has mapped is added by the caller, if there are any.
func Held(pid int) (int64, error) {
	if pid == os.Getpid() {
		runtime.GC()
		debug.FreeOSMemory()
	}
	n, err := rollup(pid, "Pss:")
	return n["Pss:"], err
}

// Own is what a process has for itself in bytes, which is what comes back when it
// ends, and shared what it has mapped that others have mapped too: the program, and
// compiled code. The proportional set splits the latter among all that there are, so
// that the same process seems to take less the more there are of it.
func Own(pid int) (own, shared int64, err error) {
	n, err := rollup(pid, "Private_Clean:", "Private_Dirty:", "Shared_Clean:", "Shared_Dirty:")
	return n["Private_Clean:"] + n["Private_Dirty:"], n["Shared_Clean:"] + n["Shared_Dirty:"], err
}

// rollup reads lines of what the kernel tells of a process's memory (proc_pid_smaps(5)),
// in bytes.
func rollup(pid int, names ...string) (map[string]int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return nil, fmt.Errorf("memory is measured on Linux only: %w", err)
	}
	n := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || !slices.Contains(names, f[0]) {
			continue
		}
		kb, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		n[f[0]] = kb << 10
	}
	if len(n) != len(names) {
		return nil, fmt.Errorf("the kernel tells no %s of process %d", strings.Join(names, " "), pid)
	}
	return n, nil
}
