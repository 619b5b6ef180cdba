package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/manifest"
	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

const file = `id: stats
version: 0.1.0
description: d
type: wasm
runtime: wasi
entry: stats.wasm
fallback: {type: cli, runtime: python, entry: stats.py}
limits: {timeout_ms: 5000, memory_mb: 64, fuel: 1000, output_kb: 64}
permissions: {data: read, scratch: true}
input_schema:
  type: object
  properties:
    numbers: {type: array, items: {type: number}}
    root_dir: {type: string, format: data-path}
    name: {type: string, pattern: "^[a-z]*$"}
output_schema:
  type: object
  properties: {mean: {type: number}}
`

// house is a door with everything real behind it but the runners.
type house struct {
	*Dispatcher
	folder string // of the skill stats
	data   string
	wasm   *runnertest.Runner
	python *runnertest.Runner
	cli    *runnertest.Runner
	log    *bytes.Buffer
}

func open(t *testing.T, change func(*Options)) *house {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		musttest.Write(t, path, text)
	}
	write("trusted/stats/skill.yaml", file)
	write("trusted/same/skill.yaml", strings.Replace(file, "id: stats", "id: same\nidempotent: true", 1))
	write("trusted/off/skill.yaml", strings.Replace(file, "id: stats", "id: off\nis_enabled: false", 1))
	write("trusted/plain/skill.yaml", "id: plain\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: p.wasm\n")
	// A small input that takes long to check: 4,001 comparisons of numbers for each item.
	write("trusted/slow/skill.yaml", "id: slow\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: p.wasm\ninput_schema: {type: object, properties: {a: {type: array, items: {enum: [1"+strings.Repeat(", 7", 4000)+"]}}}}\n")
	write("trusted/wide/skill.yaml", "id: wide\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: p.wasm\ninput_schema: {type: object, anyOf: [{}"+strings.Repeat(", {}", 1500)+"]}\n")
	write("trusted/rated/skill.yaml", "id: rated\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: wasi\nentry: p.wasm\ncost_metadata: {rate_limit_per_minute: 2}\n")
	write("trusted/frames/skill.yaml", "id: frames\nversion: 1.0.0\ndescription: d\ntype: wasm\nruntime: python\nentry: p.py\nrequires: [pandas, numpy]\n")
	host := skill.Limits{Timeout: 10 * time.Second, Memory: 128 << 20, Fuel: 5000, Output: 1 << 20, Scratch: 1 << 20}
	reg, err := manifest.Open(manifest.Options{
		Roots: []manifest.Root{{Path: filepath.Join(dir, "trusted"), Trust: skill.Trusted}}, Defaults: host, Caps: host,
		Packages: func([]string) error { return nil }, Schemas: manifest.NewSchemas(),
	})
	if err != nil || len(reg.Problems()) > 0 {
		t.Fatal(err, reg.Problems())
	}
	h := &house{
		folder: filepath.Join(dir, "trusted", "stats"), data: filepath.Join(dir, "data"),
		wasm: &runnertest.Runner{Is: skill.WasmWASI}, cli: &runnertest.Runner{Is: skill.CLIPython}, python: &runnertest.Runner{Is: skill.WasmPython},
		log: &bytes.Buffer{},
	}
	set := musttest.Get(NewSet(h.wasm, h.cli, h.python))(t)
	o := Options{
		Skills: manifest.Shared{Registry: reg}, Runners: set, DataRoot: h.data,
		Log: slog.New(slog.NewJSONHandler(h.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	if h.Dispatcher, err = New(o); err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(id skill.ID, input string) skill.Request {
	return skill.Request{SkillID: id, Input: json.RawMessage(input), TraceID: "t-1"}
}

// line reads the one line that the log must hold.
func (h *house) line(t *testing.T) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(h.log.String()), "\n")
	if len(lines) != 1 {
		t.Fatalf("%d lines in the log, want 1:\n%s", len(lines), h.log)
	}
	var m map[string]any
	musttest.Do(t, json.Unmarshal([]byte(lines[0]), &m))
	return m
}

// What the manifest requires reaches the runner, which chooses by it.
func TestRequiresReachTheRunner(t *testing.T) {
	h := open(t, nil)
	if r := h.Invoke(context.Background(), skill.Local(), ask("frames", "{}")); r.Error != nil {
		t.Fatal(r.Error)
	}
	specs := h.python.Specs()
	if len(specs) != 1 {
		t.Fatalf("prepared %d times, want 1", len(specs))
	}
	if diff := cmp.Diff([]string{"pandas", "numpy"}, specs[0].Requires); diff != "" {
		t.Error(diff)
	}
}

func TestSuccess(t *testing.T) {
	h := open(t, func(o *Options) { o.NewID = func() string { return "e-1" } })
	h.wasm.Answer = runnertest.Always(skill.Reply{
		Stdout: []byte(" {\"mean\": 2}\n"), Usage: skill.Usage{Fuel: 7, MemoryPeak: 9},
		Artifacts: []skill.Artifact{{Name: "out.csv", Size: 3}, {Name: "../x"}, {Name: "a\x1b[0m"}},
	})
	req := ask("stats", `{"numbers": [1, 2, 3]}`)
	req.Limits = skill.Limits{Timeout: time.Hour, Fuel: 500}
	got := h.Invoke(context.Background(), skill.Local(), req)
	b := musttest.Get(json.Marshal(got))(t)
	digest := got.Meta.Digest
	want := `{"success":true,"skill_id":"stats","trace_id":"t-1","data":{"mean":2},"error":null,"meta":{"latency_ms":` +
		fmt.Sprint(got.Meta.LatencyMS) + `,"version":"0.1.0","execution_id":"e-1","runner":"wasm:wasi","digest":"` + digest +
		`","fuel_used":7,"memory_peak_bytes":9,"truncated":false,"artifacts":[{"name":"out.csv","size":3}]}}`
	if string(b) != want || !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	wantCall := &skill.Call{
		SkillID: "stats", TraceID: "t-1", ExecutionID: "e-1", Tenant: "local", Folder: h.folder, Entry: "stats.wasm", Digest: digest, Trust: skill.Trusted,
		Stdin:  []byte(`{"input":{"numbers": [1, 2, 3]},"skill_id":"stats","trace_id":"t-1"}`),
		Limits: skill.Limits{Timeout: 5 * time.Second, Memory: 64 << 20, Fuel: 500, Output: 64 << 10, Scratch: 1 << 20},
		Grants: skill.Grants{Data: h.data, Scratch: true},
	}
	if diff := cmp.Diff([]*skill.Call{wantCall}, h.wasm.Calls()); diff != "" {
		t.Error(diff)
	}
	line := h.line(t)
	for key, want := range map[string]any{
		"level": "INFO", "trace_id": "t-1", "execution_id": "e-1", "skill_id": "stats", "version": "0.1.0", "runner_type": "wasm:wasi",
		"principal": "local", "tenant": "local", "success": true, "error.code": "", "error.message": "", "fuel_used": 7.0, "memory_peak_bytes": 9.0,
	} {
		if line[key] != want {
			t.Errorf("log: %s is %v, want %v", key, line[key], want)
		}
	}
	if _, ok := line["latency_ms"].(float64); !ok {
		t.Error("log: no latency_ms")
	}
}

func TestNothingIsGrantedUnasked(t *testing.T) {
	h := open(t, nil)
	if r := h.Invoke(context.Background(), skill.Local(), ask("plain", `{}`)); !r.Success {
		t.Fatal(r.Error)
	}
	if got := h.wasm.Calls()[0].Grants; !reflect.DeepEqual(got, skill.Grants{}) {
		t.Errorf("granted %+v", got)
	}
}

// TestStderrIsLogged: what a guest prints on standard error is for the operator who
// asks for it, of calls that succeed too, its end, and without paths of the host.
func TestStderrIsLogged(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
		var log bytes.Buffer
		h := open(t, func(o *Options) {
			o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: level}))
		})
		said := strings.Repeat("x", 10_000) + "\x1b[1m\nlast words in /srv/secret/a.py"
		h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(`{"mean": 2}`), Stderr: []byte(said)})
		if r := h.Invoke(context.Background(), skill.Local(), ask("stats", `{"numbers": [1]}`)); !r.Success {
			t.Fatal(r.Error)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if level == slog.LevelInfo {
			if len(lines) != 1 || strings.Contains(lines[0], "last words") {
				t.Errorf("%s", lines)
			}
			continue
		}
		var line struct {
			Msg, Text string
			Trace     string `json:"trace_id"`
			Bytes     int
		}
		musttest.Do(t, json.Unmarshal([]byte(lines[len(lines)-1]), &line))
		if line.Msg != "stderr" || line.Trace != "t-1" || line.Bytes != len(said) || len(line.Text) > 4<<10+3 || !strings.HasSuffix(line.Text, "[1m last words in …/a.py") {
			t.Errorf("%d bytes of text: %s", len(line.Text), lines[len(lines)-1])
		}
	}
}

// TestHalfPairs: halves of surrogate pairs, which readers of JSON disagree on, do not
// reach the caller.
func TestHalfPairs(t *testing.T) {
	for printed, want := range map[string]string{
		`{"mean":1,"a":"\ud83d\ude00"}`:       `{"mean":1,"a":"\ud83d\ude00"}`,
		`{"mean":1,"a":"cut \ud83d"}`:         `{"mean":1,"a":"cut \ufffd"}`,
		`{"mean":1,"a":"\uDE00\ud83d\n"}`:     `{"mean":1,"a":"\ufffd\ufffd\n"}`,
		`{"mean":1,"a":"\ud83d\ud83d\ude00"}`: `{"mean":1,"a":"\ufffd\ud83d\ude00"}`,
		`{"mean":1,"a":"\\ud83d \\\ud83d"}`:   `{"mean":1,"a":"\\ud83d \\\ufffd"}`,
	} {
		h := open(t, nil)
		h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(printed)})
		r := h.Invoke(context.Background(), skill.Local(), ask("stats", `{"numbers": [1]}`))
		if string(r.Data) != want {
			t.Errorf("%s: %s, %+v; want %s", printed, r.Data, r.Error, want)
		}
	}
}

// failure is one way in which a call fails.
type failure struct {
	principal *skill.Principal // nil: the operator
	request   skill.Request
	reply     skill.Reply
	answer    func(context.Context, *skill.Call) (*skill.Reply, error) // instead of reply
	ran       bool
	code      skill.Code
	message   string // in the message
	details   string // in the details as JSON
}

// TestFailures has a row for every way to fail but admission and cancellation.
func TestFailures(t *testing.T) {
	right := ask("stats", `{"numbers": [1]}`)
	prints := func(s string) skill.Reply { return skill.Reply{Stdout: []byte(s)} }
	exits := func(code uint32, stdout, stderr string) skill.Reply {
		return skill.Reply{ExitCode: code, Stdout: []byte(stdout), Stderr: []byte(stderr)}
	}
	reports := func(e string) skill.Reply { return exits(1, `{"success": false, "error": `+e+`}`, "") }
	cases := map[string]failure{
		"nobody":              {principal: &skill.Principal{}, request: right, code: skill.Unauthorized},
		"nobody with scopes":  {principal: &skill.Principal{Scopes: []string{skill.ScopeInvoke}}, request: right, code: skill.Unauthorized},
		"a reader":            {principal: &skill.Principal{ID: "a", Type: skill.Human, Scopes: []string{skill.ScopeRead}}, request: right, code: skill.Forbidden, message: "skills:invoke"},
		"no such skill":       {request: ask("nope", `{}`), code: skill.NotFound},
		"no such version":     {request: skill.Request{SkillID: "stats", Version: "9.9.9", Input: json.RawMessage(`{}`)}, code: skill.NotFound, message: "0.1.0"},
		"disabled":            {request: ask("off", `{}`), code: skill.NotFound, message: "disabled"},
		"no input":            {request: ask("stats", ""), code: skill.InvalidArgument, message: "nothing"},
		"null":                {request: ask("stats", "null"), code: skill.InvalidArgument, message: "expected a JSON object"},
		"a list":              {request: ask("stats", "[]"), code: skill.InvalidArgument, message: "expected a JSON object"},
		"not JSON":            {request: ask("stats", "{"), code: skill.InvalidArgument, message: "one JSON object"},
		"a name twice":        {request: ask("stats", `{"numbers": [], "n\u0075mbers": [1]}`), code: skill.InvalidArgument, message: "numbers: appears more than once"},
		"too deep":            {request: ask("stats", `{"a":`+strings.Repeat("[", 70)+strings.Repeat("]", 70)+"}"), code: skill.InvalidArgument, message: "deeper than 64"},
		"too large":           {request: ask("stats", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), code: skill.PayloadTooLarge, message: "1048576"},
		"wrong fields":        {request: ask("stats", `{"numbers": ["a", 1, null]}`), code: skill.InvalidArgument, message: "/numbers/0", details: `{"field":"/numbers/2","problem":"is null","expected":"number"}`},
		"a path out":          {request: ask("stats", `{"root_dir": "../x"}`), code: skill.ForbiddenPath, details: "/root_dir"},
		"an absolute path":    {request: ask("stats", `{"root_dir": "/data/x"}`), code: skill.ForbiddenPath},
		"a path without data": {request: ask("stats", `{"root_dir": "docs"}`), code: skill.ForbiddenPath},
		"a twin of a path":    {request: ask("stats", `{"Root_Dir": "/etc"}`), code: skill.InvalidArgument, message: "/Root_Dir"},

		"timeout":                  {ran: true, reply: skill.Reply{Code: skill.Timeout, Message: "did not end", Stdout: []byte(`{"success": true, "data": {}}`)}, code: skill.Timeout, message: "did not end"},
		"trap without a message":   {ran: true, reply: skill.Reply{Code: skill.Trap}, code: skill.Trap, message: "TRAP"},
		"output limit":             {ran: true, reply: skill.Reply{Code: skill.OutputLimit, Message: "too much"}, code: skill.OutputLimit},
		"output over the limit":    {ran: true, reply: prints(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`), code: skill.OutputLimit, message: "65536"},
		"unknown code of a runner": {ran: true, reply: skill.Reply{Code: "BOOM", Message: "/srv/secret"}, code: skill.Internal},
		"a runner's path":          {ran: true, reply: skill.Reply{Code: skill.Trap, Message: "in /srv/secret/x.wasm"}, code: skill.Trap, message: "in …/x.wasm"},
		"the host failed":          {ran: true, answer: func(context.Context, *skill.Call) (*skill.Reply, error) { return nil, errors.New("open /srv/secret") }, code: skill.Internal},
		"neither":                  {ran: true, answer: func(context.Context, *skill.Call) (*skill.Reply, error) { return nil, nil }, code: skill.Internal},
		"panic":                    {ran: true, answer: func(context.Context, *skill.Call) (*skill.Reply, error) { panic("goroutine /srv/secret") }, code: skill.Internal},

		"exit":                   {ran: true, reply: exits(3, "", "Traceback\n  File \"/usr/lib/python3/json.py\", line 1\nValueError: no\x1b[31m"), code: skill.GuestExit, message: "exited with code 3", details: `ValueError: no[31m`},
		"exit with data":         {ran: true, reply: exits(1, `{"mean": 1}`, ""), code: skill.GuestExit},
		"exit with success":      {ran: true, reply: exits(1, `{"success": true, "data": {}, "error": null}`, ""), code: skill.GuestExit},
		"exit with half a word":  {ran: true, reply: exits(1, `{"success": false, "error": "x"}`, ""), code: skill.GuestExit},
		"exit with more keys":    {ran: true, reply: exits(1, `{"error": {"code": "NOT_FOUND"}, "x": 1}`, ""), code: skill.GuestExit},
		"exit with two values":   {ran: true, reply: exits(1, `{"error": {"code": "NOT_FOUND"}} {}`, ""), code: skill.GuestExit},
		"exit with bare error":   {ran: true, reply: exits(1, `{"error": {"code": "NOT_FOUND", "message": "no file"}}`, ""), code: skill.NotFound, message: "no file"},
		"exit with a result":     {ran: true, reply: exits(1, `{"success": false, "skill_id": "other", "data": null, "error": {"code": "INVALID_ARGUMENT", "message": "m", "details": {"field": "ops"}}, "meta": {}}`, ""), code: skill.InvalidArgument, message: "m", details: `"field":"ops"`},
		"a result without exit":  {ran: true, reply: prints(`{"success": false, "error": {"code": "FORBIDDEN_PATH", "message": "m"}}`), code: skill.ForbiddenPath},
		"nothing":                {ran: true, reply: prints(""), code: skill.InvalidOutput, message: "nothing"},
		"text":                   {ran: true, reply: prints("hello"), code: skill.InvalidOutput},
		"a list is no data":      {ran: true, reply: prints("[1]"), code: skill.InvalidOutput, message: "expected a JSON object"},
		"text before":            {ran: true, reply: prints(`debug {"mean": 1}`), code: skill.InvalidOutput},
		"text after":             {ran: true, reply: prints(`{"mean": 1} done`), code: skill.InvalidOutput, message: "expected nothing after the JSON object"},
		"NaN":                    {ran: true, reply: prints(`{"mean": NaN}`), code: skill.InvalidOutput, message: "mean: expected a JSON value"},
		"a path before NaN":      {ran: true, reply: prints(`{"/srv/secret/x": NaN}`), code: skill.InvalidOutput, message: "…/x: expected"},
		"Infinity":               {ran: true, reply: prints(`{"mean": -Infinity}`), code: skill.InvalidOutput},
		"beyond a double":        {ran: true, reply: prints(`{"mean": 1e309}`), code: skill.InvalidOutput, message: "range of a double"},
		"a fraction bomb":        {ran: true, reply: prints(`{"mean": 1e-999999999}`), code: skill.InvalidOutput, message: "range of a double"},
		"data twice":             {ran: true, reply: prints(`{"success": true, "data": {}, "data": {"mean": 1}, "error": null}`), code: skill.InvalidOutput, message: "data: appears more than once"},
		"depth 30,000":           {ran: true, reply: prints(`{"a":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + "}"), code: skill.InvalidOutput, message: "deeper than 512"},
		"against its schema":     {ran: true, reply: prints(`{"mean": "high"}`), code: skill.InvalidOutput, message: "/mean", details: "number"},
		"result against schema":  {ran: true, reply: prints(`{"success": true, "data": {"mean": "high"}}`), code: skill.InvalidOutput, message: "/mean"},
		"success without data":   {ran: true, reply: prints(`{"success": true, "data": null}`), code: skill.InvalidOutput, message: `"data"`},
		"success with an error":  {ran: true, reply: prints(`{"success": true, "data": {}, "error": {"code": "INTERNAL"}}`), code: skill.InvalidOutput},
		"failure without error":  {ran: true, reply: prints(`{"success": false, "data": {"mean": 1}}`), code: skill.InvalidOutput, message: `"error" object`},
		"Success is not success": {ran: true, reply: prints(`{"Success": true, "mean": "x"}`), code: skill.InvalidOutput, message: "/mean"},

		"code as a number":         {ran: true, reply: reports(`{"code": 404, "message": "m"}`), code: skill.NotFound, message: "m"},
		"code as another number":   {ran: true, reply: reports(`{"code": 42, "message": "m"}`), code: skill.Internal, message: "m", details: `"guest_code":"42"`},
		"a code of its own":        {ran: true, reply: reports(`{"code": "E_FOO\u001b", "message": "m"}`), code: skill.Internal, message: "m", details: `"guest_code":"E_FOO"`},
		"no code":                  {ran: true, reply: reports(`{"message": "m"}`), code: skill.Internal, message: "m"},
		"no message":               {ran: true, reply: reports(`{"code": "INTERNAL"}`), code: skill.Internal, message: "without a message"},
		"a message that is none":   {ran: true, reply: reports(`{"code": "INTERNAL", "message": {"a": 1}}`), code: skill.Internal, message: "without a message"},
		"internal, its own words":  {ran: true, reply: reports(`{"code": "INTERNAL", "message": "cannot decode a.log"}`), code: skill.Internal, message: "cannot decode a.log"},
		"a message of controls":    {ran: true, reply: reports(`{"code": "INTERNAL", "message": "a\u001b[2Jb\u202ec\nd"}`), code: skill.Internal, message: "a[2Jbc d"},
		"details that are none":    {ran: true, reply: reports(`{"code": "INTERNAL", "message": "m", "details": [1]}`), code: skill.Internal},
		"details that are huge":    {ran: true, reply: reports(`{"code": "INTERNAL", "message": "m", "details": {"a": ["` + strings.Repeat(strings.Repeat("y", 300)+`","`, 40) + `"]}}`), code: skill.Internal, details: "omitted"},
		"details with path of its": {ran: true, reply: reports(`{"code": "NOT_FOUND", "message": "no /srv/secret/a.txt in './data/docs'", "details": {"at": "/srv/secret/b"}}`), code: skill.NotFound, message: "no …/a.txt in './data/docs'", details: "…/b"},
	}
	// What only the host can know, a guest cannot say.
	for code := range skill.Codes() {
		if !mayReport[code] {
			cases["a guest says "+string(code)] = failure{
				ran: true, reply: reports(`{"code": "` + string(code) + `", "message": "m"}`),
				code: skill.ToolInvocationError, message: "m", details: `"guest_code":"` + string(code) + `"`,
			}
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := open(t, nil)
			h.wasm.Answer = runnertest.Always(c.reply)
			if c.answer != nil {
				h.wasm.Answer = c.answer
			}
			p, req := skill.Local(), c.request
			if c.principal != nil {
				p = *c.principal
			}
			if c.ran {
				req = right
			}
			c.check(t, h, h.Invoke(context.Background(), p, req))
		})
	}
}

func (c failure) check(t *testing.T, h *house, r *skill.Result) {
	t.Helper()
	if r.Success || r.Data != nil || r.Error == nil {
		t.Fatalf("success %v, data %s, error %v", r.Success, r.Data, r.Error)
	}
	details := musttest.Get(json.Marshal(r.Error.Details))(t)
	if r.Error.Code != c.code || r.Error.Status != c.code.Status() {
		t.Errorf("code %s %d, want %s (%s %s)", r.Error.Code, r.Error.Status, c.code, r.Error.Message, details)
	}
	if !strings.Contains(r.Error.Message, c.message) || r.Error.Message == "" {
		t.Errorf("message %q lacks %q", r.Error.Message, c.message)
	}
	if !strings.Contains(string(details), c.details) {
		t.Errorf("details %s lack %s", details, c.details)
	}
	if got := len(h.wasm.Calls()); got != 0 && !c.ran || got == 0 && c.ran {
		t.Errorf("%d runs", got)
	}
	all := musttest.Get(json.Marshal(r))(t)
	for _, secret := range []string{"/srv", "goroutine", "/usr/lib", h.folder, `\u001b`, "\u202e"} {
		if strings.Contains(string(all), secret) {
			t.Errorf("the answer shows %q: %s", secret, all)
		}
	}
	if len(r.Error.Message) > skill.MaxMessage+4 {
		t.Errorf("a message of %d bytes", len(r.Error.Message))
	}
	line := h.line(t)
	if line["error.code"] != string(c.code) || line["success"] != false || line["error.message"] == "" {
		t.Errorf("log: %v", line)
	}
	hidden := r.Error.Code == skill.Internal && strings.Contains(r.Error.Message, "trace id")
	if _, told := line["cause"]; told != hidden {
		t.Errorf("log: a cause is told: %v, want %v", told, hidden)
	}
}

// TestExitErrorsAreSmall: what the host makes of a guest's end is at most 512 bytes.
func TestExitErrorsAreSmall(t *testing.T) {
	for name, stderr := range map[string]string{
		"long":    strings.Repeat("x", 1<<20),
		"quotes":  strings.Repeat(`"<>&\`, 1000),
		"wide":    strings.Repeat("語", 1000),
		"invalid": strings.Repeat("\xff", 1000),
		"none":    "",
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, nil)
			h.wasm.Answer = runnertest.Always(skill.Reply{ExitCode: 4_294_967_295, Stderr: []byte(stderr)})
			r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}"))
			b, err := json.Marshal(r.Error)
			if err != nil || len(b) > maxError {
				t.Errorf("%d bytes, %v: %s", len(b), err, b)
			}
			if _, has := r.Error.Details["stderr"]; has != (stderr != "") {
				t.Errorf("details %v", r.Error.Details)
			}
		})
	}
}

// TestWholeResults are the forms in which a guest may succeed.
func TestWholeResults(t *testing.T) {
	for name, c := range map[string]struct {
		stdout, data string
		truncated    bool
	}{
		"data":                      {`{"mean":1}`, `{"mean":1}`, false},
		"empty data":                {`{}`, `{}`, false},
		"result":                    {`{"success":true,"data":{"mean":1},"error":null,"meta":{"truncated":true,"latency_ms":5}}`, `{"mean":1}`, true},
		"result of another":         {`{"success":true,"skill_id":"x","trace_id":"y","data":{}}`, `{}`, false},
		"data with a success":       {`{"success":true,"count":2}`, `{"success":true,"count":2}`, false},
		"only a success":            {`{"success":true}`, `{"success":true}`, false},
		"data with success as text": {`{"success":"yes","data":{}}`, `{"success":"yes","data":{}}`, false},
		"more keys than a result":   {`{"success":true,"data":{},"x":1}`, `{"success":true,"data":{},"x":1}`, false},
		"as the agent service has":  {`{"success":true,"data":{"mean":1},"error":null,"token_usage":7,"duration_ms":100}`, `{"mean":1}`, false},
		"with odd tokens":           {`{"success":true,"data":{"mean":1},"token_usage":{"total":[]}}`, `{"mean":1}`, false},
		"data with tokens":          {`{"mean":1,"token_usage":7}`, `{"mean":1,"token_usage":7}`, false},
		"data that is failed":       {`{"error":{"code":1}}`, `{"error":{"code":1}}`, false},
		"keys of another case":      {`{"mean":1,"Mean":"x"}`, `{"mean":1,"Mean":"x"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, nil)
			h.wasm.Answer = runnertest.Always(skill.Reply{Stdout: []byte(c.stdout)})
			r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}"))
			if !r.Success || r.Error != nil || string(r.Data) != c.data || r.Meta.Truncated != c.truncated {
				t.Errorf("success %v, error %v, data %s, truncated %v", r.Success, r.Error, r.Data, r.Meta.Truncated)
			}
			if r.SkillID != "stats" || r.TraceID != "t-1" {
				t.Errorf("the guest's ids are taken over: %s %s", r.SkillID, r.TraceID)
			}
		})
	}
}

func TestFallbackIsTold(t *testing.T) {
	h := open(t, nil)
	h.wasm.NotReady = &skill.Error{Op: "x", Code: skill.NotFound, Message: "not built"}
	r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}"))
	if !r.Success || r.Meta.Runner != skill.CLIPython || h.cli.Calls()[0].Entry != "stats.py" {
		t.Errorf("got %+v", r)
	}
	r = h.Invoke(context.Background(), skill.Local(), ask("plain", "{}"))
	if r.Success || r.Error.Code != skill.NotFound || !strings.Contains(r.Error.Message, "not built") || r.Meta.Runner != skill.WasmWASI {
		t.Errorf("got %+v", r.Error)
	}
}

// TestTheLogHoldsNoSecrets: neither what came in nor what a guest wrote.
func TestTheLogHoldsNoSecrets(t *testing.T) {
	const secret = "s3cr3t"
	for name, c := range map[string]struct {
		input string
		reply skill.Reply
	}{
		"success":       {`{"name": "` + secret + `"}`, skill.Reply{Stdout: []byte(`{"x": "` + secret + `"}`), Stderr: []byte(secret)}},
		"wrong input":   {`{"name": "` + secret + `!"}`, skill.Reply{}},
		"unknown name":  {`{"root_dir": "/` + secret + `"}`, skill.Reply{}},
		"a twin":        {`{"NAME": "` + secret + `"}`, skill.Reply{}},
		"guest's error": {`{}`, skill.Reply{ExitCode: 1, Stdout: []byte(`{"success": false, "error": {"code": "` + secret + `", "message": "` + secret + `"}}`)}},
		"exit":          {`{}`, skill.Reply{ExitCode: 1, Stderr: []byte(secret)}},
		"not JSON":      {`{}`, skill.Reply{Stdout: []byte(secret)}},
		"wrong output":  {`{}`, skill.Reply{Stdout: []byte(`{"mean": "` + secret + `"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, nil)
			h.wasm.Answer = runnertest.Always(c.reply)
			h.Invoke(context.Background(), skill.Local(), ask("stats", c.input))
			if line := h.line(t); line["trace_id"] != "t-1" {
				t.Errorf("log: %v", line)
			}
			if strings.Contains(h.log.String(), secret) {
				t.Errorf("the log holds it: %s", h.log)
			}
		})
	}
}

func TestPanicsLeaveTheirStackInTheLog(t *testing.T) {
	h := open(t, nil)
	h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) { panic("boom") }
	for range 3 { // its place is given back
		r := h.Invoke(context.Background(), skill.Local(), ask("stats", "{}"))
		if r.Error == nil || r.Error.Code != skill.Internal || strings.Contains(r.Error.Message, "boom") {
			t.Fatalf("got %+v", r.Error)
		}
	}
	if running, _, _, _ := h.Load(); running != 0 {
		t.Errorf("%d places are lost", running)
	}
	if !strings.Contains(h.log.String(), "boom") || !strings.Contains(h.log.String(), "dispatch_test.go") {
		t.Errorf("the log lacks the stack: %s", h.log)
	}
}

func TestTraceAndExecutionIDs(t *testing.T) {
	h := open(t, nil)
	seen := ""
	for range 100 {
		req := ask("stats", "{}")
		req.TraceID = "evil\r\nX-Header: 1"
		r := h.Invoke(context.Background(), skill.Local(), req)
		if !skill.ValidTraceID(string(r.TraceID)) {
			t.Fatalf("trace id %q", r.TraceID)
		}
		if r.Meta.ExecutionID <= seen {
			t.Fatalf("execution id %s after %s", r.Meta.ExecutionID, seen)
		}
		seen = r.Meta.ExecutionID
	}
	r := h.Invoke(context.Background(), skill.Local(), skill.Request{SkillID: skill.ID(strings.Repeat("x", 1000) + "\x1b"), TraceID: "t"})
	if len(r.SkillID) > 70 || strings.Contains(string(r.SkillID), "\x1b") || r.Error.Code != skill.NotFound {
		t.Errorf("got %+v", r)
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a door without skills and runners is accepted")
	}
}
