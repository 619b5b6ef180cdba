package allow

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"fmt"

	"openskill/sdk/skill"
)

// Key gives the key of values, 32 bytes; nil where there is none and make is false.
type Key func(create bool) ([]byte, error)

func (s *Store) sealer(create bool) (cipher.AEAD, error) {
	key, err := s.key(create)
	if err != nil || len(key) == 0 {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bound says what sealed values belong to: they cannot be moved to another grant.
func bound(name, digest string) []byte {
	return []byte("openskill script grants 1\x00" + name + "\x00" + digest)
}

// seal encrypts values by name. Nothing is sealed where there are none, so that a host whose
// grants have no variables needs no key.
func (s *Store) seal(name, digest string, values map[string]string) ([]byte, error) {
	if len(values) == 0 {
		return []byte{}, nil
	}
	a, err := s.sealer(true)
	if err != nil {
		return nil, fmt.Errorf("allow: the key of values: %w", err)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, text, bound(name, digest)), nil
}

// unseal is the reverse of seal.
func (s *Store) unseal(name, digest string, sealed []byte) (values map[string]string, err error) {
	if len(sealed) == 0 {
		return map[string]string{}, nil
	}
	a, err := s.sealer(false)
	if err != nil {
		return nil, unopened(name, err)
	}
	if a == nil {
		return nil, unopened(name, nil)
	}
	text, err := a.Open(nil, nil, sealed, bound(name, digest))
	if err != nil {
		return nil, unopened(name, err)
	}
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, unopened(name, nil) // the error could repeat a value
	}
	return values, nil
}

func unopened(name string, cause error) error {
	return &skill.Error{
		Op: "allow.unseal", Code: skill.Forbidden, Subject: name, Err: cause,
		Message: fmt.Sprintf("the values of variables allowed to %s cannot be decrypted on this host (grants.key of the state folder is missing or another one); the operator must allow them again: openskill skills allow %s --env NAME=VALUE", name, name),
	}
}
