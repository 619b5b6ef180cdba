package wasi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/wasm/wasi"
)

// leanFunctions look at no context: a guest calls them for every eight bytes.
var leanFunctions = map[string]bool{
	"extism.length": true, "extism.length_unsafe": true, "extism.load_u8": true, "extism.load_u64": true,
	"extism.store_u8": true, "extism.store_u64": true, "extism.input_load_u8": true, "extism.input_load_u64": true,
}

// plugged is a guest that calls as Extism's PDKs do.
type plugged struct{ *guest }

func (g plugged) ask(function string, args ...uint64) uint64 {
	g.t.Helper()
	results, err := g.mod.ExportedFunction("extism."+function).Call(g.ctx, args...)
	if err != nil {
		g.t.Fatalf("%s%v: %v", function, args, err)
	}
	if len(results) == 0 {
		return 0
	}
	return results[0]
}

// stops calls a function that must end the run.
func (g plugged) stops(reason wasi.Reason, function string, args ...uint64) *wasi.Stop {
	g.t.Helper()
	return g.wantStop(reason, "extism."+function, args...)
}

// block writes a block as a PDK does.
func (g plugged) block(s string) uint64 {
	g.t.Helper()
	at := g.ask("alloc", uint64(len(s)))
	i := 0
	for ; i+8 <= len(s); i += 8 {
		g.ask("store_u64", at+uint64(i), binary.LittleEndian.Uint64([]byte(s[i:])))
	}
	for ; i < len(s); i++ {
		g.ask("store_u8", at+uint64(i), uint64(s[i]))
	}
	return at
}

// text reads a block.
func (g plugged) text(at uint64) string {
	g.t.Helper()
	var b []byte
	n := g.ask("length", at)
	i := uint64(0)
	for ; i+8 <= n; i += 8 {
		b = binary.LittleEndian.AppendUint64(b, g.ask("load_u64", at+i))
	}
	for ; i < n; i++ {
		b = append(b, byte(g.ask("load_u8", at+i)))
	}
	return string(b)
}

func (g plugged) input() string {
	g.t.Helper()
	var b []byte
	n := g.ask("input_length")
	i := uint64(0)
	for ; i+8 <= n; i += 8 {
		b = binary.LittleEndian.AppendUint64(b, g.ask("input_load_u64", i))
	}
	for ; i < n; i++ {
		b = append(b, byte(g.ask("input_load_u8", i)))
	}
	return string(b)
}

func newPlugged(t *testing.T, cfg wasi.Config) plugged { t.Helper(); return plugged{newGuest(t, cfg)} }

func TestPluginInputAndOutput(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"", "a", "12345678", "123456789", strings.Repeat("input ", 50_000)} {
		for name, stdin := range map[string]func() wasi.Config{
			"at once":   func() wasi.Config { return wasi.Config{Stdin: strings.NewReader(input)} },
			"in pieces": func() wasi.Config { return wasi.Config{Stdin: slowly{strings.NewReader(input)}} },
		} {
			g := newPlugged(t, stdin())
			if len(input) > 100_000 { // each byte is a call
				if n := g.ask("input_length"); n != uint64(len(input)) || g.ask("length", g.ask("input_offset")) != n {
					t.Errorf("%s: an input of %d bytes has %d", name, len(input), n)
				}
				continue
			}
			if got := g.input(); got != input || g.text(g.ask("input_offset")) != input {
				t.Errorf("%s: input %q, want %q", name, got, input)
			}
			out := g.block("out: " + input)
			g.ask("output_set", out, uint64(len(input)+5))
			g.ask("store_u8", out, 'O') // after output_set, as some do
			if r := g.w.Plugin(); string(r.Output) != "Out: "+input || r.Error != nil {
				t.Errorf("%s: left %q", name, r)
			}
			if g.ask("output_offset") != out || g.ask("output_length") != uint64(len(input)+5) {
				t.Errorf("%s: the output is elsewhere", name)
			}
			g.ask("error_set", g.block("no"))
			if r := g.w.Plugin(); string(r.Error) != "no" || g.text(g.ask("error_get")) != "no" {
				t.Errorf("%s: error %q", name, r.Error)
			}
			g.ask("reset")
			if r := g.w.Plugin(); r.Output != nil || r.Error != nil || g.ask("input_length") != 0 {
				t.Errorf("%s: after a reset there is %+v", name, r)
			}
		}
	}
}

// slowly is a reader that is not in memory.
type slowly struct{ r *strings.Reader }

func (s slowly) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 1000)]) }

func TestPluginFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		function string
		args     []uint64
	}{
		{"load_u8", []uint64{0}},
		{"load_u8", []uint64{1 << 40}},
		{"load_u64", []uint64{0}},
		{"load_u64", []uint64{1<<64 - 1}},
		{"store_u8", []uint64{8, 1}},
		{"store_u64", []uint64{1 << 32, 1}},
		{"input_load_u8", []uint64{5}},
		{"input_load_u64", []uint64{0}},
		{"input_load_u64", []uint64{1<<64 - 4}},
		{"input_set", []uint64{0, 1}},
		{"output_set", []uint64{1 << 20, 1}},
		{"output_set", []uint64{1<<64 - 1, 2}},
	} {
		g := newPlugged(t, wasi.Config{Stdin: strings.NewReader("short")})
		g.ask("input_length")
		stop := g.stops(wasi.ReasonFault, tc.function, tc.args...)
		if !strings.HasPrefix(stop.What, "out of bounds") {
			t.Errorf("%s%v: %q", tc.function, tc.args, stop.What)
		}
		g.stops(wasi.ReasonFault, "load_u8", 0) // and stays ended
	}
}

// Input, output, blocks, variables and logs each have an end.
func TestPluginLimits(t *testing.T) {
	t.Parallel()
	held := func(most uint64) (wasi.Config, *bool) {
		refused := new(bool)
		return wasi.Config{Hold: func(n uint64) uint64 {
			*refused = *refused || n > most
			return most
		}}, refused
	}
	t.Run("blocks", func(t *testing.T) {
		t.Parallel()
		cfg, refused := held(100_000)
		g := newPlugged(t, cfg)
		n := 0
		for g.ask("alloc", 1000) != 0 {
			n++
		}
		if n < 80 || n > 100 || !*refused || g.ask("memory_bytes") > 100_000 {
			t.Errorf("%d blocks, %d bytes, refused %v", n, g.ask("memory_bytes"), *refused)
		}
		for range 10 { // a reset gives the host's memory to nobody
			g.ask("reset")
			for g.ask("alloc", 1000) != 0 {
			}
		}
		if got := g.ask("memory_bytes"); got > 100_000 {
			t.Errorf("%d bytes after resets", got)
		}
	})
	t.Run("input", func(t *testing.T) {
		t.Parallel()
		for _, cfg := range []wasi.Config{{Stdin: strings.NewReader(strings.Repeat("x", 200_000))}, {Stdin: endlessInput{}}} {
			limited, _ := held(100_000)
			cfg.Hold = limited.Hold
			newPlugged(t, cfg).stops(wasi.ReasonMemory, "input_length")
		}
	})
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		g := newPlugged(t, wasi.Config{StdoutLimit: 100})
		g.ask("output_set", g.ask("alloc", 100), 100)
		g.stops(wasi.ReasonOutputLimit, "output_set", g.block(strings.Repeat("x", 101)), 101)
		if out := g.w.Plugin().Output; string(out) != strings.Repeat("x", 100) {
			t.Errorf("kept %q", out)
		}
	})
	t.Run("logs", func(t *testing.T) {
		t.Parallel()
		g := newPlugged(t, wasi.Config{StderrLimit: 100})
		g.ask("log_debug", g.block(strings.Repeat("x", 1000)))
		g.ask("log_info", g.block("short"))
		g.stops(wasi.ReasonOutputLimit, "log_info", g.block(strings.Repeat("x", 101)))
	})
	t.Run("variables", func(t *testing.T) {
		t.Parallel()
		g := newPlugged(t, wasi.Config{})
		for i := range 3 { // written over, they count once
			g.ask("var_set", g.block("same"), g.ask("alloc", 600_000+uint64(i)))
		}
		g.ask("var_set", g.block("same"), 0)
		g.ask("var_set", g.block("a"), g.ask("alloc", 900_000))
		stop := g.stops(wasi.ReasonFault, "var_set", g.block("b"), g.ask("alloc", 200_000))
		if !strings.Contains(stop.What, "variables") {
			t.Error(stop.What)
		}
	})
	t.Run("many variables", func(t *testing.T) {
		t.Parallel()
		g := newPlugged(t, wasi.Config{})
		f := g.mod.ExportedFunction("extism.var_set")
		for i := range 20_000 {
			if _, err := f.Call(g.ctx, g.block(fmt.Sprintf("%05d", i)), g.block("v")); err != nil {
				if stop := new(wasi.Stop); !errors.As(err, &stop) || stop.Reason != wasi.ReasonFault || i < 10_000 {
					t.Errorf("after %d: %v", i, err)
				}
				return
			}
		}
		t.Error("there is no end of small variables")
	})
}

// What does not fit into the logs is not copied to find that out: a block may take all the
// memory that a run has, and a copy of it would be beside that. No other test runs beside this
// one, which looks at all that is allocated.
func TestPluginLogsAreNotCopied(t *testing.T) {
	var logs strings.Builder
	g := newPlugged(t, wasi.Config{StderrLimit: 100, Stderr: &logs})
	g.ask("log_info", g.block("short"))
	at := g.ask("alloc", 64<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	g.stops(wasi.ReasonOutputLimit, "log_info", at)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("the host takes %d bytes for it", n)
	}
	if logs.String() != "info: short\ninfo: "+strings.Repeat("\x00", 100-18) {
		t.Errorf("written: %q", logs.String())
	}
	for _, tc := range []struct {
		limit, message int
		over           bool
	}{{20, 13, false}, {20, 14, true}, {20, 20, true}, {20, 21, true}, {7, 0, false}, {6, 0, true}, {1, 1, true}} {
		logs.Reset()
		g := newPlugged(t, wasi.Config{StderrLimit: int64(tc.limit), Stderr: &logs})
		at := g.block(strings.Repeat("x", tc.message))
		if tc.over {
			g.stops(wasi.ReasonOutputLimit, "log_info", at)
		} else {
			g.ask("log_info", at)
		}
		if line := "info: " + strings.Repeat("x", tc.message) + "\n"; logs.String() != line[:min(len(line), tc.limit)] {
			t.Errorf("a message of %d bytes where %d are left: %q", tc.message, tc.limit, logs.String())
		}
	}
}

type endlessInput struct{}

func (endlessInput) Read(p []byte) (int, error) { return len(p), nil }

func TestPluginConfigAndVariables(t *testing.T) {
	t.Parallel()
	g := newPlugged(t, wasi.Config{Env: []string{"API_URL=http://x/?a=b", "EMPTY="}})
	for name, want := range map[string]string{"API_URL": "http://x/?a=b", "EMPTY": "", "API": "", "": "", "API_URL=http://x/?a": ""} {
		if got := g.text(g.ask("config_get", g.block(name))); got != want {
			t.Errorf("configuration %q is %q, want %q", name, got, want)
		}
	}
	if g.ask("var_get", g.block("n")) != 0 {
		t.Error("there is a variable that nobody has set")
	}
	for _, value := range []string{"one", "two, which is longer"} {
		g.ask("var_set", g.block("n"), g.block(value))
		if got := g.text(g.ask("var_get", g.block("n"))); got != value {
			t.Errorf("the variable is %q, want %q", got, value)
		}
	}
	g.ask("var_set", g.block("n"), 0)
	if g.ask("var_get", g.block("n")) != 0 {
		t.Error("the variable is still there")
	}
}

func TestPluginLogs(t *testing.T) {
	t.Parallel()
	var logs strings.Builder
	g := newPlugged(t, wasi.Config{Stderr: &logs})
	if g.ask("get_log_level") != 2 {
		t.Error("the level is not info")
	}
	for _, level := range []string{"trace", "debug", "info", "warn", "error"} {
		at := g.block("of " + level)
		g.ask("log_"+level, at)
		if g.ask("length", at) != 0 {
			t.Error("a logged block is not freed")
		}
	}
	g.ask("log_info", 0)
	if diff := cmp.Diff("info: of info\nwarn: of warn\nerror: of error\ninfo: \n", logs.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPluginRequests(t *testing.T) {
	t.Parallel()
	var asked []string
	response := `{"status": 201, "url": "u", "headers": {"Content-Type": ["text/plain"], "X": ["a", "b"]}, "error": null}` + "\nthe\nbody"
	fetch := func(_ context.Context, request []byte) []byte {
		asked = append(asked, string(request))
		return []byte(response)
	}
	var logs strings.Builder
	g := newPlugged(t, wasi.Config{Fetch: fetch, Stderr: &logs})
	if g.ask("http_status_code") != 0 || g.ask("http_headers") != 0 {
		t.Error("there is a response before there was a request")
	}
	body := g.ask("http_request", g.block(`{"url": "http://h/p", "method": "post", "headers": {"A": "b"}}`), g.block("sent"))
	if g.text(body) != "the\nbody" || g.ask("http_status_code") != 201 {
		t.Errorf("status %d, body %q", g.ask("http_status_code"), g.text(body))
	}
	if got := g.text(g.ask("http_headers")); got != `{"content-type":"text/plain","x":"a,b"}` {
		t.Errorf("headers %s", got)
	}
	g.ask("http_request", g.block(`{"url": "http://h/old", "header": {"C": "d"}}`), 0)
	want := []string{
		`{"method":"POST","url":"http://h/p","headers":{"A":"b"}}` + "\nsent",
		`{"method":"GET","url":"http://h/old","headers":{"C":"d"}}` + "\n",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}

	response = `{"status": 0, "url": "", "headers": {}, "error": {"code": "NETWORK_DENIED", "message": "not allowed"}}` + "\n"
	body = g.ask("http_request", g.block(`{"url": "http://h/p"}`), 0)
	if got := g.text(body); got != `{"error":{"code":"NETWORK_DENIED","message":"not allowed"}}` || g.ask("http_status_code") != 0 || g.ask("http_headers") != 0 {
		t.Errorf("refused with status %d, %s", g.ask("http_status_code"), got)
	}
	if logs.String() != "error: http_request: NETWORK_DENIED: not allowed\n" {
		t.Errorf("logs %q", logs.String())
	}
	n := len(asked)
	for request, want := range map[string]string{"": "INVALID_ARGUMENT", "{": "INVALID_ARGUMENT", `{"headers": 1}`: "INVALID_ARGUMENT"} {
		if got := g.text(g.ask("http_request", g.block(request), 0)); !strings.Contains(got, want) {
			t.Errorf("request %q: %s", request, got)
		}
	}
	if got := g.text(g.ask("http_request", g.block("{}"), g.ask("alloc", 4<<20+1))); !strings.Contains(got, "PAYLOAD_TOO_LARGE") {
		t.Error(got)
	}
	for _, request := range asked[n:] {
		t.Errorf("a request that cannot be read was sent: %.100q", request)
	}
	response = "no JSON"
	if got := g.text(g.ask("http_request", g.block("{}"), 0)); !strings.Contains(got, "INTERNAL") {
		t.Error(got)
	}
	none := newPlugged(t, wasi.Config{})
	if got := none.text(none.ask("http_request", none.block("{}"), 0)); !strings.Contains(got, "NETWORK_DENIED") {
		t.Error(got)
	}
}

// What is sent is held to 4 MiB as it is written, not only as the plug-in has it: a request
// that is longer costs its worker process.
func TestPluginRequestsAreHeld(t *testing.T) {
	t.Parallel()
	var headers strings.Builder
	for i := range 350_000 {
		fmt.Fprintf(&headers, `"%x":"",`, i)
	}
	// Each < is six bytes when it is written. Values of the configuration become blocks at
	// once, and not by a call for every eight bytes.
	long := `{"url":"` + strings.Repeat("<", 120<<10) + `"}`
	var sent []int
	g := newPlugged(t, wasi.Config{
		Env: []string{"MEGABYTE=" + `{"url":"` + strings.Repeat("<", 1<<20) + `"}`, "HEADERS=" + `{"headers":{` + headers.String() + `"x":""}}`, "LONG=" + long},
		Fetch: func(_ context.Context, request []byte) []byte {
			sent = append(sent, len(request))
			return []byte(`{"status":200}` + "\n")
		},
	})
	for _, tc := range []struct {
		name string
		body int
		code string // "": it is sent
	}{
		{"MEGABYTE", 0, "PAYLOAD_TOO_LARGE"},
		{"HEADERS", 0, "PAYLOAD_TOO_LARGE"},
		{"LONG", 4<<20 - len(long), "PAYLOAD_TOO_LARGE"},
		{"LONG", 3 << 20, ""},
	} {
		sent = nil
		got := g.text(g.ask("http_request", g.ask("config_get", g.block(tc.name)), g.ask("alloc", uint64(tc.body))))
		if !strings.Contains(got, tc.code) || (tc.code == "") != (len(sent) == 1) || len(sent) > 0 && sent[0] > 4<<20 {
			t.Errorf("%s and a body of %d bytes: sent %d, answer %.200q", tc.name, tc.body, sent, got)
		}
	}
}

// What a plug-in has set is gone in the next run.
func TestPluginIsRestored(t *testing.T) {
	t.Parallel()
	g := newPlugged(t, wasi.Config{Stdin: strings.NewReader("first")})
	saved := g.w.Save()
	g.input()
	g.ask("output_set", g.block("mine"), 4)
	g.ask("error_set", g.block("bad"))
	g.ask("var_set", g.block("n"), g.block("v"))
	left := g.w.Plugin()
	musttest.Do(t, g.w.Restore(saved, wasi.Config{Stdin: strings.NewReader("second")}))
	if r := g.w.Plugin(); r.Output != nil || r.Error != nil || g.ask("memory_bytes") != 0 {
		t.Errorf("left of the run before: %+v", r)
	}
	if got := g.input(); got != "second" || g.ask("var_get", g.block("n")) != 0 {
		t.Errorf("input %q", got)
	}
	if string(left.Output) != "mine" || string(left.Error) != "bad" {
		t.Errorf("what was taken has changed: %q, %q", left.Output, left.Error)
	}
}
