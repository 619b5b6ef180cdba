package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// rememberedKey begins what is remembered of an API key. No token has a space.
const rememberedKey = "key "

// Remember returns what a session keeps of a credential for [Authenticator.Again]: of an API key the id
// and the hash that the database has too, which authenticate no request; of a JWT the token.
func Remember(credential string) string {
	id, why := readKey(credential)
	if why != "" {
		return credential
	}
	hash := hashOf(credential)
	return rememberedKey + id + " " + hex.EncodeToString(hash[:])
}

// Again returns the principal of a remembered credential, as [Authenticator.Authenticate] does: a key that
// was revoked, has expired or was rotated, and a token that is no longer valid, are refused.
func (a *Authenticator) Again(ctx context.Context, remembered string) (skill.Principal, error) {
	rest, isKey := strings.CutPrefix(remembered, rememberedKey)
	if !isKey {
		return a.Authenticate(ctx, Credentials{Authorization: []string{scheme + " " + remembered}})
	}
	id, coded, _ := strings.Cut(rest, " ")
	var hash [sha256.Size]byte
	if n, err := hex.Decode(hash[:], []byte(coded[:min(len(coded), 2*len(hash))])); a.keys == nil || err != nil || n != len(hash) {
		return skill.Principal{}, a.refused(ctx, "this kind of credential is not accepted", "")
	}
	p, err := a.keys.of(ctx, "sessions", id, hash)
	return a.answer(ctx, p, id, err)
}

// Still returns the principal of a call that was let in at a time and is queued, as it is now. A key that was revoked, has
// expired, or was rotated since and its overlap is over, and a token that has expired, are refused. Where this host does not
// have the means to tell, which another host had, the error is of AUDIT_UNAVAILABLE.
func (a *Authenticator) Still(ctx context.Context, p skill.Principal, at time.Time) (skill.Principal, error) {
	if lacks := p.Type == skill.Operator || p.Key != "" && a.keys == nil || p.Type == skill.Human && a.tokens == nil || p.Type == skill.Anonymous && a.anonymous == nil; lacks {
		return skill.Principal{}, CannotTell()
	}
	switch {
	case p.Key != "":
		e, err := a.keys.find(ctx, "tenant "+p.Tenant, p.Key)
		if err != nil {
			return skill.Principal{}, err
		}
		if why := e.over(a.now()); why != "" {
			return skill.Principal{}, a.refused(ctx, why, p.Key)
		}
		old := e.key.OldUntil // of the secret that was shown, if that was the one before
		if (!p.Until.IsZero() || at.Before(e.key.RotatedAt)) && !old.IsZero() && !a.now().Before(old) {
			return skill.Principal{}, a.refused(ctx, "rotated key, past its overlap", p.Key)
		}
		if now := e.principal; now.ID == p.ID && now.ID != "" && now.Tenant == p.Tenant {
			return now, nil
		}
	case p.Type == skill.Human && a.now().Before(p.Until):
		return p, nil
	case p.Type == skill.Anonymous:
		return *a.anonymous, nil
	}
	return skill.Principal{}, a.refused(ctx, "the credentials of a queued call are no longer valid", p.Key)
}

// CannotTell is the error for a queued call of a caller whom this host cannot check.
func CannotTell() error {
	return &skill.Error{
		Op: "auth.Still", Code: skill.AuditUnavailable, Details: map[string]any{"retry_after_ms": int64(60_000)},
		Message: "this host does not accept this kind of credential; another host of the database can run the call",
	}
}
