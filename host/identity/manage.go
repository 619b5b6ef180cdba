package identity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Never is the time that a key is good which does not expire.
const Never time.Duration = math.MaxInt64

// The times of keys.
const (
	DefaultLife    = 365 * 24 * time.Hour
	LongestLife    = 10 * DefaultLife
	DefaultOverlap = 24 * time.Hour
	LongestOverlap = 30 * 24 * time.Hour
)

const (
	longestName = 100 // bytes
	mostScopes  = 64
)

// NewKey is what a key is to be.
type NewKey struct {
	Name   string        // 1 to 100 bytes of text
	Tenant string        // see [ValidTenant]; anonymous is nobody's
	Scopes []string      // one at least
	Life   time.Duration // 0: [DefaultLife]; at most [LongestLife], or [Never]
	By     string        // id of the principal who creates it
}

// Keys is how the operator makes and ends keys. It is safe for concurrent use.
type Keys struct {
	store  KeyStore
	record Record
}

// Record puts a change of a key on record and then makes it: create, rotate or revoke.
type Record func(ctx context.Context, what string, k *Key, do func() error) error

// Recorded gives keys whose changes record puts on record. Hosts and the command line
// change keys by these alone.
func (m *Keys) Recorded(record Record) *Keys {
	return &Keys{store: m.store, record: record}
}

func (m *Keys) change(ctx context.Context, what string, k *Key, do func() error) error {
	if m.record == nil {
		return do()
	}
	return m.record(ctx, what, k, do)
}

// NewKeys manages the keys of a store.
func NewKeys(store KeyStore) *Keys { return &Keys{store: store} }

// Create makes a key, and gives the text that its holder shows. It is not kept: this is
// the only time that anybody sees it.
func (m *Keys) Create(ctx context.Context, n NewKey) (*Key, string, error) {
	now, err := m.time(ctx, "auth.Create")
	if err != nil {
		return nil, "", err
	}
	k := &Key{ID: newKeyID(), Name: n.Name, Tenant: n.Tenant, CreatedAt: now, CreatedBy: n.By}
	if k.Scopes, err = checkScopes(n.Scopes); err != nil {
		return nil, "", err
	}
	switch {
	case !plain(n.Name, longestName):
		return nil, "", wrongKey("invalid key name: use 1 to %d bytes of text without control characters", longestName)
	case !validOwner(n.Tenant):
		return nil, "", wrongKey("invalid tenant: use 1 to 64 of A-Z, a-z, 0-9, ., _, : and -, starting with a letter or digit, but not %s, which is reserved", tenantAnonymous)
	case n.Life == 0:
		n.Life = DefaultLife
	case n.Life < 0 || n.Life > LongestLife && n.Life != Never:
		return nil, "", wrongKey("invalid key lifetime: use at most %d h, or no expiry", int(LongestLife.Hours()))
	}
	if n.Life != Never {
		k.ExpiresAt = now.Add(n.Life)
	}
	text := newText(k.ID)
	k.Hash = hashOf(text)
	err = m.change(ctx, "create", k, func() error {
		if err := m.store.Create(ctx, k); err != nil {
			return notStored("auth.Create", err)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return k, text, nil
}

// Rotate gives a key a new secret. The one before stays good for overlap, and no longer
// than the key itself; one that was good from a rotation before ends now.
func (m *Keys) Rotate(ctx context.Context, id string, overlap time.Duration) (*Key, string, error) {
	if overlap < 0 || overlap > LongestOverlap {
		return nil, "", wrongKey("invalid overlap: use at most %d h", int(LongestOverlap.Hours()))
	}
	k, err := m.Get(ctx, id)
	if err != nil {
		return nil, "", err
	}
	text := newText(id)
	err = m.change(ctx, "rotate", k, func() error {
		now, err := m.time(ctx, "auth.Rotate")
		if err != nil {
			return err
		}
		switch done, err := m.store.Rotate(ctx, id, hashOf(text), now.Add(overlap), now); {
		case err != nil:
			return notStored("auth.Rotate", err)
		case !done:
			return &skill.Error{
				Op: "auth.Rotate", Code: skill.Conflict, Subject: id,
				Message: "the key is revoked or expired and cannot be rotated; create a new one",
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	k, err = m.Get(ctx, id)
	return k, text, err
}

// Revoke ends a key, on every host within a second.
func (m *Keys) Revoke(ctx context.Context, id string) (*Key, error) {
	k, err := m.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	err = m.change(ctx, "revoke", k, func() error {
		now, err := m.time(ctx, "auth.Revoke")
		if err != nil {
			return err
		}
		if err := m.store.Revoke(ctx, id, now); err != nil {
			return notStored("auth.Revoke", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m.Get(ctx, id)
}

// Get gives one key.
func (m *Keys) Get(ctx context.Context, id string) (*Key, error) {
	k, err := m.store.Key(ctx, id)
	if err != nil {
		return nil, notStored("auth.Get", err)
	}
	return k, nil
}

// List gives a page of keys, the newest first, and the cursor of the next one or "".
func (m *Keys) List(ctx context.Context, q KeyQuery) ([]*Key, string, error) {
	if q.Limit < 1 || q.Limit > MaxKeyPage {
		return nil, "", wrongKey("invalid page size: use 1 to %d", MaxKeyPage)
	}
	list, next, err := m.store.Keys(ctx, q)
	switch {
	case errors.Is(err, ErrNoKey):
		return nil, "", wrongKey("invalid cursor: use the next value of the previous page")
	case err != nil:
		return nil, "", notStored("auth.List", err)
	}
	return list, next, nil
}

// time is now by the clock of the database, which is that of all hosts, as databases keep it.
func (m *Keys) time(ctx context.Context, op string) (time.Time, error) {
	now, err := m.store.Now(ctx)
	if err != nil {
		return time.Time{}, notStored(op, err)
	}
	return now.UTC().Truncate(time.Microsecond), nil
}

// validOwner reports whether keys can be of a tenant.
func validOwner(tenant string) bool {
	return ValidTenant(tenant) && !strings.EqualFold(tenant, tenantAnonymous)
}

// checkScopes gives scopes in order and each once.
func checkScopes(scopes []string) ([]string, error) {
	list := slices.Compact(slices.Sorted(slices.Values(scopes)))
	for _, s := range list {
		if !skill.ValidScope(s) {
			return nil, wrongKey("unknown scope %q: use %s, or %s:<id> for one skill",
				skill.CleanText(s, 80), strings.Join(skill.Scopes(), ", "), skill.ScopeInvoke)
		}
	}
	if len(list) == 0 || len(list) > mostScopes {
		return nil, wrongKey("a key needs 1 to %d scopes: use %s, or %s:<id> for one skill",
			mostScopes, strings.Join(skill.Scopes(), ", "), skill.ScopeInvoke)
	}
	return list, nil
}

func wrongKey(format string, args ...any) error {
	return &skill.Error{Op: "auth.Keys", Code: skill.InvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// notStored is what a store could not do.
func notStored(op string, err error) error {
	if errors.Is(err, ErrNoKey) {
		return &skill.Error{Op: op, Code: skill.NotFound, Message: "key not found; openskill keys list shows all"}
	}
	return &skill.Error{Op: op, Code: skill.AuditUnavailable, Message: "keys unavailable: the database does not respond; retry", Err: err}
}
