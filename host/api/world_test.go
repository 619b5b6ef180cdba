package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/dispatch/approval"
	"openskill/host/mcp"
	"openskill/host/records"
	"openskill/sdk/skill"
)

// world is an edge with something of everything behind it, and several tenants before
// it. Whatever belongs to the tenant "mark-a" has the word mark in it.
type world struct {
	*server
	keys    apitest.Keys
	records records.Store
	results records.Results
	files   *records.Files
	spaces  *records.Workspaces
	manager *records.Manager
	door    *worldDoor
	uploads *apitest.Uploads

	approvals *approval.Store
	chat      *apitest.Chat
	react     *apitest.React
}

const ours = "mark-a"

// all are the scopes of a tenant's own administrator: what a host's operator has besides
// is for all tenants.
func all() (scopes []string) {
	for _, s := range skill.Scopes() {
		if s != skill.ScopeHost && s != skill.ScopeAdmin && s != skill.ScopeMetrics {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// worldDoor has the skills of every tenant, and besides "mark-skill" of ours.
type worldDoor struct{ storetest.Door }

func (d *worldDoor) refuses(p skill.Principal, r skill.Request) *skill.Result {
	if !p.MayInvoke(r.SkillID) {
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Forbidden, Message: "the caller lacks the scope"})
	}
	known := r.SkillID == "echo" || r.SkillID == "held" || r.SkillID == "refused" || r.SkillID == "mark-skill" && p.Tenant == ours
	if !known {
		return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.NotFound, Message: "there is no such skill"})
	}
	return nil
}

func (d *worldDoor) Check(_ context.Context, c *records.QueuedCall) *skill.Result {
	return d.refuses(c.Principal, *c.Request)
}

func (d *worldDoor) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	return d.Start(ctx, p, r, nil)
}

func (d *worldDoor) Start(ctx context.Context, p skill.Principal, r skill.Request, started func(string)) *skill.Result {
	if refused := d.refuses(p, r); refused != nil {
		return refused
	}
	return d.Door.Start(ctx, p, r, started)
}

// worldCatalogue shows our skill to us.
type worldCatalogue struct{ apitest.Catalogue }

func (c worldCatalogue) seen(p skill.Principal) apitest.Catalogue {
	if p.Tenant != ours {
		return c.Catalogue
	}
	own := c.Catalogue[0]
	own.ID, own.Description, own.Version, own.State, own.Trust = "mark-skill", "mark of ours", "1.0.0-mark", skill.StateEnabled, skill.Community
	return append(c.Catalogue[:2:2], own) // before panic and sleep
}

func (c worldCatalogue) List(p skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error) {
	return c.seen(p).List(p, cursor, limit)
}

func (c worldCatalogue) Get(p skill.Principal, id skill.ID, version string) (skill.Descriptor, error) {
	return c.seen(p).Get(p, id, version)
}

func (c worldCatalogue) Versions(p skill.Principal, id skill.ID) ([]skill.Descriptor, error) {
	return c.seen(p).Versions(p, id)
}

// The clock of a world's records.
var worldTime = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	db := storetest.SQLite(t)
	w := &world{keys: apitest.Keys{}, records: records.NewStore(db), results: records.NewResults(db), uploads: &apitest.Uploads{Dir: t.TempDir(), Skill: "mark-skill", Owner: ours}}
	w.chat, w.react = &apitest.Chat{Now: func() time.Time { return worldTime }}, &apitest.React{}
	recorded, err := records.Open(t.Context(), records.Options{Store: w.records, Log: slog.New(slog.DiscardHandler)})
	musttest.Do(t, err)
	w.manager, err = records.NewManager(records.ManagerOptions{
		Records: w.records, Results: w.results, Long: 8, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return worldTime },
		Queue: &records.QueueOptions{DB: db, Record: recorded, Post: &records.Post{Permits: func(url string) error {
			if url == "https://refused.example.com/" {
				return &skill.Error{Code: skill.InvalidArgument, Message: "not permitted"}
			}
			return nil
		}}},
		Replay: func(_ context.Context, _ skill.Principal, id string) (any, error) {
			return map[string]any{"identical": true, "of": id}, nil
		},
	})
	musttest.Do(t, err)
	w.approvals, err = approval.Open(t.Context(), approval.Options{DB: db, Policy: approval.PerVersion, Log: slog.New(slog.DiscardHandler)})
	musttest.Do(t, err)
	inner, scripts := apitest.NewDoor(), apitest.NewAgentSkills()
	inner.Add("mark-skill", func(_ context.Context, r skill.Request) (json.RawMessage, error) {
		return r.Input, nil
	})
	w.door = &worldDoor{storetest.Door{
		Inner: withFiles{inner}, Scripts: scripts, Store: w.records, Manager: w.manager, Now: func() time.Time { return worldTime },
	}}
	m, err := mcp.New(mcp.Options{
		Door: w.door, Catalogue: worldCatalogue{apitest.NewCatalogue()}, KeepAlive: 20 * time.Millisecond,
		Principal: func(r *http.Request) (skill.Principal, error) { return api.PrincipalOf(r.Context()), nil },
	})
	musttest.Do(t, err)
	w.server = start(t, func(o *api.Options) {
		o.WriteTimeout, o.StallTimeout = time.Minute, time.Minute
		o.Door, o.Starter, o.Executions, o.Authenticate = w.door, w.door, w.manager, w.keys.Authenticate
		o.Catalogue, o.Uploads, o.Approvals, o.MCP, o.Definitions = worldCatalogue{apitest.NewCatalogue()}, w.uploads, w.approvals, m, &apitest.Definitions{}
		dir := t.TempDir()
		w.files = records.NewFiles(records.FilesOptions{DB: db, Dir: func(tenant string) string { return filepath.Join(dir, "t-"+tenant) }, Now: func() time.Time { return worldTime }})
		w.spaces = records.NewWorkspaces(w.files)
		o.Files, o.Workspaces, o.Schedules, o.Webhooks = w.files, w.spaces, w.manager.Schedules(w.door), w.manager.Webhooks()
		o.Metrics, o.Usage, o.Grants = apitest.Metrics, apitest.Usage, newScriptGrants(t)
		metadata := []byte(`{"resource": "https://skills.example.com/mcp", "authorization_servers": ["https://login.example.com"]}`)
		o.Resource.Documents = map[string][]byte{"": metadata, "/mcp": metadata}
		o.Console = apitest.Console(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }, nil)
		o.Chat, o.React, o.Now = w.chat, w.react, func() time.Time { return worldTime }
	})
	w.Door = inner
	t.Cleanup(func() {
		_ = m.Close()
		_ = w.manager.Close(context.Background())
		_ = recorded.Close(context.Background())
		_ = w.approvals.Close()
	})
	w.keys["ann"] = skill.Principal{ID: "mark-ann", Type: skill.Agent, Tenant: ours, Scopes: all(), Key: "mark-key"}
	w.keys["bob"] = skill.Principal{ID: "bob", Type: skill.Agent, Tenant: "b", Scopes: all(), Key: "key-of-bob"}
	w.keys["operator"] = skill.Local()
	return w
}

// withFiles has every call of mark-skill leave a file.
type withFiles struct{ *apitest.Door }

func (d withFiles) Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result {
	out := d.Door.Invoke(ctx, p, r)
	if r.SkillID == "mark-skill" && out.Success {
		out.Meta.Artifacts = []skill.Artifact{{Name: "mark/of a+b.csv", Data: []byte("mark,1\n"), Size: 7}}
	}
	return out
}

// as sends a request of a caller.
func (w *world) as(t testing.TB, key, method, path, body string, header ...string) (*http.Response, []byte) {
	t.Helper()
	return w.do(t, method, path, body, append(header, "X-API-Key", key)...)
}

// plain sends a request whose answer is not of this edge's making.
func (w *world) plain(t testing.TB, key string, r request) (*http.Response, []byte) {
	t.Helper()
	req := musttest.Get(http.NewRequestWithContext(context.Background(), r.method, "http://"+w.Addr+r.path, strings.NewReader(r.body)))(t)
	for i := 0; i+1 < len(r.header); i += 2 {
		req.Header.Set(r.header[i], r.header[i+1])
	}
	req.Header.Set("X-API-Key", key)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	musttest.Do(t, err)
	defer resp.Body.Close()
	body := musttest.Get(io.ReadAll(resp.Body))(t)
	return resp, body
}

// run makes a call and gives the id of its execution.
func (w *world) run(t testing.TB, key, id, input string) string {
	t.Helper()
	resp, body := w.as(t, key, "POST", "/skills/"+id+":invoke", `{"input":`+input+`}`, "X-Trace-Id", "trace-"+w.keys[key].ID)
	var r skill.Result
	if err := json.Unmarshal(body, &r); err != nil || !r.Success {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return r.Meta.ExecutionID
}

// view reads an execution.
func (w *world) view(t testing.TB, key, id string) (v records.View, status int) {
	t.Helper()
	resp, body := w.as(t, key, "GET", "/executions/"+id, "")
	if resp.StatusCode == 200 {
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	return v, resp.StatusCode
}

// begin makes a long call and gives the id of its execution.
func (w *world) begin(t testing.TB, key, id, input string) string {
	t.Helper()
	resp, body := w.as(t, key, "POST", "/skills/"+id+":invoke", `{"input":`+input+`}`, "Prefer", "respond-async")
	if resp.StatusCode != 202 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	execution, ok := strings.CutPrefix(resp.Header.Get("Location"), "/executions/")
	if !ok || resp.Header.Get("Preference-Applied") != "respond-async" || !bytes.Contains(body, []byte(execution)) {
		t.Fatalf("%v %s", resp.Header, body)
	}
	return execution
}

// ends waits until an execution has ended, as clients do.
func (w *world) ends(t testing.TB, key, id string) (v records.View) {
	t.Helper()
	within(t, "the end of "+id, func() bool {
		var status int
		if v, status = w.view(t, key, id); status != 200 {
			t.Fatalf("GET /executions/%s: %d", id, status)
		}
		return v.Status != records.Running
	})
	return v
}

func TestLongCallsOverHTTP(t *testing.T) {
	w := newWorld(t)
	id := w.begin(t, "bob", "echo", `{"text":"hello"}`)
	v := w.ends(t, "bob", id)
	var r skill.Result
	if err := json.Unmarshal(v.Result, &r); err != nil || v.Status != records.Success || string(r.Data) != `{"echoed":"hello"}` || r.Meta.ExecutionID != id {
		t.Errorf("%+v %s %v", v, v.Result, err)
	}
	resp, body := w.as(t, "bob", "POST", "/agent-skills/unit-converter/scripts/convert.py:run", `{"args":["1"]}`, "Prefer", "wait=1, RESPOND-async ; x=1")
	if resp.StatusCode != 202 {
		t.Fatalf("a script: %d %s", resp.StatusCode, body)
	}
	v = w.ends(t, "bob", strings.TrimPrefix(resp.Header.Get("Location"), "/executions/"))
	if v.Status != records.Success || v.Skill != "unit-converter" || v.Script != "convert.py" || v.Result == nil {
		t.Errorf("a script: %+v", v)
	}
	id = w.begin(t, "bob", "echo", `{"text":1}`) // what fails has a result too
	if v := w.ends(t, "bob", id); v.Status != records.Failed || v.Error.Code != skill.InvalidArgument || !bytes.Contains(v.Result, []byte(`"success":false`)) {
		t.Errorf("%+v %s", v, v.Result)
	}
	w.keys["caller"] = skill.Principal{ID: "caller", Type: skill.Agent, Tenant: "b", Scopes: []string{skill.ScopeInvoke}}
	for name, tc := range map[string]struct {
		key, skill, prefer string
		status             int
	}{
		"another preference":                     {"bob", "echo", "return=minimal", 200},
		"nearly the same":                        {"bob", "echo", "respond-asynchronously", 200},
		"who could not ask for it":               {"caller", "echo", "respond-async", 200},
		"one that is refused before it is begun": {"bob", "refused", "respond-async", 429},
		"one that there is not":                  {"bob", "nosuch", "respond-async", 404},
		"a body that is none":                    {"bob", "echo", "respond-async", 400},
	} {
		body := `{"input":{"text":"x"}}`
		if tc.status == 400 {
			body = "{"
		}
		resp, got := w.as(t, tc.key, "POST", "/skills/"+tc.skill+":invoke", body, "Prefer", tc.prefer)
		if resp.StatusCode != tc.status || resp.Header.Get("Preference-Applied") != "" || resp.Header.Get("Location") != "" {
			t.Errorf("%s: %d %v %s", name, resp.StatusCode, resp.Header, got)
		}
	}
}

// A long call does not end with its client's connection, but by DELETE, on which its run
// really ends; asking for that twice does no harm, and what has ended stays as it was.
func TestALongCallEndsByDelete(t *testing.T) {
	w := newWorld(t)
	h := w.addHeld("held")
	id := w.begin(t, "bob", "held", "{}") // its client closes the connection
	wait(t, "the run", h.begun)
	select {
	case err := <-h.ended:
		t.Fatalf("the run ended with its client: %v", err)
	case <-time.After(3 * 50 * time.Millisecond): // clients that left are noticed after two looks
	}
	if resp, body := w.as(t, "ann", "DELETE", "/executions/"+id, ""); resp.StatusCode != 404 {
		t.Errorf("by another tenant: %d %s", resp.StatusCode, body)
	}
	for i := range 3 {
		resp, body := w.as(t, "bob", "DELETE", "/executions/"+id, "")
		if resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"status":"terminated"`)) {
			t.Errorf("%d: %d %s", i, resp.StatusCode, body)
		}
	}
	if err := wait(t, "the run's end", h.ended); err == nil {
		t.Error("the run ended by itself")
	}
	if v := w.ends(t, "bob", id); v.Error == nil || v.Error.Code != skill.Cancelled {
		t.Errorf("%+v", v)
	}

	// One whose client waits.
	c := w.dial(t)
	const body = `{"input":{}}`
	c.send(t, "POST /skills/held:invoke HTTP/1.1\r\nHost: x\r\nX-API-Key: bob\r\nContent-Length: "+itoa(len(body))+"\r\n\r\n"+body)
	wait(t, "the run", h.begun)
	_, list := w.as(t, "bob", "GET", "/executions?status=running", "")
	var page struct{ Data []records.View }
	if err := json.Unmarshal(list, &page); err != nil || len(page.Data) != 1 {
		t.Fatalf("%v: %s", err, list)
	}
	if resp, body := w.as(t, "bob", "DELETE", "/executions/"+page.Data[0].ID, ""); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body := c.answer(t, "POST", "/skills/held:invoke"); resp.StatusCode != 499 {
		t.Errorf("who waits gets %d %s", resp.StatusCode, body)
	}

	done := w.run(t, "bob", "echo", `{"text":"x"}`)
	if resp, body := w.as(t, "bob", "DELETE", "/executions/"+done, ""); resp.StatusCode != 200 || !bytes.Contains(body, []byte(`"status":"success"`)) {
		t.Errorf("one that has ended: %d %s", resp.StatusCode, body)
	}
}

func TestArtifactsOverHTTP(t *testing.T) {
	w := newWorld(t)
	id := w.run(t, "ann", "mark-skill", `{}`)
	for _, path := range []string{"mark/of%20a+b.csv", "mark%2Fof%20a%2Bb.csv"} {
		resp, body := w.as(t, "ann", "GET", "/executions/"+id+"/artifacts/"+path, "")
		h := resp.Header
		if resp.StatusCode != 200 || string(body) != "mark,1\n" || h.Get("Content-Type") != "application/octet-stream" ||
			h.Get("Content-Disposition") != `attachment; filename="of a+b.csv"` || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v %s", path, resp.StatusCode, h, body)
		}
	}
	for _, path := range []string{
		"mark/of+a+b.csv", "mark", "of%20a+b.csv", "..%2Fmark/of%20a+b.csv", "mark/../mark/of%20a+b.csv", "%00", "%0a", "%ff", strings.Repeat("n", 5000), ".", "..", "mark%5Cof%20a+b.csv",
	} {
		resp, body := w.as(t, "ann", "GET", "/executions/"+id+"/artifacts/"+path, "")
		if resp.StatusCode != 404 {
			t.Errorf("%.40s: %d %s", path, resp.StatusCode, body)
		}
	}
}

func TestWrongQueriesForExecutions(t *testing.T) {
	w := newWorld(t)
	for query, status := range map[string]int{
		"": 200, "?status=running": 200, "?status=done": 400, "?status=": 400, "?limit=0": 400, "?limit=101": 400, "?session=x": 400,
		"?session=00000000-0000-7000-8000-000000000001": 200, "?since=yesterday": 400, "?since=2026-11-22T10:00:00Z&until=2026-11-23T00:00:00%2B02:00": 200,
		"?until=2026-11-23T00:00:00+02:00": 200, "?since=0001-01-01T00:00:00Z": 200, "?principal=a%00b": 400, "?trace=%ff": 400, "?skill=a&skill=b": 400,
		"?tenant=mark-a": 403, "?tenant=b": 200, "?code=TIMEOUT": 200, "?principal=bob": 200, "?other=1": 200,
	} {
		if resp, body := w.as(t, "bob", "GET", "/executions"+query, ""); resp.StatusCode != status {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body)
		}
	}
	for _, id := range []string{"x", strings.Repeat("0", 36), "00000000-0000-7000-8000-00000000000G", strings.Repeat("x", 4000)} {
		if resp, body := w.as(t, "operator", "GET", "/executions/"+id, ""); resp.StatusCode != 404 {
			t.Errorf("%.40s: %d %s", id, resp.StatusCode, body)
		}
	}
	if resp, body := w.as(t, "operator", "POST", "/executions/"+storetest.ExecutionID(1)+":replay", `{"x":1}`); resp.StatusCode != 400 {
		t.Errorf("replay with a body: %d %s", resp.StatusCode, body)
	}
}

// Pages of executions are whole, also while there are more.
func TestPagesOfExecutions(t *testing.T) {
	w := newWorld(t)
	want := map[string]bool{}
	for i := range 7 {
		want[w.run(t, "bob", "echo", fmt.Sprintf(`{"text":"%d"}`, i))] = true
		w.run(t, "ann", "echo", `{"text":"x"}`)
	}
	path, pages := "/executions?limit=3", 0
	for next := path; next != ""; pages++ {
		_, body := w.as(t, "bob", "GET", next, "")
		var page struct {
			Data []records.View
			Next *string
		}
		musttest.Do(t, json.Unmarshal(body, &page))
		for _, v := range page.Data {
			if !want[v.ID] || v.Principal != "bob" {
				t.Errorf("%s of %s, twice or another's", v.ID, v.Principal)
			}
			delete(want, v.ID)
		}
		if next = ""; page.Next != nil {
			next = path + "&cursor=" + strings.NewReplacer("{", "%7B", "}", "%7D", `"`, "%22").Replace(*page.Next)
		}
	}
	if len(want) > 0 || pages != 3 {
		t.Errorf("%d pages without %v", pages, want)
	}
}

// A host without these parts says so, and none of its paths fail otherwise.
func TestWithoutRecords(t *testing.T) {
	s := start(t, nil)
	id := storetest.ExecutionID(1)
	for _, r := range [][2]string{
		{"GET", "/executions"},
		{"GET", "/executions/" + id},
		{"DELETE", "/executions/" + id},
		{"GET", "/executions/" + id + "/artifacts/x"},
		{"POST", "/executions/" + id + ":replay"},
		{"GET", "/api/agent/executions/" + id},
	} {
		if resp, body := s.do(t, r[0], r[1], ""); resp.StatusCode != 404 {
			t.Errorf("%s %s: %d %s", r[0], r[1], resp.StatusCode, body)
		}
	}
	resp, body := s.do(t, "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`, "Prefer", "respond-async")
	if resp.StatusCode != 200 {
		t.Errorf("a long call: %d %s", resp.StatusCode, body)
	}
}

// A tenant has its share of the long calls and no more; the next one is told so, and may
// still be made as others are.
func TestTooManyLongCalls(t *testing.T) {
	w := newWorld(t)
	h := w.addHeld("held")
	var ids []string
	for range 5 { // of eight
		ids = append(ids, w.begin(t, "bob", "held", "{}"))
	}
	resp, body := w.as(t, "bob", "POST", "/skills/held:invoke", `{"input":{}}`, "Prefer", "respond-async")
	if resp.StatusCode != 429 || resp.Header.Get("RateLimit-Limit") != "8" || resp.Header.Get("RateLimit-Remaining") != "0" || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("the sixth: %d %v %s", resp.StatusCode, resp.Header, body)
	}
	if resp, body := w.as(t, "bob", "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`); resp.StatusCode != 200 {
		t.Errorf("one that is waited for: %d %s", resp.StatusCode, body)
	}
	w.ends(t, "ann", w.begin(t, "ann", "echo", `{"text":"x"}`))
	w.as(t, "bob", "DELETE", "/executions/"+ids[0], "")
	within(t, "a place", func() bool {
		resp, _ := w.as(t, "bob", "POST", "/skills/echo:invoke", `{"input":{"text":"x"}}`, "Prefer", "respond-async")
		return resp.StatusCode == 202
	})
	close(h.goOn)
	for _, id := range ids[1:] {
		if v := w.ends(t, "bob", id); v.Status != records.Success || v.Result == nil {
			t.Errorf("%+v", v)
		}
	}
}
