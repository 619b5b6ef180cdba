package console

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// Provider signs people in elsewhere, by OpenID Connect.
type Provider interface {
	// Name is what people know it by: the host of its address.
	Name() string
	// Address gives its page for an attempt to sign in, which is a secret of the browser.
	Address(ctx context.Context, attempt string) (string, error)
	// Finish takes what the browser of an attempt came back with, and gives who it was and
	// the tokens of the provider.
	Finish(ctx context.Context, attempt string, answer url.Values) (subject string, tokens []string, err error)
}

// CallbackPath is where a provider sends people back to.
const CallbackPath = base + "/signin/callback"

const startPath = base + "/signin/provider"

const (
	mostAsking   = 16               // requests to the provider at once
	attemptLasts = 10 * time.Minute // from the first page of a sign-in to its last
	longestNext  = 1 << 10          // bytes of the page that follows
)

// startSignIn sends a browser to the provider. Its cookie has the secret of the attempt, and
// comes back with the provider's redirect, which is of another site.
func (c *Console) startSignIn(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	leave, ok := c.askProvider(w, r, next)
	if !ok {
		return
	}
	defer leave()
	attempt := random()
	address, err := c.o.Provider.Address(r.Context(), attempt)
	if err != nil {
		c.showSignIn(w, r, http.StatusServiceUnavailable, next, messageOf(err))
		return
	}
	if len(next) > longestNext {
		next = base
	}
	c.setAttempt(w, r, attempt+"."+base64.RawURLEncoding.EncodeToString([]byte(next)), int(attemptLasts.Seconds()))
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// endSignIn takes the answer of the provider. The session that it begins is one of the token
// that the host accepts, as if that had been typed in.
func (c *Console) endSignIn(w http.ResponseWriter, r *http.Request) {
	attempt, next := c.takeAttempt(w, r)
	leave, ok := c.askProvider(w, r, next)
	if !ok {
		return
	}
	defer leave()
	subject, tokens, err := c.o.Provider.Finish(r.Context(), attempt, r.URL.Query())
	switch {
	case err != nil && skill.CodeOf(err) != skill.Unauthorized:
		c.showSignIn(w, r, http.StatusServiceUnavailable, next, messageOf(err))
		return
	case err != nil && c.attempts.failed(r):
		w.Header().Set("Retry-After", strconv.Itoa(trySeconds))
		c.showSignIn(w, r, http.StatusTooManyRequests, next, "Too many failed sign-ins. Wait a few seconds and try again.")
		return
	case err != nil:
		c.showSignIn(w, r, http.StatusUnauthorized, next, messageOf(err))
		return
	}
	for _, token := range tokens {
		if token == "" || len(token) > mostCredential || strings.ContainsAny(token, " \t\r\n") {
			continue
		}
		p, err := c.authenticate(r.Context(), token)
		switch {
		case err != nil && skill.CodeOf(err) != skill.Unauthorized:
			c.showSignIn(w, r, http.StatusServiceUnavailable, next, messageOf(err))
			return
		case err != nil, p.Type != skill.Human, p.ID != subject: // a key, say, or a token of somebody else
			continue
		}
		if _, err := c.begin(w, r, token, &p); err != nil {
			c.showSignIn(w, r, http.StatusServiceUnavailable, next, messageOf(err))
			return
		}
		// The browser does not send the cookie of the session with a redirect that another
		// site has begun; the page that it goes to from here has it.
		f := &frame{Title: "Signed in", Version: c.o.Version, Host: visible(r.Host, 80), Next: next, file: c.fileURL}
		_ = c.render(w, r, http.StatusOK, signedInView(f)) // the client has left
		return
	}
	c.showSignIn(w, r, http.StatusForbidden, next, "You are signed in at "+c.o.Provider.Name()+", but this server does not accept its tokens. The log has the reason; OPENSKILL_JWT_AUDIENCE must equal the tokens' aud (for ID tokens: the client id).")
}

// askProvider takes a place to ask the provider; without one, it has answered.
func (c *Console) askProvider(w http.ResponseWriter, r *http.Request, next string) (leave func(), ok bool) {
	if c.o.Provider == nil {
		c.plain(w, r, http.StatusNotFound, "Page not found.")
		return nil, false
	}
	network, _ := networks(r)
	leave, err := c.asking.TryEnter(network)
	if err != nil {
		w.Header().Set("Retry-After", strconv.Itoa(trySeconds))
		c.showSignIn(w, r, http.StatusTooManyRequests, next, messageOf(gate.Refusal(err, "console.provider", "too many concurrent sign-ins")))
		return nil, false
	}
	return leave, true
}

// setAttempt sets the cookie of an attempt, or with a negative age removes it.
func (c *Console) setAttempt(w http.ResponseWriter, r *http.Request, value string, age int) {
	cookie := &http.Cookie{Name: c.cookieName(r) + "-signin", Value: value, Path: base + "/signin", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if c.secure(r) {
		cookie.Path, cookie.Secure = "/", true // as __Host- asks
	}
	http.SetCookie(w, cookie)
}

// takeAttempt reads the cookie of an attempt and removes it: an attempt has one answer.
func (c *Console) takeAttempt(w http.ResponseWriter, r *http.Request) (attempt, next string) {
	cookie, err := r.Cookie(c.cookieName(r) + "-signin")
	if err != nil {
		return "", base
	}
	c.setAttempt(w, r, "", -1)
	attempt, coded, _ := strings.Cut(cookie.Value, ".")
	to, err := base64.RawURLEncoding.DecodeString(coded)
	if err != nil || len(attempt) != len(random()) {
		return "", base
	}
	return attempt, localPath(string(to))
}

// startLink leads to the provider, by the address that the provider sends people back to: a
// cookie of another name of this host would not be there then.
func (c *Console) startLink(next string) templ.SafeURL {
	if c.o.Provider == nil {
		return ""
	}
	return with(templ.SafeURL(c.o.PublicURL+startPath), "next", next)
}
