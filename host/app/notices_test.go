package app

import (
	"net/url"
	"testing"
	"time"

	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
)

// deaf is a database whose notifications are all lost.
func deaf(t *testing.T) (address string) {
	t.Helper()
	pgtest.Need(t)
	s := pgtest.New(t, "allow_system_table_mods = on")
	musttest.Do(t, s.Exec(`ALTER FUNCTION pg_catalog.pg_notify(text, text) RENAME TO true_pg_notify;
		CREATE FUNCTION pg_catalog.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'SELECT'`))
	u := musttest.Get(url.Parse(s.Database(t)))(t)
	u.Path = "/postgres" // which Exec has changed
	return u.String()
}

// What is changed on one host holds on the other within two seconds also where no notification arrives.
func TestNotificationsLost(t *testing.T) {
	address := deaf(t)
	drained := func(v *serving) *serving { // it logs every call, and its log is not read
		go func() {
			for v.log.Scan() {
			}
		}()
		return v
	}
	one, two := drained(serve(t, onServer(t, address))), drained(serve(t, onServer(t, address)))
	soon(t, "the skill", "200 {}", func() answer { return two.call(t, "quick") })
	var longest time.Duration
	for range 4 {
		expect(t, "disabling", one.act(t, "quick", "disable", ""), "200 0.1.0 disabled")
		off := soon(t, "disabled on the other", "404 NOT_FOUND", func() answer { return two.call(t, "quick") })
		expect(t, "back", one.do(t, "PATCH", "/skills/quick", "application/json", []byte(`{"is_enabled": null}`)), "200 0.1.0 ")
		on := soon(t, "back on the other", "200 {}", func() answer { return two.call(t, "quick") })
		longest = max(longest, off, on)
	}
	if t.Logf("after %s at most", longest); longest < 20*time.Millisecond {
		t.Error("the notifications arrive")
	}
}
