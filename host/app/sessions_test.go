package app

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"openskill/internal/musttest"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// cell runs code in a session, and gives its value, or the code of its error.
func cell(t *testing.T, h *Host, p skill.Principal, session, code string, more map[string]any) (value string, r *skill.Result) {
	t.Helper()
	return works(t, h, p, code, with(map[string]any{"workspace": nil, "session": session}, more))
}

func with(all ...map[string]any) map[string]any {
	to := map[string]any{}
	for _, m := range all {
		for k, v := range m {
			to[k] = v
		}
	}
	return to
}

// sessionOf gives the id of the session of a result.
func sessionOf(t *testing.T, r *skill.Result) string {
	t.Helper()
	var data struct{ Session string }
	musttest.Do(t, json.Unmarshal(r.Data, &data))
	return data.Session
}

// otherMemory is a valid file of a frozen session, with another memory, of the same size.
func otherMemory(t *testing.T, frozen []byte) []byte {
	t.Helper()
	dec := musttest.Get(zstd.NewReader(nil))(t)
	defer dec.Close()
	memory := musttest.Get(dec.DecodeAll(frozen, nil))(t)
	memory[len(memory)-1] ^= 1
	enc := musttest.Get(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression)))(t)
	b := enc.EncodeAll(memory, nil)
	const head = 8 // of a frame that is skipped
	more := len(frozen) - len(b) - head
	if more < 0 {
		t.Fatalf("got %d bytes; want at most %d", len(b), len(frozen)-head)
	}
	b = binary.LittleEndian.AppendUint32(b, 0x184D2A50)
	b = binary.LittleEndian.AppendUint32(b, uint32(more))
	return append(b, make([]byte, more)...)
}

// TestSessions: code finds the variables and files of the calls before. A failed call leaves both as they were; forks
// and frozen sessions go on from the same moment; nobody else has the session.
func TestSessions(t *testing.T) {
	h := codeHost(t, map[string]string{})
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke", "skills:invoke:run_code", "executions:read"}}
	_, r := cell(t, h, p, "new", "x = 1\nopen('f', 'w').write('a')", nil)
	id := sessionOf(t, r)
	expect := func(h *Host, p skill.Principal, session, code, want string) *skill.Result {
		t.Helper()
		got, r := cell(t, h, p, session, code, nil)
		if got != want {
			t.Errorf("%s: %s; want %s; %+v", code, got, want, r.Error)
		}
		return r
	}
	expect(h, p, id, "x += 1\nopen('f', 'a').write('b'); x", "2")
	expect(h, p, id, "x += 1; open('f', 'a').write('c'); 1 / 0", "GUEST_EXIT") // as in a notebook, what was done before stays
	expect(h, p, id, "[x, open('f').read()]", `[3,"abc"]`)
	expect(h, p, id, "x = 9; open('f', 'w').close()\nwhile True: pass", "FUEL_EXHAUSTED")
	expect(h, p, id, "[x, open('f').read()]", `[3,"abc"]`)
	for _, other := range []skill.Principal{{ID: "p", Type: skill.Agent, Tenant: "other", Scopes: p.Scopes}, {ID: "q", Type: skill.Agent, Tenant: "acme", Scopes: p.Scopes}} {
		expect(h, other, id, "x", "NOT_FOUND")
	}
	fork := musttest.Get(h.kept.sessions.Fork(t.Context(), p, id))(t)
	expect(h, p, fork.ID, "x = 'fork'; open('f', 'w').write('fork'); x", `"fork"`)
	expect(h, p, id, "[x, open('f').read()]", `[3,"abc"]`)
	expect(h, p, fork.ID, "[x, open('f').read()]", `["fork","fork"]`)
	_, r = cell(t, h, p, "new", "y = 1", nil)
	if _, err := h.kept.spaces.Get(t.Context(), p, sessionOf(t, r)); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("a session without files has a workspace: %v", err)
	}
	_, leave, err := h.kept.sessions.Enter(t.Context(), p, id, 0)
	musttest.Do(t, err)
	if got, _ := cell(t, h, p, id, "x", map[string]any{"busy": "conflict"}); got != "CONFLICT" {
		t.Errorf("in use: %s", got)
	}
	leave()
	for _, limits := range []skill.LimitsJSON{{MemoryMB: 64}, {ScratchMB: 1}} {
		if got, r := cell(t, h, p, id, "x", map[string]any{"limits": limits}); got != "INVALID_ARGUMENT" {
			t.Errorf("%+v: %+v", limits, r)
		}
		for _, session := range []string{id, "new"} { // of the request of an edge
			input := musttest.Get(json.Marshal(map[string]string{"language": "python", "code": "x = 1", "session": session}))(t)
			r := h.Invoke(t.Context(), p, skill.Request{SkillID: skill.RunCode, Input: input, Limits: limits.Limits()})
			if refused := session == id || limits.ScratchMB > 0; refused != (r.Error != nil && r.Error.Code == skill.InvalidArgument) {
				t.Errorf("%+v of %s: %+v", limits, session, r.Error)
			}
		}
	}
	_, large := cell(t, h, p, "new", "x = 1", map[string]any{"limits": skill.LimitsJSON{MemoryMB: 1_000_000}})
	if s := musttest.Get(h.kept.sessions.Get(t.Context(), p, sessionOf(t, large)))(t); s.MemoryMB != h.settings.MaxMemoryMB {
		t.Errorf("a session has %d MiB, and the host allows %d", s.MemoryMB, h.settings.MaxMemoryMB)
	}
	if _, r := cell(t, h, p, id, "x", map[string]any{"language": "shell"}); r.Error == nil || r.Error.Code != skill.InvalidArgument {
		t.Errorf("another language: %+v", r)
	}

	frozen := musttest.Get(h.kept.sessions.Freeze(t.Context(), p, id))(t)
	if !frozen.Frozen || frozen.Runs != 7 || frozen.Size < 1<<18 {
		t.Errorf("%+v", frozen)
	}
	again := musttest.Get(Open(h.settings, &Options{Log: slog.New(slog.DiscardHandler)}))(t) // another host on the same database
	defer again.Close()
	expect(again, p, fork.ID, "x", "NOT_FOUND") // it is in the memory of the first one
	expect(again, p, id, "import math; [x, math.pi > 3, open('f').read()]", `[3,true,"abc"]`)
	expect(h, p, id, "x", "NOT_FOUND") // one host has it
	musttest.Get(again.kept.sessions.Freeze(t.Context(), p, id))(t)
	expect(h, p, id, "x + 1", "4")

	musttest.Get(h.kept.sessions.Freeze(t.Context(), p, id))(t)
	copies := musttest.Get(filepath.Glob(filepath.Join(filesDir(h.settings, "acme"), "*")))(t)
	flipped := 0
	for _, name := range copies {
		b := musttest.Get(os.ReadFile(name))(t)
		if len(b) > 50_000 {
			musttest.Do(t, os.WriteFile(name, otherMemory(t, b), 0o600))
			flipped++
		}
	}
	if flipped == 0 {
		t.Error("no frozen session on disk")
	}
	expect(h, p, id, "x", "INTERNAL")
	expect(h, p, id, "x", "3") // the database has it whole
	musttest.Get(h.kept.sessions.Freeze(t.Context(), p, id))(t)
	for _, statement := range []string{"UPDATE file_parts SET body = CAST('damaged' AS BLOB) WHERE part = 0"} {
		musttest.Get(h.kept.db.Write.ExecContext(t.Context(), statement))(t)
	}
	for _, name := range copies {
		_ = os.Remove(name)
	}
	expect(h, p, id, "x", "INTERNAL")
	musttest.Do(t, h.kept.sessions.Delete(t.Context(), p, id))
	expect(h, p, id, "x", "NOT_FOUND")
	if _, err := h.kept.spaces.Get(t.Context(), p, id); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("the files of a deleted session: %v", err)
	}
}

// TestImportsOfSessions: each call of a session may import what the runtime has, whatever the calls before imported.
func TestImportsOfSessions(t *testing.T) {
	h := codeHost(t, map[string]string{})
	p := skill.Local()
	for name, calls := range map[string][][2]string{
		"the first call imports": {{"import openpyxl; x = openpyxl.__name__", ""}, {"x", `"openpyxl"`}, {"import pypdf; [x, pypdf.__name__]", `["openpyxl","pypdf"]`}},
		"a later call imports":   {{"x = 1", ""}, {"import openpyxl; x += 1; x", "2"}, {"openpyxl.__name__", `"openpyxl"`}},
	} {
		session := "new"
		for _, c := range calls {
			got, r := cell(t, h, p, session, c[0], nil)
			if got != c[1] {
				t.Fatalf("%s: %s: %s, want %s; %+v", name, c[0], got, c[1], r.Error)
			}
			session = sessionOf(t, r)
		}
		musttest.Get(h.kept.sessions.Freeze(t.Context(), p, session))(t)
		if got, r := cell(t, h, p, session, "import json, defusedxml; json.dumps(x) > ''", nil); got != "true" {
			t.Errorf("%s: frozen: %s %+v", name, got, r.Error)
		}
	}
	_, failed := cell(t, h, p, "new", "x = 1", nil)
	session := sessionOf(t, failed)
	made := musttest.Get(h.kept.sessions.Create(t.Context(), p, "python", "", 0, nil))(t)
	if got, _ := cell(t, h, p, made.ID, "import openpyxl\nwhile True: pass", map[string]any{"limits": map[string]int{"fuel": 2_000_000_000}}); got != "FUEL_EXHAUSTED" {
		t.Errorf("a call that fails: %s", got)
	}
	for _, s := range []string{made.ID, session} {
		if got, r := cell(t, h, p, s, "import sys; 'openpyxl' in sys.modules", nil); got != "false" {
			t.Errorf("after a call that failed: %s %+v", got, r.Error)
		}
	}
	made = musttest.Get(h.kept.sessions.Create(t.Context(), p, "python", "", 0, []string{"openpyxl"}))(t)
	musttest.Get(h.kept.sessions.Freeze(t.Context(), p, made.ID))(t)
	if got, r := cell(t, h, p, made.ID, "import sys; 'openpyxl' in sys.modules", nil); got != "true" {
		t.Errorf("with packages: %s %+v", got, r.Error)
	}
	made = musttest.Get(h.kept.sessions.Create(t.Context(), p, "python", "", 0, []string{"nosuch"}))(t)
	for session, packages := range map[string][]string{made.ID: {}, "new": {"nosuch"}} {
		if got, r := cell(t, h, p, session, "1", map[string]any{"packages": packages}); got != "NOT_FOUND" || !strings.Contains(r.Error.Message, "openskill packages add run_code python:nosuch") {
			t.Errorf("unknown package: %s %+v", got, r.Error)
		}
	}
	if list, _, err := h.kept.sessions.List(t.Context(), p, "", 100); err != nil || len(list) != 6 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
}

// codeOf is the code of an error of the client; "" of another one.
func codeOf(err error) skill.Code {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Code
	}
	return ""
}

// TestSessionsOverHTTP: the client creates, forks, freezes and deletes sessions, and runs code in them. What is malformed
// or unknown is refused.
func TestSessionsOverHTTP(t *testing.T) {
	h := codeHost(t, map[string]string{})
	transport := musttest.Get(h.Transport())(t)
	c := musttest.Get(client.New("http://host", &client.Options{HTTP: &http.Client{Transport: transport}, Retries: -1}))(t)
	made := musttest.Get(c.CreateCodeSession(t.Context(), "python"))(t)
	value := func(id, code string) string {
		t.Helper()
		r, err := c.RunCode(t.Context(), client.Code{Language: "python", Code: code, Session: id})
		if err != nil {
			return string(codeOf(err))
		}
		var data struct{ Value json.RawMessage }
		musttest.Do(t, json.Unmarshal(r.Data, &data))
		return string(data.Value)
	}
	value(made.ID, "x = 1")
	fork := musttest.Get(c.ForkCodeSession(t.Context(), made.ID))(t)
	value(fork.ID, "x = 2")
	if frozen := musttest.Get(c.FreezeCodeSession(t.Context(), made.ID))(t); !frozen.Frozen || frozen.Runs != 1 {
		t.Errorf("%+v", frozen)
	}
	if one, two := value(made.ID, "x"), value(fork.ID, "x"); one != "1" || two != "2" {
		t.Errorf("%s and %s", one, two)
	}
	if got := musttest.Get(c.CodeSession(t.Context(), made.ID))(t); got.Frozen || got.Runs != 2 || got.FuelUsed == 0 {
		t.Errorf("%+v", got)
	}
	musttest.Do(t, c.DeleteCodeSession(t.Context(), made.ID))
	if err := c.DeleteCodeSession(t.Context(), made.ID); codeOf(err) != skill.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if got := value(made.ID, "x"); got != "NOT_FOUND" {
		t.Errorf("deleted: %s", got)
	}
	for _, wrong := range []struct {
		path, body string
		status     int
	}{
		{"/sessions", `{"language":"ruby"}`, 400},
		{"/sessions", `{}`, 400},
		{"/sessions", `{"language":"python","memory_mb":0}`, 400},
		{"/sessions", `{"language":"python","memory_mb":1e9}`, 400},
		{"/sessions", `{"language":"python","memory_mb":"1"}`, 400},
		{"/sessions", `{"language":"python","workspace":"../x"}`, 400},
		{"/sessions", `{"language":"python","other":1}`, 400},
		{"/sessions", `[`, 400},
		{"/sessions/" + fork.ID + ":run", `{}`, 400},
		{"/sessions/" + fork.ID + ":run", `{"code":"1","session":"x"}`, 400},
		{"/sessions/" + fork.ID + ":run", `{"code":"1","language":"shell"}`, 400},
		{"/sessions/nobody:run", `{"code":"1"}`, 404},
		{"/sessions/nobody:fork", ``, 404},
		{"/sessions/nobody:freeze", ``, 404},
		{"/code:run", `{"language":"python","code":"1","session":"a/b"}`, 400},
		{"/code:run", `{"language":"shell","code":"1","session":"new"}`, 400},
	} {
		r := musttest.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host"+wrong.path, strings.NewReader(wrong.body)))(t)
		resp := musttest.Get(transport.RoundTrip(r))(t)
		body := musttest.Get(io.ReadAll(resp.Body))(t)
		if resp.StatusCode != wrong.status {
			t.Errorf("%s %s: status %d; want %d: %s", wrong.path, wrong.body, resp.StatusCode, wrong.status, body)
		}
		_ = resp.Body.Close()
	}
}
