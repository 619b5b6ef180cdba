package catalogue

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"openskill/sdk/skill"
)

// By is who decides, with what right, and why.
type By struct {
	ID       string // of the principal
	Operator bool   // may decide about uploads of every tenant
	Word     string // the reason, kept on record; may be empty
	Digest   string // that the version must have; "": any
}

// pinned refuses a version that is not the one that whoever decides has seen. It is asked
// where the version is changed, so that none comes between.
func (by By) pinned(id skill.ID, v *version) error {
	if by.Digest == "" || by.Digest == v.Digest {
		return nil
	}
	return &skill.Error{
		Op: "versions.pinned", Code: skill.Conflict, Subject: string(id),
		Message: fmt.Sprintf("digest mismatch: version %s of %s has the digest %s; check it again", v.Version, id, v.Digest),
		Details: map[string]any{"version": v.Version, "digest": v.Digest},
	}
}

func (s *Store) decision(by By) *Decision {
	return &Decision{By: skill.CleanText(by.ID, 128), At: s.o.Now().UTC(), Word: skill.CleanText(by.Word, 400)}
}

// Owner gives the tenant whose skill of this id the caller means: "" names the
// caller's own, or, for the operator, the only one that has it. A tenant that is
// named is for the operator alone.
func (s *Store) Owner(caller, named string, id skill.ID, operator bool) (string, error) {
	s.sync()
	s.mu.RLock()
	defer s.mu.RUnlock()
	has := func(tenant string) bool {
		st := s.skills[key{tenant, id}]
		return st != nil && len(st.live()) > 0
	}
	switch {
	case named != "" && named != caller && !operator:
		return "", &skill.Error{Op: "versions.Owner", Code: skill.Forbidden, Subject: string(id), Message: "only the operator can select another tenant"}
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
	for k, st := range s.skills {
		if k.id == id && len(st.live()) > 0 {
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
		Op: "versions.Owner", Code: skill.Conflict, Subject: string(id), Message: fmt.Sprintf("%d tenants have a skill %s; set tenant", len(owners), id),
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
	st := s.skills[key{tenant, id}]
	if st == nil || len(st.live()) == 0 {
		return "", "", notFound(id)
	}
	v := st.find(name)
	switch {
	case decision == ToRollback:
		v, _ = st.before()
		if v == nil {
			return "", "", nothingBefore(id)
		}
	case name != "":
	case decision == ToEnable:
		v = st.toEnable()
	case decision != ToDelete:
		v = st.currentOr()
	}
	if v == nil {
		return "", "", noVersion(id, st.names())
	}
	return v.Version, v.Digest, nil
}

// before is the version that was current before the current one, and what is left of the history
// without it. One that was deleted or quarantined since is passed over.
func (st *state) before() (*version, []string) {
	for i := len(st.History) - 1; i >= 0; i-- {
		if v := st.find(st.History[i]); v != nil && st.History[i] != st.Current && v.Quarantine == nil {
			return v, st.History[:i]
		}
	}
	return nil, nil
}

func nothingBefore(id skill.ID) error {
	return &skill.Error{
		Op: "versions.Rollback", Code: skill.Conflict, Subject: string(id),
		Message: fmt.Sprintf("%s has no previous version to roll back to", id),
	}
}

// changeVersion changes one version, which pick chooses where none is named.
func (s *Store) changeVersion(tenant string, id skill.ID, name string, by By, pick func(*state) *version, do func(*state, *version) error) (skill.VersionState, error) {
	defer s.changing()()
	var v *version
	err := s.update(key{tenant, id}, false, func(st *state) error {
		if len(st.live()) == 0 {
			return notFound(id)
		}
		if v = st.find(name); name == "" {
			v = pick(st)
		}
		if v == nil {
			return noVersion(id, st.names())
		}
		if err := by.pinned(id, v); err != nil {
			return err
		}
		return do(st, v)
	})
	if err != nil {
		return skill.VersionState{}, err
	}
	return v.public(id), nil
}

func (st *state) names() (list []string) {
	for _, v := range st.live() {
		list = append(list, v.Version)
	}
	return list
}

// toEnable is the version that :enable means where it names none: the newest one
// that was never enabled before; else the current one; else the newest.
func (st *state) toEnable() *version {
	live := st.live()
	newest := live[len(live)-1]
	if current := st.find(st.Current); current != nil && newest.WasEnabled {
		return current
	}
	return newest
}

// current is the version that calls without one mean; the newest where there is none.
func (st *state) currentOr() *version {
	if v := st.find(st.Current); v != nil {
		return v
	}
	live := st.live()
	return live[len(live)-1]
}

// Enable makes a version the current one and lets it be called. Version "" is the
// newest that was never enabled; else the current one. One that is quarantined is
// for the operator, whose word is kept.
func (s *Store) Enable(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, (*state).toEnable, func(st *state, v *version) error {
		if v.Quarantine != nil {
			if !by.Operator {
				return quarantined(id, v)
			}
			v.Quarantine = nil
			v.Released = last(append(v.Released, s.decision(by)), maxReleases)
			s.loaded.forget(filepath.Join(s.at(key{tenant, id}), v.folder()))
		}
		v.Enabled, v.WasEnabled = true, true
		st.makeCurrent(v.Version)
		return nil
	})
}

func quarantined(id skill.ID, v *version) error {
	return &skill.Error{
		Op: "versions.Enable", Code: skill.Forbidden, Subject: string(id),
		Message: skill.CleanText(fmt.Sprintf("version %s of %s is quarantined (%s); ask the operator to enable it, or upload another version", v.Version, id, v.Quarantine.Word), skill.MaxMessage),
	}
}

func (st *state) makeCurrent(name string) {
	if st.Current == name {
		return
	}
	if st.Current != "" {
		st.History = last(append(st.History, st.Current), maxHistory)
	}
	st.Current = name
}

func last[T any](list []T, most int) []T { return list[max(len(list)-most, 0):] }

// Disable stops a version from being called; "" stops all versions. What runs goes on.
func (s *Store) Disable(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, (*state).currentOr, func(st *state, v *version) error {
		v.Enabled = false
		if name == "" {
			for _, other := range st.Versions {
				other.Enabled = false
			}
		}
		return nil
	})
}

// Rollback disables the current version and enables the one that was current before
// it. One that was deleted or quarantined since is passed over.
func (s *Store) Rollback(tenant string, id skill.ID, by By) (skill.VersionState, error) {
	defer s.changing()()
	var to *version
	err := s.update(key{tenant, id}, false, func(st *state) error {
		if len(st.live()) == 0 {
			return notFound(id)
		}
		var left []string
		if to, left = st.before(); to == nil {
			return nothingBefore(id)
		}
		if err := by.pinned(id, to); err != nil {
			return err
		}
		st.History = left
		if from := st.find(st.Current); from != nil {
			from.Enabled = false
		}
		st.Current, to.Enabled = to.Version, true
		return nil
	})
	if err != nil {
		return skill.VersionState{}, err
	}
	return to.public(id), nil
}

// Delete takes a version out of the catalogue at once; its files go after the grace,
// so that calls under way end well. It can only come again as it was, for good.
func (s *Store) Delete(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, func(*state) *version { return nil }, func(st *state, v *version) error {
		now := s.o.Now().UTC()
		v.Deleted, v.Enabled = &now, false
		st.History = slices.DeleteFunc(st.History, func(n string) bool { return n == name })
		if st.Current == name {
			st.Current = ""
		}
		return nil
	})
}

// Approve shows a version to all tenants; "" is the current one. It does not enable
// it. It is the operator's decision, which the caller has checked.
func (s *Store) Approve(tenant string, id skill.ID, name string, by By) (skill.VersionState, error) {
	return s.changeVersion(tenant, id, name, by, (*state).currentOr, func(st *state, v *version) error {
		other := s.approvedOf(st)
		switch {
		case other != "" && other != tenant:
			return &skill.Error{
				Op: "versions.Approve", Code: skill.Conflict, Subject: string(id),
				Message: fmt.Sprintf("a skill %s of another tenant is already published to all; choose another id", id),
			}
		case v.Quarantine != nil:
			return quarantined(id, v)
		case v.Approved == nil:
			v.Approved = s.decision(by)
		}
		return nil
	})
}

// Quarantine disables a version until the operator enables it. It holds in this
// process even if it cannot be written.
func (s *Store) Quarantine(tenant string, id skill.ID, name, reason string) error {
	do := func() error { return s.quarantine(tenant, id, name, reason) }
	if s.o.RecordQuarantine == nil {
		return do()
	}
	return s.o.RecordQuarantine(tenant, id, name, reason, do)
}

func (s *Store) quarantine(tenant string, id skill.ID, name, reason string) error {
	defer s.changing()()
	why := s.decision(By{ID: byHost, Word: reason})
	err := s.update(key{tenant, id}, true, func(st *state) error { return st.quarantine(id, name, why) })
	if err != nil && s.shared != nil && skill.CodeOf(err) != skill.NotFound {
		s.owe(key{tenant, id}, name, why)
	}
	s.o.Log.Warn("a version was quarantined; only the operator can enable it",
		slog.String("tenant", skill.CleanText(tenant, 128)), slog.String("skill_id", string(id)), slog.String("version", name), slog.String("reason", reason))
	return err
}

// quarantine disables a version of st.
func (st *state) quarantine(id skill.ID, name string, why *Decision) error {
	v := st.find(name)
	if v == nil {
		return noVersion(id, st.names())
	}
	v.Enabled = false
	if v.Quarantine == nil {
		v.Quarantine = why
	}
	return nil
}

// approvedOf is the tenant whose version of an id is approved for all; "" for none.
func (s *Store) approvedOf(st *state) string {
	if st.besides != nil {
		return st.besides.Approved
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.approved[st.ID]
}

// Sweep removes the files of versions whose grace is over, and what could not be
// removed before. Call it now and then.
func (s *Store) Sweep() {
	s.sync()
	s.tidy()
	defer s.changing()()
	s.mu.RLock()
	now := s.o.Now()
	var due []key
	for k, st := range s.skills {
		if slices.ContainsFunc(st.Versions, func(v *version) bool { return s.over(v, now) }) {
			due = append(due, k)
		}
	}
	var garbage []string
	for path := range s.garbage {
		garbage = append(garbage, path)
	}
	s.mu.RUnlock()
	for _, path := range garbage {
		s.discard(path)
	}
	for _, k := range due {
		s.sweep(k, now)
	}
}

func (s *Store) over(v *version, now time.Time) bool {
	return v.Deleted != nil && !v.Gone && now.Sub(*v.Deleted) >= s.o.Grace
}

// sweep removes the files of a skill's versions whose grace is over. What is known of them
// stays: the name of a version means one digest for ever.
func (s *Store) sweep(k key, now time.Time) {
	var gone []string
	err := s.update(k, false, func(st *state) error {
		gone = nil
		for i, v := range st.Versions {
			if s.over(v, now) {
				gone = append(gone, filepath.Join(s.at(k), v.folder()))
				st.Versions[i] = &version{Version: v.Version, Digest: v.Digest, UploadedAt: v.UploadedAt, Deleted: v.Deleted, Quarantine: v.Quarantine, Gone: true}
			}
		}
		if len(gone) == 0 {
			return errNothing // another host was faster
		}
		return nil
	})
	if s.shared != nil {
		if skill.CodeOf(err) == skill.NotFound { // another host has removed it
			s.forgetShared(k)
		}
		return // what the record does not name any more is gone with it
	}
	if err != nil {
		return // logged; the next Sweep tries again
	}
	for _, path := range gone {
		s.loaded.forget(path)
		s.discard(path)
	}
}
