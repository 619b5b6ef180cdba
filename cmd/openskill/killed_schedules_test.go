//go:build unix && !race

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestKilledHostsMakeCallsOnce kills hosts of a database around the times of schedules: each time of each schedule has one
// call on record. OPENSKILL_MINUTES says for how many times.
func TestKilledHostsMakeCallsOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for the next minute")
	}
	pgtest.Need(t)
	t.Parallel()
	minutes, schedules := times("OPENSKILL_MINUTES", 1), 10
	c := &cluster{skills: t.TempDir(), database: pgtest.Start(t), concurrency: "all:4,skill:4"}
	c.skill(t, "one", "", working(aWhile))
	c.skill(t, "again", "idempotent: true\n", working(aWhile))
	c.start(t, 3)
	if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < 5*time.Second {
		time.Sleep(left + time.Second) // so that all are made in one minute
	}
	ask := func(method, path, body string) (code int, s skill.Schedule) {
		req := musttest.Get(http.NewRequestWithContext(t.Context(), method, c.url[0]+path, strings.NewReader(body)))(t)
		res := musttest.Get(http.DefaultClient.Do(req))(t)
		defer res.Body.Close()
		musttest.Do(t, json.NewDecoder(res.Body).Decode(&s))
		return res.StatusCode, s
	}
	first := time.Now().Truncate(time.Minute).Add(time.Minute)
	for i := range schedules {
		body := fmt.Sprintf(`{"name": "s%d", "skill": %q, "cron": "* * * * *"}`, i, []string{"one", "again"}[i%2])
		if code, s := ask(http.MethodPost, "/schedules", body); code != http.StatusCreated || !s.NextAt.Equal(first) {
			t.Fatalf("%d, %+v", code, s)
		}
	}
	kills := 0
	for minute := range minutes {
		time.Sleep(time.Until(first.Add(time.Duration(minute)*time.Minute - time.Second)))
		for range 4 {
			i := rand.IntN(2) + 1 // the other one answers
			time.Sleep(time.Duration(rand.Int64N(int64(500 * time.Millisecond))))
			c.kill(i)
			c.launch(t, i)
			kills++
		}
	}
	last := first.Add(time.Duration(minutes-1) * time.Minute)
	db := musttest.Get(store.Open(t.Context(), store.Options{URL: c.database}))(t)
	defer db.Close()
	for i := range schedules {
		for {
			_, s := ask(http.MethodGet, fmt.Sprintf("/schedules/s%d", i), "")
			if s.LastAt != nil && !s.LastAt.Before(last) {
				break
			}
			if time.Since(last) > 50*time.Second {
				t.Fatalf("%+v", s)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	musttest.Get(db.Exec(t.Context(), "DELETE FROM schedules"))(t) // before the next time
	accepted := map[string]bool{}
	ids := musttest.Get(store.All(t.Context(), db.Read, store.Column[string], "SELECT CAST(id AS TEXT) FROM queued_calls UNION SELECT CAST(id AS TEXT) FROM running_executions UNION SELECT CAST(id AS TEXT) FROM execution_logs"))(t)
	for _, id := range ids {
		accepted[id] = true
	}
	if len(accepted) != minutes*schedules {
		t.Errorf("%d calls for %d times", len(accepted), minutes*schedules)
	}
	c.counts(t, accepted)
	changes := musttest.Get(records.NewStore(db).Changes(t.Context(), records.ChangeQuery{Tenant: "local", Limit: 1000}))(t)
	t.Logf("%d kills, %d calls, %d changes on record", kills, len(accepted), len(changes))
}
