package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"

	"openskill/host/internal/table"
	"openskill/sdk/skill"
)

// connSet keeps account of the open connections: how many there are, which of
// them wait for a request, and when the last one is gone.
type connSet struct {
	open    *table.Table[*conn]
	refused func(reason string)   // told of connections that are turned away; nil: nobody is
	holder  func(net.Addr) string // the address that counts for a connection without a known caller; nil: none counts
	seq     atomic.Uint64         // a clock of transitions, to find who has waited longest
	stall   time.Duration         // how long a client may take for a piece of an answer

	mu        sync.Mutex
	listeners []net.Listener
	stopped   bool
}

// newConnSet makes a set. Half of the connections are for one tenant, and so are those of
// all callers that are not authenticated together; a quarter is for one principal or address.
// An eighth is left to connections whose caller is not known yet, as each is at first.
// alone says that all callers are one tenant, which may have all.
func newConnSet(most int, alone bool) *connSet {
	l := table.Limits{Total: most, Tenant: table.Share(most, 2), Principal: table.Share(most, 4), Newcomers: most / 8}
	if alone {
		l = table.Limits{Total: most, Tenant: most, Principal: most}
	}
	return &connSet{open: table.New(l, (*conn).idle), stall: stallTime}
}

// listen wraps ln so that its connections are tracked.
func (cs *connSet) listen(ln net.Listener, log *slog.Logger) net.Listener {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.listeners = append(cs.listeners, ln)
	if cs.stopped {
		_ = ln.Close() // Accept reports it
	}
	return &listener{Listener: ln, set: cs, log: log, refusals: make(chan struct{}, 64)}
}

// stop closes the listeners.
func (cs *connSet) stop() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.stopped = true
	for _, ln := range cs.listeners {
		_ = ln.Close() // it is on its way out
	}
	cs.listeners = nil
}

// add takes c in, whose caller is not known yet. At a limit an idle connection makes room:
// of the same address, or else of callers that are not authenticated, or else of the tenant
// that has most. So clients that are silent, or do not read their answers, cannot keep others
// out. false means that there is none: all are in a call, or their clients read.
//
// One that reads its answer slowly is not put behind those that say nothing: a client that
// took the places of all but one by not reading would have the last one that comes close that one.
func (cs *connSet) add(c *conn) bool {
	var o table.Owner
	if cs.holder != nil {
		o.Principal = cs.holder(c.RemoteAddr())
	}
	cs.mu.Lock()
	if cs.stopped {
		cs.mu.Unlock()
		return false
	}
	gone, ok := cs.open.Add(c, o)
	cs.mu.Unlock()
	cs.shed(gone)
	return ok
}

// claim notes whose connection c is, which counts for that caller from now on. false means
// that the caller has as many as it may, and all of them are at work.
func (cs *connSet) claim(c *conn, p *skill.Principal) bool {
	if c.known.Load() && c.tenant == p.Tenant && c.principal == p.ID {
		return true
	}
	gone, ok := cs.open.Move(c, table.Owner{Tenant: "tenant " + p.Tenant, Principal: string(p.Type) + " " + p.ID})
	if ok {
		c.tenant, c.principal = p.Tenant, p.ID
		c.known.Store(true)
	}
	cs.shed(gone)
	return ok
}

func (cs *connSet) shed(gone []*conn) {
	for _, c := range gone {
		c.abort()
		cs.tell(refusedShed)
	}
}

func (cs *connSet) tell(reason string) {
	if cs.refused != nil {
		cs.refused(reason)
	}
}

// drain closes the connections that wait for a request, and those that are read on for
// longer than a moment, again and again until none is open or ctx ends.
func (cs *connSet) drain(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		left := 0
		for _, c := range cs.open.All() {
			if _, spare := c.idle(); c.state.Load() == waiting || spare && c.linger.Load() {
				c.abort()
				continue
			}
			left++
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (cs *connSet) abortAll() {
	for _, c := range cs.open.All() {
		c.abort()
	}
}

// listener hands out tracked connections.
type listener struct {
	net.Listener
	set      *connSet
	log      *slog.Logger
	refusals chan struct{} // has room for as many refused clients as are waited for
}

// Accept gives the next connection. Errors that pass, as too many open files,
// are waited out: fasthttp would stop the server over them.
func (l *listener) Accept() (net.Conn, error) {
	pause := 5 * time.Millisecond
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			if !passes(err) {
				return nil, err
			}
			l.log.LogAttrs(context.Background(), slog.LevelWarn, "cannot accept connections",
				slog.String("error", err.Error()), slog.Duration("pause", pause))
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
			continue
		}
		c := &conn{Conn: raw, set: l.set}
		if sc, ok := raw.(syscall.Conn); ok {
			c.raw, _ = sc.SyscallConn() // nil: departed clients are not noticed
		}
		c.enter(waiting)
		if l.set.add(c) {
			return c, nil
		}
		l.set.tell(refusedConnections)
		l.refuse(c)
	}
}

func passes(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refuse answers a connection that there is no room for, without reading its
// request. It does not wait: the few bytes fit into the socket's buffer, and
// whether the client gets to read them before the end is seen to elsewhere, for
// as many as there is room for.
func (l *listener) refuse(c *conn) {
	body, _ := json.Marshal(skill.Problem{Error: skill.ResultError{ // plain strings
		Code: skill.RateLimited, Status: skill.RateLimited.Status(),
		Message: "too many connections; retry after 1 s",
		Details: map[string]any{"retry_after_ms": 1000},
	}})
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	head := "HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: " + jsonType + "\r\n"
	for _, h := range securityHeaders {
		head += string(h[0]) + ": " + string(h[1]) + "\r\n"
	}
	_, _ = fmt.Fprintf(c, "%s%s: %s\r\nContent-Length: %d\r\n\r\n%s", head, headerTrace, newTrace(), len(body), body)
	select {
	case l.refusals <- struct{}{}:
		c.linger.Store(true)
		go func() {
			late := time.AfterFunc(lingerPause, c.abort) // it is not counted, and cannot make room
			_ = c.Close()
			late.Stop()
			<-l.refusals
		}()
	default:
		_ = c.Close()
	}
}

// The states of a connection.
const (
	waiting   int32 = iota // for the first byte of a request
	receiving              // a request has begun
	working                // a handler runs, also one that has a stream sent
	sending                // the answer is sent; nobody works for it any more
)

// conn is one client's connection.
type conn struct {
	net.Conn
	set    *connSet
	raw    syscall.RawConn // nil where there is no socket
	state  atomic.Int32
	since  atomic.Uint64 // of set.seq, when state was entered, or the client last sent or took something
	taken  atomic.Int64  // when it did; see clock
	linger atomic.Bool   // the client may still be sending when this closes
	known  atomic.Bool   // the caller of the last request was authenticated
	once   sync.Once

	watchedAt int    // index in watches.conns plus one, 0 while not watched; guarded by watches.mu
	looked    bool   // a look has passed since the watch began; likewise
	left      func() // likewise

	unnoted           int    // bytes that were sent since taken, for the worker alone
	tenant, principal string // that it counts for where known; likewise

	sent  func()    // called when the answer is with the kernel, or cannot be; nil: nobody waits for it. For the worker alone
	until time.Time // when the answer must be sent; zero: no bound. For the worker alone
}

func connOf(ctx *fasthttp.RequestCtx) *conn {
	c, _ := ctx.Conn().(*conn)
	return c
}

func connState(c net.Conn, state fasthttp.ConnState) {
	if c, ok := c.(*conn); ok && state == fasthttp.StateIdle {
		c.isSent()
		c.enter(waiting)
	}
}

// isSent notes that the connection has no answer any more.
func (c *conn) isSent() {
	if c.sent != nil {
		c.sent()
		c.sent = nil
	}
}

// enter has c in a state from now on. Its time goes first: a call that took long would
// otherwise look, in the moment of its end, like the one that has waited longest.
func (c *conn) enter(state int32) {
	c.since.Store(c.set.seq.Add(1))
	c.state.Store(state)
}

// clock is the time in nanoseconds.
func clock() int64 { return time.Now().UnixNano() }

// patience is how long a client may take nothing of its answer before its connection can
// make room. Answers go out in less, or a host full of calls would lose some.
const patience = time.Second

// idle reports since when the connection could make room for another one, and whether it can.
// A request of a known caller that comes in is work under way; its time is bounded.
func (c *conn) idle() (since uint64, ok bool) {
	switch c.state.Load() {
	case working:
		return 0, false
	case sending:
		ok = clock()-c.taken.Load() >= int64(patience)
	case receiving:
		ok = !c.known.Load()
	default:
		ok = true
	}
	return c.since.Load(), ok // read after the state, see enter
}

// answered notes that the answer of a request is made.
func (c *conn) answered() {
	if c.state.Load() == working {
		c.unnoted = 0
		c.taken.Store(clock())
		c.enter(sending)
	}
}

// works notes that there is a handler behind the answer after all.
func (c *conn) works() { c.state.CompareAndSwap(sending, working) }

// sendPiece is how much of an answer goes to the kernel at once, in bytes: a client is
// seen to read by its taking one piece after the other.
const sendPiece = 64 << 10

// stallTime is how long a client may take for a piece. Then its connection is closed, however
// many there are: what it does not take is memory.
const stallTime = 10 * time.Second

// SetWriteDeadline sets when an answer must be sent as a whole; see Write.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

// Write sends p, and notes with each piece of an answer that the client takes it. It fails
// where the client takes a piece too slowly.
func (c *conn) Write(p []byte) (n int, err error) {
	for {
		late := time.Now().Add(c.set.stall)
		if !c.until.IsZero() && c.until.Before(late) {
			late = c.until
		}
		_ = c.Conn.SetWriteDeadline(late) // failing only means closed
		m, err := c.Conn.Write(p[n:min(n+sendPiece, len(p))])
		n += m
		if c.unnoted += m; c.unnoted >= sendPiece && c.state.Load() == sending {
			c.unnoted = 0
			c.taken.Store(clock())
			c.since.Store(c.set.seq.Add(1))
		}
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// Read notes that a request has begun, and that more of it comes.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.state.CompareAndSwap(waiting, receiving)
		c.since.Store(c.set.seq.Add(1))
	}
	return n, err
}

// The bounds of reading on after an answer that the client did not wait for. Closing at once
// would make the kernel send a reset, which takes the answer out of the client's hands. What is
// read is thrown away, so it costs no memory; and the connection makes room as soon as somebody
// else needs it.
const (
	lingerTime  = 30 * time.Second
	lingerBytes = 256 << 20
	lingerPause = 2 * time.Second // for a piece
	lingerPiece = 64 << 10
)

// Close closes the connection, after the client has had its chance to read the
// last answer.
func (c *conn) Close() error {
	var err error
	c.once.Do(func() {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.linger.Load() && half.CloseWrite() == nil {
			c.readOn()
		}
		err = c.Conn.Close()
		c.set.open.Remove(c)
		c.isSent()
	})
	return err
}

// readOn reads what the client still sends.
func (c *conn) readOn() {
	if c.known.Load() { // others make room already
		c.taken.Store(clock())
		c.enter(sending)
	}
	end := time.Now().Add(lingerTime)
	for left := lingerBytes; left > 0; left -= lingerPiece {
		late := time.Now().Add(lingerPause)
		if late.After(end) {
			late = end
		}
		_ = c.SetReadDeadline(late) // failing only means closed
		if _, err := io.CopyN(io.Discard, c.Conn, lingerPiece); err != nil {
			return
		}
	}
}

// abort closes at once, also under a worker that is reading or writing.
func (c *conn) abort() {
	_ = c.Conn.Close() // a second close is no harm
	c.set.open.Remove(c)
}
