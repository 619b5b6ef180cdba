package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// unread are clients that take nothing of their answers beyond the heads.
type unread struct {
	of   *server
	open []*raw
}

func (s *unread) ask(t *testing.T, request string) (status int) {
	t.Helper()
	c := s.of.dial(t)
	s.open = append(s.open, c)
	c.send(t, request)
	resp, err := http.ReadResponse(c.br, nil)
	musttest.Do(t, err)
	return resp.StatusCode
}

// leave closes their connections, after which nothing is held for them.
func (s *unread) leave(t *testing.T) {
	t.Helper()
	for _, c := range s.open {
		_ = c.Close() // it was used
	}
	within(t, "all bytes given back", func() bool { return api.Unread(s.of.Server) == 0 })
}

// keep has an execution of a tenant leave an item.
func (w *world) keep(t *testing.T, caller, name string, data []byte) (id string) {
	t.Helper()
	resp, body := w.do(t, "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`, "X-API-Key", caller, "Content-Type", "application/json")
	var r skill.Result
	if err := json.Unmarshal(body, &r); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	k := records.Kept{Tenant: w.keys[caller].Tenant, ExecutionID: r.Meta.ExecutionID, Items: []records.Item{{Name: name, Data: data}}, At: worldTime, Until: worldTime.Add(time.Hour)}
	musttest.Do(t, w.results.Put(t.Context(), &k, records.Room{Bytes: 1 << 40, Items: 10}))
	return r.Meta.ExecutionID
}

// 94 connections that read nothing of a file of 60 MiB took 8 GB.
func TestUnreadAnswersTakeNoMoreThanTheirShare(t *testing.T) {
	w := newWorld(t)
	w.keys["one"], w.keys["other"] = tenant("one", all()...), tenant("other", all()...)
	const size = 32 << 20
	file := w.keep(t, "one", "big.bin", make([]byte, size))
	result := w.keep(t, "one", "", []byte(`"`+strings.Repeat("x", 8<<20)+`"`))
	theirs := w.keep(t, "other", "big.bin", make([]byte, size))
	get := func(key, path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nX-API-Key: " + key + "\r\n\r\n"
	}

	clients := unread{of: w.server}
	count := map[int]int{}
	for range 40 {
		count[clients.ask(t, get("one", "/executions/"+file+"/artifacts/big.bin"))]++
	}
	if count[200] < 4 || count[429] < 20 || count[200]+count[429] != 40 || api.Unread(w.Server) > 256<<20 {
		t.Errorf("files: %v, %d MiB are held", count, api.Unread(w.Server)>>20)
	}
	count = map[int]int{}
	for range 20 {
		count[clients.ask(t, get("one", "/executions/"+result))]++
	}
	if count[429] < 15 || api.Unread(w.Server) > 288<<20 {
		t.Errorf("results: %v, %d MiB are held", count, api.Unread(w.Server)>>20)
	}
	call := func(key string) *http.Response {
		resp, _ := w.do(t, "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`, "X-API-Key", key, "Content-Type", "application/json")
		return resp
	}
	if resp := call("one"); resp.StatusCode == 429 && resp.Header.Get("Retry-After") == "" {
		t.Error("refused without a time to come back")
	}
	if resp := call("other"); resp.StatusCode != 200 {
		t.Errorf("a call of another tenant: %d", resp.StatusCode)
	}
	if resp, body := w.do(t, "GET", "/executions/"+theirs+"/artifacts/big.bin", "", "X-API-Key", "other"); resp.StatusCode != 200 || len(body) != size {
		t.Errorf("a file of another tenant: %d, %d bytes", resp.StatusCode, len(body))
	}
	clients.leave(t)
	if resp, body := w.do(t, "GET", "/executions/"+file+"/artifacts/big.bin", "", "X-API-Key", "one"); resp.StatusCode != 200 || len(body) != size {
		t.Errorf("afterwards: %d, %d bytes", resp.StatusCode, len(body))
	}
	if n := api.Unread(w.Server); n != 0 {
		t.Errorf("%d bytes are held of answers that were read", n)
	}
}

// A result that is there is sent, whether or not there is room; the next call is refused
// before it runs, over each way to call and to read pages.
func TestUnreadResultsKeepTheirTenantFromCalling(t *testing.T) {
	huge := json.RawMessage(`"` + strings.Repeat("x", 40<<20) + `"`)
	ran := 0
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(huge) })
	s := start(t, func(o *api.Options) {
		o.MCP = page
		o.WriteTimeout, o.StallTimeout = time.Minute, time.Minute
		o.Console = apitest.Console(page, func(_, cookie string) skill.Principal {
			if cookie == "" {
				return skill.Principal{}
			}
			return tenant(cookie)
		})
	})
	s.Door.Add("huge", func(context.Context, skill.Request) (json.RawMessage, error) { ran++; return huge, nil })
	call := "POST /skills/huge:invoke HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n" + `{"input":{}}`
	open := "GET /console/huge HTTP/1.1\r\nHost: localhost\r\nCookie: "
	mcp := strings.Replace(call, "/skills/huge:invoke", "/mcp", 1)
	own := open + skill.Local().Tenant + "\r\n\r\n"
	clients := unread{of: s}
	for i, requests := 0, []string{call, mcp, own}; api.Unread(s.Server) < 256<<20; i++ {
		held := api.Unread(s.Server)
		if status := clients.ask(t, requests[i%3]); status != 200 {
			t.Fatalf("%.20s: %d", requests[i%3], status)
		}
		within(t, "the answer being counted", func() bool { return api.Unread(s.Server) >= held+40<<20 })
	}
	before := ran
	for _, request := range []string{call, mcp, own} {
		if status := clients.ask(t, request); status != 429 {
			t.Errorf("%.20s: %d", request, status)
		}
	}
	if ran != before {
		t.Error("a call that was refused has run")
	}
	for _, request := range []string{open + "else\r\n\r\n", strings.Replace(open, "Cookie: ", "X: ", 1) + "x\r\n\r\n"} {
		if status := clients.ask(t, request); status != 200 {
			t.Errorf("a page of somebody else: %d", status)
		}
	}
	clients.leave(t)
	if status := clients.ask(t, call); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
}

// An answer that is asked for from within counts until it is closed, also half read.
func TestAnswersFromWithinCountUntilTheyAreClosed(t *testing.T) {
	w := newWorld(t)
	w.keys["one"] = tenant("one", all()...)
	id := w.keep(t, "one", "big.bin", make([]byte, 1<<20))
	req := musttest.Get(http.NewRequestWithContext(t.Context(), "GET", "/executions/"+id+"/artifacts/big.bin", nil))(t)
	resp, err := w.Do(t.Context(), w.keys["one"], req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 1000); err != nil || api.Unread(w.Server) != 1<<20 {
		t.Errorf("%v; %d bytes are held", err, api.Unread(w.Server))
	}
	for range 2 {
		if err := resp.Body.Close(); err != nil || api.Unread(w.Server) != 0 {
			t.Errorf("%v; %d bytes are held", err, api.Unread(w.Server))
		}
	}
}
