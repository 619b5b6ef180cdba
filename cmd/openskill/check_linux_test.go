//go:build !race

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"openskill/internal/musttest"
)

// A checking process stays small and quick whatever the file: 256 MiB in all.
func TestCheckIsBounded(t *testing.T) {
	const most = 256 << 10 // KiB
	dir := t.TempDir()
	sparse := filepath.Join(dir, "sparse.wasm")
	musttest.Do(t, os.WriteFile(sparse, magic, 0o600))
	musttest.Do(t, os.Truncate(sparse, 64<<30))
	body := concat([]byte{0}, slices.Repeat([]byte{0x41, 0, 0x1a}, 200), []byte{0x0b})
	const many = 99_999
	custom := sectionOf(0, concat(name("a"), make([]byte, 6<<20)))
	files := map[string][]byte{
		"functions.wasm": concat(magic, section(1, 1, 0x60, 0, 0), sectionOf(3, concat(leb(many), make([]byte, many))),
			sectionOf(10, concat(leb(many), slices.Repeat(concat(leb(len(body)), body), many)))),
		"custom.wasm": concat(magic, slices.Repeat(custom, 10)),
		"datas.wasm":  concat(magic, section(5, 1, 0, 1), sectionOf(11, concat(leb(200_000), slices.Repeat([]byte{1, 0}, 200_000)))),
		"names.wasm": concat(magic, section(1, 1, 0x60, 0, 0), section(3, 1, 0),
			sectionOf(7, concat(leb(1000), slices.Repeat(concat(leb(4096), make([]byte, 4096), []byte{0, 0}), 1000)))),
		"zeros.wasm": concat(magic, make([]byte, 60<<20)),
		"types.wasm": concat(magic, sectionOf(1, concat(leb(10_000), slices.Repeat(concat([]byte{0x60}, leb(1000), slices.Repeat([]byte{0x7f}, 1000), []byte{0}), 10_000)))),
	}
	for _, n := range []string{"w01", "w02", "w04", "w05", "w06", "w07", "w08", "w11", "e11"} {
		files[n+".wasm"] = named()[n]
	}
	paths := []string{sparse}
	for n, b := range files {
		p := filepath.Join(dir, n)
		musttest.Do(t, os.WriteFile(p, b, 0o600))
		paths = append(paths, p)
	}
	for _, p := range paths {
		t.Run(filepath.Base(p), func(t *testing.T) {
			began := time.Now()
			cmd := exec.CommandContext(t.Context(), "openskill-measured", "module", "check", p)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, _ := cmd.Output() // the exit code is looked at below
			took := time.Since(began)
			usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			peak, err := strconv.Atoi(stderr.String())
			if !ok || err != nil || cmd.ProcessState.ExitCode() > exitFailed || len(out) == 0 {
				t.Fatalf("exit code %d, %q, %q", cmd.ProcessState.ExitCode(), out, &stderr)
			}
			if peak > most {
				t.Errorf("%d KiB at the most, want %d", peak, most)
			}
			// Its own time, not that of a busy machine; two processors may share it.
			cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
			if cpu > 3*time.Second {
				t.Errorf("%s of processor time in %s", cpu, took)
			}
			t.Logf("%d KiB, %s of processor time in %s", peak, cpu, took)
		})
	}
}
