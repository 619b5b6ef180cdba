package upload

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"openskill/host/upload/uploadtest"
)

// TestPromise5: a verdict costs at most 10 s of CPU and 512 MiB, whatever is sent.
// Memory is what is allocated in all, which is more than is in use at once.
func TestPromise5(t *testing.T) {
	a := admission(t, options()) // no t.Parallel: CPU is counted for the process
	worst := struct {
		cpu    time.Duration
		memory uint64
	}{}
	for _, c := range uploadtest.Cases() {
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
		holds(t, a, dir, got, err)
	}
	t.Logf("at most %v of CPU and %d KiB for one of %d archives", worst.cpu, worst.memory>>10, len(uploadtest.Cases()))
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
