package store_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// What somebody who has the database makes of a row is a fault of that row: it is named by a
// verification, and takes away no other row, neither there nor where people look.
func TestDamagedRowsHideNoOthers(t *testing.T) {
	t.Parallel()
	// What is set, on both databases and on one: as far as its columns take it.
	edits := []string{
		"UPDATE execution_logs SET artifacts = '\"x\"' WHERE id = $1",
		"UPDATE execution_logs SET limits = '[7]' WHERE id = $1",
		"UPDATE execution_logs SET fuel = -1 WHERE id = $1",
		"UPDATE execution_logs SET memory_peak = -1 WHERE id = $1",
		"UPDATE execution_logs SET exact = CAST('x' AS BYTEA) WHERE id = $1",
		"UPDATE execution_logs SET exact = CAST('{}' AS BYTEA) WHERE id = $1",
		"UPDATE execution_logs SET exact = CAST('{\"started\": null, \"finished\": {}}' AS BYTEA) WHERE id = $1",
	}
	lite := []string{
		"UPDATE execution_logs SET artifacts = 'x' WHERE id = $1", "UPDATE execution_logs SET limits = '' WHERE id = $1",
		"UPDATE execution_logs SET input_truncated = 7 WHERE id = $1", "UPDATE execution_logs SET output_truncated = -1 WHERE id = $1",
		"UPDATE execution_logs SET input_params = '{' WHERE id = $1", "UPDATE execution_logs SET output_result = 'x' WHERE id = $1",
		"UPDATE execution_logs SET finished_at = 9000000000000000000 WHERE id = $1", "UPDATE execution_logs SET created_at = 9000000000000000000 WHERE id = $1",
		"UPDATE execution_logs SET created_at = 8900000000000000000 WHERE id = $1", "UPDATE execution_logs SET created_at = -9000000000000000000 WHERE id = $1", "UPDATE execution_logs SET id = 'x' WHERE id = $1",
		"UPDATE audit_records SET time = 9000000000000000000 WHERE execution_id = $1 AND kind = 'finished'",
	}
	server := []string{
		"UPDATE execution_logs SET finished_at = 'infinity' WHERE id = $1", "UPDATE execution_logs SET created_at = 'infinity' WHERE id = $1",
		"UPDATE execution_logs SET created_at = '-infinity' WHERE id = $1", "UPDATE execution_logs SET created_at = '0044-03-15 BC' WHERE id = $1",
		"UPDATE execution_logs SET created_at = '20000-01-01' WHERE id = $1",
		"UPDATE audit_records SET time = 'infinity' WHERE execution_id = $1 AND kind = 'finished'",
	}
	storetest.EachURL(t, func(t *testing.T, fresh func(*testing.T) string) {
		url := fresh(t)
		db, r := storetest.Open(t, url), rawOf(t, url)
		s := records.NewStore(db)
		all := append(append([]string{}, edits...), lite...)
		if r.postgres {
			all = append(append([]string{}, edits...), server...)
		}
		l := musttest.Get(records.Open(t.Context(), records.Options{Store: s, Policy: records.KeepFull, Log: slog.New(slog.DiscardHandler)}))(t)
		call := func(tenant string, n int, ends bool) string {
			t.Helper()
			id := fmt.Sprintf("0198c2f0-0000-7000-8000-%012d", n)
			b := &records.Started{ExecutionID: id, Tenant: tenant, Principal: "p", PrincipalType: skill.Agent, Session: id, Skill: "echo"}
			musttest.Do(t, l.Started(t.Context(), b, []byte(`{"a": 1}`)))
			if ends {
				f := &records.Finished{Status: records.Success, Fuel: 7, Artifacts: []records.ArtifactInfo{{Name: "a", Size: 1}}}
				musttest.Do(t, l.Finished(t.Context(), b, f, []byte(`{"b": 2}`)))
			}
			return id
		}
		var ids []string
		for n := range all {
			ids = append(ids, call("acme", n, true))
		}
		whole, runs := call("acme", 900, true), call("acme", 901, false)
		call("headless", 902, true)
		edited := call("zeta", 903, true)
		change := func(subject string) {
			t.Helper()
			musttest.Do(t, records.Around(t.Context(), s, skill.Local(), records.Change{Tenant: "acme", Action: "key.create", Subject: subject}, func() error { return nil }))
		}
		change("k1")
		change("k2")
		if report, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}); err != nil || !report.Whole() {
			t.Fatalf("before anything is changed: %+v, %v", report, err)
		}
		set := func(query string, args ...any) {
			t.Helper()
			if !r.postgres {
				query = strings.ReplaceAll(query, "BYTEA", "BLOB")
			}
			r.exec(t, query, args...)
		}
		for n, edit := range all {
			set(edit, ids[n])
		}
		set("UPDATE running_executions SET started = CAST('x' AS BYTEA) WHERE id = $1", runs)
		set("UPDATE audit_records SET body = CAST('x' AS BYTEA) WHERE kind = 'change' AND seq = (SELECT MAX(seq) FROM audit_records WHERE tenant = 'acme')")
		set("UPDATE audit_heads SET first = -1 WHERE tenant = 'headless'")
		set("UPDATE execution_logs SET fuel = 8 WHERE id = $1", edited)

		var told []string
		report, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true, Each: func(c *records.Chain) { told = append(told, c.Tenant) }})
		if err != nil || strings.Join(told, " ") != "acme headless zeta" {
			t.Fatalf("%v are told, %v", told, err)
		}
		named := map[string]bool{}
		for _, c := range report.Chains {
			if c.Fault == nil {
				t.Errorf("%s is whole", c.Tenant)
			}
			for _, f := range c.Faults {
				named[f.ExecutionID] = true
			}
		}
		for n, edit := range append(append([]string{}, all...), "what runs", "another tenant's") {
			if id := append(append([]string{}, ids...), runs, edited)[n]; !named[id] {
				t.Errorf("%s: the execution is not named", edit)
			}
		}
		if named[whole] {
			t.Error("a whole execution is named")
		}
		if _, err := json.Marshal(report); err != nil {
			t.Errorf("the report is no JSON: %v", err)
		}

		// Where people look, all others are there, page by page.
		seen := map[string]*records.Execution{}
		for _, status := range []records.Status{records.Success, ""} {
			clear(seen)
			for q := (records.Query{Tenant: "acme", Status: status, Limit: 2}); ; {
				page, next, err := s.Executions(t.Context(), q)
				if err != nil {
					t.Fatalf("a page of executions: %v", err)
				}
				for _, e := range page {
					seen[e.ExecutionID] = e
					if _, err := json.Marshal(e); err != nil {
						t.Errorf("%s is no JSON: %v", e.ExecutionID, err)
					}
				}
				if q.Cursor = next; next == "" {
					break
				}
			}
			if e := seen[whole]; e == nil || e.Damaged != "" || seen[ids[0]] == nil {
				t.Errorf("%q: of whole executions and of those without artifacts %d are listed, %+v", status, len(seen), e)
			}
		}
		if e := seen[ids[0]]; e == nil || e.Damaged != "artifacts cannot be read" || e.Finished.Fuel != 7 {
			t.Errorf("one without its artifacts: %+v", e)
		}
		if e := seen[runs]; e == nil || e.Damaged == "" || e.Principal != "p" {
			t.Errorf("one that runs: %+v", e)
		}
		if e, err := s.Execution(t.Context(), "acme", ids[1]); err != nil || e.Damaged != "limits cannot be read" {
			t.Errorf("%+v, %v", e, err)
		}
		if changes, err := s.Changes(t.Context(), records.ChangeQuery{Tenant: "acme"}); err != nil || len(changes) != 1 || changes[0].Action != "damaged" {
			t.Errorf("%+v, %v", changes, err)
		} else if next, err := s.Changes(t.Context(), records.ChangeQuery{Tenant: "acme", After: changes[0].ID}); err != nil || len(next) != 1 || next[0].Subject != "k1" {
			t.Errorf("the next page: %+v, %v", next, err)
		}
		if orphans, err := s.Orphans(t.Context(), -time.Hour, 10); err != nil || len(orphans) != 1 || orphans[0].ExecutionID != runs {
			t.Errorf("%+v, %v", orphans, err)
		}
		for _, tenant := range []string{"acme", "zeta"} {
			if _, err := s.Prune(t.Context(), tenant, time.Now().Add(time.Hour), 100); err != nil {
				t.Errorf("the old records of %s: %v", tenant, err)
			}
		}
	})
}
