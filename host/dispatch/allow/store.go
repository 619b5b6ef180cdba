package allow

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"openskill/host/records"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// Store keeps grants in the database. It is safe for concurrent use.
type Store struct {
	db  *store.DB
	key Key
	now func() time.Time
}

// New makes the store of a database. key is that of values; now nil means the system's clock.
func New(db *store.DB, key Key, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{db: db, key: key, now: now}
}

// wait is how long a change waits for those of others.
const wait = 5 * time.Second

// row is what the database has of a grant.
type row struct {
	Grant

	body   string
	sealed []byte
}

func read(ctx context.Context, on store.Querier, name string) (*row, error) {
	r := &row{}
	err := on.QueryRowContext(ctx, "SELECT digest, body, sealed FROM script_grants WHERE skill = $1", store.Plain(name)).Scan(&r.Digest, &r.body, &r.sealed)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil //nolint:nilnil // most skills have none
	case err != nil:
		return nil, unreadable(err)
	}
	digest := r.Digest
	if err := json.Unmarshal([]byte(r.body), &r.Grant); err != nil || r.Skill != name || r.Digest != digest {
		return nil, unreadable(errors.New("the row of " + name + " is damaged"))
	}
	return r, nil
}

func unreadable(err error) error {
	return &skill.Error{
		Op: "allow.read", Code: skill.AuditUnavailable, Err: fmt.Errorf("read script grants: %w", err),
		Message: "cannot read what scripts are allowed, so they do not run; see the server's log",
	}
}

// Get gives the grant of a skill, without values; nil where there is none.
func (s *Store) Get(ctx context.Context, name string) (*Grant, error) {
	r, err := read(ctx, s.db.Read, name)
	if r == nil {
		return nil, err
	}
	return &r.Grant, err
}

// Granted gives what the scripts of a skill with a digest are allowed; nil where nothing is. A
// skill that was allowed with other files is refused.
func (s *Store) Granted(ctx context.Context, name, digest string) (*skill.Grants, error) {
	r, err := read(ctx, s.db.Read, name)
	if r == nil {
		return nil, err
	}
	if r.Digest != digest {
		return nil, changed(r, digest)
	}
	values, err := s.unseal(name, digest, r.sealed)
	if err != nil {
		return nil, err
	}
	for i := range r.Env {
		if value, ok := values[r.Env[i].Name]; ok {
			r.Env[i].Value = &value
		}
	}
	out, err := r.granted()
	if err != nil {
		return nil, unreadable(err)
	}
	return out, nil
}

// changed is what a caller is told whose skill is not the one that was allowed.
func changed(r *row, digest string) error {
	return &skill.Error{
		Op: "allow.Granted", Code: skill.Forbidden, Subject: r.Skill,
		Message: fmt.Sprintf("the files of %s changed since the operator allowed its requests and variables; the operator must allow them again, or revoke them: openskill skills allow %s [--revoke]", r.Skill, r.Skill),
		Details: map[string]any{"reason": "allowed_files_changed", "digest": digest, "previous_digest": r.Digest},
	}
}

// Allow puts a grant on record and in the place of the one that the skill has. The error is an
// *skill.Error: UNAUTHORIZED, FORBIDDEN, INVALID_ARGUMENT, AUDIT_UNAVAILABLE.
func (s *Store) Allow(ctx context.Context, by skill.Principal, g Grant) (*Grant, error) {
	if err := Authorize(by); err != nil {
		return nil, err
	}
	if err := g.check(); err != nil {
		return nil, err
	}
	g.By, g.At = skill.CleanText(by.ID, 128), s.now().UTC().Truncate(time.Microsecond)
	names := make([]string, 0, len(g.Env))
	for _, v := range g.Env {
		if len(v.For) > 0 {
			v.Name += " for " + v.Places()
		}
		names = append(names, v.Name)
	}
	change := records.Change{Action: "skill.allow", Subject: g.Skill, Details: map[string]string{
		"digest": g.Digest, "http": skill.CleanText(strings.Join(g.HTTP, "; "), 2000), "env": skill.CleanText(strings.Join(names, "; "), 2000),
	}}
	err := s.change(ctx, by, change, func(tx *sql.Tx) error { return s.put(ctx, tx, &g) })
	return &g, err
}

// put writes a grant; values that it lacks are those of the grant before. A grant that was made of
// a review is refused where the one that was reviewed is not there any more: what somebody revoked
// meanwhile would be allowed again, and what somebody allowed lost.
func (s *Store) put(ctx context.Context, tx *sql.Tx, g *Grant) error {
	before, err := read(ctx, tx, g.Skill)
	if err != nil {
		return err
	}
	var now *Grant
	if before != nil {
		now = &before.Grant
	}
	if of := g.reviewed; of != nil && !same(now, of.Grant) {
		return meanwhile(g.Skill)
	}
	values := map[string]string{}
	for i := range g.Env {
		v := &g.Env[i]
		if v.Value == nil {
			if err := s.keep(before, v); err != nil {
				return err
			}
		}
		values[v.Name] = *v.Value
	}
	sealed, err := s.seal(g.Skill, g.Digest, values)
	if err != nil {
		return err
	}
	body, err := json.Marshal(g)
	if err != nil {
		return err
	}
	was := ""
	if before != nil {
		was = before.body
	}
	// Another host can have written since the row was read.
	done, err := tx.ExecContext(ctx, `INSERT INTO script_grants (skill, digest, body, sealed) VALUES ($1, $2, $3, $4)
		ON CONFLICT (skill) DO UPDATE SET digest = excluded.digest, body = excluded.body, sealed = excluded.sealed
		WHERE script_grants.body = $5`, store.Plain(g.Skill), store.Plain(g.Digest), string(body), sealed, was)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return cmp.Or(err, meanwhile(g.Skill))
	}
	return nil
}

func meanwhile(name string) error {
	return &skill.Error{
		Op: "allow.meanwhile", Code: skill.Conflict, Subject: name,
		Message: "what the scripts of " + name + " are allowed was changed meanwhile; review it again",
	}
}

// same reports whether a grant is the one that a review showed.
func same(now, reviewed *Grant) bool {
	if now == nil || reviewed == nil {
		return now == nil && reviewed == nil
	}
	return now.Digest == reviewed.Digest && now.By == reviewed.By && now.At.Equal(reviewed.At)
}

// keep takes the value of a variable over from the grant that is there. The placeholder stays
// where the hosts do, and so do the hosts where none are named: a secret is not shown to scripts
// because somebody left them out.
func (s *Store) keep(before *row, v *Variable) error {
	if before == nil {
		return missing(v.Name)
	}
	values, err := s.unseal(before.Skill, before.Digest, before.sealed)
	if err != nil {
		return err
	}
	value, ok := values[v.Name]
	i := slices.IndexFunc(before.Env, func(o Variable) bool { return o.Name == v.Name })
	if !ok || i < 0 {
		return missing(v.Name)
	}
	was := &before.Env[i]
	v.Value = &value
	if len(v.For) == 0 {
		v.For = was.For
	}
	if err := v.check(); err != nil { // it may go to some hosts only from now on
		return err
	}
	if slices.Equal(was.For, v.For) {
		v.Placeholder = was.Placeholder
	}
	return nil
}

// Revoke removes the grant of a skill. Running scripts continue. The error is NOT_FOUND where
// there is none.
func (s *Store) Revoke(ctx context.Context, by skill.Principal, name string) error {
	if err := Authorize(by); err != nil {
		return err
	}
	none := &skill.Error{Op: "allow.Revoke", Code: skill.NotFound, Subject: skill.CleanText(name, 80), Message: "nothing is allowed to the scripts of " + skill.CleanText(name, 80)}
	if is, err := s.Get(ctx, name); err != nil || is == nil {
		if err == nil {
			err = none
		}
		return err
	}
	return s.change(ctx, by, records.Change{Action: "skill.revoke", Subject: name}, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM script_grants WHERE skill = $1", store.Plain(name))
		return err
	})
}

// change puts a change on record and makes it.
func (s *Store) change(ctx context.Context, by skill.Principal, c records.Change, do func(tx *sql.Tx) error) error {
	err := records.Around(ctx, records.NewStore(s.db), by, c, func() error {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return s.db.InTx(ctx, do)
	})
	if _, ok := errors.AsType[*skill.Error](err); err == nil || ok {
		return err
	}
	return &skill.Error{
		Op: "allow.change", Code: skill.AuditUnavailable, Err: fmt.Errorf("write script grants: %w", err),
		Message: "cannot store what scripts are allowed; see the server's log",
	}
}

// Digests gives the digest of each grant.
func (s *Store) Digests(ctx context.Context) (Digests, error) {
	rows, err := store.All(ctx, s.db.Read, func(rows *sql.Rows) (r [2]string, err error) { return r, rows.Scan(&r[0], &r[1]) }, "SELECT skill, digest FROM script_grants")
	if err != nil {
		return nil, unreadable(err)
	}
	out := make(Digests, len(rows))
	for _, r := range rows {
		out[r[0]] = r[1]
	}
	return out, nil
}

// Authorize refuses who may not decide: that takes the scope skills:admin.
func Authorize(p skill.Principal) error {
	switch {
	case p.ID == "":
		return &skill.Error{Op: "allow.authorize", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !p.May(skill.ScopeAdmin):
		return &skill.Error{Op: "allow.authorize", Code: skill.Forbidden, Subject: p.ID, Message: "missing scope " + skill.ScopeAdmin}
	}
	return nil
}
