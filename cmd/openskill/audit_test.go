package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// runAudit runs a command line that must end with an exit code, and gives what it printed.
func runAudit(t *testing.T, state string, exit int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	args = append([]string{"audit"}, append(args, "--state", state)...)
	if code := Run(t.Context(), args, strings.NewReader(""), &out, &err); code != exit {
		t.Fatalf("%q: exit code %d, want %d: %s%s", args, code, exit, &out, &err)
	}
	return out.String(), err.String()
}

// recorded is a state folder with ten calls of each of two tenants on record, of which the
// last of acme runs, and their ids.
func recorded(t *testing.T) (state string, acme []string) {
	t.Helper()
	state = t.TempDir()
	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state}))(t)
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	l, err := records.Open(t.Context(), records.Options{
		Store: records.NewStore(db), Policy: records.KeepRedacted, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	})
	musttest.Do(t, err)
	for i := range 20 {
		now = now.Add(time.Minute)
		tenant := []string{"other", "acme"}[i%2]
		s := &records.Started{
			ExecutionID: fmt.Sprintf("0198c2f0-0000-7000-8000-%012d", i), Tenant: tenant, Principal: "key:ci", PrincipalType: skill.Agent,
			TraceID: fmt.Sprint("trace-", i), Session: "0198c2f0-0000-7000-8000-000000000099", Skill: "echo", Version: "0.1.0", Digest: "sha256:00",
		}
		f := &records.Finished{Status: records.Success, Runner: skill.WasmWASI, Fuel: 7, Tokens: 5, Reported: 1500, DurationMS: 1}
		f.Processes = &skill.Processes{Started: 4, List: []skill.Process{
			{ID: 2, Parent: 1, Program: "bash"}, {ID: 3, Parent: 1, Program: "node", Signal: 9}, {ID: 4, Parent: 2, Program: "jq", Exit: 5},
		}}
		if i%4 == 3 {
			f.Status, f.Code, f.Message = records.TimedOut, skill.Timeout, "the skill did not finish within its limit of 1 ms"
		}
		if tenant == "acme" {
			acme = append(acme, s.ExecutionID)
		}
		musttest.Do(t, l.Started(t.Context(), s, []byte(`{"text": "hello", "password": "hunter2"}`)))
		if i == 19 {
			break
		}
		musttest.Do(t, l.Finished(t.Context(), s, f, []byte(`{"echoed": "hello"}`)))
	}
	// As when the process is killed: what runs goes on running on record.
	musttest.Do(t, db.Close())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = l.Close(ended) // it says that it could not write
	return state, acme
}

func TestAuditList(t *testing.T) {
	t.Parallel()
	state, acme := recorded(t)
	list := func(args ...string) (ids []string, next string) {
		t.Helper()
		stdout, _ := runAudit(t, state, 0, append([]string{"list", "--json"}, args...)...)
		var out struct {
			Data []struct {
				ID       string `json:"execution_id"`
				Status   string
				Tenant   string
				Finished *records.Finished
			}
			Next *string
		}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		for _, e := range out.Data {
			if ids = append(ids, e.ID); (e.Finished == nil) != (e.Status == "running") {
				t.Errorf("%+v", e)
			}
		}
		if out.Next != nil {
			next = *out.Next
		}
		return ids, next
	}
	for want, args := range map[int][]string{
		20: nil, 10: {"--tenant", "acme"}, 4: {"--status", "timeout"}, 1: {"--status", "running"}, 3: {"--since", "2026-11-22T12:18:00Z"},
		2: {"--until", "2026-11-22T12:03:00Z"}, 0: {"--skill", "nothing"},
	} {
		if ids, next := list(args...); len(ids) != want || next != "" {
			t.Errorf("%q: %d executions, %q; want %d", args, len(ids), next, want)
		}
	}
	if ids, _ := list("--trace", "trace-5", "--principal", "key:ci", "--session", "0198c2f0-0000-7000-8000-000000000099"); len(ids) != 1 || ids[0] != acme[2] {
		t.Errorf("by its trace: %v", ids)
	}
	if ids, _ := list("--code", "TIMEOUT", "--since", "100d"); len(ids) > 4 {
		t.Errorf("by its code: %v", ids)
	}
	// By pages, the newest first.
	var all []string
	for cursor := ""; ; {
		args := []string{"--limit", "3", "--tenant", "acme"}
		if cursor != "" {
			args = append(args, "--cursor", cursor)
		}
		ids, next := list(args...)
		all = append(all, ids...)
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(all) != 10 || all[0] != acme[9] || all[9] != acme[0] {
		t.Errorf("the pages are %v", all)
	}
	stdout, _ := runAudit(t, state, 0, "list", "--limit", "2")
	if !strings.Contains(stdout, "running") || !strings.Contains(stdout, acme[9]) || !strings.Contains(stdout, "\nmore: --cursor ") {
		t.Errorf("a person reads:\n%s", stdout)
	}
	for _, args := range [][]string{{"--status", "odd"}, {"--since", "yesterday"}, {"--limit", "0"}, {"--limit", "1001"}, {"--cursor", "x"}, {"--since", "-5h"}, {"one"}} {
		runAudit(t, state, 2, append([]string{"list"}, args...)...)
	}
}

func TestAuditShow(t *testing.T) {
	t.Parallel()
	state, acme := recorded(t)
	stdout, _ := runAudit(t, state, 0, "show", acme[1], acme[9])
	for _, want := range []string{
		"status      timeout\ncode        TIMEOUT\n", "tenant      acme\n", "principal   key:ci (agent)\n", `: {"text":"hello","password":"[redacted]"}`,
		"the skill did not finish within its limit of 1 ms", "used        1 ms, fuel 7, memory 0 bytes, 5 tokens\nreported    1500 tokens, by the skill's own word\n", "processes   4\n  2 bash: exit code 0\n    4 jq: exit code 5\n  3 node: signal 9\n  and 1 more\n", "status      running\n", "session     0198c2f0-0000-7000-8000-000000000099, iteration 0\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "hunter2") {
		t.Error("a password is on record")
	}
	stdout, _ = runAudit(t, state, 0, "show", "--json", acme[1])
	var e struct {
		ID       string `json:"execution_id"`
		Status   records.Status
		Finished records.Finished
	}
	if err := json.Unmarshal([]byte(stdout), &e); err != nil || e.ID != acme[1] || e.Status != records.TimedOut || e.Finished.Code != skill.Timeout {
		t.Errorf("%+v, %v", e, err)
	}
	if _, stderr := runAudit(t, state, 1, "show", "nothing"); !strings.Contains(stderr, "not found") {
		t.Errorf("what is not there: %s", stderr)
	}
	runAudit(t, state, 2, "show")
}

// edit changes the database as somebody does who has it.
func edit(t *testing.T, state, statement string, args ...any) {
	t.Helper()
	db := musttest.Get(sql.Open("sqlite", filepath.Join(state, store.File)))(t)
	defer db.Close()
	r := musttest.Get(db.Exec(statement, args...))(t)
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s changed %d rows, %v", statement, n, err)
	}
}

// One byte that is changed in the database is found, and the record named.
func TestAuditVerify(t *testing.T) {
	t.Parallel()
	state, acme := recorded(t)
	stdout, _ := runAudit(t, state, 0, "verify")
	if lines := strings.Split(stdout, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], `"acme": whole, 19 records, 1 to 19, the last with `) ||
		!strings.HasPrefix(lines[1], `"other": whole, 20 records`) {
		t.Errorf("a person reads:\n%s", stdout)
	}
	heads, _ := runAudit(t, state, 0, "head", "--json")
	if kept, err := records.ReadHeads(strings.NewReader(heads)); err != nil || len(kept) != 2 || kept[0].Time.IsZero() || kept[1].Time.IsZero() {
		t.Errorf("%+v, %v: want the times of both", kept, err)
	}
	file := filepath.Join(t.TempDir(), "heads.jsonl")
	musttest.Do(t, os.WriteFile(file, []byte(heads), 0o600))
	if stdout, _ := runAudit(t, state, 0, "verify", "--against", file); !strings.HasSuffix(stdout, "\ncompared with 2 heads of "+quote(file)+"\n") {
		t.Errorf("a person reads:\n%s", stdout)
	}
	if stdout, _ := runAudit(t, state, 0, "verify", "--against", file, "--tenant", "acme"); !strings.HasSuffix(stdout, "\ncompared with 1 heads of "+quote(file)+"\n") {
		t.Errorf("a person reads:\n%s", stdout)
	}
	runAudit(t, state, 0, "verify", "--tenant", "other", "--from", "5")
	if stdout, _ = runAudit(t, state, 0, "head", "--tenant", "acme"); !strings.Contains(stdout, "acme") || strings.Contains(stdout, "other") {
		t.Errorf("a person reads:\n%s", stdout)
	}
	runAudit(t, state, 1, "head", "--tenant", "nobody")
	runAudit(t, state, 2, "verify", "--against", filepath.Join(state, store.File))
	runAudit(t, state, 2, "verify", "--against", "not-there")
	// Where nothing would be compared, nothing is whole.
	runAudit(t, state, 2, "verify", "--against", file, "--tenant", "nobody")
	musttest.Do(t, os.WriteFile(file+".empty", nil, 0o600))
	runAudit(t, state, 2, "verify", "--against", file+".empty")
	if stdout, stderr := runAudit(t, state, 1, "verify", "--tenant", "nobody"); strings.Contains(stdout, "whole") || !strings.Contains(stderr, "no records") {
		t.Errorf("of a tenant without records: %s%s", stdout, stderr)
	}
	if stdout, stderr := runAudit(t, state, 1, "verify", "--tenant", "other", "--from", "21"); strings.Contains(stdout, "whole") || !strings.Contains(stderr, "no record 21 or higher") {
		t.Errorf("from beyond the end: %s%s", stdout, stderr)
	}
	// Of two chains one has the record.
	if stdout, _ := runAudit(t, state, 0, "verify", "--from", "20"); !strings.Contains(stdout, `"acme": ends with record 19, before`) || !strings.Contains(stdout, `"other": whole, 1 records`) {
		t.Errorf("a person reads:\n%s", stdout)
	}

	for name, c := range map[string]struct{ change, back, want string }{
		"a byte of a body": {
			`UPDATE audit_records SET body = CAST(replace(CAST(body AS TEXT), '"duration_ms":1,', '"duration_ms":2,') AS BLOB) WHERE tenant = 'acme' AND seq = 6`,
			`UPDATE audit_records SET body = CAST(replace(CAST(body AS TEXT), '"duration_ms":2,', '"duration_ms":1,') AS BLOB) WHERE tenant = 'acme' AND seq = 6`,
			`"acme": WRONG at record 6 (finished), execution ` + acme[2],
		},
		"a time": {
			`UPDATE audit_records SET time = time + 1 WHERE tenant = 'acme' AND seq = 19`, `UPDATE audit_records SET time = time - 1 WHERE tenant = 'acme' AND seq = 19`,
			`"acme": WRONG at record 19 (started), execution ` + acme[9],
		},
		"an execution as it is shown": {
			`UPDATE execution_logs SET fuel = 8 WHERE id = '` + acme[3] + `'`, `UPDATE execution_logs SET fuel = 7 WHERE id = '` + acme[3] + `'`,
			`"acme": WRONG at record 8 (finished), execution ` + acme[3],
		},
		"an execution that cannot be read": {
			`UPDATE execution_logs SET artifacts = 'x' WHERE id = '` + acme[3] + `'`, `UPDATE execution_logs SET artifacts = NULL WHERE id = '` + acme[3] + `'`,
			`"acme": WRONG at record 7 (started), execution ` + acme[3],
		},
		"an execution that was added": {
			`INSERT INTO execution_logs (id, principal_id, principal_type, session_id, skill_name, status, tenant)
				VALUES ('019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f', 'key:ci', 'agent', '019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f', 'echo', 'success', 'acme')`,
			`DELETE FROM execution_logs WHERE id = '019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f'`,
			`"acme": WRONG at no record, execution 019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f`,
		},
		"an execution of a tenant without records": {
			`INSERT INTO execution_logs (id, principal_id, principal_type, session_id, skill_name, status, tenant)
				VALUES ('019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f', 'key:ci', 'agent', '019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f', 'echo', 'success', 'ghost')`,
			`DELETE FROM execution_logs WHERE tenant = 'ghost'`,
			`"ghost": WRONG at no record, execution 019aa5f0-2b1c-7d3e-9f41-5a6b7c8d9e0f`,
		},
		"a head": {
			`UPDATE audit_heads SET last = 18 WHERE tenant = 'acme'`, `UPDATE audit_heads SET last = 19 WHERE tenant = 'acme'`, `"acme": WRONG at record 18`,
		},
	} {
		edit(t, state, c.change)
		if stdout, _ := runAudit(t, state, 1, "verify"); !strings.Contains(stdout, c.want) || !strings.Contains(stdout, `"other": whole`) {
			t.Errorf("%s: a person reads\n%swant %s", name, stdout, c.want)
		}
		edit(t, state, c.back)
		runAudit(t, state, 0, "verify")
	}
	edit(t, state, `UPDATE execution_logs SET fuel = 8 WHERE id = ?`, acme[3])
	runAudit(t, state, 0, "verify", "--chain-only")
	// The end of a chain is cut off, and its head set back: only the head that was kept tells.
	edit(t, state, `UPDATE audit_heads SET last = 17, last_hash = (SELECT hash FROM audit_records WHERE tenant = 'other' AND seq = 17) WHERE tenant = 'other'`)
	edit(t, state, `DELETE FROM audit_records WHERE tenant = 'other' AND seq > 17`)
	runAudit(t, state, 0, "verify", "--tenant", "other", "--chain-only")
	stdout, _ = runAudit(t, state, 1, "verify", "--tenant", "other", "--chain-only", "--json", "--against", file)
	var c struct {
		Whole bool
		records.Chain
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || c.Whole || c.Fault == nil || c.Fault.Seq != 18 || c.Fault.Wrong != records.Missing {
		t.Errorf("%s, %v", stdout, err)
	}
}

func TestAuditExport(t *testing.T) {
	t.Parallel()
	state, _ := recorded(t)
	records := func(text string) (all []records.Record) {
		t.Helper()
		for line := range strings.Lines(text) {
			var r records.Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			// Whoever reads it can follow the hashes.
			again := r
			if records.Link(r.Prev, &again); again.Hash != r.Hash {
				t.Errorf("the hash of %+v is %s", r, again.Hash)
			}
			all = append(all, r)
		}
		return all
	}
	stdout, stderr := runAudit(t, state, 0, "export")
	if all := records(stdout); len(all) != 39 || all[0].Tenant != "acme" || all[38].Tenant != "other" || stderr != "39 records of 2 tenants\n" {
		t.Errorf("%d records, %s", len(all), stderr)
	}
	file := filepath.Join(t.TempDir(), "acme.jsonl")
	runAudit(t, state, 0, "export", "--tenant", "acme", "--since", "2026-11-22T12:05:00Z", "--until", "2026-11-22T12:09:00Z", "--out", file)
	b := musttest.Get(os.ReadFile(file))(t)
	if all := records(string(b)); len(all) != 4 || all[0].Seq != 5 {
		t.Errorf("%d records, %+v", len(all), all)
	}
	if i, err := os.Stat(file); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", i, err)
	}
	runAudit(t, state, 2, "export", "--out", file)
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, b) {
		t.Error("a file that was there was written over")
	}
	runAudit(t, state, 1, "export", "--tenant", "nobody")
	// A record that is no JSON any more ends an export, and leaves no file that looks whole.
	edit(t, state, `UPDATE audit_records SET body = X'7B00' WHERE tenant = 'acme' AND seq = 3`)
	half := filepath.Join(t.TempDir(), "half.jsonl")
	if _, stderr := runAudit(t, state, 3, "export", "--out", half); !strings.Contains(stderr, "record 3 of the tenant") {
		t.Errorf("a damaged record: %s", stderr)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("half an export is left: %v", err)
	}
}

// A command that only reads makes no database, which would say that nothing is on record.
func TestReadingMakesNoDatabase(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"audit", "verify"},
		{"audit", "verify", "--json"},
		{"audit", "head"},
		{"audit", "list"},
		{"audit", "changes"},
		{"audit", "export"},
		{"audit", "show", "x"},
		{"keys", "list"},
		{"keys", "show", "pvgqyfyx5dc6zpxs"},
		{"keys", "revoke", "pvgqyfyx5dc6zpxs"},
		{"keys", "rotate", "pvgqyfyx5dc6zpxs"},
		{"db", "migrate", "--status"},
		{"backup", filepath.Join(t.TempDir(), "b.tar.gz")},
		{"approvals", "list"},
		{"skills", "list"},
		{"doctor"},
	} {
		for _, state := range []string{t.TempDir(), filepath.Join(t.TempDir(), "wrong")} {
			var out, err bytes.Buffer
			code := Run(t.Context(), append(args, "--state", state), strings.NewReader(""), &out, &err)
			if _, there := os.Stat(filepath.Join(state, store.File)); !os.IsNotExist(there) {
				t.Errorf("%q made a database", args)
			}
			reads := args[0] == "audit" || args[0] == "keys" || args[0] == "db"
			if reads && (code != exitFailed || !strings.Contains(err.String(), "there is no database")) {
				t.Errorf("%q: exit code %d: %s%s", args, code, &out, &err)
			}
		}
	}
}
