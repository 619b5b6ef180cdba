package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Who sees what of records, by id, by list and by session.
func TestWhoSeesWhat(t *testing.T) {
	h := newHouse(t, records.ManagerOptions{})
	ids := map[string]string{}
	for _, p := range []skill.Principal{ann, amy, bob} {
		r := h.door.Invoke(t.Context(), p, skill.Request{SkillID: "echo", TraceID: skill.TraceID("t-" + p.ID), Input: json.RawMessage("{}")})
		ids[p.ID] = r.Meta.ExecutionID
	}
	for _, tc := range []struct {
		name string
		who  skill.Principal
		sees string
	}{
		{"of one's own", ann, "ann"},
		{"of the tenant", chief, "amy ann"},
		{"of another tenant", bob, "bob"},
		{"of all", operator, "bob amy ann"},
		{"of all, by the one scope", caller("z", "z", skill.ScopeHost), "bob amy ann"},
		{"of a namesake", caller("c", "ann", skill.ScopeExecutions), ""},
		{"of a human of the same name", skill.Principal{ID: "ann", Type: skill.Human, Tenant: "a", Scopes: ann.Scopes}, ""},
	} {
		list, _, err := h.List(t.Context(), tc.who, records.Query{Limit: 10})
		var got []string
		for _, v := range list {
			got = append(got, v.Principal)
		}
		if err != nil || strings.Join(got, " ") != tc.sees {
			t.Errorf("%s: list %q, %v", tc.name, got, err)
		}
		for owner, id := range ids {
			want := skill.Code("")
			if !strings.Contains(" "+tc.sees+" ", " "+owner+" ") {
				want = skill.NotFound
			}
			_, byID := h.Get(t.Context(), tc.who, id, records.WholeResult)
			_, bySession := h.Session(t.Context(), tc.who, id)
			if code(byID) != want || code(bySession) != want {
				t.Errorf("%s: %s by id %v, by session %v", tc.name, owner, byID, bySession)
			}
			list, _, err := h.List(t.Context(), tc.who, records.Query{TraceID: "t-" + owner, Limit: 10})
			if err != nil || (len(list) > 0) != (want == "") {
				t.Errorf("%s: %s by trace: %d, %v", tc.name, owner, len(list), err)
			}
		}
	}
	for name, tc := range map[string]struct {
		who  skill.Principal
		q    records.Query
		want skill.Code
	}{
		"another tenant by name":    {bob, records.Query{Tenant: "a", Limit: 10}, skill.Forbidden},
		"another principal by name": {ann, records.Query{Principal: "amy", Limit: 10}, skill.Forbidden},
		"without the scope":         {caller("a", "x", skill.ScopeInvoke), records.Query{Limit: 10}, skill.Forbidden},
		"nobody":                    {skill.Principal{Scopes: skill.Scopes()}, records.Query{Limit: 10}, skill.Unauthorized},
		"of no tenant":              {skill.Principal{ID: "x", Scopes: []string{skill.ScopeAllExecutions}}, records.Query{Limit: 10}, skill.Forbidden},
		"one's own tenant by name":  {chief, records.Query{Tenant: "a", Principal: "ann", Limit: 10}, ""},
		"a tenant, by the operator": {operator, records.Query{Tenant: "b", Limit: 10}, ""},
	} {
		list, _, err := h.List(t.Context(), tc.who, tc.q)
		if code(err) != tc.want || (err == nil && len(list) != 1) {
			t.Errorf("%s: %d, %v", name, len(list), err)
		}
	}
}

// The files of a run are there for who may see it, as long as they are kept.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{MostOfOne: 510, MostOfAll: records.Room{Bytes: 1000}, Keep: time.Hour})
		var left []skill.Artifact
		run := func(files string) string {
			r := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "files", Input: json.RawMessage(files)})
			if !r.Success {
				t.Fatalf("%+v", r.Error)
			}
			time.Sleep(time.Second)
			left = r.Meta.Artifacts
			return r.Meta.ExecutionID
		}
		id := run(`[{"name":"a.csv","size":60},{"name":"b","size":50},{"name":"c","size":40},{"name":"\u001bd","size":0}]`)
		v, err := h.Get(t.Context(), ann, id, records.WholeResult)
		if err != nil || len(v.Artifacts) != 4 {
			t.Fatalf("%+v, %v", v, err)
		}
		for i, want := range []bool{true, false, true, false} {
			if a := v.Artifacts[i]; a.Kept == nil || *a.Kept != want {
				t.Errorf("%q kept: %v", a.Name, a.Kept)
			}
			if url := "/executions/" + id + "/artifacts/" + left[i].Name; (left[i].URL == url) != want || !want && left[i].URL != "" {
				t.Errorf("%q is at %q, kept: %v", left[i].Name, left[i].URL, want)
			}
		}
		if b, err := h.File(t.Context(), ann, id, "a.csv"); err != nil || len(b) != 60 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		for name, p := range map[string]skill.Principal{"b": ann, "": ann, "../a.csv": ann, "\x1bd": ann, "nosuch": operator, "a.csv": bob, "c": amy} {
			if b, err := h.File(t.Context(), p, id, name); code(err) != skill.NotFound {
				t.Errorf("%q of %s: %d bytes, %v", name, p.ID, len(b), err)
			}
		}
		if run(`[{"name":"out/of a?.csv","size":9}]`); !strings.HasSuffix(left[0].URL, "/artifacts/out%2Fof%20a%3F.csv") {
			t.Errorf("a name with odd characters is at %s", left[0].URL)
		}
		run(`[{"name":"x","size":90}]`)
		last := run(`[{"name":"x","size":90}]`)
		if b, err := h.File(t.Context(), ann, id, "a.csv"); code(err) != skill.NotFound {
			t.Errorf("the oldest made no room: %d bytes, %v", len(b), err)
		}
		if b, err := h.File(t.Context(), chief, last, "x"); err != nil || len(b) != 90 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		h.results.err = errors.New("full")
		if r := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "files", Input: json.RawMessage(`[{"name":"x","size":9}]`)}); r.Error == nil || r.Error.Code != skill.AuditUnavailable {
			t.Errorf("files that cannot be kept: %+v", r)
		}
		if _, err := h.File(t.Context(), ann, last, "x"); code(err) != skill.AuditUnavailable {
			t.Errorf("files that cannot be read: %v", err)
		}
	})
}

// Logs are kept of the runs that the operator chose, for who may see the run, and are no
// file of it.
func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			of                records.Logs
			ofFailed, ofOther string
		}{{"", "", ""}, {"none", "", ""}, {records.LogsOfFailed, "said", ""}, {records.LogsOfAll, "said", "said"}} {
			h := newHouse(t, records.ManagerOptions{Logs: c.of, Keep: time.Hour})
			for failed, want := range map[bool]string{true: c.ofFailed, false: c.ofOther} {
				r := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "files", Input: json.RawMessage(`[{"name":"a","size":1}]`)})
				id := r.Meta.ExecutionID
				h.KeepLogs(t.Context(), &records.Started{Tenant: ann.Tenant, ExecutionID: id}, failed, func() string { return "said" })
				if v, err := h.Get(t.Context(), ann, id, records.WholeResult); err != nil || v.Logs != want || len(v.Artifacts) != 1 {
					t.Errorf("%q, failed %v: %+v, %v", c.of, failed, v, err)
				}
				if list, _, err := h.List(t.Context(), ann, records.Query{}); err != nil || list[0].Logs != "" {
					t.Errorf("a list with logs: %v", err)
				}
				for name, p := range map[string]skill.Principal{"\tlogs": ann, "logs": ann} {
					if b, err := h.File(t.Context(), p, id, name); code(err) != skill.NotFound {
						t.Errorf("%q is a file: %q, %v", name, b, err)
					}
				}
				if v, err := h.Get(t.Context(), bob, id, records.WholeResult); code(err) != skill.NotFound {
					t.Errorf("seen by another tenant: %+v, %v", v, err)
				}
			}
		}
		h := newHouse(t, records.ManagerOptions{Logs: records.LogsOfAll, Keep: time.Hour})
		r := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "files", Input: json.RawMessage(`[]`)})
		of := &records.Started{Tenant: ann.Tenant, ExecutionID: r.Meta.ExecutionID}
		h.KeepLogs(t.Context(), of, false, func() string { return "" })
		if v, err := h.Get(t.Context(), ann, of.ExecutionID, records.WholeResult); err != nil || v.Logs != "" {
			t.Errorf("%+v, %v", v, err)
		}
		h.KeepLogs(t.Context(), of, false, func() string { return "said" })
		h.results.err = errors.New("full")
		h.KeepLogs(t.Context(), of, false, func() string { return "more" }) // is told in the log alone
		if _, err := h.Get(t.Context(), ann, of.ExecutionID, records.WholeResult); code(err) != skill.AuditUnavailable {
			t.Errorf("logs that cannot be read: %v", err)
		}
		h.results.err = nil
		if v, err := h.Get(t.Context(), ann, of.ExecutionID, records.WholeResult); err != nil || v.Logs != "said" {
			t.Errorf("%+v, %v", v, err)
		}
		time.Sleep(2 * time.Hour)
		if v, err := h.Get(t.Context(), ann, of.ExecutionID, records.WholeResult); err != nil || v.Logs != "" {
			t.Errorf("kept for ever: %+v, %v", v, err)
		}
	})
}

func TestSessionsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		session := storetest.ExecutionID(0xabc)
		for _, n := range []int{2, 0, 1, 1} {
			h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}"), Turn: skill.Turn{Session: session, Iteration: n}})
			time.Sleep(time.Second)
		}
		views, err := h.Session(t.Context(), ann, session)
		var got []string
		for _, v := range views {
			got = append(got, fmt.Sprint(v.Iteration, " ", v.ID[len(v.ID)-1:]))
		}
		if want := "0 2,1 3,1 4,2 1"; err != nil || strings.Join(got, ",") != want {
			t.Errorf("%q, want %s; %v", got, want, err)
		}
		for _, session := range []string{"", "x", storetest.ExecutionID(5)} {
			if _, err := h.Session(t.Context(), ann, session); code(err) != skill.NotFound {
				t.Errorf("%q: %v", session, err)
			}
		}
	})
}

// fewAtOnce gives two executions a page, whatever is asked for.
type fewAtOnce struct{ records.ExecutionRecords }

func (r fewAtOnce) Executions(ctx context.Context, q records.Query) ([]*records.Execution, string, error) {
	q.Limit = min(q.Limit, 2)
	return r.ExecutionRecords.Executions(ctx, q)
}

// A session is whole over pages, and bounded: what came before goes without its inputs.
func TestLargeSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, records.ManagerOptions{})
		h.manager(t, records.ManagerOptions{Records: fewAtOnce{h.records}})
		session := storetest.ExecutionID(0xabc)
		input := musttest.Get(json.Marshal(strings.Repeat("x", 5<<20)))(t)
		for n := range 5 {
			h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: input, Turn: skill.Turn{Session: session, Iteration: n}})
			time.Sleep(time.Second)
		}
		views, err := h.Session(t.Context(), ann, session)
		if err != nil || len(views) != 5 {
			t.Fatalf("%d, %v", len(views), err)
		}
		for i, v := range views {
			if whole := v.Input.JSON != nil; v.Iteration != i || whole != (i >= 2) || whole == v.Input.Truncated || v.Input.Bytes != int64(len(input)) {
				t.Errorf("%d: iteration %d with %d bytes of input, truncated %v", i, v.Iteration, len(v.Input.JSON), v.Input.Truncated)
			}
		}
	})
}

func TestReplay(t *testing.T) {
	var asked string
	h := newHouse(t, records.ManagerOptions{Replay: func(_ context.Context, p skill.Principal, id string) (any, error) {
		asked = p.ID + " " + id
		return map[string]bool{"identical": true}, nil
	}})
	id := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}")}).Meta.ExecutionID
	if _, err := h.Replay(t.Context(), bob, id); code(err) != skill.NotFound || asked != "" {
		t.Errorf("another tenant: %v, asked %q", err, asked)
	}
	if _, err := h.Replay(t.Context(), ann, id); err != nil || asked != "ann "+id {
		t.Errorf("%v, asked %q", err, asked)
	}
	h.manager(t, records.ManagerOptions{})
	if _, err := h.Replay(t.Context(), ann, id); code(err) != skill.NotFound {
		t.Errorf("where nothing is recorded: %v", err)
	}
}

// Records that cannot be read are no reason to say that there is nothing.
func TestRecordsThatCannotBeRead(t *testing.T) {
	h := newHouse(t, records.ManagerOptions{})
	id := h.door.Invoke(t.Context(), ann, skill.Request{SkillID: "echo", Input: json.RawMessage("{}")}).Meta.ExecutionID
	h.records.Before(func(context.Context, string) error { return errors.New("database is locked at /secret") })
	_, get := h.Get(t.Context(), ann, id, records.WholeResult)
	_, _, list := h.List(t.Context(), ann, records.Query{Limit: 10})
	_, cancel := h.Cancel(t.Context(), ann, id)
	_, session := h.Session(t.Context(), ann, id)
	_, file := h.File(t.Context(), ann, id, "x")
	for name, err := range map[string]error{"get": get, "list": list, "cancel": cancel, "session": session, "file": file} {
		if e, ok := errors.AsType[*skill.Error](err); !ok || e.Code != skill.AuditUnavailable || strings.Contains(e.Message, "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
