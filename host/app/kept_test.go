package app

import (
	"database/sql"
	"io"
	"net/http"
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

// TestNothingRunsUnrecorded: while another process keeps the database for itself calls
// are refused, and as soon as it lets go they are answered again; what ran is on record.
func TestNothingRunsUnrecorded(t *testing.T) {
	s := settings(t, nil)
	h := musttest.Get(Open(s, nil))(t)
	defer h.Close()
	call := func() *skill.Result {
		return h.Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "quick", Input: []byte("{}"), TraceID: "t"})
	}
	if r := call(); !r.Success {
		t.Fatalf("%+v", r.Error)
	}
	// Counts of calls are read from the database too, once a second at most.
	other := musttest.Get(sql.Open("sqlite", "file:"+filepath.Join(s.StateDir, store.File)+"?_txlock=exclusive&_pragma=busy_timeout(60000)"))(t)
	defer other.Close()
	tx := musttest.Get(other.BeginTx(t.Context(), nil))(t)
	answered, refused := 1, 0
	for refused < 3 { // until the host knows, the journal has what is answered
		r := call()
		switch {
		case r.Success && refused == 0:
			answered++
		case r.Success || r.Error.Code != skill.AuditUnavailable || r.Error.Status != 503:
			t.Fatalf("with the database locked: %+v", r)
		default:
			refused++
		}
	}
	musttest.Do(t, tx.Rollback())
	for end := time.Now().Add(20 * time.Second); ; {
		r := call()
		if r.Success {
			break
		}
		if r.Error.Code != skill.AuditUnavailable || time.Now().After(end) {
			t.Fatalf("with the database free again: %+v", r.Error)
		}
		time.Sleep(10 * time.Millisecond)
	}
	list, _, err := h.Record().Store().Executions(t.Context(), records.Query{Tenant: "local", Limit: 1000})
	musttest.Do(t, err)
	good := 0
	for _, e := range list {
		switch e.Status() {
		case records.Success:
			good++
		case records.Terminated: // on record after all, when its caller had been refused
		default:
			t.Errorf("an execution is %s", e.Status())
		}
	}
	if good != answered+1 {
		t.Errorf("%d successes are on record, of %d", good, answered+1)
	}
}

// Who sends calls to several hosts leaves out one that cannot put them on record, and
// comes back to it when it can.
func TestReadyOnlyWithRecords(t *testing.T) {
	s := settings(t, nil)
	v := serve(t, s)
	ready := func() (status int, body string) {
		t.Helper()
		res, err := http.DefaultClient.Do(get(t, v.url+"/readyz"))
		musttest.Do(t, err)
		defer res.Body.Close()
		b := musttest.Get(io.ReadAll(res.Body))(t)
		return res.StatusCode, string(b)
	}
	if status, body := ready(); status != http.StatusOK {
		t.Fatalf("before: %d %s", status, body)
	}
	other := musttest.Get(sql.Open("sqlite", "file:"+filepath.Join(s.StateDir, store.File)+"?_txlock=exclusive&_pragma=busy_timeout(60000)"))(t)
	defer other.Close()
	tx := musttest.Get(other.BeginTx(t.Context(), nil))(t)
	become := func(want int, holds string) { // without a call that asks for it
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			status, body := ready()
			if status == want && strings.Contains(body, holds) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d %s, want %d", status, body, want)
			}
		}
	}
	become(http.StatusServiceUnavailable, `"AUDIT_UNAVAILABLE"`)
	musttest.Do(t, tx.Rollback())
	become(http.StatusOK, `"ok"`)
}

// TestALimitHoldsOverTwoHosts: what one host has let begin the other one counts.
func TestALimitHoldsOverTwoHosts(t *testing.T) {
	const perMinute = 10
	file := "sqlite:" + filepath.Join(t.TempDir(), "both.db")
	var hosts []*Host
	for range 2 {
		s := settings(t, nil)
		s.DatabaseURL = file
		manifest := filepath.Join(s.SkillsDir, "quick", "skill.yaml")
		text, err := os.ReadFile(manifest)
		if err == nil {
			err = os.WriteFile(manifest, append(text, "cost_metadata: {rate_limit_per_minute: 10}\n"...), 0o600)
		}
		musttest.Do(t, err)
		h := musttest.Get(Open(s, nil))(t)
		defer h.Close()
		hosts = append(hosts, h)
	}
	begun := time.Now()
	answered := 0
	for i := range 3 * perMinute {
		switch r := hosts[i%2].Invoke(t.Context(), skill.Local(), skill.Request{SkillID: "quick", Input: []byte("{}")}); {
		case r.Success:
			answered++
		case r.Error.Code != skill.RateLimited || r.Error.Details["limit"] == nil:
			t.Fatalf("%+v", r.Error)
		}
	}
	// A place comes back every six seconds.
	if most := perMinute + 1 + int(time.Since(begun)/(time.Minute/perMinute)); answered < perMinute || answered > most {
		t.Errorf("%d calls of %d a minute were answered on two hosts in %s", answered, perMinute, time.Since(begun))
	}
}
