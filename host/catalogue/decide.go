package catalogue

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"openskill/host/records"
	"openskill/sdk/skill"
)

// Action is what is decided about a version.
type Action string

// The actions.
const (
	// Enable makes a version the current one and lets it be called. Without a version it means
	// the newest one that was never enabled; else the current one. A quarantined version is for
	// the operator.
	Enable Action = "enable"
	// Disable stops a version from being called; without a version, all of them. Running calls continue.
	Disable Action = "disable"
	// Approve shows a version to all tenants, without enabling it; without a version, the current one.
	Approve Action = "approve"
	// Rollback disables the current version and enables the one before it that was neither deleted
	// nor quarantined since.
	Rollback Action = "rollback"
	// Delete takes a version out of the catalogue at once; its files go after the grace, so that
	// running calls finish. The same files may come back, others under its name may not.
	Delete Action = "delete"
)

// Decision is what a principal decides about one version of a skill.
type Decision struct {
	Action  Action
	By      skill.Principal
	Tenant  string // the owner of the skill, for the operator; "": the caller's own
	ID      skill.ID
	Version string // "": the one that the action chooses
	Digest  string // that the version must have; "": any
	Reason  string // for the record; may be empty
}

// operator reports whether who decides may decide about uploads of every tenant.
func (d *Decision) operator() bool { return d.By.May(skill.ScopeAdmin) }

// newMark is what a version keeps of a decision.
func (s *Store) newMark(by, reason string) *Mark {
	return &Mark{By: skill.CleanText(by, 128), At: s.o.Now(), Reason: skill.CleanText(reason, 400)}
}

// Decide authorizes a decision about an uploaded skill, puts it on record, and makes it. What is on
// record is what is done, and nothing else: a change in between is a CONFLICT.
func (s *Store) Decide(d Decision) (skill.VersionState, error) {
	needs := []string{skill.ScopeUpload, skill.ScopeAdmin}
	if d.Action == Approve {
		needs = needs[1:]
	}
	if err := authorize(d.By, needs...); err != nil {
		return skill.VersionState{}, err
	}
	v, err := s.meant(&d)
	if err != nil {
		return skill.VersionState{}, err
	}
	var now skill.VersionState
	change := records.Change{
		Tenant: d.Tenant, Action: "skill." + string(d.Action), Subject: string(d.ID),
		Details: map[string]string{"version": v.version, "digest": skill.CleanText(d.Digest, 71), "reason": skill.CleanText(d.Reason, 400)},
	}
	err = records.Around(s.ctx, records.NewStore(s.o.DB), d.By, change, func() error {
		now, err = s.decide(d)
		return err
	})
	if err == nil && d.Action == Enable && s.o.Enabled != nil {
		s.o.Enabled(d.Tenant, d.ID, now.Version)
	}
	if err == nil {
		s.o.Log.Info("a decision about an upload", slog.String("decision", string(d.Action)), slog.String("principal", skill.CleanText(d.By.ID, 128)),
			slog.String("tenant", skill.CleanText(d.Tenant, 128)), slog.String("skill_id", string(d.ID)), slog.String("version", now.Version), slog.String("reason", skill.CleanText(d.Reason, 400)))
	}
	return now, err
}

// meant finds the owner and the version that a decision is about, and names them in it.
func (s *Store) meant(d *Decision) (*version, error) {
	s.sync()
	s.mu.RLock()
	defer s.mu.RUnlock()
	owner, err := s.owner(d)
	if err == nil && owner != d.By.Tenant {
		err = d.names(owner)
	}
	if err != nil {
		return nil, err
	}
	d.Tenant = owner
	v, err := d.pick(s.skills[key{owner, d.ID}])
	if err == nil {
		d.Digest = v.digest
	}
	return v, err
}

// decide makes a decision about a skill of the tenant that it names.
func (s *Store) decide(d Decision) (skill.VersionState, error) {
	var v *version
	k := key{d.Tenant, d.ID}
	err := s.change(s.ctx, "catalogue.write", k, nil, update(k, func(t *tx, r *record) (err error) {
		if v, err = d.pick(r); err != nil {
			return err
		}
		return s.apply(t, &d, r, v)
	}))
	if err != nil {
		return skill.VersionState{}, err
	}
	return v.public(d.ID), nil
}

// pick gives the version that a decision is about. It refuses one that is not the one that
// whoever decides has seen.
func (d *Decision) pick(r *record) (*version, error) {
	if r == nil || len(r.live()) == 0 {
		return nil, notFound(d.ID)
	}
	v := r.find(d.Version)
	switch {
	case d.Action == Rollback:
		if v, _ = r.before(); v == nil {
			return nil, d.refuse(skill.Conflict, fmt.Sprintf("%s has no previous version to roll back to", d.ID), nil)
		}
	case d.Version != "" || d.Action == Delete:
	case d.Action == Enable:
		v = r.toEnable()
	default:
		v = r.currentOr()
	}
	switch {
	case v == nil:
		return nil, noVersion(d.ID, r.names())
	case d.Digest != "" && d.Digest != v.digest:
		return nil, d.refuse(skill.Conflict, fmt.Sprintf("digest mismatch: version %s of %s has the digest %s; check it again", v.version, d.ID, v.digest),
			map[string]any{"version": v.version, "digest": v.digest})
	}
	return v, nil
}

// apply changes the record of a skill as a decision says.
func (s *Store) apply(t *tx, d *Decision, r *record, v *version) error {
	switch d.Action {
	case Enable:
		if v.quarantine != nil && !d.operator() {
			return d.quarantined(v)
		}
		v.enabled, v.wasEnabled, v.quarantine = true, true, nil
		r.makeCurrent(v.version)
	case Disable:
		v.enabled = false
		for _, other := range r.versions {
			other.enabled = other.enabled && d.Version != ""
		}
	case Approve:
		other, err := t.approvedOf(d.ID)
		switch {
		case err != nil:
			return err
		case other != "" && other != d.Tenant:
			return d.refuse(skill.Conflict, fmt.Sprintf("a skill %s of another tenant is already published to all; choose another id", d.ID), nil)
		case v.quarantine != nil:
			return d.quarantined(v)
		case v.approved == nil:
			v.approved = s.newMark(d.By.ID, d.Reason)
		}
	case Rollback:
		if from := r.find(r.current); from != nil {
			from.enabled = false
		}
		_, r.history = r.before()
		r.current, v.enabled = v.version, true
	case Delete:
		v.deleted, v.enabled = s.o.Now(), false
		r.history = slices.DeleteFunc(r.history, func(n string) bool { return n == v.version })
		if r.current == v.version {
			r.current = ""
		}
	default:
		return errors.New("catalogue: unknown action " + string(d.Action))
	}
	return nil
}

func (d *Decision) refuse(code skill.Code, message string, details map[string]any) error {
	return &skill.Error{Op: "catalogue.Decide", Code: code, Subject: string(d.ID), Message: skill.CleanText(message, skill.MaxMessage), Details: details}
}

func (d *Decision) quarantined(v *version) error {
	return d.refuse(skill.Forbidden, fmt.Sprintf("version %s of %s is quarantined (%s); ask the operator to enable it, or upload another version", v.version, d.ID, v.quarantine.Reason), nil)
}

// authorize refuses a principal that has none of the scopes.
func authorize(p skill.Principal, scopes ...string) error {
	switch {
	case p.ID == "":
		return &skill.Error{Op: "catalogue.authorize", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !slices.ContainsFunc(scopes, p.May):
		return &skill.Error{Op: "catalogue.authorize", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + strings.Join(scopes, " or ")}
	}
	return nil
}

// owner gives the tenant whose skill a decision means: where it names none, the caller's own, or,
// for the operator, the only one that has it. A tenant that is named is for the operator alone.
// mu is held.
func (s *Store) owner(d *Decision) (string, error) {
	has := func(tenant string) bool {
		r := s.skills[key{tenant, d.ID}]
		return r != nil && len(r.live()) > 0
	}
	switch named := d.Tenant; {
	case named != "" && named != d.By.Tenant && !d.operator():
		return "", d.refuse(skill.Forbidden, "only the operator can select another tenant", nil)
	case named != "" && has(named):
		return named, nil
	case named == "" && has(d.By.Tenant):
		return d.By.Tenant, nil
	case named != "" || !d.operator():
		return "", notFound(d.ID)
	}
	var owners []string
	for k, r := range s.skills {
		if k.id == d.ID && len(r.live()) > 0 {
			owners = append(owners, k.tenant)
		}
	}
	switch len(owners) {
	case 0:
		return "", notFound(d.ID)
	case 1:
		return owners[0], nil
	}
	slices.Sort(owners)
	return "", d.refuse(skill.Conflict, fmt.Sprintf("%d tenants have a skill %s; set tenant", len(owners), d.ID),
		map[string]any{"tenants": owners[:min(len(owners), 50)]})
}

// names refuses a decision of the operator about another tenant's skill that says neither whose it is
// nor which files: the tenant that had the id when the operator looked may have deleted it, and
// another one uploaded it since. To enable or approve is to trust files, so it takes their
// version too, which is never used again, or their digest.
func (d *Decision) names(owner string) error {
	if d.Digest != "" || d.Tenant != "" && (d.Version != "" || d.Action != Enable && d.Action != Approve) {
		return nil
	}
	return d.refuse(skill.InvalidArgument, fmt.Sprintf("the skill %s belongs to the tenant %s: set digest, or tenant and version", d.ID, skill.CleanText(owner, 128)),
		map[string]any{"tenant": owner})
}
