package app

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The console finds what openskill audit verify finds: an execution that was added to the
// database and is shown with the others. One check runs at a time.
func TestConsoleFindsAddedExecutions(t *testing.T) {
	s := settings(t, nil)
	h := musttest.Get(Open(s, nil))(t)
	defer h.Close()
	now := time.Now().UTC()
	started := func() *records.Started {
		id := uuid.Must(uuid.NewV7()).String()
		return &records.Started{ExecutionID: id, Tenant: "acme", Principal: "key:ci", PrincipalType: skill.Agent, Session: id, Skill: "echo", Time: now}
	}
	of := started()
	musttest.Do(t, h.kept.log.Started(t.Context(), of, nil))
	musttest.Do(t, h.kept.log.Finished(t.Context(), of, &records.Finished{Status: records.Success}, nil))
	if state, err := h.chain(t.Context(), "acme"); err != nil || state.Found != 0 || state.Records != 2 {
		t.Fatalf("%+v, %v", state, err)
	}
	forged := started()
	other := musttest.Get(sql.Open("sqlite", "file:"+filepath.Join(s.StateDir, store.File)+"?_pragma=busy_timeout(60000)"))(t)
	defer other.Close()
	if _, err := other.Exec(`INSERT INTO execution_logs (id, principal_id, principal_type, session_id, skill_name, status, tenant)
		VALUES (?, 'key:ci', 'agent', ?, 'echo', 'success', 'acme')`, forged.ExecutionID, forged.ExecutionID); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			switch state, err := h.chain(t.Context(), "acme"); {
			case skill.CodeOf(err) == skill.RateLimited:
			case err != nil:
				t.Error(err)
			case state.Found != 1 || len(state.Faults) != 1:
				t.Errorf("%+v", state)
			}
		})
	}
	all.Wait()
	// While a check of one tenant goes on and more of it wait, the next turn but one is another's.
	leave := musttest.Get(h.check.Enter(t.Context(), "acme"))(t)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.chain(short, "acme"); skill.CodeOf(err) != skill.Timeout || strings.ContainsAny(err.Error(), "123456789") {
		t.Errorf("a second check at the same time: %v", err)
	}
	first := make(chan string, 3)
	for _, tenant := range []string{"acme", "acme", "gamma"} {
		all.Go(func() {
			leave, err := h.check.Enter(t.Context(), tenant)
			if err != nil {
				t.Error(err)
				return
			}
			defer leave()
			first <- tenant
		})
	}
	for _, waiting, _, _ := h.check.Load(); waiting < 3; _, waiting, _, _ = h.check.Load() {
		time.Sleep(time.Millisecond)
	}
	leave()
	all.Wait()
	if a, b := <-first, <-first; a != "gamma" && b != "gamma" {
		t.Errorf("the first turns are of %s and %s", a, b)
	}
}
