package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agent/tools"
	"openskill/host/internal/gate"
	"openskill/host/internal/table"
	"openskill/sdk/skill"
)

const (
	headerSession  = "Mcp-Session-Id"
	headerProtocol = "Mcp-Protocol-Version"
	// headerRequest ties a message, as the SDK hands it on, to the HTTP request that it
	// came in: only that request knows when its client has left.
	headerRequest = "Openskill-Request"

	// stateless is the first revision of the protocol that has no sessions. The SDK
	// speaks it only where it keeps none, and those before it best where it does: only
	// with a session can a later request cancel an earlier one.
	stateless = "2026-07-28"
)

// served are the revisions of the protocol that are served.
var served = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", stateless}

// web serves MCP over HTTP. One handler of the SDK cannot do both kinds of revisions,
// nor answer both in JSON and in streams, so there are three.
type web struct {
	s      *Server
	keeps  http.Handler // with sessions; always streams
	stream http.Handler // without; for requests that want notifications
	single http.Handler // without; one JSON object

	// open bounds the requests that are under way at once. Some are streams without an end,
	// each of which has one of the host's connections for itself. All requests are counted,
	// and not those that look like streams: which ones are is for the SDK to find out.
	open      *gate.Gate
	exchanges sync.Map // by number
	lastID    uint64   // guarded by mu

	mu       sync.Mutex
	callers  map[string]*caller  // by key
	sessions map[string]*session // by id
	owned    *table.Table[*session]
}

// session is one that the SDK keeps, for those who must make room.
type session struct {
	id   string // "" until it has begun
	c    *caller
	used time.Time
	open int // requests under way
}

type callerKey struct{}

func newWeb(s *Server) *web {
	w := &web{s: s, open: gate.New(gate.Options{Places: s.opt.MaxOpen, Alone: s.opt.Alone}), callers: map[string]*caller{}, sessions: map[string]*session{}}
	most := s.opt.MaxSessions
	limits := table.Limits{Total: most, Tenant: table.Share(most, 4), Principal: max(most/8, 1)}
	if s.opt.Alone {
		limits.Tenant = most
	}
	w.owned = table.New(limits, func(s *session) (uint64, bool) { return uint64(s.used.UnixNano()), s.open == 0 })
	server := func(r *http.Request) *mcp.Server {
		c, _ := r.Context().Value(callerKey{}).(*caller)
		if c == nil {
			return nil
		}
		return c.server
	}
	// Hosts and bodies are checked before the SDK sees a request.
	common := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: int64(s.opt.BodyLimit)}
	keeps, stream := common, common
	keeps.SessionTimeout = s.opt.SessionIdle
	stream.Stateless, stream.PropagateRequestCancellation = true, true
	single := stream
	single.JSONResponse = true
	w.keeps = mcp.NewStreamableHTTPHandler(server, &keeps)
	w.stream = mcp.NewStreamableHTTPHandler(server, &stream)
	w.single = mcp.NewStreamableHTTPHandler(server, &single)
	return w
}

// ServeHTTP serves one request of the streamable HTTP transport, on whatever path. It
// reads of r before it writes, keeps nothing of it after, and ends what r asked for
// when the context of r ends (see Options.Context).
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w := s.web
	if err := s.opt.Origins.Check(r); err != nil {
		refuse(rw, nil, err)
		return
	}
	p, err := s.opt.Principal(r)
	if err == nil && p.ID == "" {
		err = &skill.Error{Op: "mcpserver.ServeHTTP", Code: skill.Unauthorized, Message: "the request has no authenticated caller"}
	}
	if err != nil {
		refuse(rw, nil, err)
		return
	}
	switch r.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		rw.Header().Set("Allow", "GET, POST, DELETE")
		refuseAs(rw, http.StatusMethodNotAllowed, nil, invalid("mcpserver.ServeHTTP", r.Method, "method not allowed: use POST, or GET and DELETE with a session"))
		return
	}
	form, err := formOf(r)
	if err != nil {
		refuse(rw, nil, err)
		return
	}
	leave, err := w.open.TryEnter(p.Tenant)
	if err != nil {
		refuse(rw, nil, gate.Refusal(err, "mcpserver.open", fmt.Sprintf("too many open MCP requests and streams (at most %d in total, and a share per tenant); close some", s.opt.MaxOpen)))
		return
	}
	defer leave()
	body, err := s.bodyOf(r)
	if err != nil {
		refuse(rw, nil, err)
		return
	}
	var m glance
	if r.Method == http.MethodPost {
		m = peek(body)
	}
	if err := s.opt.Rate(r, m.requests()); err != nil {
		refuse(rw, m.ID, err)
		return
	}
	c, err := w.callerOf(p)
	if err != nil {
		refuse(rw, m.ID, err)
		return
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(s.base, callerKey{}, c)) // the request's memory is not its own behind some servers; the line below ties them
	defer cancel(nil)
	defer context.AfterFunc(r.Context(), func() { cancel(context.Cause(r.Context())) })()                                 // it is the one that has ended
	e := &exchange{ctx, r.Context(), newStreamWriter(rw, s.opt.KeepAlive, cancel), func() { _ = s.opt.Rate(r, 1) }, form} // the next one is refused
	defer e.out.finish()
	number, forget := w.remember(e)
	defer forget()
	e.out.id = m.ID
	own := r.WithContext(ctx)
	own.Header.Set(headerRequest, number)
	own.Body, own.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w.route(e.out, own, c, &m)
}

// route hands a request to the handler for its revision.
func (w *web) route(rw *streamWriter, r *http.Request, c *caller, m *glance) {
	version := r.Header.Get(headerProtocol)
	if status, wrong := m.refused(version); wrong != nil {
		writeError(rw, status, m.ID, wrong)
		return
	}
	if version != "" && !slices.Contains(served, version) {
		data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: served, Requested: skill.CleanText(version, 40)}) // plain data
		writeError(rw, http.StatusBadRequest, m.ID, &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data})
		return
	}
	if version >= stateless && r.Method == http.MethodPost {
		r.Header.Del(headerSession)
		if m.wantsStream() {
			rw.live()
			w.stream.ServeHTTP(rw, r)
		} else {
			w.single.ServeHTTP(rw, r)
		}
		return
	}
	id := r.Header.Get(headerSession)
	if id == "" {
		if m.Method != "initialize" {
			refuseAs(rw, http.StatusBadRequest, m.ID, invalid("mcpserver.session", "", "session missing: call initialize, or send the header "+headerProtocol+": "+stateless))
			return
		}
		room, ok := w.reserve(c)
		if !ok {
			refuse(rw, m.ID, &skill.Error{
				Op: "mcpserver.session", Code: skill.RateLimited, Details: map[string]any{"retry_after_ms": 1000},
				Message: "too many sessions of this caller or tenant, all in use; end some with DELETE",
			})
			return
		}
		defer w.settle(room)
		w.keeps.ServeHTTP(rw, r)
		return
	}
	if !w.enter(id, c) {
		refuseAs(rw, http.StatusNotFound, m.ID, notFound("mcpserver.session", "", "session not found; call initialize to start a new one"))
		return
	}
	defer w.leave(id)
	if r.Method == http.MethodDelete {
		c.endCalls(id)
	}
	if r.Method == http.MethodGet || m.wantsStream() {
		rw.live()
	}
	w.keeps.ServeHTTP(rw, r)
	if r.Method == http.MethodDelete {
		w.mu.Lock()
		w.drop(id)
		w.mu.Unlock()
	}
}

// bodyOf reads a request's body, at most BodyLimit of it.
func (s *Server) bodyOf(r *http.Request) ([]byte, error) {
	const op = "mcpserver.body"
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, &skill.Error{Op: op, Code: skill.UnsupportedEncoding, Message: "compressed bodies are not supported; send the message without Content-Encoding"}
	}
	if r.Body == nil || r.Method != http.MethodPost {
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, int64(s.opt.BodyLimit)+1))
	if err != nil {
		return nil, &skill.Error{Op: op, Code: skill.InvalidArgument, Message: "the body ended early; send all of it", Err: err}
	}
	if len(b) > s.opt.BodyLimit {
		return nil, &skill.Error{Op: op, Code: skill.PayloadTooLarge, Message: fmt.Sprintf("the message is too large; the limit is %d bytes", s.opt.BodyLimit)}
	}
	return b, nil
}

// exchange is one HTTP request under way.
type exchange struct {
	ctx     context.Context //nolint:containedctx // of the request that it stands for
	asked   context.Context //nolint:containedctx // of the HTTP request, with the values of its server
	out     *streamWriter
	refused func() // counts a call that did not run
	tools   string // the form of tools that the URL asks for; "": none
}

// remember gives a number by which an exchange is found.
func (w *web) remember(e *exchange) (number string, forget func()) {
	w.mu.Lock()
	w.lastID++
	number = strconv.FormatUint(w.lastID, 10)
	w.mu.Unlock()
	w.exchanges.Store(number, e)
	return number, func() { w.exchanges.Delete(number) }
}

// exchangeOf is the one that a message came in; nil where it did not come over HTTP.
func (w *web) exchangeOf(x *mcp.RequestExtra) *exchange {
	if x == nil {
		return nil
	}
	found, _ := w.exchanges.Load(x.Header.Get(headerRequest))
	e, _ := found.(*exchange)
	return e
}

// callerOf is the caller of a principal. Its sessions are for whoever has exactly
// the same rights, and has shown the same key: records name it.
func (w *web) callerOf(p skill.Principal) (*caller, error) {
	scopes := slices.Sorted(slices.Values(p.Scopes))
	b, err := json.Marshal([]any{p.ID, p.Type, p.Tenant, p.Key, scopes})
	if err != nil {
		return nil, err
	}
	key := string(b)
	w.mu.Lock()
	c, known := w.callers[key]
	if !known {
		p.Scopes = scopes
		c, err = w.s.newCaller(w.s.base, p, func() string { return w.begin(c) })
		if err != nil {
			w.mu.Unlock()
			return nil, err
		}
		w.callers[key] = c
		w.s.add(c)
	}
	c.used = time.Now()
	w.mu.Unlock()
	if !known {
		c.look(w.s.base)
	}
	return c, nil
}

// reserve makes room for a session of a caller, at the cost of what its principal has, or its
// tenant; see package table. false means that all of it is at work.
func (w *web) reserve(c *caller) (*session, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prune()
	s := &session{c: c, used: time.Now(), open: 1}
	gone, ok := w.owned.Add(s, table.Owner{Tenant: "tenant " + c.p.Tenant, Principal: string(c.p.Type) + " " + c.p.ID})
	for _, old := range gone {
		w.end(old)
	}
	if ok {
		c.coming = append(c.coming, s)
	}
	return s, ok
}

// begin names a session that there is room for.
func (w *web) begin(c *caller) string {
	id := rand.Text()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(c.coming) > 0 {
		s := c.coming[0]
		c.coming = c.coming[1:]
		s.id, w.sessions[id] = id, s
	}
	return id
}

// settle ends the request that was to begin a session; where none has begun, its room is free.
func (w *web) settle(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.open, s.used = s.open-1, time.Now()
	if s.id == "" {
		s.c.coming = slices.DeleteFunc(s.c.coming, func(o *session) bool { return o == s })
		w.owned.Remove(s)
	}
}

// drop forgets a session. w.mu is held.
func (w *web) drop(id string) {
	if s := w.sessions[id]; s != nil {
		delete(w.sessions, id)
		w.owned.Remove(s)
	}
}

// end ends a session that has made room. w.mu is held.
func (w *web) end(s *session) {
	delete(w.sessions, s.id)
	for ss := range s.c.server.Sessions() {
		if ss.ID() == s.id {
			go func() { _ = ss.Close() }() // it may wait for what it answers
		}
	}
}

// enter begins a request of a session; false if it is not the caller's.
func (w *web) enter(id string, c *caller) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	if s == nil || s.c != c {
		return false
	}
	s.open, s.used = s.open+1, time.Now()
	return true
}

func (w *web) leave(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sessions[id]; s != nil {
		s.open, s.used = s.open-1, time.Now()
	}
}

// prune forgets sessions that the SDK has ended. w.mu is held.
func (w *web) prune() {
	live := map[string]bool{}
	for _, c := range w.callers {
		for ss := range c.server.Sessions() {
			live[ss.ID()] = true
		}
	}
	for id, s := range w.sessions {
		if !live[id] && s.open == 0 && time.Since(s.used) > time.Minute { // one may just begin
			w.drop(id)
		}
	}
}

// endOver ends the sessions of callers whose key was revoked or has expired. What they have
// under way ends with its request.
func (w *web) endOver() {
	if w.s.opt.Over == nil {
		return
	}
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.callers))
	w.mu.Unlock()
	for _, c := range all {
		if c.p.Key == "" || !w.s.opt.Over(w.s.base, c.p) {
			continue
		}
		w.mu.Lock()
		for _, s := range w.sessions {
			if s.c == c {
				w.owned.Remove(s)
				w.end(s)
			}
		}
		w.mu.Unlock()
	}
}

// forget lets go of callers that have had no session for a minute.
func (w *web) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prune()
	open := map[*caller]bool{}
	for _, s := range w.sessions {
		open[s.c] = true
	}
	for key, c := range w.callers {
		if time.Since(c.used) < time.Minute || open[c] || len(c.coming) > 0 {
			continue
		}
		for range c.server.Sessions() {
			open[c] = true
		}
		if !open[c] {
			delete(w.callers, key)
			w.s.remove(c)
		}
	}
}

// refuse answers a request that no session gets to see.
func refuse(rw http.ResponseWriter, id json.RawMessage, err error) {
	refuseAs(rw, skill.CodeOf(err).Status(), id, err)
}

func refuseAs(rw http.ResponseWriter, status int, id json.RawMessage, err error) {
	wire, _ := protocolError(err).(*jsonrpc.Error) //nolint:errorlint // it is never wrapped
	wire.Code = jsonrpc.CodeInvalidRequest
	switch status {
	case http.StatusUnauthorized:
		rw.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		rw.Header().Set("Retry-After", "1")
	}
	writeError(rw, status, id, wire)
}

func writeError(rw http.ResponseWriter, status int, id json.RawMessage, wire *jsonrpc.Error) {
	b := errorMessage(id, wire)
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(b) // the client may have left
}

// formOf returns the parameter tools of the URL; "" without it.
func formOf(r *http.Request) (string, error) {
	given := r.URL.Query()["tools"]
	switch {
	case len(given) == 0:
		return "", nil
	case len(given) > 1 || given[0] == "":
		return "", invalid("mcpserver.ServeHTTP", "tools", "tools must be given once: all, code or both")
	}
	_, err := tools.ParseForm(given[0], tools.FormAll)
	return given[0], err
}
