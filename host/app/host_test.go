package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Modules in bytes. The first prints {} and a line end, the second waits for four
// days.
const (
	answering = "\x00asm\x01\x00\x00\x00\x01\x0c\x02\x60\x00\x00\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x02\x23\x01\x16wasi_snapshot_preview1\x08fd_write\x00\x01" +
		"\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06_start\x00\x01\x0a\x0f\x01\x0d\x00\x41\x01\x41\x00\x41\x01\x41\x08\x10\x00\x1a\x0b" +
		"\x0b\x19\x01\x00\x41\x00\x0b\x13\x10\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00{}\n"
	waiting = "\x00asm\x01\x00\x00\x00\x01\x0c\x02\x60\x00\x00\x60\x04\x7f\x7f\x7f\x7f\x01\x7f\x02\x26\x01\x16wasi_snapshot_preview1\x0bpoll_oneoff\x00\x01" +
		"\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06_start\x00\x01\x0a\x11\x01\x0f\x00\x41\x00\x41\x80\x01\x41\x01\x41\x80\x08\x10\x00\x1a\x0b" +
		"\x0b\x36\x01\x00\x41\x00\x0b\x30" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\xb5\x4b\x51\x3a\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// settings are those of a host with two skills: quick answers {}, and slow does
// not answer within its second.
func settings(t *testing.T, flags map[string]string) *config.Settings {
	t.Helper()
	dir := t.TempDir()
	for id, module := range map[string]string{"quick": answering, "slow": waiting} {
		folder := filepath.Join(dir, "skills", id)
		musttest.Do(t, os.MkdirAll(folder, 0o700))
		limit := 1000
		if id == "quick" {
			limit = 20_000 // for a first call that compiles and starts a process, by a binary that is slow
		}
		manifest := fmt.Sprintf("id: %s\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: %s.wasm\nlimits: {timeout_ms: %d}\n", id, id, limit)
		for name, text := range map[string]string{"skill.yaml": manifest, id + ".wasm": module} {
			musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
	}
	all := map[string]string{"listen": "127.0.0.1:0"}
	for k, v := range flags {
		all[k] = v
	}
	return load(t, config.Sources{Dir: dir, Flags: all})
}

// load loads settings. Workers off, which no source of settings can say, has skills run in this
// process; so has the race detector, whose processes take seconds to start.
func load(t testing.TB, from config.Sources) *config.Settings {
	t.Helper()
	given, apart := from.Flags["workers"]
	if given == "off" {
		delete(from.Flags, "workers")
	}
	s := musttest.Get(config.Load(from))(t)
	s.InProcess = given == "off" || hosttest.UnderRace && !apart
	return s
}

// serving is a host that serves; stop ends it and gives what Serve returned.
type serving struct {
	host *Host
	url  string
	log  *bufio.Scanner
	stop func() error
}

func serve(t testing.TB, s *config.Settings) *serving {
	t.Helper()
	r, w := io.Pipe()
	var mu sync.Mutex
	var lines [][]byte // without a bound: the host never waits for a test that reads none
	ended := false
	more := sync.NewCond(&mu)
	go func() {
		mu.Lock()
		defer mu.Unlock()
		for {
			for len(lines) == 0 && !ended {
				more.Wait()
			}
			if len(lines) == 0 {
				_ = w.Close()
				return
			}
			b := lines[0]
			lines = lines[1:]
			mu.Unlock()
			_, _ = w.Write(b)
			mu.Lock()
		}
	}()
	log := writer(func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if !ended { // a host does not wait without end for its parts, and they may log later
			lines = append(lines, bytes.Clone(b))
			more.Signal()
		}
	})
	h := musttest.Get(Open(s, &Options{Mode: Serving, Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() { done <- h.Serve(ctx, func(a net.Addr) { ready <- a }) }()
	v := &serving{host: h, log: bufio.NewScanner(r)}
	stopped := false
	v.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		err := <-done
		_ = r.Close()
		mu.Lock()
		defer mu.Unlock()
		ended = true
		more.Signal()
		return err
	}
	t.Cleanup(func() { _ = v.stop() })
	select {
	case a := <-ready:
		v.url = "http://" + a.String()
	case err := <-done:
		t.Fatalf("Serve: %v", err)
	}
	return v
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func (v *serving) post(t *testing.T, id string) *skill.Result {
	t.Helper()
	res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(request(t, v.url+"/skills/"+id+":invoke"))
	if err != nil {
		t.Errorf("%s: %v", id, err)
		return &skill.Result{}
	}
	defer res.Body.Close()
	var r skill.Result
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		t.Errorf("%s: %v", id, err)
	}
	return &r
}

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"input": {}}`)))(t)
	req.Close = true
	return req
}

// await reads the log until a line holds all words.
func (v *serving) await(t *testing.T, words ...string) string {
	t.Helper()
	for v.log.Scan() {
		found := true
		for _, w := range words {
			found = found && strings.Contains(v.log.Text(), w)
		}
		if found {
			return v.log.Text()
		}
	}
	t.Fatalf("the log ended without %q", words)
	return ""
}

func TestServeAnswersAndLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	v := serve(t, settings(t, nil))
	if r := v.post(t, "quick"); !r.Success || string(r.Data) != "{}" || r.Meta.Runner != skill.WasmWASI {
		t.Errorf("quick: %+v", r)
	}
	if r := v.post(t, "slow"); r.Error == nil || r.Error.Code != skill.Timeout {
		t.Errorf("slow: %+v", r.Error)
	}
	if err := v.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://")); err == nil {
		t.Error("the address still answers")
	}
	// fasthttp's clock runs for ever, and its janitor for another second.
	if err := goleak.Find(before, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2")); err != nil {
		t.Error(err)
	}
}

// Pages that are reached by the base URL may call, and those of others may not.
func TestPagesOfTheBaseURL(t *testing.T) {
	v := serve(t, settings(t, map[string]string{"http-base-url": "https://Skills.example:443/below"}))
	for origin, want := range map[string]int{
		"https://skills.example": http.StatusOK, "https://other.example": http.StatusForbidden, "http://skills.example": http.StatusForbidden,
	} {
		req := request(t, v.url+"/skills/quick:invoke")
		req.Header.Set("Origin", origin)
		resp, err := http.DefaultClient.Do(req)
		musttest.Do(t, err)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("a page of %s: %d, want %d", origin, resp.StatusCode, want)
		}
	}
	if err := v.stop(); err != nil {
		t.Error(err)
	}
}

// warming is what /readyz says of it.
func (v *serving) warming(t *testing.T) []string {
	t.Helper()
	resp, err := http.DefaultClient.Do(get(t, v.url+"/readyz"))
	musttest.Do(t, err)
	defer resp.Body.Close()
	var got struct {
		Status  string
		Warming []string
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusOK || got.Status != "ok" {
		t.Fatalf("%v: %d %+v", err, resp.StatusCode, got)
	}
	return got.Warming
}

// Modules are compiled after the host listens, one log line each at the level DEBUG; what
// a runner lacks is logged for everybody, as is the end. Until then /readyz names what is left.
func TestWarmsUp(t *testing.T) {
	s := settings(t, nil)
	folder := filepath.Join(s.SkillsDir, "script")
	manifest := "id: script\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: python\nentry: script.py\n"
	if err := errors.Join(os.Mkdir(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "skill.yaml"), []byte(manifest), 0o600),
		os.WriteFile(filepath.Join(folder, "script.py"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	v := serve(t, s)
	if kinds := v.warming(t); len(kinds) > 0 && !slices.Contains(kinds, "wasm:wasi") && !slices.Contains(kinds, "wasm:python") {
		t.Errorf("warming: %q", kinds)
	}
	v.await(t, `"warmed up"`, `"what":"quick"`)
	v.await(t, `"warmed up"`, `"what":"slow"`)
	// No skill asks for JavaScript, so the next one is Python.
	if line := v.await(t, `"warmed up"`); !strings.Contains(line, `"WARN"`) || !strings.Contains(line, `"what":"wasm:python"`) || !strings.Contains(line, "openskill runtime install slim") {
		t.Errorf("%s; want that the Python runtime is missing", line)
	}
	// Then what runs is started, once each. Quick asks for no input, which is no fault.
	if line := v.await(t, `"started ahead of calls"`); !strings.Contains(line, `"DEBUG"`) || !strings.Contains(line, `"what":"quick"`) {
		t.Errorf("%s; want that quick is started", line)
	}
	v.await(t, `"INFO"`, `"skills are ready"`)
	if kinds := v.warming(t); kinds != nil {
		t.Errorf("when all is ready, %q are warming", kinds)
	}
}

// A runtime is got ready for what skills require, and a wrong requirement is told.
func TestWarmsUpWhatIsRequired(t *testing.T) {
	s := settings(t, nil)
	for id, requires := range map[string]string{"frames": "pandas", "wrong": "no-such-package"} {
		folder := filepath.Join(s.SkillsDir, id)
		manifest := "id: " + id + "\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: python\nentry: script.py\nrequires: [" + requires + "]\n"
		if err := errors.Join(os.Mkdir(folder, 0o700),
			os.WriteFile(filepath.Join(folder, "skill.yaml"), []byte(manifest), 0o600),
			os.WriteFile(filepath.Join(folder, "script.py"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	v := serve(t, s)
	v.await(t, `"what":"wasm:python with pandas"`, "openskill runtime install scientific")
	if r := v.post(t, "frames"); r.Error == nil || r.Error.Code != skill.ToolInvocationError || !strings.Contains(r.Error.Message, "openskill runtime install scientific") {
		t.Errorf("%+v; want the command that installs what is missing", r.Error)
	}
	if r := v.post(t, "wrong"); r.Error == nil || r.Error.Code != skill.NotFound {
		t.Errorf("%+v; want that a skill with a wrong manifest is not there", r.Error)
	}
}

// A call under way when the host is told to stop gets its own end, not the host's.
func TestStopLetsCallsFinish(t *testing.T) {
	v := serve(t, settings(t, map[string]string{"concurrency": "1", "concurrency-per-skill": "1"}))
	v.await(t, `"what":"slow"`) // compiled: what follows is the run alone
	answer := make(chan *skill.Result, 1)
	go func() {
		for { // it may find the place taken as well
			if r := v.post(t, "slow"); r.Error == nil || r.Error.Code != skill.RateLimited {
				answer <- r
				return
			}
		}
	}()
	// There is one place: once another call finds none, slow is running.
	for {
		if r := v.post(t, "quick"); r.Error != nil && r.Error.Code == skill.RateLimited {
			break
		}
		select {
		case r := <-answer:
			t.Fatalf("slow ended, and no call beside it was refused: %+v", r.Error)
		default:
		}
	}
	if err := v.stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if r := <-answer; r.Error == nil || r.Error.Code != skill.Timeout {
		t.Errorf("slow: %+v; want its own timeout", r.Error)
	}
}

// With what the last start left in the cache the host is ready at once.
func TestReadyWithin500ms(t *testing.T) {
	s := settings(t, nil)
	v := serve(t, s)
	v.await(t, `"what":"slow"`)
	musttest.Do(t, v.stop())
	best := time.Hour
	for range 3 {
		began := time.Now()
		v := serve(t, s)
		best = min(best, time.Since(began))
		musttest.Do(t, v.stop())
	}
	if best > 500*time.Millisecond {
		t.Errorf("ready after %s, want at most 500ms", best)
	}
}

func TestOpenAndClose(t *testing.T) {
	before := goleak.IgnoreCurrent()
	h := musttest.Get(Open(settings(t, nil), &Options{Log: slog.New(slog.DiscardHandler)}))(t)
	r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "quick", Input: []byte("{}")})
	if !r.Success {
		t.Errorf("quick: %+v", r.Error)
	}
	if r := h.Invoke(t.Context(), skill.Principal{}, skill.Request{SkillID: "quick", Input: []byte("{}")}); r.Error == nil || r.Error.Code != skill.Unauthorized {
		t.Errorf("nobody: %+v", r.Error)
	}
	for range 2 {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// A state folder that cannot be made is told, and leaves nothing open.
func TestOpenWithoutState(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := settings(t, nil)
	s.StateDir = filepath.Join(s.SkillsDir, "quick", "skill.yaml", "state")
	if h, err := Open(s, nil); err == nil || h != nil || !strings.Contains(err.Error(), "state folder") {
		t.Errorf("%v, %v; want an error about the state folder", h, err)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// An address in use ends Serve with an error, and closes the host.
func TestAddressInUse(t *testing.T) {
	ln := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	h := musttest.Get(Open(settings(t, map[string]string{"listen": ln.Addr().String()}), &Options{Log: slog.New(slog.DiscardHandler)}))(t)
	if err := h.Serve(t.Context(), func(net.Addr) { t.Error("ready") }); err == nil {
		t.Error("Serve: no error")
	}
	if r := h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "quick", Input: []byte("{}")}); r.Success {
		t.Error("a closed host answers")
	}
}
