package catalogue

import (
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// The name of a version means the same files for ever: after its deletion, when its files
// are gone, and after restarts. The same files may come back, without what was decided.
func TestVersionsAreNotUsedAgain(t *testing.T) {
	c := &clock{now: time.Unix(1e9, 0)}
	change := func(o *Options) { o.Grace, o.Now = time.Minute, c.Now }
	dir := t.TempDir()
	s := open(t, dir, change)
	first := mustPublish(t, s, "acme", "up", "1.0.0", "reviewed")
	musttest.Get(s.decide(asOperator(pinned(to(Approve, "acme", "up", "1.0.0"), first.Digest))))(t)
	musttest.Get(s.decide(to(Delete, "acme", "up", "1.0.0")))(t)
	for range 3 {
		_, err := publish(s, "acme", "up", "1.0.0", "others")
		wants(t, err, skill.Conflict)
		c.pass(time.Hour)
		s.Sweep()
		_ = s.Close()
		s = open(t, dir, change)
	}
	mustPublish(t, s, "other", "up", "1.0.0", "others") // which is another's
	again := mustPublish(t, s, "acme", "up", "1.0.0", "reviewed")
	if again.Digest != first.Digest || again.Shared || again.State != skill.StateDisabled {
		t.Errorf("the same files are %+v, want %s, neither enabled nor for all", again, first.Digest)
	}
}

// What is remembered is bounded by taking nothing new, never by forgetting.
func TestRefusesVersionsBeyondWhatIsRemembered(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Skills = 2 })
	mustPublish(t, s, "acme", "up", "1.0.0", "one")
	gone := func(id, names string, n int) {
		execute(t, s.o.DB, `INSERT INTO uploads (tenant, id, revision) SELECT 'acme', `+id+`, 1 FROM (WITH RECURSIVE up (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up WHERE n < $1) SELECT n FROM up)
			WHERE true ON CONFLICT DO NOTHING`, n)
		execute(t, s.o.DB, `INSERT INTO upload_versions (tenant, id, version, digest, bytes, position, uploaded_by, uploaded_at, deleted_at, gone)
			SELECT 'acme', `+id+`, `+names+`, 'sha256:0', 1, n, '', 1, 1, TRUE FROM (WITH RECURSIVE up (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up WHERE n < $1) SELECT n FROM up)`, n)
	}
	gone("'up'", "'0.0.' || n", maxRemembered-2)
	_, err := publish(s, "acme", "up", "2.0.0", "two")
	wants(t, err, skill.Conflict)
	gone("'gone' || n", "'1.0.0'", maxGoneSkills+1)
	_, err = publish(s, "acme", "another", "1.0.0", "x")
	wants(t, err, skill.Conflict)
	mustPublish(t, s, "acme", "gone0", "1.0.1", "x")
	mustPublish(t, s, "other", "another", "1.0.0", "x")
}

// A decision that names a digest is about those files, or nothing.
func TestDecisionsArePinned(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	one := mustPublish(t, s, "acme", "up", "1.0.0", "one")
	two := mustPublish(t, s, "acme", "up", "2.0.0", "two")
	for _, name := range []string{"1.0.0", "2.0.0"} {
		musttest.Get(s.decide(to(Enable, "acme", "up", name)))(t)
	}
	decisions := map[string]Decision{
		"approve":  to(Approve, "acme", "up", "2.0.0"),
		"current":  to(Approve, "acme", "up", ""),
		"enable":   to(Enable, "acme", "up", "2.0.0"),
		"disable":  to(Disable, "acme", "up", ""),
		"delete":   to(Delete, "acme", "up", "2.0.0"),
		"rollback": to(Rollback, "acme", "up", ""),
	}
	before := seen(s, "acme", "up")
	for name, d := range decisions {
		right, wrong := two.Digest, one.Digest
		if name == "rollback" {
			right, wrong = wrong, right
		}
		_, err := s.decide(asOperator(pinned(d, wrong)))
		wants(t, err, skill.Conflict)
		if got := seen(s, "acme", "up"); got != before || s.approved["up"] != "" {
			t.Fatalf("a refused %s made %s of %s", name, got, before)
		}
		if name == "approve" || name == "enable" {
			defer func() {
				if _, err := s.decide(asOperator(pinned(d, right))); err != nil {
					t.Errorf("%s of what was seen: %v", name, err)
				}
			}()
		}
	}
	if v, err := s.decide(pinned(to(Rollback, "acme", "up", ""), one.Digest)); err != nil || v.Version != "1.0.0" {
		t.Errorf("going back to what was seen: %+v, %v", v, err)
	}
}
