package host

import (
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"openskill/host/audit"
	"openskill/host/store"
	"openskill/host/store/pgtest"
	"openskill/sdk/skill"
)

// On a shared database, a host whose clock is more than 10 s away is refused, one that is
// nearer goes by the database's time, and neither ends the calls of others on record.
func TestRefusesClocksFarFromTheDatabase(t *testing.T) {
	pgtest.Need(t)
	url := pgtest.Start(t)
	opened := func(off time.Duration) *kept {
		t.Helper()
		db, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		l, err := audit.Open(t.Context(), audit.Options{
			Store: db.Audit(), Log: slog.New(slog.DiscardHandler), Instance: "host " + off.String(), Now: func() time.Time { return time.Now().Add(off) },
		})
		if err != nil {
			t.Fatal(err)
		}
		k := &kept{db: db, log: l}
		t.Cleanup(func() { _ = k.end() })
		return k
	}
	right := opened(0)
	if err := right.sameClock(); err != nil {
		t.Fatal(err)
	}
	id := uuid.Must(uuid.NewV7()).String()
	call := &audit.Started{ExecutionID: id, Tenant: "acme", Principal: "key:ci", PrincipalType: skill.Agent, Session: id, Skill: "echo"}
	if err := right.log.Started(t.Context(), call, nil); err != nil {
		t.Fatal(err)
	}
	for off, refused := range map[time.Duration]bool{20 * time.Second: true, -20 * time.Second: true, 7 * time.Second: false, -7 * time.Second: false} {
		k := opened(off)
		if err := k.sameClock(); (skill.CodeOf(err) == skill.Conflict) != refused {
			t.Errorf("%s ahead: %v", off, err)
		}
		if d := time.Until(k.log.DatabaseTime()); d.Abs() > 5*time.Second {
			t.Errorf("%s ahead: the database's time is taken for %s away", off, d)
		}
	}
	if e, err := right.db.Audit().Execution(t.Context(), "acme", id); err != nil || e.Finished != nil {
		t.Errorf("the call of a host with the right clock: %+v, %v", e, err)
	}
}
