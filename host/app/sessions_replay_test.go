package app

import (
	"log/slog"
	"strings"
	"testing"

	"openskill/host/records/replay"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestReplaysOfSessions: a replay makes the runs before it again, on any host, also after the session is gone; and says
// which of them cannot be, or ends otherwise.
func TestReplaysOfSessions(t *testing.T) {
	h := codeHost(t, map[string]string{})
	p := skill.Principal{ID: "p", Type: skill.Agent, Tenant: "acme", Scopes: []string{"skills:invoke", "skills:invoke:run_code", "executions:read"}}
	var ids []string
	in := func(session, code, want string) string {
		t.Helper()
		got, r := cell(t, h, p, session, code, nil)
		if want != "" && got != want {
			t.Fatalf("%s: %s; want %s; %+v", code, got, want, r.Error)
		}
		ids = append(ids, r.Meta.ExecutionID)
		if r.Error != nil {
			return ""
		}
		return sessionOf(t, r)
	}
	id := in("new", "import random, time, uuid\nx = [random.random(), time.time()]; len(x)", "2")
	in(id, "open('f', 'w').write(str(uuid.uuid4())); 1 / 0", "GUEST_EXIT")
	in(id, "x = 'lost'\nwhile True: pass", "FUEL_EXHAUSTED")
	in(id, "import json\nfrom skills import quick\nx.append(quick()); [x, open('f').read(), random.random()]", "")
	frozen := musttest.Get(h.kept.sessions.Freeze(t.Context(), p, id))(t)
	in(frozen.ID, "[len(x), [time.monotonic_ns() for i in range(2)]]", "")
	fork := musttest.Get(h.kept.sessions.Fork(t.Context(), p, id))(t)
	in(fork.ID, "x[2] = 'fork'; import math; [x, math.pi, str(uuid.uuid4())]", "")
	in(id, "x", "")
	musttest.Do(t, h.kept.sessions.Delete(t.Context(), p, id))

	other := musttest.Get(Open(h.settings, &Options{Log: slog.New(slog.DiscardHandler)}))(t) // on the same database
	defer other.Close()
	again := func(h *Host, id string) *replay.Report {
		t.Helper()
		return musttest.Get(h.Replay(t.Context(), p, id))(t)
	}
	for i, id := range ids {
		for _, h := range []*Host{h, other} {
			if r := again(h, id); !r.Identical || r.ExecutionID != id || r.ReplayID == "" {
				t.Errorf("run %d: %+v", i, r)
			}
		}
	}
	made := musttest.Get(h.kept.executions.Execution(t.Context(), p, again(h, ids[3]).ReplayID))(t)
	if made.ReplayOf != ids[3] {
		t.Errorf("%+v", made)
	}
	sql := func(text string, args ...any) {
		t.Helper()
		musttest.Get(h.kept.db.Write.ExecContext(t.Context(), text, args...))(t)
	}
	sql("DELETE FROM recordings WHERE execution_id = $1", ids[1])
	if _, err := h.Replay(t.Context(), p, ids[3]); skill.CodeOf(err) != skill.Conflict || !strings.Contains(err.Error(), ids[1]) {
		t.Errorf("without an earlier recording: %v", err)
	}
	if r := again(h, ids[0]); !r.Identical {
		t.Errorf("%+v", r)
	}
}
