// A policy decides whose skills are accepted: which publishers there are, by which
// keys they sign, which skills they may publish and from where.
//
// The zero Policy accepts nothing. A signature is looked at before anything of the
// skill is unpacked; what was signed is compared with what was unpacked by whoever asks.

package share

import (
	"fmt"
	"slices"
	"strings"

	"openskill/sdk/skill"
)

// Where a skill comes from, if it is no registry.
const (
	// Bundle is the place of what is imported from a file. A publisher with registries is
	// accepted from there only if this word is among them.
	PlaceBundle = "bundle"
	// Anywhere is not held against a publisher's registries: the files are here already,
	// and the question is who signed them.
	Anywhere = ""
)

// Policy says whose skills are accepted.
type Policy struct {
	Publishers []Publisher
	Unsigned   bool // skills that nobody signed are accepted, as community
}

// Publisher is one who signs.
type Publisher struct {
	Name       string
	Keys       []PublicKey
	Skills     []string    // ids, with * for any text
	Registries []string    // host/repository, with * for any text; nil: from anywhere
	Trust      skill.Trust // Community or Trusted
}

// OfKeys is the policy of somebody who names keys by hand: their skills are accepted,
// whatever they are called, as community.
func OfKeys(keys []PublicKey, unsigned bool) *Policy {
	p := &Policy{Unsigned: unsigned}
	if len(keys) > 0 {
		p.Publishers = []Publisher{{Keys: keys, Skills: []string{"*"}}}
	}
	return p
}

// Decision is why a skill is accepted, and as what.
type Decision struct {
	Publisher string // "" where the policy gives no name
	Key       string // the public key, as share.PublicKey.String gives it; "" for an unsigned skill
	Trust     skill.Trust
}

// Decide says whether a skill from a place is accepted. sig is the content of its
// signature's file, nil where there is none. The error is an *skill.Error:
// SIGNATURE_MISSING, SIGNATURE_INVALID or PUBLISHER_DENIED.
func (p *Policy) Decide(from string, s Statement, sig []byte) (Decision, error) {
	if sig == nil && !p.Unsigned {
		return Decision{}, refuse(skill.SignatureMissing, "%s %s is not signed; unsigned skills are not accepted here", s.ID, s.Version)
	}
	if sig == nil {
		return Decision{Trust: skill.Community}, nil
	}
	read, err := ParseSignature(sig)
	switch {
	case err != nil:
		return Decision{}, err
	case p.Unsigned && len(p.Publishers) == 0: // no key was given to hold it against
		return Decision{Trust: skill.Community}, nil
	}
	var invalid error
	denied := ""
	for i := range p.Publishers {
		of := &p.Publishers[i]
		for _, key := range of.Keys {
			if !read.By(key) {
				continue
			}
			if err := read.Verify(key, s); err != nil {
				invalid = err
				continue
			}
			if why := of.denies(from, s); why != "" {
				denied = why
				continue
			}
			return Decision{Publisher: of.Name, Key: key.String(), Trust: of.Trust}, nil
		}
	}
	switch {
	case denied != "":
		return Decision{}, refuse(skill.PublisherDenied, "%s", denied)
	case invalid != nil:
		return Decision{}, invalid
	}
	return Decision{}, refuse(skill.SignatureInvalid, "%s %s is signed by the key %s, which is not accepted here", s.ID, s.Version, read.KeyID())
}

// denies says why a publisher may not publish a skill, "" if it may.
func (of *Publisher) denies(from string, s Statement) string {
	name := "the publisher " + safe(of.Name)
	if of.Name == "" {
		name = "the key"
	}
	switch {
	case !matches(of.Skills, string(s.ID)):
		return fmt.Sprintf("%s may only publish %[3]s, not %[2]s", name, s.ID, safe(strings.Join(of.Skills, ", ")))
	case from == Anywhere || of.Registries == nil || matches(of.Registries, from):
		return ""
	}
	return fmt.Sprintf("skills of %s are not accepted from %s, only from %s", name, safe(from), safe(strings.Join(of.Registries, ", ")))
}

func safe(s string) string { return skill.CleanText(s, 100) }

func refuse(code skill.Code, format string, args ...any) error {
	return &skill.Error{Op: "policy.Decide", Code: code, Message: skill.CleanText(fmt.Sprintf(format, args...), skill.MaxMessage)}
}

// matches reports whether one of the patterns is s, with * for any text.
func matches(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, s) })
}

// match needs no more steps than the product of both lengths.
func match(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, head) {
		return false
	}
	s = s[len(head):]
	for {
		var part string
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part) // the first place leaves the most for what follows
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
}
