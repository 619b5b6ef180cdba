package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"openskill/internal/strictjson"
)

// The bounds of a key set.
const (
	longestSet  = 256 << 10 // bytes
	mostSetKeys = 64
	leastRSA    = 2048 // bits
	mostRSA     = 8192 // bits: verifying with more costs more than a caller who is not known is worth
)

// publicKey is one key of a set, with the one algorithm that it is for.
type publicKey struct {
	kid, alg string
	key      any // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// jwk is one key as RFC 7517, RFC 7518 and RFC 8037 write it.
type jwk struct {
	kty, use, alg, kid string
	ops                []string
	n, e, crv, x, y    string
	private            bool
}

// parseKeySet reads a key set. Keys for other uses or of other algorithms are left out,
// as RFC 7517 wants it; a set is refused that holds a secret or a private key, which is
// somebody's accident, or that can be read in two ways.
func parseKeySet(b []byte) ([]publicKey, error) {
	if len(b) > longestSet {
		return nil, fmt.Errorf("it has more than %d bytes", longestSet)
	}
	var raw []json.RawMessage
	err := strictjson.Object(b, func(key, value []byte) error {
		if string(key) != "keys" {
			return nil
		}
		return json.Unmarshal(value, &raw)
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a valid key set (JWKS): %w", err)
	case len(raw) > mostSetKeys:
		return nil, fmt.Errorf("it has more than %d keys", mostSetKeys)
	}
	var keys []publicKey
	for i, r := range raw {
		k, err := parseKey(r)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		if k == nil {
			continue
		}
		if slices.ContainsFunc(keys, func(other publicKey) bool { return other.kid == k.kid && k.kid != "" }) {
			return nil, fmt.Errorf("key %d has a duplicate kid", i+1)
		}
		keys = append(keys, *k)
	}
	if len(keys) == 0 {
		return nil, errors.New("no key for RS256, ES256 or EdDSA")
	}
	return keys, nil
}

// parseKey reads one key; nil where it is of no use here.
func parseKey(b []byte) (*publicKey, error) {
	var k jwk
	err := strictjson.Object(b, func(key, value []byte) error {
		var err error
		switch string(key) {
		case "kty":
			err = aString(value, &k.kty)
		case "use":
			err = aString(value, &k.use)
		case "alg":
			err = aString(value, &k.alg)
		case "kid":
			err = aString(value, &k.kid)
		case "key_ops":
			err = json.Unmarshal(value, &k.ops)
		case "n":
			err = aString(value, &k.n)
		case "e":
			err = aString(value, &k.e)
		case "crv":
			err = aString(value, &k.crv)
		case "x":
			err = aString(value, &k.x)
		case "y":
			err = aString(value, &k.y)
		case "d", "p", "q", "k":
			k.private = true
		}
		if err != nil {
			return fmt.Errorf("%s has the wrong type", key)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case k.private:
		return nil, errors.New("secret or private key in a public key set; remove it")
	case len(k.kid) > longestKeyID:
		return nil, errors.New("its kid is too long")
	case k.use != "" && k.use != "sig", k.ops != nil && !slices.Contains(k.ops, "verify"):
		return nil, nil
	}
	public, alg, err := k.public()
	if err != nil || public == nil || k.alg != "" && k.alg != alg {
		return nil, err
	}
	return &publicKey{kid: k.kid, alg: alg, key: public}, nil
}

// public makes the key; nil where it is of a kind that is not used here.
func (k *jwk) public() (key any, alg string, err error) {
	switch {
	case k.kty == "RSA":
		key, err = k.rsa()
		return key, algRS256, err
	case k.kty == "EC" && k.crv == "P-256":
		x, errX := rawURL.DecodeString(k.x)
		y, errY := rawURL.DecodeString(k.y)
		if errX != nil || errY != nil || len(x) != 32 || len(y) != 32 {
			return nil, "", errors.New("x and y must be 32 bytes each, in base64url")
		}
		p, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
		if err != nil {
			return nil, "", errors.New("x and y are not a point on the curve")
		}
		return p, algES256, nil
	case k.kty == "OKP" && k.crv == "Ed25519":
		x, err := rawURL.DecodeString(k.x)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, "", errors.New("x must be 32 bytes, in base64url")
		}
		return ed25519.PublicKey(x), algEdDSA, nil
	}
	return nil, "", nil
}

func (k *jwk) rsa() (*rsa.PublicKey, error) {
	n, errN := rawURL.DecodeString(k.n)
	e, errE := rawURL.DecodeString(k.e)
	if errN != nil || errE != nil || len(e) == 0 || len(e) > 4 {
		return nil, errors.New("n and e must be numbers in base64url")
	}
	p := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	switch bits := p.N.BitLen(); {
	case bits < leastRSA || bits > mostRSA:
		return nil, fmt.Errorf("RSA keys must have %d to %d bits, not %d", leastRSA, mostRSA, bits)
	case p.E < 3 || p.E&1 == 0 || p.E > 1<<31-1 || p.N.Bit(0) == 0:
		return nil, errors.New("n and e are not a valid RSA key")
	}
	return p, nil
}
