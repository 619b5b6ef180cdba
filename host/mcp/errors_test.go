package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// wrongMessages is what a client can send wrong, and what the specification has a server say to it.
// The numbers are those of JSON-RPC 2.0. All revisions of MCP say of ids that they are strings or
// integers, never null, and come back in errors as far as they can be read.
var wrongMessages = []struct {
	name, message  string
	code           int64
	id             string
	status, modern int  // over HTTP: in revisions with sessions, and in 2026-07-28
	silent         bool // over lines, a notification has no answer
}{
	{"unknown method", `{"jsonrpc":"2.0","id":5,"method":"no/such"}`, -32601, `5`, 200, 404, false},
	{"unknown method, text id", `{"jsonrpc":"2.0","id":"five","method":"no/such","params":{}}`, -32601, `"five"`, 200, 404, false},
	{"unknown method, empty", `{"jsonrpc":"2.0","id":5,"method":""}`, -32601, `5`, 200, 404, false},
	{"unknown notification", `{"jsonrpc":"2.0","method":"notifications/nosuch"}`, -32601, `null`, 400, 400, true},
	{"not JSON", `{"jsonrpc":"2.0","id":5,`, -32700, `5`, 400, 400, false},
	{"not JSON, no id", `nonsense`, -32700, `null`, 400, 400, false},
	{"no version", `{"id":5,"method":"ping"}`, -32600, `5`, 400, 400, false},
	{"another version", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, -32600, `5`, 400, 400, false},
	{"version of another kind", `{"jsonrpc":2.0,"id":5,"method":"ping"}`, -32600, `5`, 400, 400, false},
	{"method of another kind", `{"jsonrpc":"2.0","id":5,"method":7}`, -32600, `5`, 400, 400, false},
	{"method null", `{"jsonrpc":"2.0","id":5,"method":null}`, -32600, `5`, 400, 400, false},
	{"names of other case", `{"JSONRPC":"2.0","id":5,"METHOD":"ping"}`, -32600, `5`, 400, 400, false},
	{"neither request nor response", `{"jsonrpc":"2.0","id":5}`, -32600, `5`, 400, 400, false},
	{"text", `"text"`, -32600, `null`, 400, 400, false},
	{"number", `7`, -32600, `null`, 400, 400, false},
	{"null", `null`, -32600, `null`, 400, 400, false},
	{"empty batch", `[]`, -32600, `null`, 400, 400, false},
	{"batch of no messages", `[1,2]`, -32600, `null`, 400, 400, false},
	{"id with a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, -32600, `1.5`, 400, 400, false},
	{"id of many digits", `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}`, -32600, `9007199254740993`, 400, 400, false},
	{"id out of range", `{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}`, -32600, `1e999`, 400, 400, false},
	{"id null", `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, -32600, `null`, 400, 400, false},
	{"id of another kind", `{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}`, -32600, `null`, 400, 400, false},
	{"id true", `{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, -32600, `null`, 400, 400, false},
	{"request without an id", `{"jsonrpc":"2.0","method":"tools/list"}`, -32600, `null`, 400, 400, true},
	{"notification with an id", `{"jsonrpc":"2.0","id":5,"method":"notifications/initialized"}`, -32600, `5`, 400, 400, false},
	{"params missing", `{"jsonrpc":"2.0","id":5,"method":"tools/call"}`, -32602, `5`, 200, 400, false},
	{"params null", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":null}`, -32602, `5`, 200, 400, false},
	{"params of another kind", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[1]}`, -32602, `5`, 200, 400, false},
	{"a param of another kind", `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":7}}`, -32602, `5`, 200, 400, false},
}

// TestErrorsAreThoseOfTheSpecification holds the table above on every transport and revision. An
// error is JSON, is of the schema of its revision, and has the id of what it answers.
func TestErrorsAreThoseOfTheSpecification(t *testing.T) {
	if testing.Short() {
		t.Skip("one request at a time, held against schemas")
	}
	agents, _ := folders(t, converter())
	web, s := listen(t, Options{AgentSkills: agents})
	for _, revision := range served {
		http, lines := overHTTP(t, web.URL, revision), overLines(t, s, skill.Local(), revision)
		for _, c := range wrongMessages {
			t.Run(revision+" "+c.name, func(t *testing.T) {
				status, kind, text := http(t, c.message)
				want := c.status
				if revision == stateless {
					want = c.modern
				}
				if status != want || !strings.HasPrefix(kind, "application/json") {
					t.Errorf("over HTTP: %d %s, want %d: %.300s", status, kind, want, text)
				}
				isError(t, revision, text, c.code, c.id)
				if !c.silent {
					_, _, text := lines(t, c.message)
					isError(t, revision, text, c.code, c.id)
				}
			})
		}
		// The connection goes on, and ids that keep their value are taken.
		for _, id := range []string{`0`, `-7`, `9007199254740991`, `""`, `"1.5"`} {
			for _, say := range []spoken{http, lines} {
				if _, _, text := say(t, request(revision, id, "tools/list", "")); !strings.Contains(text, `"id":`+id+`,`) || !strings.Contains(text, `"tools":[`) {
					t.Errorf("%s: id %s: %.200s", revision, id, text)
				}
			}
		}
	}
}

func isError(t *testing.T, revision, text string, code int64, id string) {
	t.Helper()
	var a answerOf
	if err := json.Unmarshal([]byte(text), &a); err != nil || a.Error == nil || a.Error.Code != code || string(a.ID) != id {
		t.Errorf("%v, want %d with the id %s: %.300s", err, code, id, text)
	}
	if a.Error != nil && (a.Error.Message == "" || len(a.Error.Message) > 600) {
		t.Errorf("a message of %d bytes", len(a.Error.Message))
	}
	if id == "null" || id == "1.5" || id == "1e999" {
		return // no id could be read, which JSON-RPC answers with null and the schemas leave out; or one that they do not have
	}
	holds(t, revision, "", text)
}

// TestRefusedRequestsKeepTheirID holds what is wrong with a request rather than with its message.
func TestRefusedRequestsKeepTheirID(t *testing.T) {
	var busy atomic.Bool
	web, _ := listen(t, Options{Rate: func(*http.Request, int) error {
		if busy.Load() {
			return &skill.Error{Code: skill.RateLimited, Message: "too many requests"}
		}
		return nil
	}})
	_, _, h := send(t, web.URL, hello)
	session := h.Get(headerSession)
	list := `{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{}}`
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		code    int64
	}{
		{"a revision that is not served", []string{headerSession, session, headerProtocol, "1999-01-01"}, 400, -32022},
		{"one with no session", []string{headerProtocol, "1999-01-01"}, 400, -32022},
		{"a newer one", []string{headerProtocol, "2031-01-01", "Mcp-Method", "tools/list"}, 400, -32022},
		{"no session", []string{headerProtocol, "2025-06-18"}, 400, -32600},
		{"a session that is over", []string{headerSession, "over"}, 404, -32600},
		{"another media type", []string{headerSession, session, "Content-Type", "text/plain"}, 415, -32600},
		{"an Accept without streams", []string{headerSession, session, "Accept", "application/json"}, 400, -32600},
		{"an Accept without streams, 2026", []string{headerProtocol, stateless, "Accept", "application/json"}, 400, -32600},
		{"a stream that is not taken up", []string{headerSession, session, "Last-Event-ID", "1"}, 400, -32600},
		{"a missing header", []string{headerProtocol, stateless, "Mcp-Method", "tools/list"}, 400, -32602},
		{"a wrong header", []string{headerProtocol, stateless, "Mcp-Method", "tools/call"}, 400, -32602},
	} {
		status, text, h := send(t, web.URL, list, c.headers...)
		if status != c.status || !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %s", c.name, status, h.Get("Content-Type"))
		}
		t.Run(c.name, func(t *testing.T) { isError(t, "2025-11-25", text, c.code, `"x"`) })
	}
	for method, headers := range map[string]string{http.MethodGet: "text/html", http.MethodDelete: "*/*"} {
		r := musttest.Get(http.NewRequestWithContext(t.Context(), method, web.URL, nil))(t)
		r.Header.Set("Accept", headers)
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusBadRequest || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %+v, %v", method, res, err)
			continue
		}
		_ = res.Body.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	busy.Store(true)
	if status, text, _ := send(t, web.URL, list, headerSession, session); status != 429 || !strings.Contains(text, `"id":"x"`) {
		t.Errorf("%d %s", status, text)
	}
}

// TestBatchesAreCounted holds that the revisions with batches take them, that each message in one counts,
// and that what is wrong in one, or more than a hundred, is refused before any of it runs.
func TestBatchesAreCounted(t *testing.T) {
	d := newDoor()
	var counted atomic.Int64
	web, _ := listen(t, Options{Door: d, Catalogue: d, Rate: func(_ *http.Request, n int) error {
		counted.Add(int64(n))
		return nil
	}})
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`
	list := func(n int) string {
		return "[" + strings.Repeat(`{"jsonrpc":"2.0","id":"x","method":"tools/list"},`, n-1) + `{"jsonrpc":"2.0","id":"last","method":"tools/list"}]`
	}
	for _, revision := range served {
		say := overHTTP(t, web.URL, revision)
		before := counted.Load()
		status, kind, text := say(t, `[{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","id":2,"method":"resources/list"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}]`)
		if old := revision < "2025-06-18"; old && (status != 200 || counted.Load()-before != 3) || !old && (status != 400 || kind != "application/json") {
			t.Errorf("%s: %d %s, %d requests: %.200s", revision, status, kind, counted.Load()-before, text)
		}
		for name, body := range map[string]string{"one of them wrong": `[` + call + `,{"jsonrpc":"2.0","id":3,"method":"no/such"}]`, "too many": list(mostBatch + 1), "far too many": list(15_000)} {
			if status, kind, text := say(t, body); status != 400 || kind != "application/json" || !strings.Contains(text, `"id":null`) {
				t.Errorf("%s, %s: %d %s %.200s", revision, name, status, kind, text)
			}
		}
	}
	if len(d.calls) > 0 {
		t.Errorf("%d calls of batches that were refused", len(d.calls))
	}
}
