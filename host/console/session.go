package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"openskill/host/internal/table"
	"openskill/sdk/skill"
)

// session is what is kept of somebody who signed in. Its own name, which the cookie has, is
// kept nowhere but as a hash.
type session struct {
	id         [sha256.Size]byte // of its name
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
	now        func() time.Time
	owned      *table.Table[*session] // the same ones

	mu  sync.Mutex
	all map[[sha256.Size]byte]*session
}

func newSessions(o *Options) *sessions {
	s := &sessions{idle: o.Idle, life: o.Life, now: o.Now, all: map[[sha256.Size]byte]*session{}}
	if s.idle <= 0 {
		s.idle = time.Hour
	}
	if s.life <= 0 {
		s.life = 12 * time.Hour
	}
	most, each := cmp.Or(max(o.Sessions, 0), 1024), cmp.Or(max(o.SessionsEach, 0), 16)
	s.owned = table.New(table.Limits{Total: most, Tenant: table.Share(most, 4), Principal: each}, func(s *session) (uint64, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return uint64(s.seen.UnixNano()), true
	})
	return s
}

// begin makes a session of a principal, and gives its name. Where there are too many of the
// principal, of its tenant or in all, the one that was silent for longest ends; see package
// table for whose. A person with another credential is the same person.
func (all *sessions) begin(credential string, p *skill.Principal) (string, *session) {
	name, now := random(), all.now()
	s := &session{id: sha256.Sum256([]byte(name)), csrf: random(), credential: credential, began: now, seen: now, over: make(chan struct{})}
	var o table.Owner // nobody is asked: all sessions are the operator's
	if credential != "" {
		o = table.Owner{Tenant: "tenant " + p.Tenant, Principal: string(p.Type) + " " + p.ID}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.sweep(now)
	gone, _ := all.owned.Add(s, o) // all are idle, so there is room
	for _, old := range gone {
		all.drop(old.id)
	}
	all.all[s.id] = s
	return name, s
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
		all.owned.Remove(s)
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
		return nil, nil
	}
	s := c.sessions.find(cookie.Value, true)
	if s == nil {
		return nil, nil
	}
	p, good, err := c.whose(ctx, s)
	if err != nil {
		return nil, err
	}
	if !good {
		c.sessions.end(cookie.Value)
		return nil, nil
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

// stillGood refuses a request whose session is over, or whose caller is not the same any more.
func (v *view) stillGood(ctx context.Context) error {
	over := &skill.Error{Op: "console.session", Code: skill.Unauthorized, Message: "the session has ended"}
	select {
	case <-v.s.over:
		return over
	default:
	}
	if v.sessions.old(v.s, v.o.Now()) {
		return over
	}
	p, good, err := v.whose(ctx, v.s)
	if err == nil && (!good || p.ID != v.p.ID || !slices.Equal(p.Scopes, v.p.Scopes)) {
		return over
	}
	return err
}

// CallerOf says whose session the cookies of a request to a host are of; the zero value:
// nobody's.
func (c *Console) CallerOf(ctx context.Context, host, cookie string) skill.Principal {
	if c.o.Authenticate == nil {
		return c.o.Operator
	}
	s, err := c.known(ctx, &http.Request{Host: host, Header: http.Header{"Cookie": {cookie}}})
	if err != nil || s == nil {
		return skill.Principal{}
	}
	return s.principal
}

// begin makes a session, and its cookie.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, credential string, p *skill.Principal) *known {
	name, s := c.sessions.begin(credential, p)
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
