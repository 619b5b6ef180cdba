package remote

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// network is the host's, without its rules: those are package egress' to test, and
// TestRemoteSkill of package host has both together.
type network struct{ client *http.Client }

func (n *network) For(*skill.Call) skill.Fetch {
	return func(ctx context.Context, request []byte) []byte {
		var h head
		first, body, _ := bytes.Cut(request, []byte("\n"))
		status, got, err := 0, []byte(nil), json.Unmarshal(first, &h)
		if err == nil {
			status, got, err = n.do(ctx, &h, body)
		}
		answer := map[string]any{"status": status, "error": nil}
		if err != nil {
			answer["error"] = map[string]any{"code": skill.ToolInvocationError, "message": "the request failed"}
		}
		b, _ := json.Marshal(answer) // it is of strings and numbers
		return append(append(b, '\n'), got...)
	}
}

func (n *network) do(ctx context.Context, h *head, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, h.Method, h.URL, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for name, value := range h.Headers {
		req.Header.Set(name, value)
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return resp.StatusCode, b, err
}

// TestRunner runs the conformance suite. The guest is an HTTP server; the input, which is
// any bytes in the suite and JSON for a remote skill, is a string of base64.
func TestRunner(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(behave))
	defer s.Close()
	const nature = "a remote skill is no process of this host: it has "
	runnertest.Run(t, runnertest.Harness{
		New: func(testing.TB) skill.Runner {
			return &inBase64{New(&network{&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})}
		},
		Write: func(t testing.TB, dir string, p runnertest.Program) string {
			t.Helper()
			write(t, dir, fmt.Sprintf(`{"url": "%s/%s?n=%d"}`, s.URL, p.Do, p.N))
			return "remote.json"
		},
		Trust: skill.Trusted,
		Skip: map[string]string{
			"stdin-1MiB":           "as base64 it is longer than a request may be; TestLengths has the limits",
			"stdin-unread":         "as with stdin-1MiB",
			"stderr":               nature + "no standard error",
			"arguments":            nature + "no arguments",
			"environment-empty":    nature + "no environment",
			"exit-255":             nature + "a status, which is 0 or 1 here",
			"exit-forged-deadline": nature + "a status, which is 0 or 1 here",
			"exit-forged-cancel":   nature + "a status, which is 0 or 1 here",
			"usage":                nature + "neither fuel nor memory that could be measured",
			"stderr-over-limit":    nature + "no standard error",
			"memory":               nature + "memory of its own",
			"recursion":            nature + "a stack of its own",
			"data-read":            nature + "no files here",
			"data-in-part":         nature + "no files here",
			"data-unchanged":       nature + "no files here",
			"scratch-fresh":        nature + "no files here",
			"scratch-cap":          nature + "no files here",
			"artifacts":            nature + "no files here",
			"data-not-granted":     nature + "no files here",
			"scratch-not-granted":  nature + "no files here",

			"skill-folder-unchanged": nature + "no files here",
		},
	})
}

// inBase64 makes JSON of the suite's inputs.
type inBase64 struct{ *Runner }

func (r *inBase64) Run(ctx context.Context, c *skill.Call) (*skill.Reply, error) {
	call := *c
	call.Stdin = fmt.Appendf(nil, `{"input": %q, "skill_id": "x", "trace_id": "y"}`, base64.StdEncoding.EncodeToString(c.Stdin))
	return r.Runner.Run(ctx, &call)
}

// behave is the program of the suite.
func behave(w http.ResponseWriter, r *http.Request) {
	var in struct{ Input []byte }
	b, err := io.ReadAll(r.Body)
	if err = errors.Join(err, json.Unmarshal(b, &in)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var n uint64
	_, _ = fmt.Sscan(r.URL.Query().Get("n"), &n) // 0 where there is none
	switch runnertest.Behaviour(strings.TrimPrefix(r.URL.Path, "/")) {
	case runnertest.Echo:
		_, _ = w.Write(in.Input)
	case runnertest.Drain:
		fmt.Fprintln(w, len(in.Input))
	case runnertest.Print:
		_, _ = w.Write(runnertest.Pattern(n))
	case runnertest.PrintForever:
		for all := runnertest.Pattern(8 << 20); r.Context().Err() == nil; {
			if _, err := w.Write(all); err != nil {
				return
			}
		}
	case runnertest.Exit:
		if n != 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, "bye")
	case runnertest.Sleep:
		select {
		case <-time.After(time.Duration(n) * time.Millisecond):
		case <-r.Context().Done():
		}
	case runnertest.Spin:
		<-r.Context().Done()
	default:
		w.WriteHeader(http.StatusNotImplemented)
	}
}

func write(t testing.TB, dir, entry string) {
	t.Helper()
	musttest.Do(t, os.WriteFile(filepath.Join(dir, "remote.json"), []byte(entry), 0o600))
}

// said is a network that notes requests and answers all of them alike.
type said struct {
	answer string
	asked  []string
}

func (s *said) For(*skill.Call) skill.Fetch {
	return func(_ context.Context, request []byte) []byte {
		s.asked = append(s.asked, string(request))
		return []byte(s.answer)
	}
}

func call(t testing.TB, entry string) *skill.Call {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, entry)
	return &skill.Call{
		SkillID: "far", TraceID: "t-1", Folder: dir, Entry: "remote.json", Trust: skill.Trusted,
		Stdin: []byte(`{"input": {"a": 1}, "skill_id": "far", "trace_id": "t-1"}`), Limits: runnertest.DefaultLimits(),
	}
}

// What is sent is the request of openSkill's own protocol, with what was granted.
func TestRequest(t *testing.T) {
	n := &said{answer: `{"status": 200, "error": null}` + "\n" + `{"b": 2}`}
	c := call(t, `{"url": "https://tools.example.com/skills/far:invoke", "headers": {"X-API-Key": "k-${KEY}", "X-Plain": "$KEY"}}`)
	c.Grants.Env = []string{"KEY=secret", "OTHER=x"}
	r, err := New(n).Run(t.Context(), c)
	if err != nil || string(r.Stdout) != `{"b": 2}` || r.ExitCode != 0 || r.Code != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	want := `{"method":"POST","url":"https://tools.example.com/skills/far:invoke","headers":{"Accept":"application/json","Content-Type":"application/json","X-API-Key":"k-secret","X-Plain":"$KEY","X-Trace-Id":"t-1"},"timeout_ms":60001}` +
		"\n" + `{"input":{"a": 1}}`
	if len(n.asked) != 1 || n.asked[0] != want {
		t.Errorf("asked\n%s\nwant\n%s", n.asked, want)
	}
}

// What the host's network says decides, in a code that blames who it was.
func TestAnswers(t *testing.T) {
	for answer, want := range map[string]skill.Reply{
		`{"status": 204, "error": null}` + "\n":                                            {},
		`{"status": 502, "error": null}` + "\nbad":                                         {ExitCode: 1, Stdout: []byte("bad"), Stderr: []byte("the remote skill answered with the HTTP status 502\n")},
		`{"status": 304, "error": null}` + "\n":                                            {ExitCode: 1, Stderr: []byte("the remote skill answered with the HTTP status 304\n")},
		`{"status": 0, "error": {"code": "NETWORK_DENIED", "message": "no"}}` + "\n":       {Code: skill.NetworkDenied, Message: "no"},
		`{"status": 0, "error": {"code": "PAYLOAD_TOO_LARGE", "message": "long"}}` + "\n":  {Code: skill.OutputLimit, Message: "long"},
		`{"status": 0, "error": {"code": "TIMEOUT", "message": "late"}}` + "\n":            {Code: skill.Timeout, Message: "late"},
		`{"status": 0, "error": {"code": "INVALID_ARGUMENT", "message": "header"}}` + "\n": {Code: skill.ToolInvocationError, Message: "header"},
		`{"status": 0, "error": {"code": "RATE_LIMITED", "message": "all used"}}` + "\n":   {Code: skill.ToolInvocationError, Message: "all used"},
	} {
		r, err := New(&said{answer: answer}).Run(t.Context(), call(t, `{"url": "https://tools.example.com/"}`))
		if err != nil || r.Code != want.Code || r.Message != want.Message || r.ExitCode != want.ExitCode || !bytes.Equal(r.Stdout, want.Stdout) || !bytes.Equal(r.Stderr, want.Stderr) {
			t.Errorf("%s: %+v, %v; want %+v", answer, r, err, want)
		}
	}
	for _, answer := range []string{"", "no JSON", "\n{}"} {
		if r, err := New(&said{answer: answer}).Run(t.Context(), call(t, `{"url": "https://tools.example.com/"}`)); skill.CodeOf(err) != skill.Internal || r != nil {
			t.Errorf("%q: %+v, %v", answer, r, err)
		}
	}
}

// Both ways have their limits; what is too long is not sent.
func TestLengths(t *testing.T) {
	const around = len(`{"input":""}`)
	for size, fits := range map[int]bool{maxSent - around: true, maxSent - around + 1: false} {
		n := &said{answer: `{"status": 200, "error": null}` + "\n{}"}
		c := call(t, `{"url": "https://tools.example.com/"}`)
		c.Stdin = []byte(`{"input":"` + strings.Repeat("x", size) + `"}`)
		_, err := New(n).Run(t.Context(), c)
		if (err == nil) != fits || (len(n.asked) == 1) != fits || !fits && skill.CodeOf(err) != skill.PayloadTooLarge {
			t.Errorf("%d bytes: %v, asked %d times", size, err, len(n.asked))
		}
	}
	c := call(t, `{"url": "https://tools.example.com/"}`)
	c.Limits.Output = 4
	for body, want := range map[string]skill.Code{"1234": "", "12345": skill.OutputLimit} {
		r, err := New(&said{answer: `{"status": 200}` + "\n" + body}).Run(t.Context(), c)
		if err != nil || r.Code != want || string(r.Stdout) != "1234" {
			t.Errorf("%s: %+v, %v", body, r, err)
		}
	}
}

// Entries that cannot be meant, and calls that may not be made, are refused before
// anything is sent, and no message has a secret in it.
func TestRefused(t *testing.T) {
	for entry, want := range map[string]string{
		``:                                    "one JSON object",
		`[]`:                                  "one JSON object",
		`{"url": "https://a.example"} {}`:     "nothing after it",
		`{"uri": "https://a.example"}`:        "one JSON object",
		`{}`:                                  "must have a url",
		`{"url": "ftp://a.example"}`:          "must have a url",
		`{"url": "/skills/echo:invoke"}`:      "must have a url",
		`{"url": "https://u:pw@a.example"}`:   "user name",
		`{"url": "https://a.example/#here"}`:  "fragment",
		`{"url": "https://a.example/\u0000"}`: "must have a url",
		`{"url": "https://a.example", "headers": {"x-trace-id": "1"}}`:                          "X-Trace-Id",
		`{"url": "https://a.example", "headers": {"x-a": "1", "X-A": "2"}}`:                     "header X-A",
		`{"url": "https://a.example", "headers": {"X-A": "` + strings.Repeat("a", 9000) + `"}}`: "8192 bytes",
	} {
		n := &said{}
		r := New(n)
		c := call(t, entry)
		_, err := r.Run(t.Context(), c)
		_, unready := r.Prepare(t.Context(), c.Spec())
		for _, err := range []error{err, unready} {
			var e *skill.Error
			if !errors.As(err, &e) || e.Code != skill.InvalidManifest || !strings.Contains(e.Message, want) || strings.Contains(e.Message, c.Folder) || strings.Contains(e.Message, "pw") {
				t.Errorf("%.80s: %v; want %q", entry, err, want)
			}
		}
		if len(n.asked) != 0 {
			t.Errorf("%s: asked %q", entry, n.asked)
		}
	}
	for name, change := range map[string]func(*skill.Call) skill.Code{
		"community": func(c *skill.Call) skill.Code { c.Trust = skill.Community; return skill.Forbidden },
		"no input":  func(c *skill.Call) skill.Code { c.Stdin = []byte(`{}`); return skill.ToolInvocationError },
		"no JSON":   func(c *skill.Call) skill.Code { c.Stdin = []byte("x"); return skill.ToolInvocationError },
		"no grant":  func(c *skill.Call) skill.Code { c.Grants.Env = nil; return skill.ToolInvocationError },
		"line break": func(c *skill.Call) skill.Code {
			c.Grants.Env = []string{"KEY=sec\nret"}
			return skill.ToolInvocationError
		},
	} {
		n := &said{}
		c := call(t, `{"url": "https://a.example", "headers": {"X-A": "${KEY}"}}`)
		c.Grants.Env = []string{"KEY=secret"}
		want := change(c)
		if _, err := New(n).Run(t.Context(), c); skill.CodeOf(err) != want || strings.Contains(err.Error(), "ret") || len(n.asked) != 0 {
			t.Errorf("%s: %v, asked %q", name, err, n.asked)
		}
	}
	c := call(t, `{"url": "https://a.example"}`)
	if _, err := New(nil).Prepare(t.Context(), c.Spec()); skill.CodeOf(err) != skill.ToolInvocationError || !strings.Contains(err.Error(), "OPENSKILL_HTTP_ALLOW") {
		t.Errorf("no network: %v", err)
	}
	musttest.Do(t, os.Symlink("/etc/hostname", filepath.Join(c.Folder, "out.json")))
	c.Entry = "out.json"
	if _, err := New(&said{}).Prepare(t.Context(), c.Spec()); skill.CodeOf(err) != skill.InvalidManifest {
		t.Errorf("out of the folder: %v", err)
	}
}
