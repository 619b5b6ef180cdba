//go:build !race

package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/examples/hostile"
	"openskill/host/selftest"
	"openskill/sdk/skill"
)

// TestHostileServer holds a server in a process of its own to the hostile corpus, over
// HTTP: each case is uploaded with POST /skills, enabled and called, and the oracle of
// package selftest holds. CI takes one archive in eight, since admission's own tests
// have all of them, and gives times five times as long; OPENSKILL_TEST_HOSTILE=1 takes
// every case.
func TestHostileServer(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	all := os.Getenv("OPENSKILL_TEST_HOSTILE") != ""
	dir := t.TempDir()
	data, skills := filepath.Join(dir, "data"), filepath.Join(dir, "skills")
	own := hostile.Canary()
	canary := filepath.Join(skills, "canary")
	if err := errors.Join(os.Mkdir(data, 0o700), os.MkdirAll(canary, 0o700), hostile.Plant(data),
		os.WriteFile(filepath.Join(canary, "skill.yaml"), own.Manifest, 0o600),
		os.WriteFile(filepath.Join(canary, "main.wasm"), own.Module, 0o600)); err != nil {
		t.Fatal(err)
	}
	// A process for each skill, so that the canary of the one tenant that there is over
	// HTTP has one of its own.
	var log strings.Builder
	cmd := exec.Command("openskill", "serve", "--listen", "127.0.0.1:0", "--skills", skills, "--data", data, "--state", filepath.Join(dir, "state"), "--workers", "skill")
	cmd.Dir, cmd.Stderr = dir, &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the host did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("the end of its log:\n%s", log.String()[max(0, log.Len()-4000):])
		}
	})
	_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	remote := &selftest.Remote{
		URL: url, Data: data, Hidden: []string{dir, strings.TrimSpace(hostile.SecretText)}, Own: map[skill.ID]bool{own.ID: true},
		Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: time.Minute},
		Tree:   selftest.Tree{PID: cmd.Process.Pid},
	}
	var cases []hostile.Case
	archives := 0
	for _, c := range hostile.All() {
		switch {
		case c.Two || c.Needs == skill.WasmPython:
			continue // one tenant, and an interpreter that a fresh state would have to compile
		case strings.HasPrefix(c.Name, "U0"):
			if archives++; archives%8 != 0 && !all {
				continue
			}
		case !all && strings.HasSuffix(c.Name, " until the deadline") && !strings.HasPrefix(c.Name, "E01"),
			!all && strings.HasPrefix(c.Name, "E05"): // a compiler's eight seconds
			continue
		}
		cases = append(cases, c)
	}
	report, err := selftest.Run(t.Context(), remote, selftest.Options{
		Cases: cases, Slack: 5, Load: 5 * time.Second,
		Each: func(row selftest.Row) {
			if row.Verdict == selftest.Fail {
				t.Errorf("%s: %s: %s", row.Case, row.Happened, strings.Join(row.Problems, "; "))
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Promises {
		t.Logf("%d, %s: %s: %s", p.Promise, p.Case, p.Verdict, p.Happened)
	}
	t.Logf("%d passed, %d failed, %d skipped", report.Passed, report.Failed, report.Skipped)
	if report.Passed < len(cases)-10 {
		t.Errorf("only %d of %d cases were held", report.Passed, len(cases))
	}
}

// TestSelftest runs the command itself on a few rows: it exits with 0, and with 1 when
// a protection is switched off by a setting, which it names.
func TestSelftest(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts hosts")
	}
	run := func(want int, args ...string) string {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		cmd := exec.CommandContext(ctx, "openskill", append([]string{"selftest", "--state", t.TempDir()}, args...)...)
		cmd.Dir = t.TempDir()
		out, err := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Errorf("%v: exit code %d, want %d: %v\n%s", args, code, want, err, out)
		}
		return string(out)
	}
	if out := run(exitUsage, "--filter", "no such row"); out != "" {
		t.Errorf("%q", out)
	}
	if names := strings.Split(strings.TrimSpace(run(0, "--list")), "\n"); len(names) < 200 {
		t.Errorf("%d names", len(names))
	}
	if out := run(0, "--filter", "W14", "--json"); strings.Count(out, `"verdict":"pass"`) < 3 || !strings.Contains(out, "IMPORT_DENIED") {
		t.Error(out)
	}
	for setting, says := range map[string]string{
		"--workers=off":       "OPENSKILL_WORKERS is off",
		"--workers=shared":    "OPENSKILL_WORKERS is shared",
		"--worker-landlock=0": "switched off by a setting",
		"--worker-seccomp=0":  "switched off by a setting",
	} {
		if out := run(exitFailed, "--filter", "protection", setting); !strings.Contains(out, says) {
			t.Errorf("%s: %s", setting, out)
		}
	}
}

// TestNothingAcknowledgedIsLost kills hosts in the middle of uploads; see the row of the
// self-test.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts and kills hosts")
	}
	exe, err := exec.LookPath("openskill")
	if err != nil {
		t.Fatal(err)
	}
	d, err := killHosts(t.Context(), exe)
	if err != nil || d.Lost > 0 || d.Half > 0 || d.Ends != kills || d.Acknowledged == 0 {
		t.Errorf("%+v, %v", d, err)
	}
	t.Logf("%+v", d)
}
