package catalogue

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"openskill/sdk/skill"
)

// By is who decides, with what right, and why.
type By struct {
	ID       string // of the principal
	Operator bool   // may decide about uploads of every tenant
	Reason   string // kept on record; may be empty
	Digest   string // that the version must have; "": any
}

// pinned refuses a version that is not the one that whoever decides has seen. It is asked
// where the version is changed, so that none comes between.
func (by By) pinned(id skill.ID, v *version) error {
	if by.Digest == "" || by.Digest == v.digest {
		return nil
	}
	return &skill.Error{
		Op: "catalogue.pinned", Code: skill.Conflict, Subject: string(id),
		Message: fmt.Sprintf("digest mismatch: version %s of %s has the digest %s; check it again", v.version, id, v.digest),
		Details: map[string]any{"version": v.version, "digest": v.digest},
	}
}

func (s *Store) decision(by By) *Decision {
	return &Decision{By: skill.CleanText(by.ID, 128), At: s.o.Now(), Reason: skill.CleanText(by.Reason, 400)}
}

// Owner gives the tenant whose skill of this id the caller means: "" names the
// caller's own, or, for the operator, the only one that has it. A tenant that is
// named is for the operator alone.
func (s *Store) Owner(caller, named string, id skill.ID, operator bool) (string, error) {
	s.sync()
	s.mu.RLock()
	defer s.mu.RUnlock()
	has := func(tenant string) bool {
		r := s.skills[key{tenant, id}]
		return r != nil && len(r.live()) > 0
	}
	switch {
	case named != "" && named != caller && !operator:
		return "", &skill.Error{Op: "catalogue.Owner", Code: skill.Forbidden, Subject: string(id), Message: "only the operator can select another tenant"}
	case named != "":
		if !has(named) {
			return "", notFound(id)
		}
		return named, nil
	case has(caller):
		return caller, nil
	case !operator:
		return "", notFound(id)
	}
	var owners []string
	for k, r := range s.skills {
		if k.id == id && len(r.live()) > 0 {
			owners = append(owners, k.tenant)
		}
	}
	switch len(owners) {
	case 0:
		return "", notFound(id)
	case 1:
		return owners[0], nil
	}
	slices.Sort(owners)
	return "", &skill.Error{
		Op: "catalogue.Owner", Code: skill.Conflict, Subject: string(id), Message: fmt.Sprintf("%d tenants have a skill %s; set tenant", len(owners), id),
		Details: map[string]any{"tenants": owners[:min(len(owners), 50)]},
	}
}

// Decisions about a version, for [Store.Meant].
const (
	ToEnable   = "enable"
	ToDisable  = "disable"
	ToApprove  = "approve"
	ToRollback = "rollback"
	ToDelete   = "delete"
)

// Meant gives the version and digest that a decision is about, where it names none. A decision
// that has this digest in By is made for just these files.
func (s *Store) Meant(tenant string, id skill.ID, decision, name string) (version, digest string, err error) {
	s.sync()
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.skills[key{tenant, id}]
	if r == nil || len(r.live()) == 0 {
		return "", "", notFound(id)
	}
	v := r.find(name)
	switch {
	case decision == ToRollback:
		v, _ = r.before()
		if v == nil {
			return "", "", nothingBefore(id)
		}
	case name != "":
	case decision == ToEnable:
		v = r.toEnable()
	case decision != ToDelete:
		v = r.currentOr()
	}
	if v == nil {
		return "", "", noVersion(id, r.names())
	}
	return v.version, v.digest, nil
}

// before is the version that was current before the current one, and what is left of the history
// without it. One that was deleted or quarantined since is passed over.
func (r *record) before() (*version, []string) {
	for i := len(r.history) - 1; i >= 0; i-- {
		if v := r.find(r.history[i]); v != nil && r.history[i] != r.current && v.quarantine == nil {
			return v, r.history[:i]
		}
	}
	return nil, nil
}

func nothingBefore(id skill.ID) error {
	return &skill.Error{
		Op: "catalogue.Rollback", Code: skill.Conflict, Subject: string(id),
		Message: fmt.Sprintf("%s has no previous version to roll back to", id),
	}
}

// changeVersion changes one version, which pick chooses where none is named.
func (s *Store) changeVersion(tenant string, id skill.ID, name string, by By, pick func(*record) *version, do func(*tx, *record, *version) error) (skill.VersionState, error) {
	var v *version
	k := key{tenant, id}
	err := s.change(s.ctx, "catalogue.write", k, nil, update(k, func(t *tx, r *record) error {
		if len(r.live()) == 0 {
			return notFound(id)
		}
		if v = r.find(name); name == "" {
			v = pick(r)
		}
		if v == nil {
			return noVersion(id, r.names())
		}
		if err := by.pinned(id, v); err != nil {
			return err
		}
		return do(t, r, v)
	}))
	if err != nil {
		return skill.VersionState{}, err
	}
	return v.public(id), nil
}

// toEnable is the version that :enable means where it names none: the newest one
// that was never enabled before; else the current one; else the newest.
func (r *record) toEnable() *version {
	live := r.live()
	newest := live[len(live)-1]
	if current := r.find(r.current); current != nil && newest.wasEnabled {
		return current
	}
	return newest
}

// current is the version that calls without one mean; the newest where there is none.
func (r *record) currentOr() *version {
	if v := r.find(r.current); v != nil {
		return v
	}
	live := r.live()
	return live[len(live)-1]
}

// Enable makes a version the current one and lets it be called. Version "" is the
// newest that was never enabled; else the current one. One that is quarantined is
// for the operator.
func (s *Store) Enable(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, (*record).toEnable, func(_ *tx, r *record, v *version) error {
		if v.quarantine != nil {
			if !by.Operator {
				return quarantined(id, v)
			}
			v.quarantine = nil
		}
		v.enabled, v.wasEnabled = true, true
		r.makeCurrent(v.version)
		return nil
	})
}

func quarantined(id skill.ID, v *version) error {
	return &skill.Error{
		Op: "catalogue.Enable", Code: skill.Forbidden, Subject: string(id),
		Message: skill.CleanText(fmt.Sprintf("version %s of %s is quarantined (%s); ask the operator to enable it, or upload another version", v.version, id, v.quarantine.Reason), skill.MaxMessage),
	}
}

func (r *record) makeCurrent(name string) {
	if r.current == name {
		return
	}
	if r.current != "" {
		r.history = append(r.history, r.current)
		r.history = r.history[max(len(r.history)-maxHistory, 0):]
	}
	r.current = name
}

// Disable stops a version from being called; "" stops all versions. Running calls continue.
func (s *Store) Disable(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, (*record).currentOr, func(_ *tx, r *record, v *version) error {
		v.enabled = false
		if name == "" {
			for _, other := range r.versions {
				other.enabled = false
			}
		}
		return nil
	})
}

// Rollback disables the current version and enables the one that was current before
// it. One that was deleted or quarantined since is passed over.
func (s *Store) Rollback(tenant string, id skill.ID, by By) (skill.VersionState, error) {
	var to *version
	k := key{tenant, id}
	err := s.change(s.ctx, "catalogue.write", k, nil, update(k, func(_ *tx, r *record) error {
		if len(r.live()) == 0 {
			return notFound(id)
		}
		var left []string
		if to, left = r.before(); to == nil {
			return nothingBefore(id)
		}
		if err := by.pinned(id, to); err != nil {
			return err
		}
		if from := r.find(r.current); from != nil {
			from.enabled = false
		}
		r.history, r.current, to.enabled = left, to.version, true
		return nil
	}))
	if err != nil {
		return skill.VersionState{}, err
	}
	return to.public(id), nil
}

// Delete takes a version out of the catalogue at once; its files go after the grace,
// so that calls under way end well. It can only come again as it was, for good.
func (s *Store) Delete(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, func(*record) *version { return nil }, func(_ *tx, r *record, v *version) error {
		v.deleted, v.enabled = s.o.Now(), false
		r.history = slices.DeleteFunc(r.history, func(n string) bool { return n == name })
		if r.current == name {
			r.current = ""
		}
		return nil
	})
}

// Approve shows a version to all tenants; "" is the current one. It does not enable
// it. It is the operator's decision, which the caller has checked.
func (s *Store) Approve(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, (*record).currentOr, func(t *tx, _ *record, v *version) error {
		other, err := t.approvedOf(id)
		switch {
		case err != nil:
			return err
		case other != "" && other != tenant:
			return &skill.Error{
				Op: "catalogue.Approve", Code: skill.Conflict, Subject: string(id),
				Message: fmt.Sprintf("a skill %s of another tenant is already published to all; choose another id", id),
			}
		case v.quarantine != nil:
			return quarantined(id, v)
		case v.approved == nil:
			v.approved = s.decision(by)
		}
		return nil
	})
}

// Quarantine disables a version until the operator enables it. Where it cannot be written
// it holds on this host, and is written later.
func (s *Store) Quarantine(tenant string, id skill.ID, name, reason string) error {
	do := func() error { return s.quarantine(key{tenant, id}, name, s.decision(By{ID: byHost, Reason: reason})) }
	if s.o.RecordQuarantine == nil {
		return do()
	}
	return s.o.RecordQuarantine(tenant, id, name, reason, do)
}

func (s *Store) quarantine(k key, name string, why *Decision) error {
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
	s.o.Log.Warn("a version was quarantined; only the operator can enable it",
		slog.String("tenant", skill.CleanText(k.tenant, 128)), slog.String("skill_id", string(k.id)), slog.String("version", name), slog.String("reason", why.Reason))
	return err
}

func quarantine(k key, name string, why *Decision) func(t *tx) error {
	return update(k, func(_ *tx, r *record) error {
		v := r.find(name)
		if v == nil {
			return noVersion(k.id, r.names())
		}
		v.enabled = false
		if v.quarantine == nil {
			v.quarantine = why
		}
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
