package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/maypok86/otter/v2"

	"openskill/internal/strictjson"
	"openskill/sdk/skill"
)

// The bounds of tokens.
const (
	minSecret = 32 // bytes: RFC 7518, section 3.2

	mostTokens  = 16 << 10        // that are remembered as verified
	tokenMemory = 5 * time.Second // for so long: a key that is taken out of the key set ends its tokens so much later

	longestHeader  = 1 << 10 // bytes, decoded
	longestKeyID   = 128
	longestSubject = 200 // bytes: what the tables of records hold of a principal
)

// The algorithms.
const (
	algHS256 = "HS256"
	algRS256 = "RS256"
	algES256 = "ES256"
	algEdDSA = "EdDSA"
)

// tokens knows people by their JWTs.
type tokens struct {
	secret  []byte   // nil: none of HS256
	set     *keySet  // nil: none of the others
	methods []string // algorithms that are accepted
	parser  *jwt.Parser
	now     func() time.Time

	names  Claims
	tenant string // of tokens that name none; "": refused
	roles  map[string][]string

	verified *otter.Cache[[sha256.Size]byte, *verified]
}

// verified is a token that was good a moment ago. It does not change.
type verified struct {
	principal   skill.Principal
	from, until time.Time
}

func newTokens(o *Options) (*tokens, error) {
	t := &tokens{now: o.Now, names: o.Claims, tenant: o.Tenant, roles: o.Roles}
	switch {
	case o.KeySet != "" && (o.Issuer == "" || o.Audience == ""): // its keys sign tokens for others, too
		return nil, wrongOption("OPENSKILL_JWT_ISSUER and OPENSKILL_JWT_AUDIENCE must be set with OPENSKILL_JWT_JWKS")
	case o.Tenant != "" && (!ValidTenant(o.Tenant) || reservedTenant(o.Tenant)):
		return nil, wrongOption("OPENSKILL_JWT_TENANT must be 1 to 64 letters, digits and . _ : -, and neither local nor anonymous")
	case o.Secret != "" && len(o.Secret) < minSecret:
		return nil, wrongOption("OPENSKILL_JWT_SECRET must have at least %d bytes", minSecret)
	case o.Secret != "":
		t.secret = []byte(o.Secret)
		t.methods = append(t.methods, algHS256)
	}
	if o.KeySet != "" {
		from, err := sourceOf(o.KeySet, o.Transport)
		if err != nil {
			return nil, err
		}
		if t.set, err = newKeySet(from, o); err != nil {
			return nil, err
		}
		t.methods = append(t.methods, algRS256, algES256, algEdDSA)
	}
	rules := []jwt.ParserOption{
		jwt.WithValidMethods(t.methods), jwt.WithExpirationRequired(),
		jwt.WithIssuedAt(), jwt.WithLeeway(max(o.Skew, 0)), jwt.WithTimeFunc(o.Now), jwt.WithStrictDecoding(),
	}
	if o.Issuer != "" {
		rules = append(rules, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		rules = append(rules, jwt.WithAudience(o.Audience))
	}
	t.parser = jwt.NewParser(rules...)
	var err error
	t.verified, err = otter.New(&otter.Options[[sha256.Size]byte, *verified]{MaximumSize: mostTokens})
	return t, err
}

func wrongOption(format string, args ...any) error {
	return &skill.Error{Op: "auth.New", Code: skill.InvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// principal says whose token it is. Its error is a reason.
func (t *tokens) principal(ctx context.Context, text string) (skill.Principal, error) {
	if len(text) > maxToken {
		return skill.Principal{}, reason("token too long")
	}
	sum := sha256.Sum256([]byte(text))
	now := t.now()
	if v, ok := t.verified.GetIfPresent(sum); ok && now.Before(v.until) && !now.Before(v.from) {
		return v.principal, nil
	}
	c, why := t.verify(ctx, text)
	if why != "" {
		return skill.Principal{}, why
	}
	p, why := c.principal(t.tenant, t.roles)
	if why != "" {
		return skill.Principal{}, why
	}
	p.Until = c.exp.Time
	v := &verified{principal: p, from: now, until: now.Add(tokenMemory)}
	if c.exp.Before(v.until) {
		v.until = c.exp.Time
	}
	t.verified.Set(sum, v)
	return p, nil
}

// verify checks everything of a token but whether its subject and tenant can be anybody.
func (t *tokens) verify(ctx context.Context, text string) (*claims, reason) {
	h, why := readHeader(text)
	if why != "" {
		return nil, why
	}
	if !slices.Contains(t.methods, h.alg) {
		return nil, errOtherAlgorithm
	}
	c := &claims{names: &t.names}
	_, err := t.parser.ParseWithClaims(text, c, func(*jwt.Token) (any, error) {
		key, why := t.key(ctx, h)
		if why != "" {
			return nil, why
		}
		return key, nil
	})
	return c, whyNot(err)
}

// key gives the key for a header. What an algorithm is used with is decided here: the
// secret of HS256 is never a public key, and a key of the set has the algorithm of its
// kind.
func (t *tokens) key(ctx context.Context, h header) (any, reason) {
	switch {
	case h.alg == algHS256 && t.secret != nil:
		return t.secret, ""
	case h.alg != algHS256 && t.set != nil:
		return t.set.find(ctx, h.alg, h.kid)
	}
	return nil, errOtherAlgorithm
}

const errOtherAlgorithm = reason("token with an unsupported algorithm")

// whyNot names what the library found wrong. Its own words may repeat what a token says.
func whyNot(err error) reason {
	if err == nil {
		return ""
	}
	if why, ok := errors.AsType[reason](err); ok {
		return why
	}
	for _, is := range []struct {
		err error
		why reason
	}{
		{jwt.ErrTokenSignatureInvalid, "token with an invalid signature"},
		{jwt.ErrTokenMalformed, "malformed token"},
		{jwt.ErrTokenUnverifiable, errOtherAlgorithm},
		{jwt.ErrTokenRequiredClaimMissing, "token without exp, iss or aud"},
		{jwt.ErrTokenExpired, "expired token"},
		{jwt.ErrTokenNotValidYet, "token not valid yet (nbf)"},
		{jwt.ErrTokenUsedBeforeIssued, "token issued in the future (iat)"},
		{jwt.ErrTokenInvalidIssuer, "token of another issuer"},
		{jwt.ErrTokenInvalidAudience, "token for another audience"},
	} {
		if errors.Is(err, is.err) {
			return is.why
		}
	}
	return "invalid token"
}

// header is what is read of a token's first part.
type header struct{ alg, kid string }

var rawURL = base64.RawURLEncoding.Strict()

// readHeader reads the header before the library does, which would let the last of two
// equal members win, and an unknown crit pass.
func readHeader(text string) (h header, why reason) {
	part, _, ok := strings.Cut(text, ".")
	if !ok || rawURL.DecodedLen(len(part)) > longestHeader {
		return h, "token header malformed or too long"
	}
	b, err := rawURL.DecodeString(part)
	if err != nil {
		return h, "token header malformed or too long"
	}
	var typ string
	err = strictjson.Object(b, func(key, value []byte) error {
		switch name := string(key); name {
		case "alg":
			return aString(value, &h.alg)
		case "kid":
			return aString(value, &h.kid)
		case "typ":
			return aString(value, &typ)
		case "crit", "b64", "zip", "enc":
			return reason("token header with an unsupported parameter (" + name + ")")
		default:
			return sameName(name, "alg", "kid", "typ", "crit", "b64", "zip", "enc")
		}
	})
	switch is, ok := errors.AsType[reason](err); {
	case ok:
		return h, is
	case err != nil:
		return h, "token header is not strict JSON"
	case len(h.kid) > longestKeyID:
		return h, "token kid too long"
	case typ != "" && !strings.EqualFold(typ, "JWT") && !strings.EqualFold(typ, "at+jwt") && !strings.EqualFold(typ, "application/at+jwt"):
		return h, "token of another type (typ)"
	}
	return h, ""
}

// sameName refuses a member whose name is a known one but for its case: two readers of
// it would see two things.
func sameName(name string, known ...string) error {
	for _, k := range known {
		if strings.EqualFold(name, k) {
			return reason("token member differs from a known one only in case")
		}
	}
	return nil
}
