package skills_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// httpCall is one request and what must come back. status and code follow from
// the contract, not from what a host answered.
type httpCall struct {
	skill, name, input string
	want               string // the data of a success
	artifacts          string // of it
	status             int    // of a failure
	code               string
	inside             bool // the guest itself refuses; else the door does
}

// httpCalls are one success and each error of each skill. In the data folder a.log
// is a log of one line, and link.log leads out of it.
var httpCalls = []httpCall{
	{skill: "echo", name: "success", input: `{"text":"héllo 技"}`, want: `{"echoed":"héllo 技"}`},
	{skill: "echo", name: "wrong type", input: `{"text":5}`, status: 400, code: "INVALID_ARGUMENT"},

	{skill: "calculator", name: "success", input: `{"numbers":[1,2,4],"ops":["sum","median"],"compare":{"a":1,"b":2}}`, want: `{"results":{"sum":7,"median":2},"comparison":{"a":1,"b":2,"result":"a<b","difference":-1}}`},
	{skill: "calculator", name: "an op that there is not", input: `{"numbers":[1],"ops":["product"]}`, status: 400, code: "INVALID_ARGUMENT"},
	{skill: "calculator", name: "a result beyond the doubles", input: `{"numbers":[1e308,1e308],"ops":["sum"]}`, status: 400, code: "INVALID_ARGUMENT", inside: true},

	{skill: "file_search", name: "success", input: `{"query":"started"}`, want: `{"matches":[{"path":"./data/a.log","line_no":1,"snippet":"INFO started"}],"skipped":{"link":1},"truncated":false}`},
	{skill: "file_search", name: "nothing to find", input: `{"query":""}`, status: 400, code: "INVALID_ARGUMENT"},
	{skill: "file_search", name: "no such folder", input: `{"query":"x","root_dir":"data/none"}`, status: 400, code: "INVALID_ARGUMENT", inside: true},
	{skill: "file_search", name: "a path out", input: `{"query":"x","root_dir":"data/../.."}`, status: 403, code: "FORBIDDEN_PATH"},
	{skill: "file_search", name: "a link out", input: `{"query":"x","root_dir":"data/link"}`, status: 403, code: "FORBIDDEN_PATH", inside: true},

	{skill: "log_transform", name: "success", input: `{"input_path":"./data/a.log"}`, want: `{"records":[{"line_no":1,"timestamp":null,"level":"INFO","message":"started"}],"read_as":{"format":"text","encoding":"utf-8","compression":"none"},"stats":{"lines":1,"records":1,"dropped":0,"dropped_reasons":{},"truncated":false}}`},
	{skill: "log_transform", name: "success with a file", input: `{"input_path":"./data/a.log","output":"file"}`, want: `{"output_path":"work/a.jsonl","read_as":{"format":"text","encoding":"utf-8","compression":"none"},"stats":{"lines":1,"records":1,"dropped":0,"dropped_reasons":{},"truncated":false}}`, artifacts: `\[{"name":"a\.jsonl","size":66,"url":"/executions/[0-9a-f-]{36}/artifacts/a\.jsonl"}\]`},
	{skill: "log_transform", name: "a format that there is not", input: `{"input_path":"data/a.log","format":"xml"}`, status: 400, code: "INVALID_ARGUMENT"},
	{skill: "log_transform", name: "no such file", input: `{"input_path":"data/none.log"}`, status: 400, code: "INVALID_ARGUMENT", inside: true},
	{skill: "log_transform", name: "a path out", input: `{"input_path":"/data/../x.log"}`, status: 403, code: "FORBIDDEN_PATH"},
	{skill: "log_transform", name: "a link out", input: `{"input_path":"data/link/secret.log"}`, status: 403, code: "FORBIDDEN_PATH", inside: true},
}

// httpResult is an answer, read strictly.
type httpResult struct {
	Success bool                       `json:"success"`
	SkillID string                     `json:"skill_id"`
	TraceID string                     `json:"trace_id"`
	Data    json.RawMessage            `json:"data"`
	Error   *skill.ResultError         `json:"error"`
	Meta    map[string]json.RawMessage `json:"meta"`
}

// TestHTTP serves each form of the skills from a whole host, with its defaults,
// and calls it as anybody would.
func TestHTTP(t *testing.T) {
	t.Parallel()
	open(t)
	outside, data := t.TempDir(), t.TempDir()
	writeFile(t, data, "a.log", "INFO started\n")
	writeFile(t, outside, "secret.log", "INFO secret\n")
	musttest.Do(t, os.Symlink(outside, filepath.Join(data, "link")))
	for _, f := range []form{sandboxed, native} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			at := serve(t, f, data)
			for _, c := range httpCalls {
				t.Run(c.skill+"/"+c.name, func(t *testing.T) {
					if why := missing(t, f, c.skill); why != "" {
						t.Skip(why)
					}
					if f == sandboxed && (c.skill == "file_search" || c.skill == "log_transform") {
						hosttest.NoRace(t) // Go makes these
					}
					c.hold(t, f, at)
				})
			}
		})
	}
}

// serve runs a host on a free port until the test ends, and gives its address when
// every skill's runner is ready.
func serve(t *testing.T, f form, data string) string {
	t.Helper()
	state := t.TempDir()
	if f == sandboxed {
		hosttest.Runtimes(t, "..", state)
	}
	settings, err := config.Load(config.Sources{Dir: t.TempDir(), Flags: map[string]string{
		"listen": "127.0.0.1:0", "data": data, "state": state, "skills": filepath.Join(house.temp, string(f)),
	}})
	musttest.Do(t, err)
	h := musttest.Get(app.Open(settings, &app.Options{Log: slog.New(slog.DiscardHandler)}))(t)
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- h.Serve(ctx, func(at net.Addr) { ready <- at.String() }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the host ended with %v", err)
		}
	})
	select {
	case at := <-ready:
		for _, id := range skillIDs {
			if missing(t, f, id) == "" {
				h.Prepare(t.Context(), skill.ID(id))
			}
		}
		return at
	case err := <-ended:
		ended <- nil
		t.Fatal(errors.Join(errors.New("the host did not start"), err))
		return ""
	}
}

func (c httpCall) hold(t *testing.T, f form, at string) {
	t.Helper()
	const trace = "trace-1.of_Tests"
	url := "http://" + at + "/skills/" + c.skill + ":invoke"
	req := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewBufferString(`{"input":`+c.input+`}`)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Trace-Id", trace)
	resp, err := http.DefaultClient.Do(req)
	musttest.Do(t, err)
	defer resp.Body.Close()
	var got httpResult
	dec := json.NewDecoder(resp.Body)
	dec.DisallowUnknownFields()
	musttest.Do(t, dec.Decode(&got))
	if got.SkillID != c.skill || got.TraceID != trace || resp.Header.Get("X-Trace-Id") != trace {
		t.Errorf("skill_id %q, trace_id %q, X-Trace-Id %q", got.SkillID, got.TraceID, resp.Header.Get("X-Trace-Id"))
	}
	c.meta(t, f, got.Meta)
	if c.code == "" {
		if resp.StatusCode != http.StatusOK || !got.Success || got.Error != nil {
			t.Fatalf("status %d, success %t, error %+v", resp.StatusCode, got.Success, got.Error)
		}
		if d := diff(canonical(t, []byte(c.want)), canonical(t, got.Data)); d != "" {
			t.Errorf("data (-want +got):\n%s", d)
		}
		return
	}
	if resp.StatusCode != c.status || got.Success || string(got.Data) != "null" || got.Error == nil {
		t.Fatalf("status %d, success %t, data %s, error %+v; want %d", resp.StatusCode, got.Success, got.Data, got.Error, c.status)
	}
	if e := got.Error; string(e.Code) != c.code || e.Status != c.status || e.Message == "" || len(e.Message) > 512 {
		t.Errorf("error %+v; want %s, %d and a message of at most 512 bytes", e, c.code, c.status)
	}
	// What the door refuses it lists by field; a guest names the reason.
	if _, told := got.Error.Details["reason"]; told != c.inside {
		t.Errorf("details %v: from the guest %t, want %t", got.Error.Details, told, c.inside)
	}
}

// meta holds the meta of an answer to the contract: all fields, of their types,
// and no others but the artifacts of a run that has some.
func (c httpCall) meta(t *testing.T, f form, meta map[string]json.RawMessage) {
	t.Helper()
	fields := map[string]*regexp.Regexp{
		"latency_ms":        regexp.MustCompile(`^[0-9]+$`),
		"version":           regexp.MustCompile(`^"0\.1\.0"$`),
		"execution_id":      regexp.MustCompile(`^"[0-9a-f-]{36}"$`),
		"runner":            regexp.MustCompile(fmt.Sprintf(`^"%s"$`, kinds[f][c.skill])),
		"digest":            regexp.MustCompile(`^"sha256:[0-9a-f]{64}"$`),
		"fuel_used":         regexp.MustCompile(`^0$`),
		"memory_peak_bytes": regexp.MustCompile(`^0$`),
		"truncated":         regexp.MustCompile(`^false$`),
	}
	if c.inside || c.code == "" { // a guest ran
		fields["memory_peak_bytes"] = regexp.MustCompile(`^[1-9][0-9]{5,}$`)
		if f == sandboxed {
			fields["fuel_used"] = regexp.MustCompile(`^[1-9][0-9]{3,}$`)
		}
	}
	if c.artifacts != "" {
		fields["artifacts"] = regexp.MustCompile("^" + c.artifacts + "$")
	}
	var want, got []string
	for name, pattern := range fields {
		want = append(want, name)
		if !pattern.Match(meta[name]) {
			t.Errorf("meta.%s is %s, want %s", name, meta[name], pattern)
		}
	}
	for name := range meta {
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fields of meta (-want +got):\n%s", d)
	}
}
