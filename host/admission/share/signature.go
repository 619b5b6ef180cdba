// A signature says who vouches for a skill: a minisign signature over a statement
// of four lines, which names the skill, its version and the digest of its files.
//
// The statement is made anew by whoever verifies, out of what is really there; nothing
// in a signature's file is believed before that. The files have the formats of minisign
// (jedisct1.github.io/minisign): stock tools read and write them too.

package share

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"aead.dev/minisign"

	"openskill/sdk/skill"
)

// SignatureExt is what the file of a signature has behind the name of the skill's folder.
const SignatureExt = ".minisig"

// MaxSignature is the length in bytes of the longest file of a signature or of a key.
const MaxSignature = 4 << 10

// Statement is what is signed.
type Statement struct {
	ID      skill.ID
	Version string
	Digest  string // of the files that travel, as manifest.Digest gives it
}

// Text gives the signed bytes. They are a contract: nothing may be added.
func (s Statement) Text() []byte {
	return fmt.Appendf(nil, "openskill skill 1\nid: %s\nversion: %s\ndigest: %s\n", s.ID, s.Version, s.Digest)
}

const commentPrefix = "openskill skill "

func (s Statement) comment() string {
	return fmt.Sprintf("%s%s %s %s", commentPrefix, s.ID, s.Version, s.Digest)
}

// Sign makes the content of a signature's file. The comment that is signed too repeats
// the statement, for people and for stock tools, which show it.
func Sign(key PrivateKey, s Statement) ([]byte, error) {
	r := minisign.NewReader(bytes.NewReader(s.Text()))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, err
	}
	return r.SignWithComments(key.key, s.comment(), "signature of a skill for openskill by key "+keyID(key.key.ID())), nil
}

// Signature is a signature's file that could be read. Nothing of it is verified.
type Signature struct {
	text []byte
	read minisign.Signature
}

// ParseSignature reads the content of a signature's file. The error is an *skill.Error,
// SIGNATURE_INVALID.
func ParseSignature(text []byte) (*Signature, error) {
	if len(text) > MaxSignature {
		return nil, invalidSignature(fmt.Sprintf("the signature has more than %d bytes", MaxSignature), nil)
	}
	s := &Signature{text: bytes.Clone(text)}
	err := s.read.UnmarshalText(s.text)
	// One signature has one spelling: base64 leaves bits over that mean nothing.
	if err != nil || strings.TrimRight(strings.ReplaceAll(string(text), "\r", ""), "\n") != strings.TrimRight(s.read.String(), "\n") {
		return nil, invalidSignature("not a minisign signature: it has four lines, two comments and two base64 texts", err)
	}
	return s, nil
}

// KeyID is the id of the key that is said to have signed.
func (s *Signature) KeyID() string { return keyID(s.read.KeyID) }

// By reports whether the signature names this key; many keys may have one id.
func (s *Signature) By(key PublicKey) bool { return s.read.KeyID == key.key.ID() }

// Text is the file's content.
func (s *Signature) Text() []byte { return bytes.Clone(s.text) }

// Verify says whether key has signed this statement. The error is an *skill.Error,
// SIGNATURE_INVALID.
func (s *Signature) Verify(key PublicKey, want Statement) error {
	if !minisign.Verify(key.key, want.Text(), s.text) {
		return invalidSignature(fmt.Sprintf("the signature by the key %s does not match %s %s with the digest %s: the skill changed after signing, or the signature is of another skill",
			s.KeyID(), want.ID, want.Version, want.Digest), nil)
	}
	// Stock tools write a comment of their own; one of ours must say the same as the rest.
	if c := s.read.TrustedComment; strings.HasPrefix(c, commentPrefix) && c != want.comment() {
		return invalidSignature("the signature's comment names another skill", nil)
	}
	return nil
}

// Fits says whether the signature is one of this statement, as far as that can be seen
// without its key: by the comment that [Sign] writes. The error is an *skill.Error,
// SIGNATURE_INVALID.
func (s *Signature) Fits(want Statement) error {
	switch c := s.read.TrustedComment; {
	case c == want.comment():
		return nil
	case strings.HasPrefix(c, commentPrefix):
		return invalidSignature(fmt.Sprintf("the signature is of %q, but the skill is %s %s with the digest %s: sign it again", strings.TrimPrefix(c, commentPrefix), want.ID, want.Version, want.Digest), nil)
	}
	return invalidSignature("the signature does not name its skill, because another tool made it: pass the public key with --key", nil)
}

func invalidSignature(message string, err error) error {
	return &skill.Error{Op: "signature.Verify", Code: skill.SignatureInvalid, Message: skill.CleanText(message, skill.MaxMessage), Err: err}
}
