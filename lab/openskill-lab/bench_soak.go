package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"openskill/host/app/config"
	"openskill/internal/cliflag"
	"openskill/lab/load"
	"openskill/lab/soak"
	"openskill/sdk/skill"
)

func (a *cli) benchSoakCommand() *cobra.Command {
	length, clients := &cliflag.Duration{Value: 30 * time.Minute}, &cliflag.Count{Value: 8, Low: 1, High: 1024, Name: "N"}
	calls, pid := &cliflag.Count{Low: 1, High: 1 << 40, Name: "N"}, &cliflag.Count{Low: 1, High: 1 << 30, Name: "PID"}
	var key, markdown string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "soak [URL]",
		Short: "Calls a host for long, and says whether its memory, descriptors and threads stay flat",
		Long: `Starts a host with the built-in skills in a folder of its own, calls it with many
kinds of calls, and looks at its processes meanwhile: memory, descriptors, threads,
the size of the state folder, and goroutines and heap where the host has /metrics.
Of the calls some must fail, by fuel, time, input, or the skill's own word; uploads are
sent, enabled, called and deleted. Each answer is compared with what it must be.

Something grows if its slope over the second half of the run (Theil and Sen's, the
median of all slopes between two samples) is more than 2 % for memory, or more than
nothing for descriptors, goroutines, threads and processes, and its lowest values rise
as well. A run of less than ten minutes is not judged: a host keeps what nobody calls for
five, and fills until then.

With URL, a host that is there is called; --pid is its process, on this machine. Its
skills must be called without a limit a minute, or calls are refused, which counts.

The exit code is 1 if something grows, or a call did not end as it must.`,
		Example: "  openskill-lab bench soak --duration 30m --calls 1000000\n  openskill-lab bench soak http://127.0.0.1:8000 --pid 4711 --duration 10m",
		Args:    takes(0, 1),
	}
	flags := bindSettings(cmd, "state", "skills")
	f := cmd.Flags()
	f.Var(length, "duration", "how long to call at most; default 30m")
	f.Var(calls, "calls", "calls after which to end; unset: time alone ends it")
	f.Var(clients, "clients", "clients that call at once, each as soon as it is answered; default 8")
	f.Var(pid, "pid", "process of the host at URL")
	f.Var(cliflag.Text(&key, "KEY|@FILE"), "key", "API key or JWT for the host at URL; @FILE keeps it out of the list of processes")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	f.Var(cliflag.Text(&markdown, "FILE"), "markdown", "write the table into this file, between its marks for \"soak\"")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.load(flags)
		if err != nil {
			return err
		}
		if key, err = readKey(key); err != nil {
			return err
		}
		if (len(args) == 1) != (pid.Value != 0) {
			return usage("URL and --pid belong together: a host that is there, and its process")
		}
		r := &soak.Run{
			Clients: int(clients.Value), Duration: length.Value, Calls: int64(calls.Value), // bounded
			Kinds: soak.Mix(), Every: min(max(length.Value/400, 100*time.Millisecond), 5*time.Second),
			Log: func(line string) { a.say("soak: %s", line) },
		}
		var out *soak.Outcome
		if len(args) == 1 {
			out, err = a.soakThere(cmd.Context(), r, args[0], int(pid.Value), key) // bounded
		} else {
			out, err = a.soakOwn(cmd.Context(), s, r)
		}
		if err != nil {
			return err
		}
		command := "openskill-lab bench soak --duration " + length.Value.String()
		if calls.Value != 0 {
			command += fmt.Sprintf(" --calls %d", calls.Value)
		}
		return a.soaked(out, command, markdown, asJSON)
	}
	return cmd
}

// soaked prints what a run was, and fails if it was bad.
func (a *cli) soaked(out *soak.Outcome, command, markdown string, asJSON bool) error {
	rows := out.Rows()
	growing := soak.Growing(rows)
	if markdown != "" {
		if err := writeSoak(markdown, out.Markdown(command)); err != nil {
			return hostFailed(err)
		}
	}
	if asJSON {
		if err := a.printJSON(soakJSON(out, rows)); err != nil {
			return err
		}
	} else {
		t := newTable("WHAT", "FIRST", "LAST", "GROWTH", "BOUND", "VERDICT")
		for _, r := range rows {
			c := r.Cells()
			t.AppendRow(table.Row{c[0], c[1], c[2], c[3], c[4], c[5]})
		}
		if err := a.print("%s\n\n%s\n", out.Summary(), t.Render()); err != nil {
			return err
		}
	}
	if !out.Goroutine {
		a.say("soak: the host has no /metrics with Go's own numbers: goroutines and heap were not followed")
	}
	if out.Ended {
		a.say("soak: it was ended before its time")
	}
	for _, s := range out.Said {
		a.say("soak: wrong: %s", skill.CleanText(s, 600))
	}
	switch {
	case out.Wrong > 0:
		return failed(skill.Internal, "%d of %d calls did not end as they must", out.Wrong, out.Calls)
	case len(growing) > 0:
		return failed(skill.Internal, "growing: %s", strings.Join(growing, ", "))
	}
	return nil
}

// soakReport is what --json prints.
type soakReport struct {
	Seconds float64      `json:"seconds"`
	Calls   int64        `json:"calls"`
	Wrong   int64        `json:"wrong"`
	Ended   bool         `json:"ended_early"`
	Kinds   []soak.Tally `json:"kinds"`
	Rows    []soakRow    `json:"rows"`
}

type soakRow struct {
	Name    string  `json:"name"`
	Told    bool    `json:"told"`
	First   float64 `json:"first"`  // bytes, or how many
	Last    float64 `json:"last"`   // as First
	Growth  float64 `json:"growth"` // as First
	Most    float64 `json:"most"`   // as First
	Judged  bool    `json:"judged"`
	Growing bool    `json:"growing"`
}

func soakJSON(out *soak.Outcome, rows []soak.Row) *soakReport {
	r := &soakReport{Seconds: out.Took.Seconds(), Calls: out.Calls, Wrong: out.Wrong, Ended: out.Ended, Kinds: out.Kinds}
	for _, s := range rows {
		r.Rows = append(r.Rows, soakRow{s.Name, s.Told, s.First, s.Last, s.Growth, s.Most, s.Judged, s.Growing})
	}
	return r
}

// The marks of a document between which the table of a soak is.
const (
	soakBegins = "<!-- soak: written by a command, not by hand -->\n"
	soakEnds   = "<!-- end of soak -->\n"
)

func writeSoak(file, text string) error {
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(doc, []byte(soakBegins))
	_, after, also := bytes.Cut(rest, []byte(soakEnds))
	if !ok || !also {
		return fmt.Errorf("%s has no place for the table: the lines %q and %q", file, strings.TrimSpace(soakBegins), strings.TrimSpace(soakEnds))
	}
	doc = bytes.Join([][]byte{before, []byte(soakBegins), []byte(text), []byte(soakEnds), after}, nil)
	return os.WriteFile(file, doc, 0o644)
}

// soakThere soaks a host that is there.
func (a *cli) soakThere(ctx context.Context, r *soak.Run, address string, pid int, key string) (*soak.Outcome, error) {
	t, err := load.Open(address, load.Options{Key: key, Connections: r.Clients + 2, Timeout: time.Minute})
	if err != nil {
		return nil, usage("%s: %v", quote(address), err)
	}
	defer t.Close()
	r.Target, r.PID = t, pid
	var kinds []soak.Kind
	for _, k := range r.Kinds {
		an, err := t.Do(&load.Request{Method: "GET", Path: "/skills/" + url.PathEscape(k.Skill)})
		switch {
		case err != nil:
			return nil, failed(skill.Internal, "%s does not answer: %v", quote(address), err)
		case an.Success:
			kinds = append(kinds, k)
		default:
			a.say("soak: left out: %s, since the host has no skill %s (%s)", k.Name, k.Skill, an.Code)
		}
	}
	if len(kinds) == 0 {
		return nil, failed(skill.NotFound, "the host has none of the skills that are called")
	}
	r.Kinds = kinds
	out, err := r.Do(ctx)
	if err != nil {
		return nil, hostFailed(err)
	}
	return out, nil
}

// soakOwn starts a host in a folder of its own, soaks it and stops it.
func (a *cli) soakOwn(ctx context.Context, s *config.Settings, r *soak.Run) (out *soak.Outcome, err error) {
	f, err := soak.MakeFolders(s.StateDir, s.SkillsDir)
	if err != nil {
		return nil, hostFailed(err)
	}
	defer func() {
		if left := os.RemoveAll(f.Root); left != nil {
			a.say("soak: a folder is left: %v", left)
		}
	}()
	if r.Upload, err = os.ReadFile(filepath.Join(f.Skills, "echo", "echo.wasm")); err != nil {
		return nil, hostFailed(fmt.Errorf("the skill echo is not built: %w", err))
	}
	own := *s
	own.StateDir, own.SkillsDir, own.DataRoot = f.State, f.Skills, f.Data
	h, err := a.startHost(ctx, &own, f.Root, "--auth", "none", "--upload-grace-s", "1", "--upload-versions", "10000")
	if err != nil {
		return nil, hostFailed(err)
	}
	defer func() {
		if stopped := h.stop(); stopped != nil && err == nil {
			err = hostFailed(fmt.Errorf("the host ended badly: %w", stopped))
		}
		for _, line := range h.log.bad() {
			a.say("soak: the host said: %s", skill.CleanText(line, 600))
		}
	}()
	t, err := load.Open(h.url, load.Options{Connections: r.Clients + 2, Timeout: time.Minute})
	if err != nil {
		return nil, hostFailed(err)
	}
	defer t.Close()
	r.Target, r.PID, r.State = t, h.cmd.Process.Pid, f.State
	a.say("soak: a host of its own at %s, in %s; first calls", h.url, f.Root)
	if err := warmUp(ctx, r); err != nil {
		return nil, failed(skill.Internal, "%v", err)
	}
	if out, err = r.Do(ctx); err != nil {
		return nil, hostFailed(err)
	}
	return out, nil
}

// warmUp makes one call of each kind: what has to be compiled is not what is followed. A
// runtime that is being compiled is waited for, an answer that is wrong is not.
func warmUp(ctx context.Context, r *soak.Run) error {
	for i := range r.Kinds {
		k := &r.Kinds[i]
		var final error
		err := patiently(ctx, 10*time.Minute, func() error {
			req, want := k.Request(0)
			an, err := r.Target.Do(req)
			wrong := k.Wrong(an, err, want)
			switch {
			case wrong == "":
				return nil
			case an.Code == string(skill.CompileTimeout), an.Code == string(skill.RateLimited), an.Code == string(skill.Timeout) && k.Code == "", an.Code == string(skill.Internal):
				return fmt.Errorf("%s: %s", k.Name, wrong)
			}
			final = fmt.Errorf("%s: %s", k.Name, wrong)
			return nil
		})
		if err = errors.Join(final, err); err != nil {
			return err
		}
	}
	return nil
}

// served is a host as a process.
type served struct {
	cmd *exec.Cmd
	url string
	log *lastWords
}

// startHost starts a host on a free port, in a folder where no file of settings is.
func (a *cli) startHost(ctx context.Context, s *config.Settings, dir string, args ...string) (*served, error) {
	// A host outlives ctx for as long as it takes to say what was found.
	cmd := openskill(context.WithoutCancel(ctx), s, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	for _, v := range a.environ {
		if !strings.HasPrefix(v, "OPENSKILL_DATABASE_URL=") && !strings.HasPrefix(v, "OPENSKILL_STATE_DIR=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	h := &served{cmd: cmd, log: &lastWords{}}
	cmd.Stderr = h.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	interrupted := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	interrupted()
	_, rest, ok := strings.Cut(line, "http://")
	if err != nil || !ok {
		return nil, errors.Join(fmt.Errorf("the host did not start: %s", strings.Join(h.log.bad(), "; ")), h.stop())
	}
	h.url = "http://" + strings.TrimSpace(rest)
	go io.Copy(io.Discard, out) //nolint:errcheck // calls to copy, which nobody reads; it ends with the process
	return h, nil
}

// stop asks the host to end, and waits for it.
func (h *served) stop() error {
	_ = h.cmd.Process.Signal(os.Interrupt) // it may have ended by itself, which Wait says
	kill := time.AfterFunc(30*time.Second, func() { _ = h.cmd.Process.Kill() })
	defer kill.Stop()
	return h.cmd.Wait()
}

// lastWords keep what a log says of errors, and lines that are no log's: the last of them.
type lastWords struct {
	mu    sync.Mutex
	half  []byte
	lines []string
}

// Write implements io.Writer.
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.half = append(l.half, p[:min(len(p), max(4096-len(l.half), 0))]...)
			return n, nil
		}
		l.half = append(l.half, p[:i]...)
		if line := l.half; bytes.Contains(line, []byte(`"level":"ERROR"`)) || !bytes.HasPrefix(line, []byte("{")) {
			if len(l.lines) == 5 {
				l.lines = l.lines[1:]
			}
			l.lines = append(l.lines, string(line[:min(len(line), 4096)]))
		}
		l.half, p = l.half[:0], p[i+1:]
	}
}

func (l *lastWords) bad() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}
