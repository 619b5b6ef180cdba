package identity

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"openskill/sdk/skill"
)

// Options of an Authenticator. Without Keys, Secret and KeySet nobody is let in but who
// shows nothing, if Anonymous allows that.
type Options struct {
	Keys Lookup // nil: no API keys are accepted

	Secret   string        // of HS256, 32 bytes or more; "": no such tokens are accepted
	KeySet   string        // a file, or an https address (http on loopback); "": no tokens of RS256, ES256 and EdDSA are accepted
	Issuer   string        // required with KeySet; "": tokens of any issuer who has Secret
	Audience string        // required with KeySet; "": tokens for anybody
	Skew     time.Duration // how far clocks may be apart; 0: not at all

	Claims Claims              // their names
	Tenant string              // of tokens that name none; "": they are refused
	Roles  map[string][]string // scopes of the roles that tokens name; "*" is every token; nil: none

	Anonymous []string // scopes of those who show nothing; nil: they are refused

	Log       *slog.Logger      // nil: slog.Default()
	Now       func() time.Time  // nil: the system's clock
	Transport http.RoundTripper // fetches key sets; nil: one of its own
}

// Authenticator knows callers. It is safe for concurrent use.
type Authenticator struct {
	anonymous *skill.Principal // nil: refused
	keys      *keys            // nil: none are accepted
	tokens    *tokens          // nil: none are accepted
	log       *slog.Logger
	lines     *rate.Limiter // of the log: whoever is refused must not fill a disk
	unlogged  atomic.Int64  // refusals since the last line
	now       func() time.Time
}

// reason says why a caller was refused. It is for the log alone, and holds nothing that
// the caller wrote.
type reason string

func (r reason) Error() string { return string(r) }

// New makes an Authenticator. It reads the key set where that is a file, so that a wrong
// one stops the start; an address is asked when the first token comes.
func New(o Options) (*Authenticator, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &Authenticator{log: o.Log, now: o.Now, lines: rate.NewLimiter(20, 100)}
	if o.Keys != nil {
		var err error
		if a.keys, err = newKeys(&o); err != nil {
			return nil, err
		}
	}
	if o.Secret != "" || o.KeySet != "" {
		var err error
		if a.tokens, err = newTokens(&o); err != nil {
			return nil, err
		}
	}
	if len(o.Anonymous) > 0 {
		a.anonymous = &skill.Principal{ID: tenantAnonymous, Type: skill.Anonymous, Tenant: tenantAnonymous, Scopes: slices.Clip(slices.Clone(o.Anonymous))}
	}
	return a, nil
}

// Authenticate says who shows these credentials. The error is an *skill.Error: of
// UNAUTHORIZED, always the same one, or of AUDIT_UNAVAILABLE where keys cannot be looked
// up now. Who gets a principal must not change its scopes.
func (a *Authenticator) Authenticate(ctx context.Context, c Credentials) (skill.Principal, error) {
	is, text, why := c.read()
	switch {
	case why != "":
		return skill.Principal{}, a.refused(ctx, why, "")
	case is == aKey && a.keys == nil, is == aToken && a.tokens == nil:
		return skill.Principal{}, a.refused(ctx, "this kind of credential is not accepted", "")
	case is == aKey:
		p, id, err := a.keys.principal(ctx, c.From, text)
		return a.answer(ctx, p, id, err)
	case is == aToken:
		p, err := a.tokens.principal(ctx, text)
		return a.answer(ctx, p, "", err)
	case a.anonymous == nil:
		return skill.Principal{}, a.refused(ctx, "no credentials", "")
	}
	return *a.anonymous, nil
}

// Over reports whether the key that made a principal known was revoked or has expired. False
// means too that the database does not tell now.
func (a *Authenticator) Over(ctx context.Context, p skill.Principal) bool {
	if a.keys == nil || p.Key == "" {
		return false
	}
	e, err := a.keys.find(ctx, "tenant "+p.Tenant, p.Key)
	return err == nil && (e == stranger || e.over(a.now()) != "")
}

func (a *Authenticator) answer(ctx context.Context, p skill.Principal, id string, err error) (skill.Principal, error) {
	switch why, ok := errors.AsType[reason](err); {
	case err == nil:
		return p, nil
	case ok:
		return skill.Principal{}, a.refused(ctx, why, id)
	}
	return skill.Principal{}, err
}

// refused is the one answer to whoever is not let in.
func (a *Authenticator) refused(ctx context.Context, why reason, key string) error {
	if a.lines.AllowN(a.now(), 1) {
		attrs := []slog.Attr{slog.String("reason", string(why))}
		if key != "" {
			attrs = append(attrs, slog.String("key", key))
		}
		if n := a.unlogged.Swap(0); n > 0 {
			attrs = append(attrs, slog.Int64("others_since_the_last_line", n))
		}
		a.log.LogAttrs(ctx, slog.LevelInfo, "authentication failed", attrs...)
	} else {
		a.unlogged.Add(1)
	}
	return &skill.Error{
		Op: "auth.Authenticate", Code: skill.Unauthorized,
		Message: "invalid or missing credentials: send one \"Authorization: Bearer TOKEN\" or \"X-API-Key: KEY\" header",
	}
}

// Close writes down when keys were last used. It may be called twice.
func (a *Authenticator) Close() error {
	if a.keys == nil {
		return nil
	}
	return a.keys.close()
}
