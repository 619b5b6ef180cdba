package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
)

func TestMain(m *testing.M) {
	// Scripts wait for processes more than they compute.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"openskill": main, "openskill-measured": measured})
}

// measured is main that also says how much memory it took, as the kernel counted:
// the count that a parent gets begins with the parent's own.
func measured() {
	code := Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		_, peak, _ := strings.Cut(string(b), "VmHWM:")
		peak, _, _ = strings.Cut(peak, "kB")
		_, _ = os.Stderr.WriteString(strings.TrimSpace(peak))
	}
	os.Exit(code)
}

// TestScripts runs the binary as a user does. The commands beside testscript's own:
//
//	module NAME…               writes the named modules as NAME.wasm
//	exits CODE ARGS…           runs openskill and wants this exit code
//	blocked CODE WITHIN ARGS…  the same, with a standard input that never ends and
//	                           outputs that nobody reads
//	last CODE                  the last line on standard error has this error code
//	json FILE PATH [VALUE]     a field of JSON; of standard output with FILE stdout
//	start ARGS…                starts openskill and waits for its first line
//	post PATH BODY STATUS      a request to it; the answer is in answer.json
//	get PATH STATUS
//	taken VAR                  the address that it listens on
//	busy ID                    calls a skill that does not answer, and goes on once it runs
//	hup N TEXT                 sends SIGHUP N times at once, and waits for one more line of its log with TEXT,
//	                           which is then in log.txt
//	end SIGNAL[,SIGNAL] CODE   ends it, and wants this exit code
func TestScripts(t *testing.T) {
	repo := musttest.Get(filepath.Abs("../.."))(t)
	lab := filepath.Dir(hosttest.Lab(t, repo))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+lab)
			e.Values[slotKey{}] = &slot{}
			e.Setenv("REPO", repo)
			e.Setenv("OPENSKILL_STATE_DIR", filepath.Join(e.WorkDir, "state"))
			e.Defer(hosttest.Modules(e.T().(testing.TB), repo, filepath.Join(e.WorkDir, "state")))
			e.Setenv("GOCACHE", goCache()) // or Go compiles its library anew for each script that builds
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "race" {
				return hosttest.UnderRace, nil
			}
			return false, fmt.Errorf("no condition is called %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"module": cmdModule, "exits": cmdExits, "blocked": cmdBlocked, "last": cmdLast, "json": cmdJSON,
			"start": cmdStart, "post": cmdPost, "get": cmdGet, "end": cmdEnd, "taken": cmdTaken, "busy": cmdBusy, "hup": cmdHup,
		},
	})
}

// goCache is where this machine's Go keeps what it compiled; "" without Go.
var goCache = sync.OnceValue(func() string {
	out, _ := exec.Command("go", "env", "GOCACHE").Output()
	return strings.TrimSpace(string(out))
})

func want(ts *testscript.TestScript, neg bool, args []string, n int, form string) {
	if neg || len(args) < n {
		ts.Fatalf("usage: %s", form)
	}
}

func cmdModule(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "module NAME…")
	for _, n := range args {
		b, ok := named()[n]
		if !ok {
			ts.Fatalf("no module is named %s", n)
		}
		ts.Check(os.WriteFile(ts.MkAbs(n+".wasm"), b, 0o600))
	}
}

func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "exits CODE ARGS…")
	checkExit(ts, args[0], ts.Exec("openskill", args[1:]...))
}

func checkExit(ts *testscript.TestScript, wanted string, err error) {
	code := 0
	switch ee, ok := errors.AsType[*exec.ExitError](err); {
	case ok:
		code = ee.ExitCode()
	case err != nil:
		ts.Fatalf("openskill does not run: %v", err)
	}
	if strconv.Itoa(code) != wanted {
		ts.Fatalf("exit code %d, want %s", code, wanted)
	}
}

// command prepares openskill as testscript's exec does.
func command(ts *testscript.TestScript, args ...string) *exec.Cmd {
	var binary string
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p, err := exec.LookPath(filepath.Join(dir, "openskill")); err == nil {
			binary = p
			break
		}
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "OPENSKILL_STATE_DIR=" + ts.Getenv("OPENSKILL_STATE_DIR")}
	return cmd
}

func cmdBlocked(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "blocked CODE WITHIN ARGS…")
	within, err := time.ParseDuration(args[1])
	ts.Check(err)
	cmd := command(ts, args[2:]...)
	in, err := cmd.StdinPipe()
	ts.Check(err)
	// Pipes that nobody reads while the program runs.
	r1, w1, err := os.Pipe()
	ts.Check(err)
	r2, w2, err := os.Pipe()
	ts.Check(err)
	defer r1.Close()
	defer r2.Close()
	cmd.Stdout, cmd.Stderr = w1, w2
	began := time.Now()
	ts.Check(cmd.Start())
	watchdog := time.AfterFunc(within+30*time.Second, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	took := time.Since(began)
	watchdog.Stop()
	_, _, _ = in.Close(), w1.Close(), w2.Close()
	if took > within {
		ts.Fatalf("it took %s, want at most %s", took, within)
	}
	checkExit(ts, args[0], err)
	b, err := io.ReadAll(r2)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), b, 0o600))
}

// lastLine gives the last line of a text.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	return lines[len(lines)-1]
}

func cmdLast(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "last CODE [FILE]")
	file := "stderr"
	if len(args) > 1 {
		file = args[1]
	}
	line := lastLine(ts.ReadFile(file))
	var v struct {
		Error struct{ Code, Message string }
	}
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		ts.Fatalf("the last line is not JSON: %q", line)
	}
	if v.Error.Code != args[0] || v.Error.Message == "" || len(line) > 512+64 {
		ts.Fatalf("the last line is %s, want the code %s", line, args[0])
	}
	if strings.Contains(line, "goroutine") || strings.Contains(line, ts.Getenv("WORK")) {
		ts.Fatalf("the last line tells of the host: %s", line)
	}
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, false, args, 2, "[!] json FILE PATH [VALUE]")
	var v any
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		ts.Fatalf("%s is not JSON: %v", args[0], err)
	}
	found := true
	for _, key := range strings.Split(strings.Trim(args[1], "."), ".") {
		switch at := v.(type) {
		case map[string]any:
			v, found = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if found = err == nil && i < len(at); found {
				v = at[i]
			}
		default:
			found = false
		}
		if !found {
			break
		}
	}
	text, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		ts.Check(err)
		text = string(b)
	}
	if right := found && (len(args) < 3 || text == args[2]); right == neg {
		ts.Fatalf("%s is %s (there: %t), want %s", args[1], text, found, args[2:])
	}
}

// running is a process that start left running.
type running struct {
	cmd    *exec.Cmd
	url    string
	stderr *watched
	out    chan string // all of standard output after the first line
}

// watched keeps what is written, and tells who waits for a text.
type watched struct {
	mu   sync.Mutex
	more *sync.Cond
	b    bytes.Buffer
}

func newWatched() *watched {
	w := &watched{}
	w.more = sync.NewCond(&w.mu)
	return w
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more.Broadcast()
	return w.b.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func (w *watched) await(text string) error { return w.awaitMore(text, 0) }

// awaitMore waits until a text is there more than n times, a minute at most.
func (w *watched) awaitMore(text string, n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := false
	end := time.AfterFunc(time.Minute, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		late = true
		w.more.Broadcast()
	})
	defer end.Stop()
	for strings.Count(w.b.String(), text) <= n {
		if late {
			return fmt.Errorf("a minute without one more %s; all that was said:\n%s", text, &w.b)
		}
		w.more.Wait()
	}
	return nil
}

func cmdHup(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "hup N TEXT")
	times, err := strconv.Atoi(args[0])
	ts.Check(err)
	r := current(ts)
	before := strings.Count(r.stderr.String(), args[1])
	for range times {
		ts.Check(r.cmd.Process.Signal(syscall.SIGHUP))
	}
	ts.Check(r.stderr.awaitMore(args[1], before))
	last := ""
	for line := range strings.Lines(r.stderr.String()) {
		if strings.Contains(line, args[1]) { // others may have come after it
			last = line
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs("log.txt"), []byte(last), 0o600))
}

// slot is where a script keeps what start left running.
type slot struct{ *running }

type slotKey struct{}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "start ARGS…")
	r := &running{cmd: command(ts, args...), stderr: newWatched(), out: make(chan string, 1)}
	r.cmd.Stderr = r.stderr
	stdout, err := r.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(r.cmd.Start())
	ts.Defer(func() { _ = r.cmd.Process.Kill() }) // a no-op once end has waited
	lines := bufio.NewReader(stdout)
	first, err := lines.ReadString('\n')
	if err != nil {
		_ = r.cmd.Wait()
		ts.Fatalf("no first line: %v\n%s", err, r.stderr)
	}
	ts.Logf("%s", first)
	if _, url, ok := strings.Cut(strings.TrimSpace(first), "listening on "); ok {
		r.url = url
	}
	go func() {
		rest, _ := io.ReadAll(lines)
		r.out <- first + string(rest)
	}()
	ts.Value(slotKey{}).(*slot).running = r
}

func current(ts *testscript.TestScript) *running {
	r := ts.Value(slotKey{}).(*slot).running
	if r == nil {
		ts.Fatalf("nothing was started")
	}
	return r
}

func cmdEnd(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "end SIGNAL CODE")
	r := current(ts)
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}
	first, second, two := strings.Cut(args[0], ",")
	ts.Check(r.cmd.Process.Signal(signals[first]))
	if two {
		ts.Check(r.stderr.await(`"msg":"stopping"`))
		ts.Check(r.cmd.Process.Signal(signals[second]))
	}
	watchdog := time.AfterFunc(30*time.Second, func() { _ = r.cmd.Process.Kill() })
	defer watchdog.Stop()
	out := <-r.out
	err := r.cmd.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), []byte(out), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), []byte(r.stderr.String()), 0o600))
	checkExit(ts, args[1], err)
}

// cmdBusy needs a host with one place: once another call finds none, the first
// has it.
func cmdBusy(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "busy ID")
	url := current(ts).url + "/skills/" + args[0] + ":invoke"
	call := func() int {
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Post(url, "application/json", strings.NewReader(`{"input": {}}`))
		if err != nil {
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	const callers = 2 // one of them finds no place
	status := make(chan int, callers)
	for range callers {
		go func() { status <- call() }()
	}
	if got := <-status; got != http.StatusTooManyRequests {
		ts.Fatalf("status %d, want 429", got)
	}
}

func cmdTaken(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "taken VAR")
	ts.Setenv(args[0], strings.TrimPrefix(current(ts).url, "http://"))
}

func cmdPost(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, "post PATH BODY STATUS")
	answer(ts, http.MethodPost, args[0], args[1], args[2])
}

func cmdGet(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "get PATH STATUS")
	answer(ts, http.MethodGet, args[0], "", args[1])
}

func answer(ts *testscript.TestScript, method, path, body, status string) {
	req, err := http.NewRequest(method, current(ts).url+path, strings.NewReader(body))
	ts.Check(err)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("answer.json"), b, 0o600))
	if strconv.Itoa(res.StatusCode) != status {
		ts.Fatalf("status %d, want %s: %s", res.StatusCode, status, b)
	}
}
