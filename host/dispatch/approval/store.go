package approval

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"openskill/host/store"
	"openskill/sdk/skill"
)

// Options of a Store. DB is required.
type Options struct {
	DB     *store.DB
	Dir    string        // of an older release, whose approvals are imported; "": none
	Policy Policy        // ""; Never
	TTL    time.Duration // how long an ask is pending, an approved call can be used, and a denial holds; 0: 15 minutes

	MaxPending int // pending asks of one tenant; 0: 100
	MaxPast    int // asks of one tenant that are over and kept; 0: 200

	Record Record // of decisions; nil: they are in this store alone
	// Enable enables the version of an approved proposal; nil: only a host that serves can do so.
	Enable func(by skill.Principal, a *Approval) error
	Now    func() time.Time // nil: the system's clock
	Log    *slog.Logger     // nil: slog.Default()
}

// Record puts a decision on record, of which a says what is so afterwards, and then makes it.
type Record func(ctx context.Context, by skill.Principal, a *Approval, do func() error) error

// Store keeps approvals. It is safe for concurrent use, and several processes may have one
// of the same database.
type Store struct {
	o      Options
	closed atomic.Bool
}

// Open opens the store. Approvals of an older release in o.Dir are imported first.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.DB == nil {
		return nil, errors.New("approval.Open: DB is required")
	}
	var err error
	if o.Policy, err = ParsePolicy(string(o.Policy)); err != nil {
		return nil, err
	}
	o.TTL, o.MaxPending, o.MaxPast = cmp.Or(o.TTL, 15*time.Minute), cmp.Or(o.MaxPending, 100), cmp.Or(o.MaxPast, 200)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Store{o: o}
	return s, s.importOld(ctx)
}

// Close closes the store. It may be called twice; later calls of other methods fail.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

// Policy is the one that the store was opened with, never "".
func (s *Store) Policy() Policy { return s.o.Policy }

// topic is what other hosts are told that changes.
const topic = "approvals"

// changeWait is how long a change waits for those of others.
const changeWait = 5 * time.Second

// find returns the approvals that q selects, the newest first.
func (s *Store) find(ctx context.Context, q query) ([]*Approval, error) {
	if s.closed.Load() {
		return nil, errClosed()
	}
	q.Now = s.now()
	list, err := s.selected(ctx, s.o.DB.Read, &q)
	if err != nil {
		return nil, unreadable(err)
	}
	return list, nil
}

// change calls f while no other process changes approvals. The changes that it makes are
// durable when change returns.
func (s *Store) change(ctx context.Context, tenant string, f func(tx *changing, now time.Time) error) error {
	if s.closed.Load() {
		return errClosed()
	}
	ctx, cancel := context.WithTimeout(ctx, changeWait)
	defer cancel()
	var own error
	err := s.o.DB.Change(ctx, topic, tenant, func(tx *sql.Tx, _ uint64) error {
		own = f(&changing{ctx, s, tx}, s.now())
		return own
	})
	if err != nil && own == nil {
		return unwritable(err)
	}
	return own
}

func (s *Store) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

func errClosed() error {
	return &skill.Error{Op: "approval", Code: skill.Cancelled, Message: "the host is shutting down"}
}

// Check says whether a script may run now: nil if it may. An approval for one call is
// used up by that. Otherwise the error is FORBIDDEN, with the details "reason" (always
// "approval_required"), "approval_id", "state" (pending or denied), "expires_at",
// "digest" and, where another one was approved before, "previous_digest"; who asks for
// the first time is put on record by that.
func (s *Store) Check(ctx context.Context, a Ask) error {
	policy := s.o.Policy
	if a.Version != "" {
		policy = Enabling
	}
	if policy == Never {
		return nil
	}
	if a.Tenant == "" || a.Caller == "" || a.Skill == "" || a.Script == "" || a.Digest == "" {
		return &skill.Error{Op: "approval.Check", Code: skill.Internal, Message: "an ask without tenant, caller, skill, script or digest"}
	}
	a.Skill = skill.CleanText(a.Skill, maxName) // as it is read back from the record
	key := (&Approval{Policy: policy, Tenant: a.Tenant, Skill: a.Skill, Digest: a.Digest, CallHash: callHash(&a), Caller: a.Caller, PreviousDigest: a.Previous}).Key()
	found, err := s.find(ctx, query{Key: key, Limit: 1})
	if err != nil {
		return err
	}
	if len(found) == 1 && found[0].holds(s.now()) {
		switch last := found[0]; {
		case last.State != Approved:
			return refused(last)
		case policy == PerVersion: // the other one is used up, which is a change
			return nil
		}
	}
	var answer *Approval
	err = s.change(ctx, a.Tenant, func(tx *changing, now time.Time) error {
		last, err := tx.first(query{Key: key})
		switch {
		case err != nil:
			return err
		case last == nil || !last.holds(now):
			answer, err = s.ask(tx, now, &a, policy)
			return err
		case last.State != Approved:
			answer = last
			return nil
		case policy == PerVersion:
			return nil
		}
		spent := *last
		spent.State, spent.UsedAt, spent.ExpiresAt = Used, now, time.Time{}
		return tx.put(&spent)
	})
	if err != nil || answer == nil {
		return err
	}
	return refused(answer)
}

// ask makes a pending approval, and room for it: the oldest of the same caller, or else of
// its tenant, expires where there are too many.
func (s *Store) ask(tx *changing, now time.Time, a *Ask, policy Policy) (*Approval, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, &skill.Error{Op: "approval.Check", Code: skill.Internal, Err: err}
	}
	made := &Approval{
		ID: id.String(), State: Pending, Policy: policy,
		Skill: a.Skill, Version: a.Version, PreviousDigest: a.Previous, Script: Shown(a.Script), Digest: a.Digest, Trust: a.Trust, CallHash: callHash(a),
		Tenant: a.Tenant, Caller: a.Caller, AskedAt: now, ExpiresAt: now.Add(s.o.TTL),
	}
	made.Arguments, made.ArgumentsCut = shownAll(a.Arguments)
	before, err := tx.first(query{Tenant: a.Tenant, Skill: a.Skill, Approved: true})
	if err != nil {
		return nil, err
	}
	if before != nil && before.Digest != a.Digest && before.Policy != Enabling && policy != Enabling {
		made.PreviousDigest = before.Digest
	}
	pending, err := tx.all(&query{Tenant: a.Tenant, State: Pending, Now: now, Limit: s.o.MaxPending})
	if err != nil {
		return nil, err
	}
	if len(pending) == s.o.MaxPending {
		goes := pending[len(pending)-1]
		for _, p := range pending {
			if p.Caller == a.Caller {
				goes = p // the newest come first, so that this ends with the caller's oldest
			}
		}
		goes.State, goes.ExpiresAt = Expired, now
		if err := tx.put(goes); err != nil {
			return nil, err
		}
	}
	if err := tx.prune(a.Tenant, now); err != nil {
		return nil, err
	}
	return made, tx.put(made)
}

// Waiting returns how many asks of a tenant are pending, and the most that may be.
func (s *Store) Waiting(ctx context.Context, tenant string) (n, most int, err error) {
	pending, err := s.find(ctx, query{Tenant: tenant, State: Pending, Limit: s.o.MaxPending})
	return len(pending), s.o.MaxPending, err
}

// refused is what a caller is told whose script may not run yet.
func refused(a *Approval) error {
	until := a.ExpiresAt.UTC().Format(time.RFC3339)
	details := map[string]any{
		"reason": "approval_required", "approval_id": a.ID, "state": string(a.State), "expires_at": until, "digest": a.Digest,
	}
	message := "scripts of this skill need the operator's approval, "
	switch a.Policy {
	case Enabling:
		message = "a person must approve this version of the skill before it is enabled, "
	case PerCall:
		message = "each run of a script needs the operator's approval, "
	case Never, PerVersion:
	}
	if a.PreviousDigest != "" {
		details["previous_digest"] = a.PreviousDigest
	}
	if a.PreviousDigest != "" && a.Policy != Enabling {
		message = "the skill changed since its approval; " + message
	}
	if a.State == Denied {
		message += "who has denied it; do not try again before " + until
	} else {
		message += "who can do so until " + until + " (approval " + a.ID + "); make the same call again after that"
	}
	return &skill.Error{Op: "approval.Check", Code: skill.Forbidden, Subject: a.Skill, Message: message, Details: details}
}

// MaxPage is the longest page of List.
const MaxPage = 100

// List gives at most limit (1 to MaxPage) approvals, the newest first, and the cursor of
// the next page or "". Who has skills:admin sees those of all tenants, who has
// skills:read those of its own; what was given to a script is shown to fewer, see told.
func (s *Store) List(ctx context.Context, p skill.Principal, cursor string, limit int) ([]Approval, string, error) {
	return s.ListState(ctx, p, "", cursor, limit)
}

// ListState is List for those in one state; "" means any.
func (s *Store) ListState(ctx context.Context, p skill.Principal, state State, cursor string, limit int) ([]Approval, string, error) {
	if err := mayLook(p); err != nil {
		return nil, "", err
	}
	if limit < 1 || limit > MaxPage {
		return nil, "", &skill.Error{Op: "approval.List", Code: skill.InvalidArgument, Subject: "limit", Message: "limit: must be a whole number from 1 to " + strconv.Itoa(MaxPage)}
	}
	q := query{State: state, Before: cursor, Limit: limit + 1}
	if !p.May(skill.ScopeAdmin) {
		q.Tenant = p.Tenant
	}
	list, err := s.find(ctx, q)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}
	page, now := make([]Approval, 0, len(list)), s.now()
	for _, a := range list {
		page = append(page, told(p, a.at(now)))
	}
	return page, next, nil
}

// Get returns one approval, to those who may see it.
func (s *Store) Get(ctx context.Context, p skill.Principal, id string) (Approval, error) {
	if err := mayLook(p); err != nil {
		return Approval{}, err
	}
	list, err := s.find(ctx, query{ID: id, Limit: 1})
	switch {
	case err != nil:
		return Approval{}, err
	case len(list) == 0 || !visible(p, list[0]):
		return Approval{}, errNone(id)
	}
	return told(p, list[0].at(s.now())), nil
}

// waitEvery is how often Wait looks: other processes may decide too.
const waitEvery = 200 * time.Millisecond

// Wait returns nil when an ask is pending no more, and the error of ctx when that ends
// before. It tells nothing of the ask, and therefore asks for no scope.
func (s *Store) Wait(ctx context.Context, id string) error {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		pending, err := s.find(ctx, query{ID: id, State: Pending, Limit: 1})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || len(pending) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// PendingID is the approval that a refused run waits for; "" if it is refused for another
// reason.
func PendingID(r *skill.Result) string {
	if r == nil || r.Error == nil || r.Error.Code != skill.Forbidden {
		return ""
	}
	d := r.Error.Details
	if d["reason"] != "approval_required" || d["state"] != string(Pending) {
		return ""
	}
	id, _ := d["approval_id"].(string)
	return id
}

// Decide approves or denies. It is CONFLICT if that cannot be any more: what is denied,
// expired or used is not approved, and what is expired or used is not denied. The same
// decision again changes nothing.
func (s *Store) Decide(ctx context.Context, p skill.Principal, id string, approve bool) (Approval, error) {
	if err := mayLook(p); err != nil {
		return Approval{}, err
	}
	// What cannot be decided costs no transaction and no record.
	found, err := s.find(ctx, query{ID: id, Limit: 1})
	if err != nil {
		return Approval{}, err
	}
	out, changes, err := s.decided(p, found, s.now(), id, approve)
	if err != nil || !changes {
		return out, err
	}
	decide := func() error {
		var before Approval
		err := s.change(ctx, out.Tenant, func(tx *changing, now time.Time) error {
			list, err := tx.all(&query{ID: id, Limit: 1})
			if err != nil {
				return err
			}
			if out, changes, err = s.decided(p, list, now, id, approve); err != nil || !changes {
				return err
			}
			kept := out
			before = *list[0]
			return tx.put(&kept)
		})
		if err != nil || !changes || out.State != Approved || out.Policy != Enabling {
			return err
		}
		// What is decided is decided once, so that a version is never enabled that somebody has denied meanwhile.
		if err := s.enable(p, &out); err != nil {
			return errors.Join(err, s.change(context.WithoutCancel(ctx), out.Tenant, func(tx *changing, _ time.Time) error { return tx.put(&before) }))
		}
		return nil
	}
	if s.o.Record != nil {
		asked := out
		err = s.o.Record(ctx, p, &asked, decide)
	} else {
		err = decide()
	}
	if err != nil {
		return Approval{}, err
	}
	return out, nil
}

// enable enables the version of a proposal.
func (s *Store) enable(by skill.Principal, a *Approval) error {
	if s.o.Enable == nil {
		return &skill.Error{
			Op: "approval.Decide", Code: skill.Conflict, Subject: a.Skill,
			Message: "a proposed skill is approved on the host that serves it: in its console, or with POST /approvals/" + a.ID + ":approve",
		}
	}
	return s.o.Enable(by, a)
}

// Asked reports whether an approval of a proposed version was ever asked for, as far as that is kept.
func (s *Store) Asked(ctx context.Context, tenant, of, digest string) (bool, error) {
	list, err := s.find(ctx, query{Tenant: tenant, Skill: of, Limit: s.o.MaxPending + s.o.MaxPast})
	return slices.ContainsFunc(list, func(a *Approval) bool { return a.Policy == Enabling && a.Digest == digest }), err
}

// decided returns the approval after a decision of p, and whether that changes it.
func (s *Store) decided(p skill.Principal, found []*Approval, now time.Time, id string, approve bool) (out Approval, changes bool, err error) {
	if len(found) == 0 || !visible(p, found[0]) {
		return Approval{}, false, errNone(id)
	}
	if err := mayDecide(p, found[0]); err != nil {
		return Approval{}, false, err
	}
	out = found[0].at(now)
	is, wanted := out.State, Denied
	if approve {
		wanted = Approved
	}
	if is == wanted {
		return out, false, nil
	}
	if is != Pending && (is != Approved || approve || out.Policy == Enabling) {
		return Approval{}, false, over(&out)
	}
	out.State, out.DecidedBy, out.DecidedAt, out.ExpiresAt = wanted, p.ID, now, now.Add(s.o.TTL)
	if approve && out.Policy != PerCall {
		out.ExpiresAt = time.Time{}
	}
	return out, true, nil
}

// over says why nothing can be decided any more.
func over(a *Approval) error {
	message := "expired without a decision; the same call asks again"
	switch a.State {
	case Denied:
		message = "denied; the same call asks again after " + a.ExpiresAt.Format(time.RFC3339)
	case Used:
		message = "already used"
	case Approved:
		message = "approved; disable the version instead, with POST /skills/" + a.Skill + ":disable"
	case Expired:
		if !a.DecidedAt.IsZero() {
			message = "the approval expired unused; the same call asks again"
		}
	case Pending:
	}
	return &skill.Error{
		Op: "approval.Decide", Code: skill.Conflict, Subject: a.ID, Message: "this request is already decided: " + message,
		Details: map[string]any{"state": string(a.State)},
	}
}

func errNone(id string) error {
	return &skill.Error{Op: "approval.Get", Code: skill.NotFound, Subject: skill.CleanText(id, 80), Message: "approval not found; GET /approvals lists all"}
}

func visible(p skill.Principal, a *Approval) bool {
	return p.May(skill.ScopeAdmin) || p.Tenant == a.Tenant
}

// told is an approval as p is told of it. What a call gave its script is as the record of
// that call: for who made it, who may read the calls of all, and who decides.
func told(p skill.Principal, a Approval) Approval {
	own := p.ID == a.Caller && p.Tenant == a.Tenant
	if !own && mayDecide(p, &a) != nil && !p.May(skill.ScopeAllExecutions) {
		a.Arguments, a.ArgumentsCut, a.CallHash = []string{}, a.ArgumentsCut || len(a.Arguments) > 0, "" // a hash can be guessed at
	}
	return a
}

func mayLook(p skill.Principal) error {
	switch {
	case p.ID == "":
		return &skill.Error{Op: "approval", Code: skill.Unauthorized, Message: "authentication required: send an API key or a token"}
	case !p.May(skill.ScopeRead) && !p.May(skill.ScopeAdmin) && !p.May(skill.ScopeUpload):
		return &skill.Error{Op: "approval", Code: skill.Forbidden, Message: "this needs the scope " + skill.ScopeRead}
	}
	return nil
}

func mayDecide(p skill.Principal, a *Approval) error {
	switch {
	case a.Policy == Enabling && p.Tenant == a.Tenant && p.May(skill.ScopeUpload): // who may enable an upload may approve one
	case !p.May(skill.ScopeAdmin) && a.Policy == Enabling:
		return &skill.Error{Op: "approval.Decide", Code: skill.Forbidden, Message: "this needs the scope " + skill.ScopeUpload + " of the tenant, or " + skill.ScopeAdmin}
	case !p.May(skill.ScopeAdmin):
		return &skill.Error{Op: "approval.Decide", Code: skill.Forbidden, Message: "this needs the scope " + skill.ScopeAdmin + "; running scripts does not include approving them"}
	case a.Policy != Enabling && p.Type != skill.Operator && p.ID == a.Caller && p.Tenant == a.Tenant:
		return &skill.Error{Op: "approval.Decide", Code: skill.Forbidden, Message: "you cannot approve your own request; another principal needs the scope " + skill.ScopeAdmin + " does"}
	}
	return nil
}
