package app

import (
	"strings"
	"testing"
	"time"

	"openskill/host/mcp"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestTasks: calls go on when their MCP clients leave. Their callers alone find them; one that is cancelled ends.
func TestTasks(t *testing.T) {
	h := codeHost(t, map[string]string{})
	runs(t, h, skill.Local(), "python", "1") // skips the test if no runtime is installed
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke:run_code", "executions:read"}}
	tasks := h.Tasks()
	if !tasks.May(p) || tasks.May(skill.Principal{ID: "p", Tenant: "acme", Scopes: []string{skill.ScopeInvoke}}) {
		t.Error("who may")
	}
	start := func(code string) (string, <-chan *skill.Result) {
		t.Helper()
		id, ended, err := tasks.Start(t.Context(), p, skill.Request{SkillID: skill.RunCode, Input: []byte(`{"language": "python", "code": "` + code + `", "limits": {"timeout_ms": 60000}}`)})
		musttest.Do(t, err)
		return id, ended
	}
	id, ended := start("import time\\ntime.sleep(0.3)\\n6 * 7")
	got := musttest.Get(tasks.Get(t.Context(), p, id, true))(t)
	if got.Ended || got.Kept < time.Hour+3*time.Minute || got.Kept > time.Hour+3*time.Minute+time.Second {
		t.Errorf("while it runs: %+v", got)
	}
	if r := <-ended; r.Error != nil || !strings.Contains(string(r.Data), "42") {
		t.Errorf("%+v %s", r.Error, r.Data)
	}
	end := func(id string) *mcp.Task {
		t.Helper()
		for {
			if got := musttest.Get(tasks.Get(t.Context(), p, id, true))(t); got.Ended {
				return got
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	if got := end(id); got.Result == nil || !got.Result.Success || !strings.Contains(string(got.Result.Data), `"value":42`) || got.Kept < time.Hour || got.Updated.Before(got.Began) {
		t.Errorf("at its end: %+v", got)
	}
	other := skill.Principal{ID: "o", Type: skill.Agent, Tenant: "other", Scopes: p.Scopes}
	if _, err := tasks.Get(t.Context(), other, id, true); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("another tenant: %v", err)
	}
	id, ended = start("while True: pass")
	if err := tasks.Cancel(t.Context(), other, id); skill.CodeOf(err) != skill.NotFound {
		t.Errorf("another tenant: %v", err)
	}
	musttest.Do(t, tasks.Cancel(t.Context(), p, id))
	if r := <-ended; r.Error == nil || r.Error.Code != skill.Cancelled {
		t.Errorf("cancelled: %+v", r)
	}
	if got := end(id); got.Result == nil || got.Result.Error.Code != skill.Cancelled {
		t.Errorf("cancelled: %+v", got)
	}
	musttest.Do(t, tasks.Cancel(t.Context(), p, id)) // which has ended
	id, ended, err := tasks.Start(t.Context(), p, skill.Request{SkillID: "nothing", Input: []byte(`{}`)})
	if r := <-ended; id != "" || err != nil || r.Error == nil || r.Error.Code != skill.Forbidden {
		t.Errorf("refused: %s %v %+v", id, err, r)
	}
}
