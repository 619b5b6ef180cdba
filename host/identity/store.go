package identity

import (
	"context"
	"errors"
	"time"
)

// ErrNoKey says that there is no key of this id.
var ErrNoKey = errors.New("auth: there is no such key")

// Lookup is what an [Authenticator] asks of the place where keys are kept.
// Implementations are safe for concurrent use, and shared by processes. Errors other than
// [ErrNoKey] mean that it cannot answer now.
type Lookup interface {
	// Key gives one key, or ErrNoKey.
	Key(ctx context.Context, id string) (*Key, error)

	// Changes gives the ids of keys that were created, rotated or revoked after a
	// revision, the last change first, no more than most of them, and the revision of now.
	// Revisions go up in the order in which changes can be seen: whoever has seen one has
	// seen all before it. Revision 0 is before all changes.
	Changes(ctx context.Context, after uint64, most int) (ids []string, now uint64, err error)

	// Touch notes when keys were last used. It makes no revision, and skips ids that it
	// does not know and times before those that it has.
	Touch(ctx context.Context, used map[string]time.Time) error
}

// KeyStore is where keys are kept. Keys stay when they have expired or were revoked:
// records name them. storetest is the suite that each implementation passes.
type KeyStore interface {
	Lookup

	// Now gives the time by the clock that all hosts with these keys share.
	Now(ctx context.Context) (time.Time, error)

	// Create adds a key. An id that is there already is an error.
	Create(ctx context.Context, k *Key) error

	// Keys gives a page of keys, the newest first, and the cursor of the next page or "".
	// A cursor that was not given by a page before is ErrNoKey.
	Keys(ctx context.Context, q KeyQuery) ([]*Key, string, error)

	// Rotate makes hash that of the key, and the one before good until a time, in one
	// step. It changes nothing and reports false where the key has been revoked, or has
	// expired at now; ErrNoKey where there is none.
	Rotate(ctx context.Context, id string, hash [32]byte, oldUntil, now time.Time) (bool, error)

	// Revoke ends a key. One that has been revoked stays as it is; ErrNoKey where there
	// is none.
	Revoke(ctx context.Context, id string, now time.Time) error
}

// KeyQuery chooses keys.
type KeyQuery struct {
	Tenant string // "": of all
	Cursor string
	Limit  int // 1 to [MaxKeyPage]
}

// MaxKeyPage is the most keys of one page.
const MaxKeyPage = 1000
