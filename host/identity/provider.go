package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"openskill/sdk/skill"
)

// The bounds of what is asked of a provider.
const (
	longestAnswer = 1 << 20         // bytes of an answer
	againAfter    = 5 * time.Second // after a provider did not answer
)

// ProviderOptions of a Provider; all of the first four are required.
type ProviderOptions struct {
	Issuer   string   // its address, as in its tokens
	ClientID string   // by which it knows this host
	Redirect string   // the address that it sends people back to
	Scopes   []string // that are asked for; openid among them

	ClientSecret string // "": the host has none, and PKCE alone shows who began

	Log       *slog.Logger      // nil: slog.Default()
	Now       func() time.Time  // nil: the system's clock
	Transport http.RoundTripper // nil: one of its own
}

// Provider signs people in at an OpenID provider, by the authorization code flow with PKCE.
// It is safe for concurrent use.
//
// An attempt to sign in is a random secret that the browser of the person keeps. State,
// nonce and code verifier are hashes of it, so that the host keeps nothing of attempts, and
// an answer is good in the browser alone where the attempt began.
type Provider struct {
	o      ProviderOptions
	client *http.Client
	lines  *rate.Limiter // of the log

	mu     sync.Mutex // held while the provider is asked what it is
	known  *discovered
	failed time.Time
}

// discovered is what a provider says of itself.
type discovered struct {
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// NewProvider makes a Provider. The provider is asked when somebody signs in.
func NewProvider(o *ProviderOptions) *Provider {
	p := &Provider{o: *o, lines: rate.NewLimiter(1, 10)}
	if p.o.Log == nil {
		p.o.Log = slog.Default()
	}
	if p.o.Now == nil {
		p.o.Now = time.Now
	}
	transport := p.o.Transport
	if transport == nil {
		transport = newTransport()
	}
	p.client = &http.Client{
		Transport: bounded{transport}, Timeout: fetchWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// bounded reads no more of an answer than it must have.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, longestAnswer), resp.Body}
	return resp, nil
}

// Name is the host of the provider's address.
func (p *Provider) Name() string {
	u, err := url.Parse(p.o.Issuer)
	if err != nil {
		return ""
	}
	return u.Host
}

// Address gives the page of the provider at which somebody signs in. attempt is a random
// secret of 32 bytes or more, in any spelling.
func (p *Provider) Address(ctx context.Context, attempt string) (string, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return d.config.AuthCodeURL(derive(attempt, "state"), oidc.Nonce(derive(attempt, "nonce")), oauth2.S256ChallengeOption(derive(attempt, "verifier"))), nil
}

// derive makes one value of an attempt. None tells another.
func derive(attempt, use string) string {
	sum := sha256.Sum256([]byte("openskill sign-in 1\n" + use + "\n" + attempt))
	return rawURL.EncodeToString(sum[:])
}

// Finish takes the answer that the browser of an attempt came back with. It gives who
// signed in, and the tokens that the provider issued to this host: whether they are
// accepted here, is for the [Authenticator] to say. The error is an *skill.Error.
func (p *Provider) Finish(ctx context.Context, attempt string, answer url.Values) (subject string, tokens []string, err error) {
	state := answer.Get("state")
	switch {
	case attempt == "", len(answer["state"]) != 1, len(answer["code"]) > 1,
		subtle.ConstantTimeCompare([]byte(state), []byte(derive(attempt, "state"))) != 1:
		return "", nil, &skill.Error{
			Op: "auth.Provider", Code: skill.Unauthorized,
			Message: "this sign-in expired or began in another browser: sign in again",
		}
	case answer.Has("iss") && answer.Get("iss") != p.o.Issuer: // RFC 9207
		return "", nil, p.refused(ctx, "the response has the wrong issuer")
	case answer.Get("code") == "":
		return "", nil, p.refused(ctx, "the provider sent no code")
	}
	d, err := p.discover(ctx)
	if err != nil {
		return "", nil, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := d.config.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(derive(attempt, "verifier")))
	if err != nil {
		return "", nil, p.refused(ctx, "the code was not accepted: "+err.Error())
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return "", nil, p.refused(ctx, err.Error())
	}
	var claims struct {
		AuthorizedParty string `json:"azp"`
	}
	switch err := id.Claims(&claims); {
	case err != nil:
		return "", nil, p.refused(ctx, err.Error())
	case claims.AuthorizedParty != "" && claims.AuthorizedParty != p.o.ClientID:
		return "", nil, p.refused(ctx, "the id token was issued to another client (azp)")
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(derive(attempt, "nonce"))) != 1:
		return "", nil, p.refused(ctx, "the id token is of another attempt (nonce)")
	case id.AccessTokenHash != "" && id.VerifyAccessToken(token.AccessToken) != nil:
		return "", nil, p.refused(ctx, "the access token is not that of the id token (at_hash)")
	}
	return id.Subject, []string{token.AccessToken, raw}, nil
}

// refused is the answer to an attempt that failed. Why, is for the log alone.
func (p *Provider) refused(ctx context.Context, why string) error {
	if p.lines.AllowN(p.o.Now(), 1) {
		p.o.Log.LogAttrs(ctx, slog.LevelInfo, "a sign-in was refused", slog.String("reason", skill.CleanText(why, 300)))
	}
	return &skill.Error{Op: "auth.Provider", Code: skill.Unauthorized, Message: "sign-in failed: try again; the server log has the reason"}
}

// discover asks the provider what it is, once.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	away := &skill.Error{Op: "auth.Provider", Code: skill.Internal, Message: "the identity provider is unavailable: try again in a few seconds; the server log has the reason"}
	if now := p.o.Now(); now.Sub(p.failed) < againAfter && !now.Before(p.failed) {
		return nil, away
	}
	known, err := p.ask(context.WithoutCancel(ctx)) // for all who wait
	if err != nil {
		p.failed = p.o.Now()
		p.o.Log.LogAttrs(ctx, slog.LevelError, "the identity provider is unusable", slog.String("error", skill.CleanText(err.Error(), 300)))
		return nil, away
	}
	p.known = known
	return known, nil
}

func (p *Provider) ask(ctx context.Context) (*discovered, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.o.Issuer)
	if err != nil {
		return nil, err
	}
	var says struct {
		AuthURL  string   `json:"authorization_endpoint"`
		TokenURL string   `json:"token_endpoint"`
		KeysURL  string   `json:"jwks_uri"`
		Methods  []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, err
	}
	for _, address := range []string{says.AuthURL, says.TokenURL, says.KeysURL} {
		if !SafeAddress(address) {
			return nil, errors.New("the provider's URL must be https")
		}
	}
	endpoint := provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // what is left out means this one; trying both would use up the code
	if p.o.ClientSecret == "" || slices.Contains(says.Methods, "client_secret_post") && !slices.Contains(says.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &discovered{
		config: oauth2.Config{ClientID: p.o.ClientID, ClientSecret: p.o.ClientSecret, Endpoint: endpoint, RedirectURL: p.o.Redirect, Scopes: p.o.Scopes},
		verifier: provider.VerifierContext(oidc.ClientContext(ctx, p.client), &oidc.Config{
			ClientID: p.o.ClientID, SupportedSigningAlgs: []string{algRS256, algES256, algEdDSA}, Now: p.o.Now,
		}),
	}, nil
}

// SafeAddress reports whether text is an https address, or one of http on this machine.
func SafeAddress(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// newTransport is how key sets and providers are asked.
func newTransport() http.RoundTripper {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true,
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}
}
