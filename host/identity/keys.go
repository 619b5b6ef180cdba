package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// The times and bounds of what is known of keys.
const (
	askAfter   = 250 * time.Millisecond // from the last look at changes to the next one, in the background
	believed   = 500 * time.Millisecond // from it to where calls wait for the next one
	learnAfter = time.Minute            // a key is read anew, whatever the changes say: databases are put back from backups
	askWithin  = 2 * time.Second        // the database has so long to answer
	pause      = 100 * time.Millisecond // after it did not
	noteAfter  = time.Minute            // between two notes of a key's use

	mostKnown   = 16 << 10 // keys known by heart
	mostUnknown = 4 << 10  // ids that are known to be no key's
	mostChanges = 1000     // with more at once, everything is forgotten
	newcomers   = 8        // ids looked up at once that are not known, so that those who make ids up leave room for others
	mostWaiting = 4 << 10  // more of them wait; networks take turns
)

// keys knows keys by heart, as far as the last look at changes reaches.
type keys struct {
	store Lookup
	log   *slog.Logger
	now   func() time.Time

	known   *otter.Cache[string, *entry]
	unknown *otter.Cache[string, time.Time] // when it was looked up

	loads singleflight.Group
	room  *gate.Gate // of newcomers, by where they come from

	mu       sync.Mutex
	asked    time.Time     // the beginning of the last look at changes that was answered
	failed   time.Time     // the end of the last one that was not
	asking   chan struct{} // closed when the look under way is over; nil: there is none
	revision uint64        // as it said
	drops    uint64        // how often something was forgotten

	used   map[string]time.Time // not written down yet
	noted  time.Time            // when some were
	noting bool
}

// entry is a key that was looked up. Only used changes.
type entry struct {
	key       Key
	principal skill.Principal
	read      time.Time
	used      atomic.Int64 // nanoseconds since 1970, to about noteAfter
}

func newKeys(o *Options) (*keys, error) {
	k := &keys{store: o.Keys, log: o.Log, now: o.Now, room: gate.New(gate.Options{Places: newcomers, Queue: mostWaiting, Wait: askWithin}), used: map[string]time.Time{}, noted: o.Now()}
	var err error
	if k.known, err = otter.New(&otter.Options[string, *entry]{MaximumSize: mostKnown}); err != nil {
		return nil, err
	}
	k.unknown, err = otter.New(&otter.Options[string, time.Time]{MaximumSize: mostUnknown})
	return k, err
}

// principal says whose key it is. Its error is a reason, or that of a database that does
// not answer. The id is for the log.
func (k *keys) principal(ctx context.Context, from, text string) (p skill.Principal, id string, err error) {
	id, why := readKey(text)
	if why != "" {
		return p, id, why
	}
	p, err = k.of(ctx, from, id, hashOf(text))
	return p, id, err
}

// of says whose the key of an id is, if its text has this hash.
func (k *keys) of(ctx context.Context, from, id string, hash [sha256.Size]byte) (p skill.Principal, err error) {
	e, err := k.find(ctx, from, id)
	if err != nil {
		return p, err
	}
	now := k.now()
	if why := e.judge(hash, now); why != "" {
		return p, why
	}
	k.note(e, now)
	p = e.principal
	if subtle.ConstantTimeCompare(hash[:], e.key.Hash[:]) == 0 { // the secret before the rotation
		p.Until = e.key.OldUntil
	}
	return p, nil
}

// stranger stands in for a key that there is not, so that looking at one takes as long as
// looking at another.
var stranger = &entry{}

// judge compares both secrets before anything else is looked at, in constant time.
func (e *entry) judge(hash [sha256.Size]byte, now time.Time) reason {
	is := subtle.ConstantTimeCompare(hash[:], e.key.Hash[:])
	was := subtle.ConstantTimeCompare(hash[:], e.key.OldHash[:])
	switch {
	case e.key.ID == "":
		return "unknown key id"
	case is|was == 0:
		return "wrong key secret"
	case e.over(now) != "":
		return e.over(now)
	case is == 0 && !now.Before(e.key.OldUntil):
		return "rotated key, past its overlap"
	case e.principal.ID == "":
		return "damaged key record in the database"
	}
	return ""
}

// over says why a key that was good is none any more.
func (e *entry) over(now time.Time) reason {
	switch {
	case !e.key.RevokedAt.IsZero():
		return "revoked key"
	case !e.key.ExpiresAt.IsZero() && !now.Before(e.key.ExpiresAt):
		return "expired key"
	}
	return ""
}

// find gives what is known of a key; stranger where there is none.
func (k *keys) find(ctx context.Context, from, id string) (*entry, error) {
	if err := k.current(ctx); err != nil {
		return nil, err
	}
	now := k.now()
	e, known := k.known.GetIfPresent(id)
	if known && now.Sub(e.read) < learnAfter {
		return e, nil
	}
	if at, ok := k.unknown.GetIfPresent(id); ok && now.Sub(at) < learnAfter {
		return stranger, nil
	}
	if !known {
		leave, err := k.room.Enter(ctx, from)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, left(ctx)
		case err != nil:
			return nil, unavailable(errors.New("too many unknown keys are being looked up"))
		}
		defer leave()
	}
	loaded := k.loads.DoChan(id, func() (any, error) { return k.load(context.WithoutCancel(ctx), id) })
	select {
	case r := <-loaded:
		e, ok := r.Val.(*entry)
		if r.Err != nil || !ok {
			return nil, unavailable(r.Err)
		}
		return e, nil
	case <-ctx.Done():
		return nil, left(ctx)
	}
}

// load asks the database for one key.
func (k *keys) load(ctx context.Context, id string) (*entry, error) {
	ctx, stop := context.WithTimeout(ctx, askWithin)
	defer stop()
	k.mu.Lock()
	drops := k.drops
	k.mu.Unlock()
	read := k.now()
	key, err := k.store.Key(ctx, id)
	e := stranger
	switch {
	case errors.Is(err, ErrNoKey):
	case err != nil:
		return nil, err
	default:
		e = newEntry(key, id, read)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.drops != drops {
		return e, nil // it may have changed since it was read: good for this call alone
	}
	if e == stranger {
		k.known.Invalidate(id)
		k.unknown.Set(id, read)
		return e, nil
	}
	k.unknown.Invalidate(id)
	k.known.Set(id, e)
	return e, nil
}

// newEntry believes nothing of a row that could not have been written by [Keys]: it has
// no principal then. Scopes that a later release may have written are dropped.
func newEntry(key *Key, id string, read time.Time) *entry {
	e := &entry{key: *key, read: read}
	e.key.ID = id
	if !key.LastUsedAt.IsZero() {
		e.used.Store(key.LastUsedAt.UnixNano())
	}
	if key.ID != id || !validOwner(key.Tenant) || key.Hash == [sha256.Size]byte{} {
		return e
	}
	e.principal = e.key.Principal()
	e.principal.Scopes = knownScopes(key.Scopes)
	return e
}

// knownScopes gives those scopes that there are, in a slice that nobody can append to:
// principals of one key share it.
func knownScopes(scopes []string) (known []string) {
	for _, s := range scopes {
		if skill.ValidScope(s) {
			known = append(known, s)
		}
	}
	return slices.Clip(known)
}

// current returns when the last look at changes is recent enough to believe what is
// known, or the database does not answer.
func (k *keys) current(ctx context.Context) error {
	k.mu.Lock()
	now := k.now()
	age := now.Sub(k.asked)
	if k.asked.IsZero() || age < 0 {
		age = believed
	}
	if age < askAfter {
		k.mu.Unlock()
		return nil
	}
	resting := !k.failed.IsZero() && now.Sub(k.failed) < pause
	if !resting && k.asking == nil {
		k.asking = make(chan struct{})
		go k.ask(context.WithoutCancel(ctx), k.asking)
	}
	asking := k.asking
	k.mu.Unlock()
	switch {
	case age < believed:
		return nil
	case asking == nil:
		return unavailable(errors.New("the database did not respond a moment ago"))
	}
	select {
	case <-asking:
	case <-ctx.Done():
		return left(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked.IsZero() || k.now().Sub(k.asked) >= believed {
		return unavailable(errors.New("it does not answer"))
	}
	return nil
}

// ask looks at changes, and forgets what has changed.
func (k *keys) ask(ctx context.Context, done chan struct{}) {
	k.mu.Lock()
	after := k.revision
	k.mu.Unlock()
	begun := k.now()
	asking, stop := context.WithTimeout(ctx, askWithin)
	defer stop()
	ids, revision, err := k.store.Changes(asking, after, mostChanges)

	k.mu.Lock()
	failing := !k.failed.IsZero()
	if err != nil {
		k.failed = k.now()
	} else {
		k.forget(ids)
		k.asked, k.revision, k.failed = begun, revision, time.Time{}
	}
	k.asking = nil
	k.mu.Unlock()
	close(done)
	switch {
	case err != nil && !failing:
		k.log.LogAttrs(ctx, slog.LevelError, "cannot read key changes", slog.String("error", err.Error()))
	case err == nil && failing:
		k.log.LogAttrs(ctx, slog.LevelInfo, "reading key changes works again")
	}
	if err == nil {
		k.write(ctx, noteAfter)
	}
}

// forget drops what has changed; k.mu is held.
func (k *keys) forget(ids []string) {
	if len(ids) == 0 {
		return
	}
	k.drops++
	if len(ids) >= mostChanges {
		k.known.InvalidateAll()
		k.unknown.InvalidateAll()
		return
	}
	for _, id := range ids {
		k.known.Invalidate(id)
		k.unknown.Invalidate(id)
	}
}

// note remembers that a key was used.
func (k *keys) note(e *entry, now time.Time) {
	last := e.used.Load()
	if now.UnixNano()-last < int64(noteAfter) || !e.used.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.used) < mostKnown {
		k.used[e.key.ID] = now
	}
}

// write notes uses in the database, if that is longer ago than after. They are for
// people who wonder whether a key is still needed: a note that is lost does no harm.
func (k *keys) write(ctx context.Context, after time.Duration) {
	k.mu.Lock()
	now := k.now()
	if k.noting || len(k.used) == 0 || now.Sub(k.noted) < after {
		k.mu.Unlock()
		return
	}
	used := k.used
	k.used, k.noted, k.noting = map[string]time.Time{}, now, true
	k.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, askWithin)
	defer stop()
	if err := k.store.Touch(ctx, used); err != nil {
		k.log.LogAttrs(ctx, slog.LevelWarn, "cannot store when keys were last used", slog.String("error", err.Error()))
	}
	k.mu.Lock()
	k.noting = false
	k.mu.Unlock()
}

// close writes the last notes. Without a context: the host's own may have ended.
func (k *keys) close() error {
	k.write(context.Background(), 0)
	return nil
}

// unavailable is a database that does not answer. The code is that of the record of
// calls, which lives in the same one: what cannot be looked up cannot be recorded.
func unavailable(err error) error {
	return &skill.Error{
		Op: "auth.Authenticate", Code: skill.AuditUnavailable, Err: err,
		Message: "API key check failed: database unavailable; retry",
	}
}

// left is a caller who did not wait.
func left(ctx context.Context) error {
	return &skill.Error{Op: "auth.Authenticate", Code: skill.Cancelled, Message: "the client disconnected during authentication", Err: context.Cause(ctx)}
}
