package catalogue

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Quarantine disables a version until the operator enables it. Where it cannot be put on record it
// is done all the same; where it cannot be written it holds on this host, and is written later.
func (s *Store) Quarantine(tenant string, id skill.ID, version, reason string) error {
	k, why := key{tenant, id}, s.newMark(byHost, reason)
	log := s.o.Log.With(slog.String("tenant", skill.CleanText(tenant, 128)), slog.String("skill_id", string(id)), slog.String("version", version))
	c := records.Change{Tenant: tenant, Action: "skill.quarantine", Subject: string(id), Details: map[string]string{"version": version, "reason": reason}}
	done := false
	do := func() error {
		done = true
		return s.quarantine(k, version, why)
	}
	err := records.Around(s.ctx, records.NewStore(s.o.DB), skill.Principal{ID: byHost, Type: skill.Operator, Tenant: skill.Local().Tenant}, c, do)
	if !done {
		log.Warn("cannot record a quarantine", slog.String("error", err.Error()))
		err = do()
	}
	log.Warn("a version was quarantined; only the operator can enable it", slog.String("reason", why.Reason))
	return err
}

func (s *Store) quarantine(k key, name string, why *Mark) error {
	err := s.change(s.ctx, "catalogue.write", k, nil, quarantine(k, name, why))
	if err != nil && skill.CodeOf(err) != skill.NotFound {
		s.mu.Lock()
		if r := s.skills[k]; r != nil && !s.closed {
			s.held[heldVersion{k, name}] = why
			r = r.clone()
			s.hold(r)
			s.skills[k] = r
			s.index(k.tenant)
		}
		s.mu.Unlock()
	}
	return err
}

func quarantine(k key, name string, why *Mark) func(t *tx) error {
	return update(k, func(_ *tx, r *record) error {
		v := r.find(name)
		if v == nil {
			return noVersion(k.id, r.names())
		}
		v.enabled, v.quarantine = false, cmp.Or(v.quarantine, why)
		return nil
	})
}

// hold puts quarantines that are still to be written into a record; mu is held.
func (s *Store) hold(r *record) {
	for h, d := range s.held {
		if v := r.find(h.version); h.key == r.key && v != nil && v.quarantine == nil {
			v.enabled, v.quarantine = false, d
		}
	}
}

// writeHeld writes the quarantines that could not be written before.
func (s *Store) writeHeld() {
	s.mu.RLock()
	all := maps.Clone(s.held)
	s.mu.RUnlock()
	for h, d := range all {
		err := s.commit(s.ctx, "catalogue.write", h.key, nil, quarantine(h.key, h.version, d))
		if err != nil && skill.CodeOf(err) != skill.NotFound {
			return // the database is not back; the next Refresh tries again
		}
		s.mu.Lock()
		delete(s.held, h)
		s.mu.Unlock()
	}
}

// Sweep removes the files of versions whose grace is over, and what could not be removed
// before. What is known of a version stays: its name means one digest for ever. Call it now
// and then.
func (s *Store) Sweep() {
	s.sync()
	due := s.o.Now().Add(-s.o.Grace)
	s.mu.RLock()
	over := false
	for _, r := range s.skills {
		over = over || slices.ContainsFunc(r.kept(), func(v *version) bool { return !v.deleted.IsZero() && !v.deleted.After(due) })
	}
	garbage := slices.Collect(maps.Keys(s.garbage))
	s.mu.RUnlock()
	for _, path := range garbage {
		s.discard(path)
	}
	if over {
		_ = s.change(s.ctx, "catalogue.Sweep", key{}, nil, func(t *tx) error { // logged; the next Sweep tries again
			const over = "deleted_at BETWEEN 1 AND $1 AND NOT gone"
			if err := t.exec("UPDATE uploads SET revision = $2 WHERE EXISTS (SELECT 1 FROM upload_versions v WHERE v.tenant = uploads.tenant AND v.id = uploads.id AND v."+over+")", micros(due), int64(t.revision)); err != nil {
				return err
			}
			return t.exec("UPDATE upload_versions SET gone = TRUE, approved_at = 0 WHERE "+over, micros(due))
		})
	}
	if err := s.dropUnneeded(); err != nil && s.ctx.Err() == nil {
		s.o.Log.Warn("cannot remove archives of deleted uploads; retrying", slog.String("error", err.Error()))
	}
}
