//go:build !race

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"openskill/examples/hostile"
	"openskill/host/app/hosttest"
	"openskill/host/selftest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// notHere are the rows that a server over HTTP is not held to, each with the reason and
// what holds it instead.
var notHere = map[string]string{
	"kill -9 during uploads":              "it kills hosts of its own: TestNothingAcknowledgedIsLost",
	"C01 slow calls of one tenant":        "it takes several tenants: openskill selftest",
	"C02 sleeping uploads of two tenants": "it takes several tenants: openskill selftest",
}

// TestHostileServer holds a server in a process of its own to the hostile corpus, over
// HTTP: each case is uploaded with POST /skills, enabled and called, and the oracle of
// package selftest holds. One case of each kind is played, and times are five times as long,
// for the machine does other work; host/admission has every archive, wasm and plugins every
// module. CI sets OPENSKILL_TEST_HOSTILE=all for all cases, and apart while it runs the other
// tests; with 1 the times are those of the promises as well, and eight hostile calls go on for
// a minute.
//
// Over HTTP all callers are one, of one tenant. What two tenants do to each other is held
// by the self-test of the same program, which calls the door for both.
func TestHostileServer(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute")
	}
	o := selftest.Options{Cases: oneOfEach(hostile.All()), OneTenant: true, Slack: 5, Load: 3 * time.Second}
	switch os.Getenv("OPENSKILL_TEST_HOSTILE") {
	case "":
	case "apart":
		t.Skip("OPENSKILL_TEST_HOSTILE is apart: CI runs the whole corpus in its next step")
	case "all":
		o.Cases = hostile.All()
	default:
		o.Cases, o.Slack, o.Load = hostile.All(), 1, time.Minute
	}
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	hosttest.Runtimes(t, filepath.Join("..", ".."), state)
	remote := hostileServer(t, dir, state)
	python := warmPython(t, remote)

	held := map[string]selftest.Verdict{}
	began := time.Now()
	o.Each = func(row selftest.Row) {
		held[row.Case] = row.Verdict
		if row.Verdict == selftest.Fail {
			t.Errorf("%s: %s: %s", row.Case, row.Happened, strings.Join(row.Problems, "; "))
		}
	}
	report := musttest.Get(selftest.Run(t.Context(), remote, o))(t)
	for _, p := range report.Promises {
		t.Logf("%d, %s: %s: %s", p.Promise, p.Case, p.Verdict, p.Happened)
	}
	t.Logf("%d passed, %d failed, %d skipped in %.0f s", report.Passed, report.Failed, report.Skipped, time.Since(began).Seconds())
	skipped := maps.Clone(notHere)
	for _, s := range hostile.Scripts() {
		skipped[s.Name] = "scripts are not uploaded: openskill selftest"
	}
	if python != "" {
		for _, c := range hostile.All() {
			if c.Needs == skill.WasmPython {
				skipped[c.Name] = python
			}
		}
	}
	for _, name := range selftest.Names(o) {
		switch why, may := skipped[name]; {
		case held[name] == "":
			t.Errorf("%s was not played", name)
		case held[name] != selftest.Skip:
		case may:
			t.Logf("%s is not held here: %s", name, why)
		default:
			t.Errorf("%s was skipped", name)
		}
	}
	twoTenants(t, state)
	hostileScripts(t, state)
}

// oneOfEach returns the first case of each kind: of those with one number and one form of
// archive, which the same limit ends in the same way.
func oneOfEach(all []hostile.Case) (some []hostile.Case) {
	seen := map[string]bool{}
	for _, c := range all {
		number, _, _ := strings.Cut(c.Name, " ")
		number, rest, _ := strings.Cut(number, "-")
		if form, _, more := strings.Cut(rest, "-"); more && (form == "zip" || form == "tar") { // U05-zip-cut-1
			number += form
		}
		kind := fmt.Sprint(number, c.Promise, c.Limit, c.Refused, c.Ends, c.Needs, c.Calls > 1, c.Two, c.Leave > 0, c.Wears)
		if !seen[kind] {
			some = append(some, c)
		}
		seen[kind] = true
	}
	return some
}

// hostileServer starts the server, with a planted data folder and a canary of its own: a
// process for each skill, so that the canary shares none with the cases.
func hostileServer(t *testing.T, dir, state string) *remoteTarget {
	t.Helper()
	data, skills := filepath.Join(dir, "data"), filepath.Join(dir, "skills")
	own := hostile.Canary()
	canary := filepath.Join(skills, "canary")
	if err := errors.Join(os.Mkdir(data, 0o700), os.MkdirAll(canary, 0o700), hostile.Plant(data),
		os.WriteFile(filepath.Join(canary, "skill.yaml"), own.Manifest, 0o600),
		os.WriteFile(filepath.Join(canary, "main.wasm"), own.Module, 0o600)); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd := exec.Command("openskill", "serve", "--listen", "127.0.0.1:0", "--skills", skills, "--data", data, "--state", state, "--workers", "skill",
		"--data-allow", hostile.DataAllow())
	cmd.Dir, cmd.Stderr = dir, &log
	out := musttest.Get(cmd.StdoutPipe())(t)
	musttest.Do(t, cmd.Start())
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
	return &remoteTarget{
		URL: url, Data: data, Hidden: []string{dir, strings.TrimSpace(hostile.SecretText)}, Own: map[skill.ID]bool{own.ID: true},
		Client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: time.Minute},
		Tree:   selftest.Tree{PID: cmd.Process.Pid},
	}
}

// warmPython has the interpreter compiled before anything is measured, unless an earlier
// test did, and says why it cannot be had; "" where it is ready.
func warmPython(t *testing.T, remote *remoteTarget) string {
	t.Helper()
	for _, c := range hostile.All() {
		if c.Needs != skill.WasmPython {
			continue
		}
		id := musttest.Get(remote.Add(t.Context(), "", c.Upload()))(t)
		for end := time.Now().Add(10 * time.Minute); ; time.Sleep(200 * time.Millisecond) { // until it is ready, as its message says
			r := remote.Invoke(t.Context(), "", id, []byte("{}"))
			switch {
			case r.Error == nil:
				return ""
			case r.Error.Code == skill.ToolInvocationError && strings.Contains(r.Error.Message, "being compiled") && time.Now().Before(end):
			default:
				return r.Error.Message
			}
		}
	}
	return ""
}

// twoTenants plays what two tenants do to each other.
func twoTenants(t *testing.T, state string) {
	t.Helper()
	held, out := selfTest(t, state, "two tenants")
	for _, c := range hostile.All() {
		if c.Two && held[c.Name] != selftest.Pass {
			t.Errorf("%s, of two tenants: %q\n%s", c.Name, held[c.Name], out)
		}
	}
}

// selfTest gives the verdicts of rows whose names hold a text.
func selfTest(t *testing.T, state, filter string) (map[string]selftest.Verdict, []byte) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "openskill", "selftest", "--state", state, "--filter", filter, "--json")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("selftest --filter %q: %v", filter, err)
	}
	held := map[string]selftest.Verdict{}
	for line := range bytes.Lines(out) {
		var row selftest.Row
		if json.Unmarshal(line, &row) == nil {
			held[row.Case] = row.Verdict
		}
	}
	return held, out
}

// hostileScripts plays those of the corpus, which need runtimes, in the self-test, where the
// whole corpus is played: what they need is compiled for a minute.
func hostileScripts(t *testing.T, state string) {
	t.Helper()
	if os.Getenv("OPENSKILL_TEST_HOSTILE") == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(state, "runtimes", "shell", "bash.wasm")); err != nil {
		t.Log("scripts are not held here: no shell")
		return
	}
	for _, number := range []string{"G0", "G1"} {
		held, out := selfTest(t, state, number)
		for _, s := range hostile.Scripts() {
			if strings.HasPrefix(s.Name, number) && held[s.Name] != selftest.Pass {
				t.Errorf("%s: %q\n%s", s.Name, held[s.Name], out)
			}
		}
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
		"--workers=shared": "OPENSKILL_WORKERS is shared",
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
	exe := musttest.Get(exec.LookPath("openskill"))(t)
	d, err := killHosts(t.Context(), exe)
	if err != nil || d.Lost > 0 || d.Half > 0 || d.Ends != kills || d.Acknowledged == 0 {
		t.Errorf("%+v, %v", d, err)
	}
	t.Logf("%+v", d)
}
