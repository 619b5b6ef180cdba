package mcp

import (
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/dispatch/allow"
)

// answerTime is how long an answer may take.
const answerTime = 10 * time.Minute

// The bounds of what is kept. When they are reached, no question is asked.
const (
	mostOpen    = 256
	mostSettled = 4096
	mostQuiet   = 4096
)

// subject is what somebody was asked about, in one session; "" in revisions without.
type subject struct{ who, session, skill, digest string }

// about is the subject of a call.
func (c *caller) about(r *mcp.CallToolRequest, name, digest string) subject {
	s := subject{c.who(), c.id + " " + r.Session.ID(), name, digest}
	if r.ProtocolVersion() >= stateless && c.lines == nil {
		s.session = ""
	}
	return s
}

// who names the principal, across requests.
func (c *caller) who() string {
	b, _ := json.Marshal([]any{c.p.ID, c.p.Type, c.p.Tenant, c.p.Key, c.p.Scopes}) // plain data
	return string(b)
}

// asked is what people are and were asked about grants. It is safe for concurrent use.
type asked struct {
	now  func() time.Time
	idle time.Duration // how long a refusal without a session lasts

	mu      sync.Mutex
	offers  map[string]*offer         // open ones, by nonce
	settled map[subject]time.Time     // asked, and not allowed
	silent  map[allow.Standing]bool   // nothing can be asked; true: they ask for something nonetheless
	busy    map[subject]chan struct{} // being asked; closed at the end
}

func newAsked(idle time.Duration) *asked {
	return &asked{
		now: time.Now, idle: idle, offers: map[string]*offer{}, settled: map[subject]time.Time{},
		silent: map[allow.Standing]bool{}, busy: map[subject]chan struct{}{},
	}
}

// open gives a question a nonce for one answer; false where too many are open.
func (a *asked) open(o *offer) (nonce string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for n, old := range a.offers {
		if !now.Before(old.expires) {
			delete(a.offers, n)
		}
	}
	if len(a.offers) >= mostOpen {
		return "", false
	}
	nonce, o.expires = rand.Text(), now.Add(answerTime)
	a.offers[nonce] = o
	return nonce, true
}

// take removes the question of a nonce and returns it, or nil if this principal has no such question.
func (a *asked) take(nonce, who string) *offer {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.offers[nonce]
	if o == nil || o.who != who {
		return nil
	}
	delete(a.offers, nonce)
	if !a.now().Before(o.expires) {
		return nil
	}
	return o
}

// settle keeps a subject from being asked about again. It makes room by forgetting the oldest.
func (a *asked) settle(s subject) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.settled) >= mostSettled {
		var oldest subject
		for k, at := range a.settled {
			if first := a.settled[oldest]; first.IsZero() || at.Before(first) {
				oldest = k
			}
		}
		delete(a.settled, oldest)
	}
	a.settled[s] = a.now()
}

// was reports whether a subject was asked about and not allowed.
func (a *asked) was(s subject) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.settled[s]
	return ok && (s.session != "" || a.now().Sub(at) < a.idle)
}

// hush notes that there is nothing to ask about a skill with these files.
func (a *asked) hush(r *allow.Review, asks bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.silent) >= mostQuiet {
		clear(a.silent)
	}
	a.silent[allow.Standing{Skill: r.Skill, Digest: r.Digest, State: r.State}] = asks
}

// quiet reports whether it is known that there is nothing to ask.
func (a *asked) quiet(st allow.Standing) (asks, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asks, known = a.silent[st]
	return asks, known
}

// begin has one call ask about a subject. Others get what to wait for.
func (a *asked) begin(s subject) (end func(), wait <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if running := a.busy[s]; running != nil {
		return nil, running
	}
	done := make(chan struct{})
	a.busy[s] = done
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.busy, s)
		close(done)
	}, nil
}
