package runnertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"openskill/sdk/skill"
)

func (b *bench) stdout(r *skill.Reply, want []byte) {
	b.t.Helper()
	if !bytes.Equal(r.Stdout, want) {
		b.t.Errorf("stdout: %d bytes %.80q; want %d bytes %.80q", len(r.Stdout), r.Stdout, len(want), want)
	}
}

func echo(b *bench) {
	for _, in := range []string{"", "{}", "line\nline\r\n", "\x00\xff\xfe binary", "höher – 世界 🐍"} {
		r := b.run(Program{Do: Echo}, stdin([]byte(in)))
		b.ended(r, 0)
		b.stdout(r, []byte(in))
		if len(r.Stderr) != 0 || r.Message != "" || r.Artifacts != nil {
			b.t.Errorf("stderr %.200q, message %q, artifacts %v; want none", r.Stderr, r.Message, r.Artifacts)
		}
	}
}

func stdinLarge(b *bench) {
	in := Pattern(1 << 20)
	r := b.run(Program{Do: Echo}, stdin(in), output(2<<20))
	b.ended(r, 0)
	b.stdout(r, in)
	r = b.run(Program{Do: Drain}, stdin(in))
	b.ended(r, 0)
	b.stdout(r, []byte("1048576\n"))
}

// A guest that does not care for its input must not be at fault for that.
func stdinUnread(b *bench) {
	r := b.run(Program{Do: Print, N: 8}, stdin(Pattern(1<<20)))
	b.ended(r, 0)
	b.stdout(r, Pattern(8))
}

func stderrApart(b *bench) {
	r := b.run(Program{Do: Stderr, N: 100_000})
	b.ended(r, 0)
	b.stdout(r, []byte("out"))
	if !bytes.Equal(r.Stderr, Pattern(100_000)) {
		b.t.Errorf("stderr: %d bytes %.80q; want the first 100000 of the pattern", len(r.Stderr), r.Stderr)
	}
}

// seen is what the Environment behaviour prints.
type seen struct {
	Env  map[string]string `json:"env"`
	Args []string          `json:"args"`
}

func (b *bench) environment(names ...string) (s seen) {
	b.t.Helper()
	r := b.run(Program{Do: Environment, Names: names})
	b.ended(r, 0)
	if err := json.Unmarshal(r.Stdout, &s); err != nil {
		b.t.Fatalf("stdout %.200q: %v", r.Stdout, err)
	}
	return s
}

func arguments(b *bench) {
	names := []string{"", "two words", "--flag=1", "-", "ünï 世", "'\"$(x)`", "last"}
	want := append([]string{"0"}, names...)
	if diff := cmp.Diff(want, b.environment(names...).Args); diff != "" {
		b.t.Errorf("arguments after the behaviour (-want +got):\n%s", diff)
	}
}

func environmentEmpty(b *bench) {
	const canary = "RUNNERTEST_CANARY"
	b.t.Setenv(canary, "a secret of the host")
	for name, value := range b.environment().Env {
		if !slices.Contains(b.Env, name) {
			b.t.Errorf("the guest sees %s=%.80q", name, value)
		}
		if strings.Contains(value, "a secret of the host") {
			b.t.Errorf("%s holds a value of the host's environment", name)
		}
	}
}

func exits(code uint32) func(*bench) {
	return func(b *bench) {
		r := b.run(Program{Do: Exit, N: uint64(code)})
		b.ended(r, code)
		b.stdout(r, []byte("bye"))
		b.healthy()
	}
}

func usage(b *bench) {
	r := b.run(Program{Do: Echo}, stdin([]byte("x")))
	b.ended(r, 0)
	if got := r.Usage.Fuel > 0; got != b.Metered {
		b.t.Errorf("fuel used: %d; metered: %v", r.Usage.Fuel, b.Metered)
	}
	// More than the limit is possible where a runtime of the host's own
	// (an interpreter) is counted with the guest; more than twice is not.
	if m := r.Usage.MemoryPeak; m == 0 || m > 2*b.Limits.Memory {
		b.t.Errorf("memory peak: %d; limit %d", m, b.Limits.Memory)
	}
}

const someOutput = 100_001 // not a multiple of a page, a pipe or a line

func outputAtLimit(b *bench) {
	r := b.run(Program{Do: Print, N: someOutput}, output(someOutput))
	b.ended(r, 0)
	b.stdout(r, Pattern(someOutput))
}

func outputOverLimit(b *bench) {
	r := b.run(Program{Do: Print, N: someOutput + 1}, output(someOutput))
	b.stopped(r, skill.OutputLimit)
	b.stdout(r, Pattern(someOutput))
	b.healthy()
}

func outputEndless(b *bench) {
	r := b.run(Program{Do: PrintForever}, output(someOutput))
	b.stopped(r, skill.OutputLimit)
	b.stdout(r, Pattern(someOutput))
	b.healthy()
}

func stderrOverLimit(b *bench) {
	r := b.run(Program{Do: Stderr, N: someOutput + 1}, output(someOutput))
	b.stopped(r, skill.OutputLimit)
	if !bytes.Equal(r.Stderr, Pattern(someOutput)) {
		b.t.Errorf("stderr: %d bytes %.80q; want the first %d of the pattern", len(r.Stderr), r.Stderr, someOutput)
	}
	b.healthy()
}

func concurrent(b *bench) {
	const calls = 20
	replies := make([]*skill.Reply, calls)
	errs := make([]error, calls)
	list := make([]*skill.Call, calls)
	for i := range list {
		list[i] = b.call(Program{Do: Echo}, stdin(mark(i)))
	}
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { replies[i], errs[i] = Do(b.t.Context(), b.runner, list[i]) })
	}
	wg.Wait()
	for i, r := range replies {
		if errs[i] != nil || r == nil {
			b.t.Errorf("call %d: the host failed: %v", i, errs[i])
			continue
		}
		b.ended(r, 0)
		b.stdout(r, mark(i))
	}
}

// mark is 64 KiB that no other call has.
func mark(i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "call %02d|", i), 8<<10)
}
