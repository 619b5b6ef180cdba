package store_test

import (
	"fmt"
	"log/slog"
	"testing"

	"openskill/host/records"
	"openskill/host/store/storetest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// Lists find executions by their columns. One that no longer says what its record does hides the
// execution from who looks for it, also where the row has the record's own words beside it, as
// that of any call whose input has a number like 1e5.
func TestVerifyNamesColumnsThatHideExecutions(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, fresh func(*testing.T) string) {
		url := fresh(t)
		db, r := storetest.Open(t, url), rawOf(t, url)
		s := records.NewStore(db)
		l := musttest.Get(records.Open(t.Context(), records.Options{Store: s, Policy: records.KeepFull, Log: slog.New(slog.DiscardHandler)}))(t)
		call := func(n int, ends bool) string {
			t.Helper()
			id := fmt.Sprintf("0198c2f0-0000-7000-8000-%012d", n)
			b := &records.Started{ExecutionID: id, Tenant: "acme", Principal: "p", PrincipalType: skill.Agent, Session: id, Skill: "echo", TraceID: "t"}
			musttest.Do(t, l.Started(t.Context(), b, []byte(`{"a": 1e5}`)))
			if ends {
				musttest.Do(t, l.Finished(t.Context(), b, &records.Finished{Status: records.Failed, Code: skill.Timeout}, nil))
			}
			return id
		}
		edits := []string{"principal_id = 'q'", "skill_name = 'other'", "session_id = '0198c2f0-0000-7000-8000-999999999999'", "trace_id = 'u'"}
		logs := append([]string{"status = 'success'", "code = ''"}, edits...)
		var ids []string
		for n := range logs {
			ids = append(ids, call(n, true))
		}
		for n := range edits {
			ids = append(ids, call(100+n, false))
		}
		call(200, true)
		call(201, false)
		if report, err := records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}); err != nil || !report.Whole() {
			t.Fatalf("before anything is changed: %+v, %v", report, err)
		}
		for n, edit := range logs {
			r.exec(t, "UPDATE execution_logs SET "+edit+" WHERE id = $1", ids[n])
		}
		for n, edit := range edits {
			r.exec(t, "UPDATE running_executions SET "+edit+" WHERE id = $1", ids[len(logs)+n])
		}
		report := musttest.Get(records.Verify(t.Context(), s, records.VerifyOptions{Rows: true}))(t)
		named := map[string]bool{}
		for _, f := range report.Chains[0].Faults {
			named[f.ExecutionID] = true
		}
		for n, id := range ids {
			if !named[id] {
				t.Errorf("%s: nothing is wrong with %s", append(logs, edits...)[n], id)
			}
		}
		if len(named) != len(ids) {
			t.Errorf("%d executions have faults, and %d were changed", len(named), len(ids))
		}
	})
}
