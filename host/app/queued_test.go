package app

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A schedule makes calls as its key may, and ends when that is revoked.
func TestRevocationEndsSchedules(t *testing.T) {
	w := working10s(t, workingSettings(t))
	id, key := w.newKey(t, 0)
	resp, body := w.answer(t, key, "POST", "/schedules", `{"name": "s", "skill": "slowly", "input": {"text": "x"}, "cron": "@yearly"}`)
	if resp.StatusCode != http.StatusCreated || resp.Header.Get("Location") != "/schedules/s" {
		t.Fatalf("%s %s", resp.Status, body)
	}
	due := func() (code int, s skill.Schedule) {
		t.Helper()
		musttest.Get(w.db.Exec(t.Context(), "UPDATE schedules SET next_at = next_at - 3600000000 * 24 * 366"))(t)
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			resp, body := w.answer(t, key, "GET", "/schedules/s", "")
			if err := json.Unmarshal([]byte(body), &s); err != nil || resp.StatusCode != http.StatusOK || s.NextAt.After(time.Now()) {
				return resp.StatusCode, s
			}
			if time.Now().After(end) {
				t.Fatalf("%+v", s)
			}
		}
	}
	code, s := due()
	if code != http.StatusOK || s.LastID == "" {
		t.Fatalf("%d, %+v", code, s)
	}
	if resp, body := w.answer(t, key, "GET", "/executions/"+s.LastID, ""); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"skill":"slowly"`) {
		t.Errorf("%s %s", resp.Status, body)
	}
	if resp, body := w.answer(t, key, "POST", "/schedules", `{"name": "other", "skill": "nothing", "cron": "@yearly"}`); resp.StatusCode != http.StatusNotFound {
		t.Errorf("%s %s", resp.Status, body)
	}
	musttest.Get(w.keys.Revoke(t.Context(), id))(t)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // the host hears of it in a moment
		if n := musttest.Get(w.db.Exec(t.Context(), "UPDATE schedules SET next_at = 1, last_id = ''"))(t); n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the schedule goes on")
		}
	}
	list := musttest.Get(records.NewStore(w.db).Changes(t.Context(), records.ChangeQuery{Tenant: "acme", Limit: 10}))(t)
	if c := list[len(list)-1]; !slices.ContainsFunc(list, func(c records.Change) bool { return c.Action == "schedule.end" && c.Subject == "s" }) {
		t.Errorf("%+v", c)
	}
}

// Calls that find no place are queued, over HTTP and over MCP; a key that is revoked meanwhile ends the one that runs and
// those that wait, all on record.
func TestRevocationEndsQueuedCalls(t *testing.T) {
	s := workingSettings(t)
	s.ConcurrencyPerSkill = 1
	w := working10s(t, s)
	id, key := w.newKey(t, 0)
	begin := func(status string) string {
		t.Helper()
		var a skill.Accepted
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			resp, body := w.answer(t, key, "POST", "/skills/slowly:invoke", slowCall, "Prefer", "respond-async")
			if resp.StatusCode == http.StatusAccepted {
				musttest.Do(t, json.Unmarshal([]byte(body), &a))
				break
			}
			if time.Now().After(end) { // the host begins to work a moment after it listens
				t.Fatalf("%s: %s", resp.Status, body)
			}
		}
		if a.Status != status {
			t.Fatalf("%+v, not %s", a, status)
		}
		return a.ID
	}
	calls := []string{begin("running")}
	taskTool := strings.Replace(slowTool, `clientCapabilities":{}`, `clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
	_, body := w.answer(t, key, "POST", "/mcp", taskTool, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "slowly")
	var task struct {
		Result struct{ TaskID, Status string }
	}
	if err := json.Unmarshal([]byte(body), &task); err != nil || task.Result.Status != "working" {
		t.Fatalf("%s, %v", body, err)
	}
	calls = append(calls, task.Result.TaskID, begin("queued"), begin("queued"))
	for status, want := range map[string]int{"queued": 3, "running": 1} {
		if _, body := w.answer(t, key, "GET", "/executions?status="+status, ""); strings.Count(body, `"id"`) != want {
			t.Errorf("%s: %s", status, body)
		}
	}
	if resp, body := w.answer(t, key, "POST", "/skills/slowly:invoke", `{"input": {"text": 1}}`, "Prefer", "respond-async"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an input that would be refused: %s %s", resp.Status, body)
	}
	if resp, body := w.answer(t, key, "GET", "/executions?status=queued&code=TRAP", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%s %s", resp.Status, body)
	}
	musttest.Get(w.keys.Revoke(t.Context(), id))(t)
	rows := records.NewStore(w.db)
	for _, id := range calls {
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			e, err := rows.Execution(t.Context(), "acme", id)
			if err == nil && e.Finished != nil {
				if e.Finished.Status != records.Terminated || e.Finished.Code != skill.Unauthorized {
					t.Errorf("%s: %s %s", id, e.Finished.Status, e.Finished.Code)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s goes on: %v", id, err)
			}
		}
	}
}
