package console

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"openskill/host/identity"
	"openskill/sdk/skill"
)

// mostCredential is the longest API key or JWT, in bytes, that is looked at.
const mostCredential = 8 << 10

func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	next := localPath(r.URL.Query().Get("next"))
	network, _ := networks(r)
	if s, _, err := c.known(r.Context(), network, r); c.o.Callers == nil || err == nil && s != nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	c.showSignIn(w, r, http.StatusOK, next, "")
}

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request, status int, next, problem string) {
	f := &frame{Title: "Sign in", Version: c.o.Version, Host: visible(r.Host, 80), file: c.fileURL}
	provider := ""
	if c.o.Provider != nil {
		provider = visible(c.o.Provider.Name(), 80)
	}
	_ = c.render(w, r, status, signInView(f, next, problem, provider, c.startLink(next))) // there is nothing else to say
}

// signIn takes an API key or a JWT. Whatever is wrong with it, the answer is the same.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.plain(w, r, http.StatusBadRequest, "Cannot read the form.")
		return
	}
	next := localPath(r.PostForm.Get("next"))
	if c.o.Callers == nil {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	credential := strings.TrimSpace(r.PostForm.Get("credential"))
	var p skill.Principal
	var err error
	if credential != "" && len(credential) <= mostCredential && !strings.ContainsAny(credential, " \t\r\n") {
		p, err = c.authenticate(r.Context(), credential)
	}
	switch {
	case err != nil && skill.CodeOf(err) != skill.Unauthorized:
		c.showSignIn(w, r, http.StatusServiceUnavailable, next, messageOf(err))
		return
	case err != nil, p.ID == "", p.Type == skill.Anonymous:
		if c.attempts.failed(r) {
			w.Header().Set("Retry-After", strconv.Itoa(trySeconds))
			c.showSignIn(w, r, http.StatusTooManyRequests, next, "Invalid API key or JWT, and too many failed attempts. Wait a few seconds and try again.")
			return
		}
		c.showSignIn(w, r, http.StatusUnauthorized, next, "Invalid API key or JWT. Keys begin with osk_; the operator creates them with openskill keys create.")
		return
	}
	if _, err := c.begin(w, r, credential, &p); err != nil {
		c.showSignIn(w, r, http.StatusServiceUnavailable, next, messageOf(err))
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (c *Console) authenticate(ctx context.Context, credential string) (skill.Principal, error) {
	return c.o.Callers.Authenticate(ctx, identity.Credentials{Authorization: []string{"Bearer " + credential}})
}

func (v *view) signOut() error {
	if err := v.sessions.end(v.r.Context(), v.s.name); err != nil {
		return err
	}
	gone := &http.Cookie{Name: v.cookieName(v.r), Path: base, MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if v.secure(v.r) {
		gone.Path, gone.Secure = "/", true
	}
	http.SetCookie(v.w, gone)
	return v.redirect("/signin")
}

// localPath gives a page of the console to go on with: what was asked for, if it is one.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || u.User != nil || strings.ContainsAny(to, "\\\r\n\t") {
		return base
	}
	if u.Path != base && !strings.HasPrefix(u.Path, base+"/") || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") {
		return base
	}
	return u.RequestURI()
}
