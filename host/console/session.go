package console

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"openskill/host/identity"
	"openskill/host/internal/gate"
	"openskill/host/internal/table"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// The bounds of sessions.
const (
	sessionIdle  = time.Hour       // without a request
	sessionLife  = 12 * time.Hour  // in all
	seenAfter    = time.Minute     // between two notes that somebody is there
	lookupWithin = 2 * time.Second // the database has so long to answer

	mostSessions  = 1024 // a quarter of them of one tenant
	sessionsEach  = 16   // of one principal
	mostLookups   = 4    // at once, so that made-up cookies leave connections to others
	lookupsQueued = 1024
)

// session is a row of console_sessions. The browser alone has its name: the database has a hash
// of it, and the credential encrypted with a key derived from it.
type session struct {
	name        string
	credential  string // as [identity.Remember] returns it; "" where nobody is asked
	began, seen time.Time
	note        *note // for the next page
}

// derived returns a value that only the holder of a session's name can make.
func derived(name, use string) []byte {
	mac := hmac.New(sha256.New, []byte(name))
	mac.Write([]byte("openskill console 1\n" + use))
	return mac.Sum(nil)
}

func rowOf(name string) []byte { return derived(name, "row") }

// csrf is the token that forms of the session have.
func (s *session) csrf() string {
	return base64.RawURLEncoding.EncodeToString(derived(s.name, "form"))
}

// guarded reports whether a form has the session's token.
func (s *session) guarded(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.csrf())) == 1
}

// old reports whether the session has ended by itself.
func (s *session) old(now time.Time) bool {
	return now.Sub(s.began) >= sessionLife || now.Sub(s.seen) >= sessionIdle
}

// sealer encrypts the credential of a session.
func sealer(name string) (cipher.AEAD, error) {
	block, err := aes.NewCipher(derived(name, "credential"))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sessions are the rows. Hosts with one database share them.
type sessions struct {
	db     *store.DB
	now    func() time.Time
	limits table.Limits
	looks  *gate.Gate // by names that may be made up
}

func newSessions(o *Options) *sessions {
	return &sessions{
		db: o.DB, now: o.Now, limits: table.Limits{Total: mostSessions, Tenant: table.Share(mostSessions, 4), Principal: sessionsEach},
		looks: gate.New(gate.Options{Places: mostLookups, Queue: lookupsQueued, Wait: lookupWithin}),
	}
}

// row is a session among others.
type row struct {
	id   string // bytes
	seen int64
}

// begin makes a session of a principal. Where there are too many of the principal, of its
// tenant or in all, the one that was silent for longest ends; see package table for whose. A
// person with another credential is the same person.
func (all *sessions) begin(ctx context.Context, credential string, p *skill.Principal) (*session, error) {
	s := &session{name: random(), began: store.Micro(all.now())}
	s.seen = s.began
	var o table.Owner // nobody is asked: all sessions are the operator's
	if credential != "" {
		s.credential = identity.Remember(credential)
		o = table.Owner{Tenant: "tenant " + p.Tenant, Principal: string(p.Type) + " " + p.ID}
	}
	seal, err := sealer(s.name)
	if err != nil {
		return nil, err
	}
	sealed := seal.Seal(nil, nil, []byte(s.credential), nil)
	err = all.db.InTx(ctx, func(tx *sql.Tx) error {
		ended, err := all.ended(ctx, tx, row{string(rowOf(s.name)), s.seen.UnixMicro()}, o)
		if err != nil {
			return err
		}
		for _, id := range ended {
			if _, err := tx.ExecContext(ctx, "DELETE FROM console_sessions WHERE id = $1", []byte(id)); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO console_sessions (id, tenant, principal, credential, began_at, seen_at) VALUES ("+store.List(1, 6)+")",
			rowOf(s.name), store.Plain(o.Tenant), store.Plain(o.Principal), sealed, all.db.At(s.began), all.db.At(s.seen))
		return err
	})
	return s, unavailable(err)
}

// ended lists the sessions that have ended by themselves, and those that make room for one more.
func (all *sessions) ended(ctx context.Context, tx *sql.Tx, more row, of table.Owner) (gone []string, err error) {
	room := table.New(all.limits, func(r row) (uint64, bool) { return uint64(r.seen), true })
	add := func(r row, o table.Owner) {
		out, _ := room.Add(r, o) // all are idle, so there is room
		for _, old := range out {
			gone = append(gone, old.id)
		}
	}
	now := all.now()
	_, err = store.All(ctx, tx, func(rows *sql.Rows) (none struct{}, err error) {
		var id []byte
		var o table.Owner
		var began, seen store.Time
		if err := rows.Scan(&id, &o.Tenant, &o.Principal, &began, &seen); err != nil {
			return none, err
		}
		if s := (session{began: began.Time, seen: seen.Time}); s.old(now) {
			gone = append(gone, string(id))
		} else {
			add(row{string(id), seen.UnixMicro()}, o)
		}
		return none, nil
	}, "SELECT id, tenant, principal, began_at, seen_at FROM console_sessions ORDER BY seen_at")
	add(more, of)
	return gone, err
}

// find returns the session of a name that a client from this network sent; nil if there is none.
func (all *sessions) find(ctx context.Context, from, name string) (*session, error) {
	if len(name) != len(random()) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	leave, err := all.looks.Enter(ctx, from)
	if err != nil {
		return nil, gate.Refusal(err, "console.session", "too many concurrent requests to the console")
	}
	defer leave()
	return all.read(ctx, name)
}

// read returns the session of a name; nil if there is none.
func (all *sessions) read(ctx context.Context, name string) (*session, error) {
	s, n := &session{name: name}, note{}
	var sealed []byte
	var began, seen store.Time
	err := all.db.Read.QueryRowContext(ctx, "SELECT credential, began_at, seen_at, note, note_good FROM console_sessions WHERE id = $1", rowOf(name)).
		Scan(&sealed, &began, &seen, &n.Text, &n.Good)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	if s.began, s.seen = began.Time, seen.Time; s.old(all.now()) {
		return nil, nil
	}
	seal, err := sealer(name)
	if err != nil {
		return nil, err
	}
	plain, err := seal.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, nil // the row is damaged
	}
	if s.credential = string(plain); n.Text != "" {
		s.note = &n
	}
	return s, nil
}

// change runs a statement on the row of a session, whose id is $1.
func (all *sessions) change(ctx context.Context, name, statement string, args ...any) error {
	_, err := all.db.Exec(ctx, statement, append([]any{rowOf(name)}, args...)...)
	return unavailable(err)
}

func (all *sessions) end(ctx context.Context, name string) error {
	return all.change(ctx, name, "DELETE FROM console_sessions WHERE id = $1")
}

// unavailable is an error of the database.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &skill.Error{Op: "console.session", Code: skill.AuditUnavailable, Message: "sessions are unavailable: the database does not answer; retry", Err: err}
}

func random() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// leave has the next page say what came of a form.
func (v *view) leave(good bool, text string) {
	err := v.sessions.change(v.r.Context(), v.s.name, "UPDATE console_sessions SET note = $2, note_good = $3 WHERE id = $1", visible(text, 600), good)
	if err != nil { // the page that follows shows what is so
		v.log.WarnContext(v.r.Context(), "cannot store a note for the next page of the console", slog.String("error", err.Error()))
	}
}

func (v *view) takeNote() *note {
	if v.s.note != nil {
		if v.sessions.change(v.r.Context(), v.s.name, "UPDATE console_sessions SET note = '' WHERE id = $1") != nil {
			return nil // a later page shows it
		}
	}
	return v.s.note
}

// known gives the session of a request and who it is now: its credential is asked again, and
// one that is no longer good ends it. nil: there is none. The error says that it cannot be
// looked up now.
func (c *Console) known(ctx context.Context, from string, r *http.Request) (*session, skill.Principal, error) {
	var p skill.Principal
	cookie, err := r.Cookie(c.cookieName(r))
	if err != nil || cookie.Value == "" {
		return nil, p, nil
	}
	s, err := c.sessions.find(ctx, from, cookie.Value)
	if s == nil || err != nil {
		return nil, p, err
	}
	p, good, err := c.whose(ctx, s)
	switch {
	case err != nil:
		return nil, p, err
	case !good:
		return nil, p, c.sessions.end(ctx, s.name)
	}
	if now := c.o.Now(); now.Sub(s.seen) >= seenAfter {
		if err := c.sessions.change(ctx, s.name, "UPDATE console_sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2", c.sessions.db.At(now)); err != nil {
			return nil, p, err
		}
	}
	return s, p, nil
}

// whose asks again whose a session is.
func (c *Console) whose(ctx context.Context, s *session) (p skill.Principal, good bool, err error) {
	if c.o.Callers == nil {
		return c.o.Operator, true, nil
	}
	p, err = c.o.Callers.Again(ctx, s.credential)
	if err != nil && skill.CodeOf(err) != skill.Unauthorized {
		return p, false, err
	}
	return p, err == nil && p.ID != "" && p.Type != skill.Anonymous, nil
}

// stillGood refuses a request whose session is over, or whose caller is not the same any more.
func (v *view) stillGood(ctx context.Context) error {
	s, err := v.sessions.read(ctx, v.s.name)
	if err != nil {
		return err
	}
	if s != nil {
		p, good, err := v.whose(ctx, s)
		if err != nil || good && p.ID == v.p.ID && slices.Equal(p.Scopes, v.p.Scopes) {
			return err
		}
	}
	return &skill.Error{Op: "console.session", Code: skill.Unauthorized, Message: "the session has ended"}
}

// CallerOf says whose session the cookies of a request to a host are of; the zero value:
// nobody's. from is the client's network.
func (c *Console) CallerOf(ctx context.Context, from, host, cookie string) skill.Principal {
	if c.o.Callers == nil {
		return c.o.Operator
	}
	s, p, err := c.known(ctx, from, &http.Request{Host: host, Header: http.Header{"Cookie": {cookie}}})
	if err != nil || s == nil {
		return skill.Principal{}
	}
	return p
}

// begin makes a session, and its cookie.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, credential string, p *skill.Principal) (*session, error) {
	s, err := c.sessions.begin(r.Context(), credential, p)
	if err != nil {
		return nil, err
	}
	cookie := &http.Cookie{Name: c.cookieName(r), Value: s.name, Path: base, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if c.secure(r) {
		cookie.Path, cookie.Secure = "/", true // as __Host- asks
	}
	http.SetCookie(w, cookie)
	return s, nil
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
