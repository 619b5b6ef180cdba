package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
	"unicode/utf8"

	"openskill/sdk/skill"
)

// Key is an API key as it is kept: everything but its secret. Zero times mean never.
type Key struct {
	ID         string // [KeyIDLength] characters of a-z and 2-7; stays when the key is rotated
	Name       string // for people; need not be unique
	Tenant     string
	Scopes     []string
	CreatedAt  time.Time
	CreatedBy  string // id of a principal
	ExpiresAt  time.Time
	RotatedAt  time.Time
	RevokedAt  time.Time
	LastUsedAt time.Time // to about a minute

	Hash     [sha256.Size]byte // of the key's text
	OldHash  [sha256.Size]byte // of the text before it was rotated
	OldUntil time.Time         // when that one ends; zero: there is none
}

// State says in a word whether a key is good.
func (k *Key) State(now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		return "expired"
	}
	return "active"
}

// Principal is who shows the key.
func (k *Key) Principal() skill.Principal {
	return skill.Principal{ID: keyPrincipal + k.ID, Type: skill.Agent, Tenant: k.Tenant, Scopes: k.Scopes, Key: k.ID}
}

// The parts of a key's text.
const (
	KeyIDLength = 16 // 80 bits

	keyPrefix    = "osk_"
	secretLength = 52 // 256 bits
	checkLength  = 8
	keyLength    = len(keyPrefix) + KeyIDLength + 1 + secretLength + checkLength
	keyPrincipal = "key:"
)

var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newText makes the text of a key: what its holder shows. Chance that fails ends the
// process (see crypto/rand).
func newText(id string) string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	text := keyPrefix + id + "_" + letters.EncodeToString(secret[:])
	return text + check(text)
}

func newKeyID() string {
	var id [10]byte
	_, _ = rand.Read(id[:]) // it never fails
	return letters.EncodeToString(id[:])
}

// check is the checksum at the end of a key. It is for typing errors, and says nothing
// about whether a key is good.
func check(text string) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text)))
}

// readKey takes a key's text apart. An id comes back where there is one, for the log.
func readKey(text string) (id string, why reason) {
	if len(text) != keyLength || !strings.HasPrefix(text, keyPrefix) {
		return "", "wrong key length"
	}
	id = text[len(keyPrefix) : len(keyPrefix)+KeyIDLength]
	if !ValidKeyID(id) {
		return "", "mistyped key"
	}
	body := text[:keyLength-checkLength]
	if body[len(keyPrefix)+KeyIDLength] != '_' || check(body) != text[keyLength-checkLength:] {
		return id, "mistyped key"
	}
	return id, ""
}

// ValidKeyID reports whether s could be the id of a key.
func ValidKeyID(s string) bool {
	return len(s) == KeyIDLength && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// ParseKeyID finds the id in what a person gives to name a key: the id, the principal
// that records name, or the key itself, which whoever finds a lost one has.
func ParseKeyID(s string) (string, bool) {
	if rest, ok := strings.CutPrefix(s, keyPrefix); ok {
		s, _, _ = strings.Cut(rest, "_")
	}
	s = strings.TrimPrefix(s, keyPrincipal)
	return s, ValidKeyID(s)
}

// hashOf is what is kept of a key's text. The id is in the text, so that the hash of one
// key is of no use in the row of another.
func hashOf(text string) [sha256.Size]byte {
	const domain = "openskill api key 1\n"
	var b [len(domain) + keyLength]byte
	copy(b[:], domain)
	copy(b[len(domain):], text)
	return sha256.Sum256(b[:])
}

// ValidTenant reports whether s can be a tenant: 1 to 64 characters of 0-9, A-Z, a-z and,
// but for the first, of . _ : and -. It is a name in settings, logs and tables, where *,
// @, / and spaces mean something else.
func ValidTenant(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case i > 0 && (c == '.' || c == '_' || c == ':' || c == '-'):
		default:
			return false
		}
	}
	return len(s) > 0 && len(s) <= 64
}

// The tenants that nobody is given by a token.
const (
	tenantLocal     = "local"     // of the operator, on the host's own machine
	tenantAnonymous = "anonymous" // of those who show nothing
)

// plain reports whether s is text of 1 to most bytes that shows all that is in it.
func plain(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && skill.CleanText(s, most) == s
}
