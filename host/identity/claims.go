package identity

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// Claims are the names of the claims that issuers do not agree about. A name leads through
// objects by its dots, as realm_access.roles does, unless it is an address with :// in it.
type Claims struct {
	Tenant string   // "": tenant
	Scopes []string // strings with spaces, or lists; nil: scope
	Roles  []string // the same; a role is worth what Options.Roles say; nil: none
	Name   string   // "": name
}

// claims is what is read of a token's second part.
type claims struct {
	names *Claims

	iss, sub      string
	aud           jwt.ClaimStrings
	exp, nbf, iat *jwt.NumericDate
	tenant        *string // nil: the token names none
	scopes, roles []string
	name          string // for people; "" if there is none that can be shown
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
		case "aud":
			return audience(value, &c.aud)
		case "exp":
			return date(value, &c.exp)
		case "nbf":
			return date(value, &c.nbf)
		case "iat":
			return date(value, &c.iat)
		default:
			return sameName(name, "iss", "sub", "aud", "exp", "nbf", "iat")
		}
	})
	if err == nil {
		err = c.named(b)
	}
	if _, ok := errors.AsType[reason](err); err != nil && !ok {
		return reason("token claims are not strict JSON")
	}
	return err
}

// named reads the claims whose names are settings.
func (c *claims) named(b []byte) error {
	value, err := find(b, cmp.Or(c.names.Tenant, "tenant"))
	if err == nil && value != nil {
		c.tenant = new(string)
		err = aString(value, c.tenant)
	}
	scopes := c.names.Scopes
	if scopes == nil {
		scopes = []string{"scope"}
	}
	for _, name := range scopes {
		err = cmp.Or(err, words(b, name, &c.scopes))
	}
	for _, name := range c.names.Roles {
		err = cmp.Or(err, words(b, name, &c.roles))
	}
	// Who somebody is does not depend on the name, so that a strange one refuses nobody.
	if value, err := find(b, cmp.Or(c.names.Name, "name")); err == nil && value != nil {
		if aString(value, &c.name) != nil || !plain(c.name, longestSubject) || strings.ContainsFunc(c.name, skill.Hidden) {
			c.name = ""
		}
	}
	return err
}

// find gives the claim of a name; nil: there is none.
func find(object []byte, name string) (value []byte, err error) {
	first, rest := name, ""
	if !strings.Contains(name, "://") {
		first, rest, _ = strings.Cut(name, ".")
	}
	err = strictjson.Object(object, func(key, v []byte) error {
		if string(key) != first {
			return sameName(string(key), first)
		}
		value = v
		return nil
	})
	switch {
	case err != nil || value == nil || rest == "":
		return value, err
	case value[0] != '{':
		return nil, errWrongKind
	}
	return find(value, rest)
}

// words adds what a claim lists, in a string with spaces or in a list.
func words(object []byte, name string, to *[]string) error {
	value, err := find(object, name)
	if err != nil || value == nil {
		return err
	}
	var list jwt.ClaimStrings
	if err := audience(value, &list); err != nil {
		return err
	}
	if value[0] == '"' {
		list = strings.Split(list[0], " ")
	}
	*to = append(*to, list...)
	return nil
}

const errWrongKind = reason("token member has the wrong type")

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

// principal is whom the claims name. The scopes of roles are added to those that the token
// names itself; those of the role * are every token's.
func (c *claims) principal(defaultTenant string, roles map[string][]string) (skill.Principal, reason) {
	tenant := defaultTenant
	if c.tenant != nil {
		tenant = *c.tenant
	}
	switch {
	case !plain(c.sub, longestSubject), strings.ContainsFunc(c.sub, skill.Hidden): // or two would look like one
		return skill.Principal{}, "token subject (sub) is missing, too long or not plain text"
	case strings.EqualFold(c.sub, tenantLocal), strings.EqualFold(c.sub, tenantAnonymous), len(c.sub) >= len(keyPrincipal) && strings.EqualFold(c.sub[:len(keyPrincipal)], keyPrincipal):
		return skill.Principal{}, "token subject (sub) is reserved"
	case !ValidTenant(tenant):
		return skill.Principal{}, "token tenant is missing or malformed"
	case reservedTenant(tenant):
		return skill.Principal{}, "token tenant is reserved"
	}
	scopes := knownScopes(c.scopes)
	for _, role := range append(c.roles, everyToken) {
		scopes = append(scopes, roles[role]...)
	}
	var once []string
	for _, s := range scopes {
		if !slices.Contains(once, s) {
			once = append(once, s)
		}
	}
	return skill.Principal{ID: c.sub, Name: c.name, Type: skill.Human, Tenant: tenant, Scopes: slices.Clip(once)}, ""
}

// everyToken is the role of Options.Roles that all tokens have.
const everyToken = "*"

// reservedTenant reports whether a tenant is not for those who show a token.
func reservedTenant(tenant string) bool {
	return strings.EqualFold(tenant, tenantLocal) || strings.EqualFold(tenant, tenantAnonymous)
}
