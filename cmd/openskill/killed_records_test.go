//go:build unix && !race

package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestKilledUnderLoad kills a host that answers calls, at random moments: every call
// that was answered has its two records, none of the others is left running, the chain
// is whole, and SQLite finds nothing wrong. OPENSKILL_KILLS says how often; 200 takes
// half a minute.
func TestKilledUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a host again and again")
	}
	t.Parallel()
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("OPENSKILL_KILLS")); err == nil {
		kills = n
	}
	skills, state := t.TempDir(), t.TempDir()
	dir := filepath.Join(skills, "one")
	if err := errors.Join(os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "skill.yaml"), []byte("id: one\nversion: 0.1.0\ndescription: A test.\ntype: wasm\nruntime: wasi\nentry: m.wasm\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "m.wasm"), answeringWith(`{"n":1}`, 1), 0o600)); err != nil {
		t.Fatal(err)
	}
	k := launch(t, skills, state)
	k.answers(t, map[string]string{"one": `{"n":1}`}) // what is compiled is there from now on
	k.kill()
	answered := map[string]bool{}
	for range kills {
		answeredUntilKilled(t, launch(t, skills, state), answered)
	}
	k = launch(t, skills, state) // ends on record what was running
	k.answers(t, map[string]string{"one": `{"n":1}`})
	k.kill()
	if len(answered) < kills {
		t.Errorf("%d calls were answered in %d rounds", len(answered), kills)
	}
	looks(t, state, answered)
}

// answeredUntilKilled calls a host on several connections, kills it, and adds the ids of
// what it answered.
func answeredUntilKilled(t *testing.T, k *killable, answered map[string]bool) {
	t.Helper()
	if !k.out.Scan() {
		t.Fatalf("the host does not start: %s", k.log.String())
	}
	_, url, _ := strings.Cut(k.out.Text(), "listening on ")
	var mu sync.Mutex
	var calling sync.WaitGroup
	var once sync.Once
	first := make(chan struct{})
	for range 4 {
		calling.Go(func() {
			own := &http.Client{Transport: &http.Transport{}}
			defer own.CloseIdleConnections()
			for {
				res, err := own.Post(url+"/skills/one:invoke", "application/json", strings.NewReader(`{"input": {}}`))
				if err != nil {
					return // it was killed
				}
				var r skill.Result
				err = json.NewDecoder(res.Body).Decode(&r)
				_ = res.Body.Close()
				if err != nil {
					return
				}
				if !r.Success {
					t.Errorf("%+v", r.Error)
					return
				}
				mu.Lock()
				answered[r.Meta.ExecutionID] = true
				mu.Unlock()
				once.Do(func() { close(first) })
			}
		})
	}
	select {
	case <-first:
		time.Sleep(time.Duration(rand.Int64N(int64(50 * time.Millisecond)))) // until a moment like any other
	case <-time.After(time.Minute):
		t.Errorf("the host answers nothing: %s", k.log.String())
	}
	k.kill()
	calling.Wait()
	if t.Failed() {
		t.Logf("the log of the host:\n%s", k.log.String())
	}
}

// looks holds what the database has against what callers were told.
func looks(t *testing.T, state string, answered map[string]bool) {
	t.Helper()
	db := musttest.Get(store.Open(t.Context(), store.Options{StateDir: state}))(t)
	defer db.Close()
	musttest.Do(t, records.Recover(t.Context(), records.Options{Store: records.NewStore(db), Journal: db.Journals}))
	report := musttest.Get(records.Verify(t.Context(), records.NewStore(db), records.VerifyOptions{Rows: true}))(t)
	for _, c := range report.Chains {
		if c.Fault != nil {
			t.Errorf("the chain of %s: %+v", c.Tenant, c.Fault)
		}
	}
	ended := 0
	for id := range answered {
		e, err := records.NewStore(db).Execution(t.Context(), "local", id)
		if err != nil || e.Status() != records.Success {
			t.Errorf("of %s, which was answered: %+v, %v", id, e, err)
		}
	}
	for q := (records.Query{Tenant: "local", Limit: 1000}); ; {
		page, next, err := records.NewStore(db).Executions(t.Context(), q)
		musttest.Do(t, err)
		for _, e := range page {
			switch e.Status() {
			case records.Success:
			case records.Terminated:
				ended++
			default:
				t.Errorf("%s is %s", e.ExecutionID, e.Status())
			}
		}
		if q.Cursor = next; next == "" {
			break
		}
	}
	raw := musttest.Get(sql.Open("sqlite", "file:"+filepath.Join(state, store.File)))(t)
	defer raw.Close()
	var verdict string
	if err := raw.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity: %q, %v", verdict, err)
	}
	t.Logf("%d calls answered, %d ended on record for hosts that were killed", len(answered), ended)
}
