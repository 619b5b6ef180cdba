package auth

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"openskill/host/strictjson"
	"openskill/sdk/skill"
)

// claims are what is read of a token's second part.
type claims struct {
	iss, sub, tenant, scope string
	aud                     jwt.ClaimStrings
	exp, nbf, iat           *jwt.NumericDate
}

var _ jwt.Claims = (*claims)(nil)

// The claims as the library asks for them.

func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return c.exp, nil }
func (c *claims) GetNotBefore() (*jwt.NumericDate, error)      { return c.nbf, nil }
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error)       { return c.iat, nil }
func (c *claims) GetAudience() (jwt.ClaimStrings, error)       { return c.aud, nil }
func (c *claims) GetIssuer() (string, error)                   { return c.iss, nil }
func (c *claims) GetSubject() (string, error)                  { return c.sub, nil }

// UnmarshalJSON reads claims strictly. One that is there has its own kind: null is none.
func (c *claims) UnmarshalJSON(b []byte) error {
	err := strictjson.Object(b, func(key, value []byte) error {
		switch name := string(key); name {
		case "iss":
			return aString(value, &c.iss)
		case "sub":
			return aString(value, &c.sub)
		case "tenant":
			return aString(value, &c.tenant)
		case "scope":
			return aString(value, &c.scope)
		case "aud":
			return audience(value, &c.aud)
		case "exp":
			return date(value, &c.exp)
		case "nbf":
			return date(value, &c.nbf)
		case "iat":
			return date(value, &c.iat)
		default:
			return sameName(name, "iss", "sub", "tenant", "scope", "aud", "exp", "nbf", "iat")
		}
	})
	var why reason
	if err != nil && !errors.As(err, &why) {
		return reason("a token whose claims are not strict JSON")
	}
	return err
}

const errWrongKind = reason("a token with a member of another kind than it must have")

// aString reads a string, which is JSON by now.
func aString(value []byte, to *string) error {
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, to) != nil {
		return errWrongKind
	}
	return nil
}

// audience reads a string or a list of them.
func audience(value []byte, to *jwt.ClaimStrings) error {
	var one string
	if aString(value, &one) == nil {
		*to = jwt.ClaimStrings{one}
		return nil
	}
	var list []*string
	if len(value) == 0 || value[0] != '[' || json.Unmarshal(value, &list) != nil {
		return errWrongKind
	}
	for _, s := range list {
		if s == nil {
			return errWrongKind
		}
		*to = append(*to, *s)
	}
	return nil
}

// lastSecond is the end of the year 9999. A time beyond what an int64 holds would be
// another one on another processor.
const lastSecond = 253402300799

// date reads seconds since 1970, which may have a fraction.
func date(value []byte, to **jwt.NumericDate) error {
	if len(value) == 0 || value[0] < '0' || value[0] > '9' {
		return errWrongKind // also of negative ones: before 1970 there were no tokens
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f > lastSecond {
		return errWrongKind
	}
	seconds := int64(f)
	*to = &jwt.NumericDate{Time: time.Unix(seconds, int64((f-float64(seconds))*1e9))}
	return nil
}

// principal is whom the claims name.
func (c *claims) principal() (skill.Principal, reason) {
	switch {
	case !plain(c.sub, longestSubject), strings.ContainsFunc(c.sub, skill.Hidden): // or two would look like one
		return skill.Principal{}, "a token whose subject (sub) is missing, too long or no plain text"
	case strings.EqualFold(c.sub, tenantLocal), strings.EqualFold(c.sub, tenantAnonymous), len(c.sub) >= len(keyPrincipal) && strings.EqualFold(c.sub[:len(keyPrincipal)], keyPrincipal):
		return skill.Principal{}, "a token whose subject (sub) is reserved"
	case !ValidTenant(c.tenant):
		return skill.Principal{}, "a token whose tenant is missing or malformed"
	case strings.EqualFold(c.tenant, tenantLocal), strings.EqualFold(c.tenant, tenantAnonymous):
		return skill.Principal{}, "a token whose tenant is reserved"
	}
	return skill.Principal{ID: c.sub, Type: skill.Human, Tenant: c.tenant, Scopes: knownScopes(strings.Split(c.scope, " "))}, ""
}
