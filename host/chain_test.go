package host

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/audit"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// The console finds what openskill audit verify finds: an execution that was added to the
// database and is shown with the others. One check runs at a time.
func TestConsoleFindsAddedExecutions(t *testing.T) {
	s := settings(t, nil)
	h, err := Open(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	now := time.Now().UTC()
	started := func() *audit.Started {
		id := uuid.Must(uuid.NewV7()).String()
		return &audit.Started{ExecutionID: id, Tenant: "acme", Principal: "key:ci", PrincipalType: skill.Agent, Session: id, Skill: "echo", Time: now}
	}
	of := started()
	if err := h.kept.log.Started(t.Context(), of, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.kept.log.Finished(t.Context(), of, &audit.Finished{Status: audit.Success}, nil); err != nil {
		t.Fatal(err)
	}
	if state, err := h.chain(t.Context(), "acme"); err != nil || state.Found != 0 || state.Records != 2 {
		t.Fatalf("%+v, %v", state, err)
	}
	forged := started()
	other, err := sql.Open("sqlite", "file:"+filepath.Join(s.StateDir, store.File)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Exec(`INSERT INTO execution_logs (id, principal_id, principal_type, session_id, skill_name, status, tenant)
		VALUES (?, 'key:ci', 'agent', ?, 'echo', 'success', 'acme')`, forged.ExecutionID, forged.ExecutionID); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			switch state, err := h.chain(t.Context(), "acme"); {
			case skill.CodeOf(err) == skill.Conflict:
			case err != nil:
				t.Error(err)
			case state.Found != 1 || len(state.Faults) != 1:
				t.Errorf("%+v", state)
			}
		})
	}
	all.Wait()
	h.check.mu.Lock()
	if _, err := h.chain(t.Context(), "acme"); skill.CodeOf(err) != skill.Conflict {
		t.Errorf("a second check at the same time: %v", err)
	}
	h.check.mu.Unlock()
}
