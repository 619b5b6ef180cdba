package records

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// MostSessionBytes is the maximum size of the memory of one session in bytes, as far as it differs from a new one.
const MostSessionBytes = 128 << 20

// SessionsOptions configure [Sessions]. Files and Workspaces are required; zero never means "unlimited".
type SessionsOptions struct {
	Files      *Files      // for frozen sessions; sessions expire as files do
	Workspaces *Workspaces // of the sessions

	Most       int           // sessions of a principal; 0: 2,000
	MostTenant int64         // bytes of the sessions of a tenant; 0: 4 GiB
	MostHost   int64         // bytes of all sessions of this host; 0: 8 GiB
	MostFuel   uint64        // units of all calls of one session; 0: 1 << 44
	MostAge    time.Duration // of a session; 0: 24 hours
}

// Sessions keeps the memory of interpreters between calls. A session is in the memory of one host, until
// Freeze writes it to the database; the next host that uses it takes it from there. What a failed call
// did to its memory is not kept. A state is never changed: forks share it. Errors are *skill.Error.
// Sessions is safe for concurrent use.
type Sessions struct {
	o      SessionsOptions
	files  *Files
	spaces *Workspaces
	start  skill.SessionState // of all sessions that this host creates; see startOf
	turns  turns

	mu    sync.Mutex
	live  map[ownKey]*HeldSession
	bytes map[string]int64 // by tenant; "" of all
}

// HeldSession is a session with its memory. It is not changed.
type HeldSession struct {
	skill.Session

	State skill.SessionState
	Ahead []string // modules that its image has imported; nil before the first call
	Last  string   // the execution that left State.State; "": none
}

// SessionMemory is what a call leaves in its session.
type SessionMemory struct {
	State     []byte
	Ahead     []string // modules that the image of the call has imported
	Execution string   // the call
}

// NewSessions returns Sessions with the options.
func NewSessions(o SessionsOptions) *Sessions {
	or(&o.Most, 2000)
	or(&o.MostTenant, 4<<30)
	or(&o.MostHost, 8<<30)
	if o.MostFuel == 0 {
		o.MostFuel = 1 << 44
	}
	or(&o.MostAge, 24*time.Hour)
	s := &Sessions{o: o, files: o.Files, spaces: o.Workspaces, live: map[ownKey]*HeldSession{}, bytes: map[string]int64{}}
	_, _ = rand.Read(s.start.Seed[:]) // never fails
	s.start.Made, s.start.Most = time.Now().Unix(), MostSessionBytes
	return s
}

func (s *Sessions) now() time.Time { return s.files.o.Now().UTC().Truncate(time.Microsecond) }

// Create returns a new session. workspace is that of its calls; "": one of its own.
func (s *Sessions) Create(ctx context.Context, p skill.Principal, language, workspace string, memoryMB uint64, packages []string) (*skill.Session, error) {
	if language != "python" {
		return nil, &skill.Error{Op: "sessions.Create", Code: skill.InvalidArgument, Subject: "language", Message: "sessions are supported for python only; use a workspace to keep files between calls"}
	}
	if len(packages) > maxSessionPackages || slices.ContainsFunc(packages, func(name string) bool { return len(name) > 214 || strings.Contains(name, ",") }) {
		return nil, &skill.Error{Op: "sessions.Create", Code: skill.InvalidArgument, Subject: "packages", Message: fmt.Sprintf("packages must be at most %d names without versions", maxSessionPackages)}
	}
	id := newSessionID()
	h := &HeldSession{Session: skill.Session{ID: id, Language: language, Workspace: cmp.Or(workspace, id), MemoryMB: memoryMB, Packages: append([]string{}, packages...)}, State: s.startOf(p.Tenant)}
	return s.add(ctx, p, h)
}

// maxSessionPackages is the maximum number of packages that a session names, as in a call of run_code.
const maxSessionPackages = 32

// startOf returns the start of a tenant's sessions, which share an image. No other tenant draws the same chance.
func (s *Sessions) startOf(tenant string) skill.SessionState {
	start := s.start
	start.Seed = sha256.Sum256(append(start.Seed[:], tenant...))
	return start
}

func newSessionID() string { return "s-" + strings.ToLower(rand.Text()) }

// add makes h a session of this host.
func (s *Sessions) add(ctx context.Context, p skill.Principal, h *HeldSession) (*skill.Session, error) {
	k, now := keyOf(p, h.ID), s.now()
	frozen, err := s.countFrozen(ctx, k)
	if err != nil {
		return nil, err
	}
	h.CreatedAt, h.UsedAt, h.ExpiresAt = now, now, now.Add(s.files.o.Keep)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	n := frozen
	for other := range s.live {
		if other.tenant == k.tenant && other.principal == k.principal {
			n++
		}
	}
	if n >= s.o.Most {
		return nil, &skill.Error{Op: "sessions.Create", Code: skill.PayloadTooLarge, Subject: "sessions", Message: fmt.Sprintf("you have %d sessions, which is the limit; delete some, or wait until they expire", n)}
	}
	if err := s.put(k, h); err != nil {
		return nil, err
	}
	return &h.Session, nil
}

// put keeps h in the place of what is there. s.mu is held.
func (s *Sessions) put(k ownKey, h *HeldSession) error {
	h.Size = int64(len(h.State.State))
	more, err := s.room(k, h.Size)
	if err != nil {
		return err
	}
	s.count(k, more)
	s.live[k] = h
	return nil
}

// room returns how many bytes more there are if a session has size bytes. s.mu is held.
func (s *Sessions) room(k ownKey, size int64) (more int64, err error) {
	if more = size; s.live[k] != nil {
		more -= s.live[k].Size
	}
	for _, of := range []struct {
		key, whose string
		most       int64
	}{{k.tenant, "this tenant", s.o.MostTenant}, {"", "this host", s.o.MostHost}} {
		if more > 0 && s.bytes[of.key]+more > of.most {
			return 0, &skill.Error{Op: "sessions.Save", Code: skill.PayloadTooLarge, Subject: "sessions", Message: fmt.Sprintf("the sessions of %s would exceed %d bytes; freeze or delete some; this session is as it was before", of.whose, of.most)}
		}
	}
	return more, nil
}

// Fits returns the error of Save if a memory of size bytes would exceed a limit.
func (s *Sessions) Fits(p skill.Principal, h *HeldSession, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.room(keyOf(p, h.ID), int64(size))
	return err
}

// count adds to the bytes of a tenant and of the host. s.mu is held.
func (s *Sessions) count(k ownKey, size int64) {
	s.bytes[""] += size
	if s.bytes[k.tenant] += size; s.bytes[k.tenant] == 0 {
		delete(s.bytes, k.tenant)
	}
}

// drop forgets a session of this host. s.mu is held.
func (s *Sessions) drop(k ownKey) {
	if h := s.live[k]; h != nil {
		s.count(k, -h.Size)
		delete(s.live, k)
	}
}

// sweep forgets expired sessions. s.mu is held.
func (s *Sessions) sweep(now time.Time) {
	for k, h := range s.live {
		if !now.Before(h.ExpiresAt) {
			s.drop(k)
		}
	}
}

// Sweep forgets expired sessions.
func (s *Sessions) Sweep() {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
}

// Tend calls Sweep once a minute until ctx ends.
func (s *Sessions) Tend(ctx context.Context) {
	for {
		s.Sweep()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute):
		}
	}
}

// here returns a session of this host; nil: there is none.
func (s *Sessions) here(k ownKey) *HeldSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.live[k]
	if h != nil && !s.now().Before(h.ExpiresAt) {
		s.drop(k)
		return nil
	}
	return h
}

// Get returns a session of the principal.
func (s *Sessions) Get(ctx context.Context, p skill.Principal, id string) (*skill.Session, error) {
	k := keyOf(p, id)
	if h := s.here(k); h != nil {
		return &h.Session, nil
	}
	f, err := s.findFrozen(ctx, k)
	if err != nil {
		return nil, err
	}
	return &f.Session, nil
}

func noSession(id string) error {
	return &skill.Error{Op: "sessions.find", Code: skill.NotFound, Subject: skill.CleanText(id, 64), Message: "session not found: it expired, its host stopped before it was frozen, or it never existed; create one with POST /sessions"}
}

// List returns a page of the principal's sessions in the order of their ids, and the cursor of the next page or "".
func (s *Sessions) List(ctx context.Context, p skill.Principal, cursor string, limit int) (page []*skill.Session, next string, err error) {
	k := keyOf(p, cursor)
	if page, err = s.listFrozen(ctx, k, limit+1); err != nil {
		return nil, "", err
	}
	now := s.now()
	s.mu.Lock()
	for other, h := range s.live {
		if other.tenant == k.tenant && other.principal == k.principal && other.id > cursor && now.Before(h.ExpiresAt) {
			page = append(page, &h.Session)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(page, func(a, b *skill.Session) int { return strings.Compare(a.ID, b.ID) })
	page = slices.CompactFunc(page, func(a, b *skill.Session) bool { return a.ID == b.ID }) // frozen a moment ago
	if len(page) > limit {
		page = page[:limit]
		next = page[limit-1].ID
	}
	return page, next, nil
}

// Enter waits until no other call uses the session, and returns it. The caller must call leave.
func (s *Sessions) Enter(ctx context.Context, p skill.Principal, id string, wait time.Duration) (h *HeldSession, leave func(), err error) {
	k := keyOf(p, id)
	leave, ok := s.turns.enter(ctx, k, wait)
	if !ok {
		return nil, nil, &skill.Error{Op: "sessions.Enter", Code: skill.Conflict, Subject: "session", Message: "another call uses the session; retry", Err: context.Cause(ctx)}
	}
	if h = s.here(k); h == nil {
		h, err = s.thaw(ctx, k, p)
	}
	switch now := s.now(); {
	case err != nil:
	case h.FuelUsed >= s.o.MostFuel:
		err = &skill.Error{Op: "sessions.Enter", Code: skill.FuelExhausted, Subject: "session", Message: fmt.Sprintf("the session has used its %d units of fuel; create a new one", s.o.MostFuel)}
	case now.Sub(h.CreatedAt) >= s.o.MostAge:
		err = &skill.Error{Op: "sessions.Enter", Code: skill.NotFound, Subject: "session", Message: "the session is older than " + s.o.MostAge.String() + ", which is the limit; create a new one"}
	}
	if err != nil {
		leave()
		return nil, nil, err
	}
	return h, leave, nil
}

// Save keeps what a call left in a session that Enter returned; nil: nothing. Fuel is what it used.
func (s *Sessions) Save(p skill.Principal, h *HeldSession, left *SessionMemory, fuel uint64) error {
	next := *h
	now := s.now()
	next.UsedAt, next.ExpiresAt, next.Frozen = now, now.Add(s.files.o.Keep), false
	next.Runs++
	next.FuelUsed += min(fuel, s.o.MostFuel)
	counted := next
	if left != nil {
		next.State.State, next.Ahead, next.Last = left.State, left.Ahead, left.Execution
	}
	k := keyOf(p, h.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.put(k, &next)
	if err != nil && s.live[k] != nil { // the call counts all the same
		s.live[k] = &counted
	}
	return err
}

// Fork creates a session with the variables and files of another one.
func (s *Sessions) Fork(ctx context.Context, p skill.Principal, id string) (*skill.Session, error) {
	h, leave, err := s.Enter(ctx, p, id, maxTurn)
	if err != nil {
		return nil, err
	}
	defer leave()
	fork := *h
	fork.ID, fork.Frozen = newSessionID(), false
	fork.Workspace = fork.ID
	if _, err := s.spaces.Fork(ctx, p, h.Workspace, fork.ID); err != nil && skill.CodeOf(err) != skill.NotFound { // no call has made it yet
		return nil, err
	}
	return s.add(ctx, p, &fork)
}

// Delete removes a session and the workspace of its own.
func (s *Sessions) Delete(ctx context.Context, p skill.Principal, id string) error {
	k := keyOf(p, id)
	leave, ok := s.turns.enter(ctx, k, maxTurn)
	if !ok {
		return &skill.Error{Op: "sessions.Delete", Code: skill.Conflict, Subject: "session", Message: "a call uses the session; retry", Err: context.Cause(ctx)}
	}
	defer leave()
	s.mu.Lock()
	found := s.live[k] != nil
	s.drop(k)
	s.mu.Unlock()
	n, err := s.deleteFrozen(ctx, k)
	if err != nil {
		return err
	}
	if !found && n == 0 {
		return noSession(id)
	}
	if err := s.spaces.Delete(ctx, p, id); err != nil && skill.CodeOf(err) != skill.NotFound {
		return err
	}
	return nil
}
