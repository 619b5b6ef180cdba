package share

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"aead.dev/minisign"
)

// keyID is how minisign shows the id of a key.
func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

var errNoKey = errors.New("not a minisign key")

// PublicKey is the key by which a publisher's signatures are verified.
type PublicKey struct{ key minisign.PublicKey }

// ParsePublic reads a public key: the line that begins with RW, or the content of a
// .pub file.
func ParsePublic(text string) (PublicKey, error) {
	var k PublicKey
	if len(text) > MaxSignature {
		return k, fmt.Errorf("%w: it has more than %d bytes", errNoKey, MaxSignature)
	}
	if err := k.key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return k, fmt.Errorf("%w: want the line of a .pub file that begins with RW", errNoKey)
	}
	return k, nil
}

// String gives the line that begins with RW.
func (k PublicKey) String() string { return k.key.String() }

// ID is the key's short name, which anybody can give to a key: it identifies nobody.
func (k PublicKey) ID() string { return keyID(k.key.ID()) }

// File is the content of a .pub file.
func (k PublicKey) File() ([]byte, error) {
	b, err := k.key.MarshalText()
	return append(b, '\n'), err
}

// PrivateKey signs.
type PrivateKey struct{ key minisign.PrivateKey }

// GenerateKey makes a pair of keys.
func GenerateKey() (PrivateKey, error) {
	_, key, err := minisign.GenerateKey(rand.Reader)
	return PrivateKey{key}, err
}

// Public is the other one of the pair.
func (k PrivateKey) Public() PublicKey {
	public, _ := k.key.Public().(minisign.PublicKey) // it always is one
	return PublicKey{public}
}

// File is the content of a private key's file, encrypted with a password. For "" it is
// not encrypted: whoever reads the file can sign. Encrypting takes some seconds and
// 1 GiB of memory, as it does for minisign, whose format this is.
func (k PrivateKey) File(password string) (b []byte, err error) {
	if password == "" {
		b, err = k.key.MarshalText()
	} else {
		b, err = minisign.EncryptKey(password, k.key)
	}
	return append(b, '\n'), err
}

// ErrPassword is a private key that the password does not open, or a damaged one.
var ErrPassword = errors.New("wrong password or damaged key")

// ReadPrivate reads a private key's file. password is asked only where it is encrypted.
func ReadPrivate(file []byte, password func() (string, error)) (PrivateKey, error) {
	text := []byte(strings.TrimSpace(string(file)))
	var k PrivateKey
	if len(file) > MaxSignature {
		return k, fmt.Errorf("%w: the file has more than %d bytes", errNoKey, MaxSignature)
	}
	if !minisign.IsEncrypted(text) {
		if err := k.key.UnmarshalText(text); err != nil {
			return k, fmt.Errorf("%w: want a private key as openskill skill keygen or minisign -G writes it", errNoKey)
		}
		return k, nil
	}
	given, err := password()
	if err != nil {
		return k, err
	}
	if k.key, err = minisign.DecryptKey(given, text); err != nil {
		return PrivateKey{}, ErrPassword
	}
	return k, nil
}
