package app

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestMain lets this test program be the processes of a host.
func TestMain(m *testing.M) {
	if code, is := Child(os.Args[1:]); is {
		os.Exit(code)
	}
	// Tests in parallel wait for deadlines here.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func openHost(t *testing.T, s *config.Settings) *Host {
	t.Helper()
	h := musttest.Get(Open(s, &Options{Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

func invoke(t *testing.T, h *Host, id skill.ID) *skill.Result {
	t.Helper()
	return h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: id, Input: []byte("{}"), TraceID: "t"})
}

// TestEveryIsolation runs skills under every value of OPENSKILL_WORKERS, and in the host's process.
func TestEveryIsolation(t *testing.T) {
	hosttest.NoRace(t)
	for _, c := range []struct {
		name  string
		flags map[string]string
	}{
		{"tenant", nil},
		{"skill", map[string]string{"workers": "skill"}},
		{"shared", map[string]string{"workers": "shared", "workers-spare": "0"}},
		{"off", map[string]string{"workers": "off"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, settings(t, c.flags))
			for range 2 {
				if r := invoke(t, h, "quick"); !r.Success || string(r.Data) != "{}" || r.Meta.FuelUsed == 0 {
					t.Fatalf("%+v %+v", r, r.Error)
				}
				if r := invoke(t, h, "slow"); r.Success || r.Error.Code != skill.Timeout {
					t.Errorf("%+v", r)
				}
			}
			if (h.engine == nil) != (c.name != "off") {
				t.Error("calls do not run where the setting says")
			}
		})
	}
}

// TestEveryRunnerIsInBothHosts: what a host without workers runs, one with workers runs
// too. A sandboxed runner needs a front for that; see openWorkers.
func TestEveryRunnerIsInBothHosts(t *testing.T) {
	hosttest.NoRace(t)
	kinds := func(h *Host) (list []skill.Kind) {
		for _, r := range h.all {
			list = append(list, r.Kind())
		}
		slices.Sort(list)
		return list
	}
	apart, here := kinds(openHost(t, settings(t, nil))), kinds(openHost(t, settings(t, map[string]string{"workers": "off"})))
	if diff := cmp.Diff(here, apart); diff != "" {
		t.Errorf("runners (-in the host's process +with workers):\n%s", diff)
	}
}

// TestNothingIsCompiledTwice holds that what one host compiled the next one finds.
func TestNothingIsCompiledTwice(t *testing.T) {
	hosttest.NoRace(t)
	s := settings(t, nil)
	h := openHost(t, s)
	invoke(t, h, "quick")
	made, _ := filepath.Glob(filepath.Join(s.StateDir, "modules", "*", "*", "report.json"))
	if len(made) != 1 {
		t.Fatalf("compiled: %q", made)
	}
	before := musttest.Get(os.Stat(made[0]))(t)
	musttest.Do(t, h.Close())
	if r := invoke(t, openHost(t, s), "quick"); !r.Success {
		t.Fatalf("%+v", r.Error)
	}
	if after, err := os.Stat(made[0]); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("compiled again: %v", err)
	}
}

// TestWorkerIsKilled ends the process of a call in its middle.
func TestWorkerIsKilled(t *testing.T) {
	hosttest.NoRace(t)
	h := openHost(t, settings(t, nil))
	invoke(t, h, "quick")
	h.Prepare(t.Context(), "slow") // or the process may be killed while it is compiled elsewhere
	for crashed := false; !crashed && !t.Failed(); {
		result := make(chan *skill.Result, 1)
		go func() { result <- invoke(t, h, "slow") }()
		for h.workers.pool.Stats().Busy == 0 {
			time.Sleep(time.Millisecond)
		}
		for _, pid := range h.workers.pool.Stats().Pids {
			musttest.Do(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		switch r := <-result; {
		case !r.Success && r.Error.Code == skill.WorkerCrashed:
			crashed = true
		case !r.Success && r.Error.Code == skill.Timeout: // killed before the call was its own: another process has run it
		default:
			t.Errorf("%+v, %+v", r, r.Error)
		}
	}
	if r := invoke(t, h, "quick"); !r.Success {
		t.Errorf("afterwards: %+v", r.Error)
	}
}
