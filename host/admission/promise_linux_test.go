package admission

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/host/admission/admissiontest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestPromise5: a verdict costs at most 10 s of CPU and 512 MiB, whatever is sent.
// Memory is what is allocated in all, which is more than is in use at once.
func TestPromise5(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which runs with -short, costs more than what is measured")
	}
	a := admission(t, options()) // no t.Parallel: CPU is counted for the process
	worst := struct {
		cpu    time.Duration
		memory uint64
	}{}
	cases := append(heavy(), admissiontest.Cases()...)
	for _, c := range cases {
		var before, after runtime.MemStats
		file, dir := spool(t, c.Bytes), staging(t)
		runtime.ReadMemStats(&before)
		start := cpu(t)
		got, err := a.Admit(t.Context(), Source{Archive: file}, dir)
		used := cpu(t) - start
		runtime.ReadMemStats(&after)
		memory := after.TotalAlloc - before.TotalAlloc
		if used > 10*time.Second || memory > 512<<20 {
			t.Errorf("%s: %v of CPU and %d bytes", c.Name, used, memory)
		}
		worst.cpu, worst.memory = max(worst.cpu, used), max(worst.memory, memory)
		if skill.CodeOf(err) != c.Want {
			t.Errorf("%s: %v, want %q", c.Name, err, c.Want)
		}
		holds(t, a, dir, got, err)
	}
	t.Logf("at most %v of CPU and %d KiB for one of %d archives", worst.cpu, worst.memory>>10, len(cases))
}

// heavy are honest archives at the limits.
func heavy() []admissiontest.Case {
	base := []admissiontest.Entry{{Name: "skill.yaml", Body: admissiontest.Manifest("up", "1.0.0")}, {Name: "main.js", Body: []byte(admissiontest.Script)}}
	noise := make([]byte, 31<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never fails
	text := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 63<<20/44)
	for i := 0; i+4 < len(text); i += 2000 { // or it would compress better than is accepted
		copy(text[i:], noise[i/4:i/4+4])
	}
	paths := slices.Clone(base)
	for i := range 998 {
		// Marks that normalization sorts and composes, sixteen parts deep.
		part := strings.Repeat("e\u0323\u0302", 12)
		paths = append(paths, admissiontest.Entry{Name: fmt.Sprintf("%s%d", strings.Repeat(part[:60]+"/", 15), i)})
	}
	with := func(e ...admissiontest.Entry) []byte {
		return admissiontest.Zip{Entries: append(slices.Clone(base), e...)}.Bytes()
	}
	blocks := admissiontest.Tar{Blocks: []admissiontest.Block{
		{Name: "skill.yaml", Body: base[0].Body}, {Name: "main.js", Body: base[1].Body}, {Name: "text", Body: text},
	}}
	return []admissiontest.Case{
		{Name: "noise", Bytes: with(admissiontest.Entry{Name: "noise", Body: noise})},
		{Name: "text", Bytes: with(admissiontest.Entry{Name: "text", Body: text, Deflate: true})},
		{Name: "tar of text", Bytes: blocks.Bytes()},
		{Name: "paths", Bytes: admissiontest.Zip{Entries: paths}.Bytes()},
	}
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	musttest.Do(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
