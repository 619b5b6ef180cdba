package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"openskill/sdk/skill"
)

// session is what is kept of somebody who signed in. Its own name, which the cookie has, is
// kept nowhere but as a hash.
type session struct {
	csrf       string
	credential string // "" where nobody is asked
	began      time.Time
	over       chan struct{} // closed when it ends

	mu   sync.Mutex
	seen time.Time
	note *note
}

// known is a session and who it is now.
type known struct {
	*session
	principal skill.Principal
}

// guarded reports whether a form has the session's token.
func (s *session) guarded(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.csrf)) == 1
}

// leave has the next page say what came of a form.
func (s *session) leave(good bool, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note = &note{good, visible(text, 600)}
}

func (s *session) takeNote() *note {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.note
	s.note = nil
	return n
}

// sessions holds them by the hash of their names.
type sessions struct {
	idle, life time.Duration
	most, each int
	now        func() time.Time

	mu  sync.Mutex
	all map[[sha256.Size]byte]*session
}

func newSessions(o *Options) *sessions {
	s := &sessions{idle: o.Idle, life: o.Life, most: o.Sessions, each: o.SessionsEach, now: o.Now, all: map[[sha256.Size]byte]*session{}}
	if s.idle <= 0 {
		s.idle = time.Hour
	}
	if s.life <= 0 {
		s.life = 12 * time.Hour
	}
	if s.most <= 0 {
		s.most = 1024
	}
	if s.each <= 0 {
		s.each = 16
	}
	return s
}

// begin makes a session, and gives its name. Where there are too many of one credential or
// in all, the one that was silent for longest ends.
func (all *sessions) begin(credential string) (string, *session) {
	name, now := random(), all.now()
	s := &session{csrf: random(), credential: credential, began: now, seen: now, over: make(chan struct{})}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.sweep(now)
	all.makeRoom(all.most, func(*session) bool { return true })
	if credential != "" {
		all.makeRoom(all.each, func(o *session) bool { return o.credential == credential })
	}
	all.all[sha256.Sum256([]byte(name))] = s
	return name, s
}

func (all *sessions) makeRoom(most int, of func(*session) bool) {
	for {
		n := 0
		var oldest [sha256.Size]byte
		var first time.Time
		for id, s := range all.all {
			if !of(s) {
				continue
			}
			s.mu.Lock()
			seen := s.seen
			s.mu.Unlock()
			if n++; first.IsZero() || seen.Before(first) {
				oldest, first = id, seen
			}
		}
		if n < most {
			return
		}
		all.drop(oldest)
	}
}

func (all *sessions) sweep(now time.Time) {
	for id, s := range all.all {
		if all.old(s, now) {
			all.drop(id)
		}
	}
}

func (all *sessions) old(s *session, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.began) >= all.life || now.Sub(s.seen) >= all.idle
}

func (all *sessions) drop(id [sha256.Size]byte) {
	if s := all.all[id]; s != nil {
		delete(all.all, id)
		close(s.over)
	}
}

// find gives the session of a name, nil if there is none. use says that somebody is there.
func (all *sessions) find(name string, use bool) *session {
	id, now := sha256.Sum256([]byte(name)), all.now()
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.all[id]
	if s == nil {
		return nil
	}
	if all.old(s, now) {
		all.drop(id)
		return nil
	}
	if use {
		s.mu.Lock()
		s.seen = now
		s.mu.Unlock()
	}
	return s
}

func (all *sessions) end(name string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.drop(sha256.Sum256([]byte(name)))
}

func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// known gives the session of a request and who it is now: its credential is asked again, and
// one that is no longer good ends it. nil: there is none. The error says that it cannot be
// looked up now.
func (c *Console) known(ctx context.Context, r *http.Request) (*known, error) {
	cookie, err := r.Cookie(c.cookieName(r))
	if err != nil || cookie.Value == "" {
		return nil, nil //nolint:nilerr,nilnil // without a cookie there is none
	}
	s := c.sessions.find(cookie.Value, true)
	if s == nil {
		return nil, nil //nolint:nilnil // see above
	}
	p, good, err := c.whose(ctx, s)
	if err != nil {
		return nil, err
	}
	if !good {
		c.sessions.end(cookie.Value)
		return nil, nil //nolint:nilnil // see above
	}
	return &known{s, p}, nil
}

// whose asks again whose a session is.
func (c *Console) whose(ctx context.Context, s *session) (p skill.Principal, good bool, err error) {
	if c.o.Authenticate == nil {
		return c.o.Operator, true, nil
	}
	p, err = c.o.Authenticate(ctx, s.credential)
	if err != nil && skill.CodeOf(err) != skill.Unauthorized {
		return p, false, err
	}
	return p, err == nil && p.ID != "" && p.Type != skill.Anonymous, nil
}

// begin makes a session, and its cookie.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, credential string) *known {
	name, s := c.sessions.begin(credential)
	cookie := &http.Cookie{Name: c.cookieName(r), Value: name, Path: base, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if c.secure(r) {
		cookie.Path, cookie.Secure = "/", true // as __Host- asks
	}
	http.SetCookie(w, cookie)
	return &known{s, c.o.Operator}
}

// secure reports whether the browser came over https, which the operator says, and no
// header that anybody can send.
func (c *Console) secure(r *http.Request) bool {
	for _, origin := range c.o.Origins {
		if u, err := url.Parse(origin); err == nil && u.Scheme == "https" && strings.EqualFold(u.Host, r.Host) {
			return true
		}
	}
	return false
}

// cookieName has the port of an address: cookies do not tell ports apart, and two hosts on
// one machine would end each other's sessions.
func (c *Console) cookieName(r *http.Request) string {
	if c.secure(r) {
		return "__Host-openskill"
	}
	if _, port, err := net.SplitHostPort(r.Host); err == nil && port != "" {
		return "openskill-" + port
	}
	return "openskill"
}

// attempts counts sign-ins that failed, of each address and in all.
type attempts struct {
	now func() time.Time

	mu   sync.Mutex
	all  *rate.Limiter
	each map[string]*rate.Limiter
}

// The limits of sign-ins that fail: so many at once, and then one in so long.
const (
	triesEach   = 10
	trySeconds  = 6
	triesAll    = 200
	mostTracked = 1024
)

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, all: rate.NewLimiter(10, triesAll), each: map[string]*rate.Limiter{}}
}

func (a *attempts) of(r *http.Request) *rate.Limiter {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	l := a.each[address]
	if l == nil {
		if len(a.each) >= mostTracked {
			clear(a.each) // who comes from so many addresses is held by the limit of all
		}
		l = rate.NewLimiter(rate.Every(trySeconds*time.Second), triesEach)
		a.each[address] = l
	}
	return l
}

// allowed reports whether one more may be tried.
func (a *attempts) allowed(r *http.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	return a.of(r).TokensAt(now) >= 1 && a.all.TokensAt(now) >= 1
}

// failed counts one that failed.
func (a *attempts) failed(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.of(r).AllowN(now, 1)
	a.all.AllowN(now, 1)
}
