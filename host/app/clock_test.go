package app

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// On a shared database, a host whose clock is more than 10 s away is refused, one that is
// nearer goes by the database's time, and neither ends the calls of others on record.
func TestRefusesClocksFarFromTheDatabase(t *testing.T) {
	pgtest.Need(t)
	url := pgtest.Start(t)
	opened := func(off time.Duration) *kept {
		t.Helper()
		db := musttest.Get(store.Open(t.Context(), store.Options{URL: url}))(t)
		l, err := records.Open(t.Context(), records.Options{
			Store: records.NewStore(db), Log: slog.New(slog.DiscardHandler), Instance: "host " + off.String(), Now: func() time.Time { return time.Now().Add(off) },
		})
		musttest.Do(t, err)
		k := &kept{db: db, log: l}
		t.Cleanup(func() { _ = k.end() })
		return k
	}
	right := opened(0)
	musttest.Do(t, right.sameClock())
	id := uuid.Must(uuid.NewV7()).String()
	call := &records.Started{ExecutionID: id, Tenant: "acme", Principal: "key:ci", PrincipalType: skill.Agent, Session: id, Skill: "echo"}
	musttest.Do(t, right.log.Started(t.Context(), call, nil))
	for off, refused := range map[time.Duration]bool{20 * time.Second: true, -20 * time.Second: true, 7 * time.Second: false, -7 * time.Second: false} {
		k := opened(off)
		if err := k.sameClock(); (skill.CodeOf(err) == skill.Conflict) != refused {
			t.Errorf("%s ahead: %v", off, err)
		}
		if d := time.Until(k.log.DatabaseTime()); d.Abs() > 5*time.Second {
			t.Errorf("%s ahead: the database's time is taken for %s away", off, d)
		}
	}
	if e, err := records.NewStore(right.db).Execution(t.Context(), "acme", id); err != nil || e.Finished != nil {
		t.Errorf("the call of a host with the right clock: %+v, %v", e, err)
	}
}

// shifted is a database whose clock is ahead of that of this machine.
func shifted(t *testing.T, ahead time.Duration) (address string) {
	t.Helper()
	pgtest.Need(t)
	s := pgtest.New(t, "allow_system_table_mods = on")
	err := s.Exec(fmt.Sprintf(`ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO true_clock_timestamp;
		CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.true_clock_timestamp() + interval ''%d ms'''`, ahead.Milliseconds()))
	musttest.Do(t, err)
	u := musttest.Get(url.Parse(s.Database(t)))(t)
	u.Path = "/postgres" // which Exec has changed
	return u.String()
}

// A key ends by the clock of the database, on every host and wherever the key was changed,
// and doctor tells that the clocks differ.
func TestKeysEndByTheClockOfTheDatabase(t *testing.T) {
	for _, ahead := range []time.Duration{7 * time.Second, -7 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			s := workingSettings(t)
			s.DatabaseURL = shifted(t, ahead)
			w := working10s(t, s)
			reads := func(key string) int {
				t.Helper()
				resp, _ := w.answer(t, key, "GET", "/skills", "")
				return resp.StatusCode
			}
			id, old := w.newKey(t, 0)
			if got := reads(old); got != 200 {
				t.Fatalf("a new key: %d", got)
			}
			k, key, err := w.keys.Rotate(t.Context(), id, 0)
			musttest.Do(t, err)
			for reads(old) != 401 { // until the host is told
				time.Sleep(50 * time.Millisecond)
			}
			if is := reads(key); is != 200 {
				t.Errorf("after a rotation without an overlap: %d with the new secret", is)
			}
			if off := time.Until(k.RotatedAt) - ahead; off.Abs() > 5*time.Second {
				t.Errorf("rotated at %s, which is %s from the time of the database", k.RotatedAt, off)
			}
			// By the clock of the host it would have ended before, or would end 4 s after this.
			const life = 3 * time.Second
			for {
				began := time.Now()
				_, short := w.newKey(t, life)
				got := reads(short)
				if time.Since(began) > life {
					continue // on a machine so busy it may have ended by any clock
				}
				if got != 200 {
					t.Errorf("a key of %s at its begin: %d", life, got)
				}
				time.Sleep(life + 2*time.Second)
				if got := reads(short); got != 401 {
					t.Errorf("a key of %s two seconds after its end: %d", life, got)
				}
				break
			}
			var told string
			for _, f := range Examine(t.Context(), s).Warnings {
				if f.Name == "OPENSKILL_DATABASE_URL" {
					told += f.Detail
				}
			}
			if word := map[bool]string{true: "behind the database's", false: "ahead of the database's"}[ahead > 0]; !strings.Contains(told, word) {
				t.Errorf("doctor says %q", told)
			}
		})
	}
}
