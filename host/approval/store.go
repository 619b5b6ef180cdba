package approval

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"openskill/sdk/skill"
)

// Options of a Store. Dir is required.
type Options struct {
	Dir    string        // for the record; made when something is first recorded. See Dir
	Policy Policy        // ""; Never
	TTL    time.Duration // how long an ask is pending, an approved call can be used, and a denial holds; 0: 15 minutes

	MaxPending int   // pending asks of one tenant; 0: 100
	MaxBytes   int64 // of the record, above which it is begun anew; 0: 4 MiB
	MaxPast    int   // asks that are over, of one tenant, that a record begun anew keeps; 0: 200

	Record Record           // of decisions; nil: they are in this store alone
	Now    func() time.Time // nil: the system's clock
	Log    *slog.Logger     // nil: slog.Default()
}

// Record puts a decision on record, of which a says what is so afterwards, and then makes it.
type Record func(ctx context.Context, by skill.Principal, a *Approval, do func() error) error

// Store keeps approvals. It is safe for concurrent use, and several processes may have
// one of the same folder.
type Store struct {
	o Options

	change chan struct{} // has a place for who changes the record; taken before mu
	mu     sync.Mutex    // guards what follows
	record record
	all    map[string]*Approval
	latest map[key]*Approval   // the one that was asked last
	before map[owner]*Approval // the one that was approved last
	closed bool
}

// Open reads the record.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("approval.Open: Dir is required")
	}
	var err error
	if o.Policy, err = ParsePolicy(string(o.Policy)); err != nil {
		return nil, err
	}
	or(&o.TTL, 15*time.Minute)
	or(&o.MaxPending, 100)
	or(&o.MaxBytes, 4<<20)
	or(&o.MaxPast, 200)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Store{o: o, change: make(chan struct{}, 1)}
	s.reset()
	s.record = record{dir: o.Dir, log: o.Log, max: o.MaxBytes, apply: s.apply, reset: s.reset, live: s.live}
	if err := s.record.catchUp(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if n := s.record.tail; n > 0 {
		o.Log.Warn("the record of approvals ends within a line, which is skipped: a crash tore it, unless it is being written",
			slog.String("file", recordFile), slog.Int64("at", s.record.read), slog.Int64("bytes", n))
	}
	return s, nil
}

func or[T int | int64 | time.Duration](p *T, d T) {
	if *p <= 0 {
		*p = d
	}
}

// Close gives the record up. It may be called twice; what is called afterwards fails.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.record.close()
	return nil
}

// Policy is the one that the store was opened with, never "".
func (s *Store) Policy() Policy { return s.o.Policy }

// reset and apply are called by the record, under mu.
func (s *Store) reset() {
	s.all, s.latest, s.before = map[string]*Approval{}, map[key]*Approval{}, map[owner]*Approval{}
}

func (s *Store) apply(l *line) {
	a := l.Approval
	s.all[a.ID] = a
	if last := s.latest[a.key()]; last == nil || a.ID >= last.ID {
		s.latest[a.key()] = a
	}
	if a.DecidedAt.IsZero() || a.State != Approved && a.State != Used {
		return
	}
	of := owner{a.Tenant, a.Skill}
	if last := s.before[of]; last == nil || !a.DecidedAt.Before(last.DecidedAt) {
		s.before[of] = a
	}
}

// live is what a record that is begun anew keeps, in order of id: what holds, what was
// approved last of each skill, and a few of what is over.
func (s *Store) live(now time.Time) []*Approval {
	keep := map[string]*Approval{}
	for _, a := range s.before {
		keep[a.ID] = s.all[a.ID] // not a itself: it may have been withdrawn since
	}
	past := map[string]int{}
	for _, a := range s.sorted() {
		if !a.holds(now) {
			if past[a.Tenant]++; past[a.Tenant] > s.o.MaxPast {
				continue
			}
		}
		keep[a.ID] = a
	}
	list := make([]*Approval, 0, len(keep))
	for _, a := range keep {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *Approval) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// sorted gives all, the newest first.
func (s *Store) sorted() []*Approval {
	list := make([]*Approval, 0, len(s.all))
	for _, a := range s.all {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *Approval) int { return cmp.Compare(b.ID, a.ID) })
	return list
}

// look calls f with the record as it is now.
func (s *Store) look(f func(now time.Time)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	if err := s.record.catchUp(); err != nil {
		return err
	}
	f(s.now())
	return nil
}

// alter calls f with the record as it is now, while no other process changes it, and
// returns when the changes that f gives are on the disk.
func (s *Store) alter(ctx context.Context, f func(now time.Time) ([]*line, error)) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	select {
	case s.change <- struct{}{}:
		defer func() { <-s.change }()
	case <-ctx.Done():
		return unwritable(errors.New("others change it for too long"))
	}
	unlock, err := s.record.whole(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed()
	}
	if err := s.record.catchUp(); err != nil {
		return err
	}
	now := s.now()
	lines, err := f(now)
	if err != nil || len(lines) == 0 {
		return err
	}
	return s.record.add(now, lines)
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
	if s.o.Policy == Never {
		return nil
	}
	if a.Tenant == "" || a.Caller == "" || a.Skill == "" || a.Script == "" || a.Digest == "" {
		return &skill.Error{Op: "approval.Check", Code: skill.Internal, Message: "an ask without tenant, caller, skill, script or digest"}
	}
	a.Skill = skill.CleanText(a.Skill, maxName) // as it is read back from the record
	k := (&Approval{Policy: s.o.Policy, Tenant: a.Tenant, Skill: a.Skill, Digest: a.Digest, CallHash: callHash(&a), Caller: a.Caller}).key()
	may := false
	var answer *Approval
	err := s.look(func(now time.Time) {
		last := s.latest[k]
		if last == nil || !last.holds(now) {
			return
		}
		if last.State != Approved {
			answer = last
		} else {
			may = s.o.Policy == PerVersion // the other one is used up, which is a change
		}
	})
	if err != nil || may {
		return err
	}
	if answer != nil {
		return refused(answer)
	}
	err = s.alter(ctx, func(now time.Time) ([]*line, error) {
		last := s.latest[k]
		switch {
		case last == nil || !last.holds(now):
			return s.ask(now, &a, &answer)
		case last.State != Approved:
			answer = last
			return nil, nil
		}
		may = true
		if s.o.Policy == PerVersion {
			return nil, nil
		}
		spent := *last
		spent.State, spent.UsedAt, spent.ExpiresAt = Used, now, time.Time{}
		return []*line{{Event: used, At: now, By: a.Caller, Approval: &spent}}, nil
	})
	switch {
	case err != nil || may:
		return err
	case answer == nil:
		return &skill.Error{Op: "approval.Check", Code: skill.Internal, Message: "an ask without an answer"}
	}
	return refused(answer)
}

// ask makes a pending approval, and room for it.
func (s *Store) ask(now time.Time, a *Ask, to **Approval) ([]*line, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, &skill.Error{Op: "approval.Check", Code: skill.Internal, Err: err}
	}
	made := &Approval{
		ID: id.String(), State: Pending, Policy: s.o.Policy,
		Skill: a.Skill, Script: Shown(a.Script), Digest: a.Digest, Trust: a.Trust, CallHash: callHash(a),
		Tenant: a.Tenant, Caller: a.Caller, AskedAt: now, ExpiresAt: now.Add(s.o.TTL),
	}
	made.Arguments, made.ArgumentsCut = shownAll(a.Arguments)
	if last := s.before[owner{a.Tenant, a.Skill}]; last != nil && last.Digest != a.Digest {
		made.PreviousDigest = last.Digest
	}
	lines := []*line{{Event: asked, At: now, By: a.Caller, Approval: made}}
	if goes := s.surplus(now, a); goes != nil {
		out := *goes
		out.State, out.ExpiresAt = Expired, now
		lines = append([]*line{{Event: expired, At: now, Approval: &out}}, lines...)
	}
	*to = made
	return lines, nil
}

// surplus is the pending ask that makes room for a new one, nil if there is room: the
// oldest of the same caller, or else of its tenant.
func (s *Store) surplus(now time.Time, a *Ask) *Approval {
	n := 0
	var own, oldest *Approval
	for _, o := range s.all {
		if o.Tenant != a.Tenant || o.at(now).State != Pending {
			continue
		}
		n++
		if oldest == nil || o.ID < oldest.ID {
			oldest = o
		}
		if o.Caller == a.Caller && (own == nil || o.ID < own.ID) {
			own = o
		}
	}
	switch {
	case n < s.o.MaxPending:
		return nil
	case own != nil:
		return own
	}
	return oldest
}

// Waiting gives how many asks of a tenant are pending, and the most that may be.
func (s *Store) Waiting(tenant string) (n, most int, err error) {
	err = s.look(func(now time.Time) {
		for _, a := range s.all {
			if a.Tenant == tenant && a.at(now).State == Pending {
				n++
			}
		}
	})
	return n, s.o.MaxPending, err
}

// refused is what a caller is told whose script may not run yet.
func refused(a *Approval) error {
	until := a.ExpiresAt.UTC().Format(time.RFC3339)
	details := map[string]any{
		"reason": "approval_required", "approval_id": a.ID, "state": string(a.State), "expires_at": until, "digest": a.Digest,
	}
	message := "scripts of this skill run when the operator has approved them, "
	if a.Policy == PerCall {
		message = "each run of a script needs the operator's approval, "
	}
	if a.PreviousDigest != "" {
		details["previous_digest"] = a.PreviousDigest
		message = "the skill has changed since it was approved; " + message
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
func (s *Store) List(p skill.Principal, cursor string, limit int) ([]Approval, string, error) {
	return s.ListState(p, "", cursor, limit)
}

// ListState is List for those in one state; "" means any.
func (s *Store) ListState(p skill.Principal, state State, cursor string, limit int) ([]Approval, string, error) {
	if err := mayLook(p); err != nil {
		return nil, "", err
	}
	if limit < 1 || limit > MaxPage {
		return nil, "", &skill.Error{Op: "approval.List", Code: skill.InvalidArgument, Subject: "limit", Message: "limit: must be a whole number from 1 to " + strconv.Itoa(MaxPage)}
	}
	page, next := []Approval{}, ""
	err := s.look(func(now time.Time) {
		for _, a := range s.sorted() {
			shown := a.at(now)
			if cursor != "" && a.ID >= cursor || !visible(p, a) || state != "" && shown.State != state {
				continue
			}
			if len(page) == limit {
				next = page[limit-1].ID
				return
			}
			page = append(page, told(p, shown))
		}
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// Get gives one approval, to those who may see it.
func (s *Store) Get(p skill.Principal, id string) (Approval, error) {
	if err := mayLook(p); err != nil {
		return Approval{}, err
	}
	var shown Approval
	found := false
	err := s.look(func(now time.Time) {
		if a := s.all[id]; a != nil && visible(p, a) {
			shown, found = told(p, a.at(now)), true
		}
	})
	if err == nil && !found {
		err = errNone(id)
	}
	return shown, err
}

// waitEvery is how often Wait looks: other processes may decide too.
const waitEvery = 200 * time.Millisecond

// Wait returns nil when an ask is pending no more, and the error of ctx when that ends
// before. It tells nothing of the ask, and therefore asks for no scope.
func (s *Store) Wait(ctx context.Context, id string) error {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		pending := false
		err := s.look(func(now time.Time) {
			a := s.all[id]
			pending = a != nil && a.at(now).State == Pending
		})
		if err != nil || !pending {
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
	var out Approval
	decide := func(now time.Time) ([]*line, error) {
		a := s.all[id]
		if a == nil || !visible(p, a) {
			return nil, errNone(id)
		}
		if err := mayDecide(p, a); err != nil {
			return nil, err
		}
		out = a.at(now)
		is, wanted := out.State, Denied
		if approve {
			wanted = Approved
		}
		if is == wanted {
			return nil, nil
		}
		if is != Pending && (is != Approved || approve) {
			return nil, over(&out)
		}
		out.State, out.DecidedBy, out.DecidedAt, out.ExpiresAt = wanted, p.ID, now, now.Add(s.o.TTL)
		if approve && out.Policy == PerVersion {
			out.ExpiresAt = time.Time{}
		}
		what := denied
		if approve {
			what = approved
		}
		kept := out
		return []*line{{Event: what, At: now, By: p.ID, Approval: &kept}}, nil
	}
	// What is nobody's to decide costs no lock and no file.
	var early error
	var lines []*line
	if err := s.look(func(now time.Time) { lines, early = decide(now) }); err != nil || early != nil {
		return Approval{}, cmp.Or(err, early)
	}
	alter := func() error { return s.alter(ctx, decide) }
	if s.o.Record != nil && len(lines) > 0 {
		asked := out
		if err := s.o.Record(ctx, p, &asked, alter); err != nil {
			return Approval{}, err
		}
		return out, nil
	}
	if err := alter(); err != nil {
		return Approval{}, err
	}
	return out, nil
}

// over says why nothing can be decided any more.
func over(a *Approval) error {
	message := "nobody decided in time; the same call asks again"
	switch a.State {
	case Denied:
		message = "it was denied, and what is denied stays denied; the same call asks again after " + a.ExpiresAt.Format(time.RFC3339)
	case Used:
		message = "it was used by the run that it was for"
	case Expired:
		if !a.DecidedAt.IsZero() {
			message = "it was approved and not used in time; the same call asks again"
		}
	case Pending, Approved:
	}
	return &skill.Error{
		Op: "approval.Decide", Code: skill.Conflict, Subject: a.ID, Message: "nothing can be decided here: " + message,
		Details: map[string]any{"state": string(a.State)},
	}
}

func errNone(id string) error {
	return &skill.Error{Op: "approval.Get", Code: skill.NotFound, Subject: skill.CleanText(id, 80), Message: "there is no approval of this id; the list shows those that there are"}
}

func visible(p skill.Principal, a *Approval) bool {
	return p.May(skill.ScopeAdmin) || p.Tenant == a.Tenant
}

// told is an approval as p is told of it. What a call gave its script is as the record of
// that call: for who made it, who may read the calls of all, and who decides.
func told(p skill.Principal, a Approval) Approval {
	own := p.ID == a.Caller && p.Tenant == a.Tenant
	if !own && !p.May(skill.ScopeAdmin) && !p.May(skill.ScopeAllExecutions) {
		a.Arguments, a.ArgumentsCut, a.CallHash = []string{}, a.ArgumentsCut || len(a.Arguments) > 0, "" // a hash can be guessed at
	}
	return a
}

func mayLook(p skill.Principal) error {
	switch {
	case p.ID == "":
		return &skill.Error{Op: "approval", Code: skill.Unauthorized, Message: "this needs credentials"}
	case !p.May(skill.ScopeRead) && !p.May(skill.ScopeAdmin):
		return &skill.Error{Op: "approval", Code: skill.Forbidden, Message: "this needs the scope " + skill.ScopeRead}
	}
	return nil
}

func mayDecide(p skill.Principal, a *Approval) error {
	switch {
	case !p.May(skill.ScopeAdmin):
		return &skill.Error{Op: "approval.Decide", Code: skill.Forbidden, Message: "this needs the scope " + skill.ScopeAdmin + "; who may run a script may not approve it"}
	case p.Type != skill.Operator && p.ID == a.Caller && p.Tenant == a.Tenant:
		return &skill.Error{Op: "approval.Decide", Code: skill.Forbidden, Message: "who asked does not decide; another one with the scope " + skill.ScopeAdmin + " does"}
	}
	return nil
}
