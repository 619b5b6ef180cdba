package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The tests hold providers to recorded exchanges with their vendors: what
// is asked, what goes over the wire in both directions, and what the agent gets of it.
//
// An exchange is a txtar file of these parts:
//
//	ask.json       an [llm.Request]
//	response.http  what the vendor answers: status, headers, an empty line, the body
//	request.http   what was sent; written by -update
//	reply.json     what Chat gives, and is told meanwhile; written by -update
//
// Of the parts without content, stream says that text is listened to, and cut that the
// connection breaks at the end of the body.

var update = flag.Bool("update", false, "write what is sent and understood into the exchanges")

// runExchanges replays all exchanges of a folder. dial makes the provider for an address.
func runExchanges(t *testing.T, folder string, dial func(base string) (Provider, error)) {
	t.Helper()
	files, err := fs.Glob(os.DirFS(folder), "*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no exchanges in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".txtar"), func(t *testing.T) {
			t.Parallel()
			replay(t, filepath.Join(folder, file), dial)
		})
	}
}

type parts struct {
	archive *txtar.Archive
}

func (p parts) get(name string) ([]byte, bool) {
	for _, f := range p.archive.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return nil, false
}

func (p parts) set(name string, data []byte) {
	for i := range p.archive.Files {
		if p.archive.Files[i].Name == name {
			p.archive.Files[i].Data = data
			return
		}
	}
	p.archive.Files = append(p.archive.Files, txtar.File{Name: name, Data: data})
}

func replay(t *testing.T, file string, dial func(base string) (Provider, error)) {
	t.Helper()
	archive := musttest.Get(txtar.ParseFile(file))(t)
	p := parts{archive}
	ask, _ := p.get("ask.json")
	var r Request
	if err := json.Unmarshal(ask, &r); err != nil {
		t.Fatalf("ask.json: %v", err)
	}
	response, _ := p.get("response.http")
	_, cut := p.get("cut")
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, written(t, r)...)
		respond(t, w, response, cut)
	}))
	defer server.Close()
	provider := musttest.Get(dial(server.URL))(t)
	var told []string
	var hear func(string)
	if _, stream := p.get("stream"); stream {
		hear = func(part string) { told = append(told, part) }
	}
	reply, err := provider.Chat(t.Context(), &r, hear)
	if err == nil {
		checkReply(t, &r, reply, told, hear != nil)
	}
	compare(t, p, "request.http", sent)
	compare(t, p, "reply.json", understood(t, reply, told, err))
	if *update {
		musttest.Do(t, os.WriteFile(file, txtar.Format(archive), 0o644))
	}
}

func compare(t *testing.T, p parts, name string, got []byte) {
	t.Helper()
	want, _ := p.get(name)
	if *update {
		p.set(name, got)
		return
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", name, d)
	}
}

// volatile are headers that net/http sets.
var volatile = []string{"Accept-Encoding", "Content-Length", "Connection"}

// written writes a request as it stands in a file.
func written(t *testing.T, r *http.Request) []byte {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s\n", r.Method, r.URL.RequestURI())
	var names []string
	for name := range r.Header {
		if !slices.Contains(volatile, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&out, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
	}
	out.WriteString("\n")
	if err := json.Indent(&out, bytes.TrimSpace(body), "", "  "); err != nil {
		t.Errorf("what was sent is no JSON: %v\n%s", err, body)
	}
	out.WriteString("\n")
	return out.Bytes()
}

// respond sends a response as it stands in a file, event by event.
func respond(t *testing.T, w http.ResponseWriter, response []byte, cut bool) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(response)), nil)
	if err != nil {
		t.Errorf("response.http: %v", err)
		return
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		t.Errorf("response.http: %v", err)
		return
	}
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	out := http.NewResponseController(w)
	for event := range bytes.SplitAfterSeq(body, []byte("\n\n")) {
		if _, err := w.Write(event); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
	if cut {
		panic(http.ErrAbortHandler)
	}
}

// madeUp matches the ids that adapters make up.
var madeUp = regexp.MustCompile(`call_[A-Z2-7]{26}`)

func understood(t *testing.T, reply *Reply, told []string, err error) []byte {
	t.Helper()
	out := map[string]any{}
	if reply != nil {
		out["reply"] = reply
	}
	if told != nil {
		out["told"] = told
	}
	var failed *skill.Error
	var busy *BusyError
	switch {
	case errors.As(err, &failed):
		e := map[string]any{"code": failed.Code, "message": failed.Message, "details": failed.Details}
		if errors.As(err, &busy) {
			e["busy_after"] = busy.After.String()
		}
		out["error"] = e
	case err != nil:
		t.Errorf("the error is none of ours: %v", err)
	}
	b, err := json.MarshalIndent(out, "", "  ")
	musttest.Do(t, err)
	return append(madeUp.ReplaceAll(b, []byte("call_MADE_UP")), '\n')
}

// checkReply holds a reply to what [llm.Provider] promises of each.
func checkReply(t *testing.T, r *Request, reply *Reply, told []string, heard bool) {
	t.Helper()
	if heard && strings.Join(told, "") != reply.Text {
		t.Errorf("told %q, and the text is %q", told, reply.Text)
	}
	ids := map[string]bool{}
	for i := range r.Messages {
		for _, c := range r.Messages[i].Calls {
			ids[c.ID] = true
		}
	}
	for _, c := range reply.Calls {
		if c.ID == "" || c.Name == "" || ids[c.ID] {
			t.Errorf("the call %+v has no name, or no id of its own", c)
		}
		ids[c.ID] = true
	}
	if u := reply.Usage; u.Prompt < 0 || u.Completion < 0 || u.Total() > 4e9 || u.Estimated {
		t.Errorf("the usage is %+v", u)
	}
	switch reply.Stop {
	case StopEnd, StopLength:
	case StopCalls:
		if len(reply.Calls) == 0 {
			t.Error("it waits for calls, and there are none")
		}
	case StopRefused:
		if len(reply.Calls) > 0 {
			t.Error("calls of a reply that was withheld")
		}
	default:
		t.Errorf("it stopped by %q", reply.Stop)
	}
}

// canned is an http.RoundTripper that answers everything with one body.
type canned struct {
	Type string // of its content
	Body []byte
}

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {c.Type}}, Body: io.NopCloser(bytes.NewReader(c.Body)), ContentLength: -1, Request: r,
	}, nil
}

// fuzzAnswer feeds arbitrary answers to a provider, as a stream and as a whole: there is a reply
// that keeps its promises, or an error of ours, and soon. dial makes the provider.
func fuzzAnswer(t *testing.T, r *Request, body []byte, dial func(c *http.Client) (Provider, error)) {
	t.Helper()
	for _, kind := range []string{"text/event-stream", "application/json"} {
		provider := musttest.Get(dial(&http.Client{Transport: canned{kind, body}}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var told []string
		reply, err := provider.Chat(ctx, r, func(part string) { told = append(told, part) })
		if ctx.Err() != nil {
			t.Error("it took ten seconds")
		}
		cancel()
		if err == nil {
			checkReply(t, r, reply, told, true)
			continue
		}
		switch skill.CodeOf(err) {
		case skill.AgentLLMUnavailable, skill.AgentLLMParseError:
		default:
			t.Errorf("the error is %v", err)
		}
		if failed, ok := errors.AsType[*skill.Error](err); ok && len(failed.Message) > skill.MaxMessage {
			t.Errorf("a message of %d bytes", len(failed.Message))
		}
	}
}
