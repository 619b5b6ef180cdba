package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"openskill/internal/safeyaml"
	"openskill/sdk/skill"
)

// Claims are the names of claims that OPENSKILL_JWT_CLAIMS sets; empty ones have their
// defaults.
type Claims struct {
	Tenant string
	Scopes []string
	Roles  []string
	Name   string
}

// JWTClaimNames gives the names of claims.
func (s *Settings) JWTClaimNames() Claims {
	c, _ := parseClaims(s.JWTClaims) // Load has checked it
	return c
}

// JWTRoleScopes gives the scopes of each role that OPENSKILL_JWT_ROLES names.
func (s *Settings) JWTRoleScopes() map[string][]string {
	roles, _ := parseRoles(s.JWTRoles) // Load has checked it
	return roles
}

// Provider gives the issuer of JWTs where that is the address of one that signs people in;
// "": it is not.
func (s *Settings) Provider() string {
	u, err := url.Parse(s.JWTIssuer)
	if s.JWTJWKS == "" || err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return ""
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return ""
	}
	return s.JWTIssuer
}

// PublicURL is the address that the operator gives to this host, without a slash at its end;
// "": none. The default is nobody's word.
func (s *Settings) PublicURL() string {
	origin, path, err := skill.ParseHTTPOrigin(s.HTTPBaseURL)
	if err != nil || s.Origin("OPENSKILL_HTTP_BASE_URL") == FromDefault {
		return ""
	}
	return origin.String() + strings.TrimSuffix(path, "/")
}

// OIDCScopeList are the scopes that the console asks for.
func (s *Settings) OIDCScopeList() []string { return scopeList(s.OIDCScopes) }

// minSecret is the length, in bytes, below which a secret is not one: HS256 wants a
// key of at least the size of its hash (RFC 7518, section 3.2).
const minSecret = 32

// tokens checks what JWTs must have and what is read of them.
func (l *loader) tokens(s *Settings) {
	if n := len(s.JWTSecret); n > 0 && n < minSecret {
		l.report("OPENSKILL_JWT_SECRET (from %s) has %d bytes; accepted: %d bytes or more", l.values["OPENSKILL_JWT_SECRET"].where, n, minSecret)
	}
	if s.JWTJWKS != "" { // with whose keys tokens for others are signed, too
		for name, v := range map[string]string{"OPENSKILL_JWT_ISSUER": s.JWTIssuer, "OPENSKILL_JWT_AUDIENCE": s.JWTAudience} {
			if v == "" {
				l.report("%s is not set, and OPENSKILL_JWT_JWKS is; accepted: %s", name, find(name).Accepts)
			}
		}
	}
	if s.OIDCClientID != "" {
		switch {
		case s.Provider() == "":
			l.wrong("OPENSKILL_OIDC_CLIENT_ID", "needs OPENSKILL_JWT_JWKS, and an https address in OPENSKILL_JWT_ISSUER")
		case s.PublicURL() == "":
			l.wrong("OPENSKILL_OIDC_CLIENT_ID", "needs the address of this host in OPENSKILL_HTTP_BASE_URL")
		case s.Auth == AuthNone:
			l.wrong("OPENSKILL_OIDC_CLIENT_ID", "needs OPENSKILL_AUTH=required: otherwise nobody can sign in")
		}
	}
	if !slices.Contains(scopeList(s.OIDCScopes), "openid") {
		l.wrong("OPENSKILL_OIDC_SCOPES", "lacks openid")
	}
}

func parseClaims(text string) (c Claims, err error) {
	seen := map[string]bool{}
	for entry := range entries(text) {
		kind, list, _ := strings.Cut(entry, "=")
		kind = strings.TrimSpace(kind)
		names := strings.Split(list, ",")
		for i, name := range names {
			names[i] = strings.TrimSpace(name)
			if names[i] == "" {
				return c, fmt.Errorf("has no claim in the entry %s", safeyaml.Quote(entry))
			}
		}
		switch {
		case seen[kind]:
			return c, fmt.Errorf("has %s twice", safeyaml.Quote(kind))
		case kind == "tenant" && len(names) == 1:
			c.Tenant = names[0]
		case kind == "name" && len(names) == 1:
			c.Name = names[0]
		case kind == "scopes":
			c.Scopes = names
		case kind == "roles":
			c.Roles = names
		case kind == "tenant", kind == "name":
			return c, fmt.Errorf("has several claims for the %s: name one", kind)
		default:
			return c, fmt.Errorf("has the entry %s, which must begin with tenant=, scopes=, roles= or name=", safeyaml.Quote(entry))
		}
		seen[kind] = true
	}
	return c, nil
}

func parseRoles(text string) (map[string][]string, error) {
	roles := map[string][]string{}
	for entry := range entries(text) {
		at := strings.LastIndexByte(entry, '=') // roles may have one, as in CN=Staff; scopes have none
		if at < 0 {
			return nil, fmt.Errorf("has the entry %s, which has no =", safeyaml.Quote(entry))
		}
		role, scopes := strings.TrimSpace(entry[:at]), scopeList(entry[at+1:])
		switch {
		case role == "":
			return nil, errors.New("has an entry without a role")
		case roles[role] != nil:
			return nil, fmt.Errorf("has the role %s twice", safeyaml.Quote(role))
		case len(scopes) == 0:
			return nil, fmt.Errorf("gives the role %s no scope", safeyaml.Quote(role))
		}
		if i := slices.IndexFunc(scopes, func(s string) bool { return !skill.ValidScope(s) }); i >= 0 {
			return nil, fmt.Errorf("names an unknown scope %s; there are %s, and %s:<id> for calls of one skill",
				safeyaml.Quote(scopes[i]), strings.Join(skill.Scopes(), ", "), skill.ScopeInvoke)
		}
		roles[role] = scopes
	}
	return roles, nil
}

// entries gives those between semicolons or line ends, without empty ones.
func entries(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for entry := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == '\n' || r == '\r' }) {
			if entry = strings.TrimSpace(entry); entry != "" && !yield(entry) {
				return
			}
		}
	}
}

// scopeList reads scopes with commas or spaces between them.
func scopeList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
