package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/sdk/skill"
)

// closing is how long an output that nobody reads is waited for at the end.
const closing = 2 * time.Second

// ServeStdio serves one session over lines of JSON, as p, until in ends or ctx does.
// At the end of in it answers what was asked before; at the end of ctx, calls under
// way are cancelled. The error is nil in both cases.
func (s *Server) ServeStdio(ctx context.Context, p skill.Principal, in io.Reader, out io.Writer) error {
	base, cancel := context.WithCancelCause(s.base) // ends with ctx as well, by the line below
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(errShutdown) })()
	c, err := s.newCaller(base, p, nil)
	if err != nil {
		return err
	}
	c.look(ctx)
	s.add(c)
	defer s.remove(c)
	conn := newLines(in, out, s.opt.BodyLimit, s.opt.MaxPending)
	c.lines = conn
	defer conn.Close()
	ss, err := c.server.Connect(context.WithoutCancel(ctx), transport{conn}, nil)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- ss.Wait() }()
	select {
	case err = <-ended:
		return err
	case <-base.Done():
	}
	go func() { _ = ss.Close() }() // it waits for calls, which have ended
	late := time.NewTimer(closing)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
	}
	return nil
}

type transport struct{ conn *lines }

func (t transport) Connect(context.Context) (mcp.Connection, error) { return t.conn, nil }

// lines is a connection of one message a line. The SDK's own ends at the first line
// that is not a message; this one says what is wrong with it, and goes on.
type lines struct {
	in      *bufio.Reader
	most    int // bytes of a message
	pending int // requests under way
	got     chan jsonrpc.Message
	ended   chan error // the end of in, once

	once   sync.Once
	closed chan struct{}

	mu      sync.Mutex
	waiting map[jsonrpc.ID]bool // requests without an answer; true: cancelled, so that none is wanted
	leaving int                 // answers that are being written
	idle    chan struct{}       // closed when nothing waits, made when in has ended

	writing sync.Mutex
	out     io.Writer
	bodies  bodies // of the messages to come
}

func newLines(in io.Reader, out io.Writer, most, pending int) *lines {
	l := &lines{
		in: bufio.NewReaderSize(in, 64<<10), out: out, most: most, pending: pending, waiting: map[jsonrpc.ID]bool{},
		got: make(chan jsonrpc.Message), ended: make(chan error, 1), closed: make(chan struct{}),
	}
	// A read of standard input cannot be interrupted: the goroutine of it may outlive
	// the session, and ends with the process.
	go l.receive()
	return l
}

func (l *lines) SessionID() string { return "" }

func (l *lines) receive() {
	for {
		m, err := l.next()
		if err != nil {
			l.ended <- err
			return
		}
		if m == nil {
			continue
		}
		select {
		case l.got <- m:
		case <-l.closed:
			return
		}
	}
}

// next gives the next message; nil for a line that was answered here.
func (l *lines) next() (jsonrpc.Message, error) {
	line, size, err := l.line()
	if err != nil {
		return nil, err
	}
	line = bytes.TrimSpace(line)
	var wrong jsonrpc.Error
	switch {
	case len(line) == 0:
		return nil, nil
	case size > l.most:
		wrong = jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the message is too large: %d bytes, the limit is %d", size, l.most)}
	default:
		m := peek(line)
		if _, bad := m.refused(stateless); bad != nil && (m.Method == "" || m.ID != nil) { // else a notification, which has no answer
			wrong = *bad
			break
		}
		msg, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			wrong = *errNotAMessage
			break
		}
		if r, ok := msg.(*jsonrpc.Request); ok {
			if bad := l.take(r); bad != nil {
				if bad.Code == jsonrpc.CodeInvalidRequest {
					line = nil // the id is that of another request, whose answer this is not
				}
				wrong = *bad
				break
			}
		}
		return msg, nil
	}
	return nil, l.refuse(line, &wrong)
}

// codeBusy is of the range that JSON-RPC leaves to servers.
const codeBusy = -32000

// take counts a request, or says why it is not taken.
func (l *lines) take(r *jsonrpc.Request) *jsonrpc.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Method == "notifications/cancelled" {
		var p struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(r.Params, &p) == nil {
			if id, err := jsonrpc.MakeID(p.RequestID); err == nil {
				if _, ok := l.waiting[id]; ok {
					l.waiting[id] = true
				}
			}
		}
	}
	if !r.IsCall() || r.Method == "subscriptions/listen" { // which has no answer while the session lasts
		return nil
	}
	if _, twice := l.waiting[r.ID]; twice {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "duplicate request id: another request with this id is in progress"}
	}
	if len(l.waiting)+l.leaving >= l.pending {
		return &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("%d requests are in progress; wait for responses before sending more", l.pending)}
	}
	l.waiting[r.ID] = false
	return nil
}

// answers frees the id of a request whose answer is about to be written, since who has
// read that may use it again at once, and tells whether nobody wants the answer.
func (l *lines) answers(r *jsonrpc.Response) (unwanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	unwanted = l.waiting[r.ID]
	delete(l.waiting, r.ID)
	l.leaving++
	return unwanted
}

// answered is called when the answer is written: until then the request counts, or the
// input's end could win.
func (l *lines) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving--
	if l.idle != nil && len(l.waiting)+l.leaving == 0 {
		close(l.idle)
		l.idle = nil
	}
}

// drained is closed when every request is answered.
func (l *lines) drained() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := make(chan struct{})
	if len(l.waiting)+l.leaving == 0 {
		close(done)
		return done
	}
	l.idle = done
	return done
}

// line gives the next line, or of one that is too long its head and tail, and its size.
func (l *lines) line() (line []byte, size int, err error) {
	var tail []byte
	for {
		part, err := l.in.ReadSlice('\n')
		size += len(part)
		if room := l.most + 1 - len(line); len(part) <= room {
			line = append(line, part...)
		} else {
			line = append(line, part[:max(room, 0)]...)
			tail = append(tail, part[max(room, 0):]...)
			tail = tail[max(len(tail)-idRoom, 0):]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && size > 0 && errors.Is(err, io.EOF):
			return append(line, tail...), size, nil // a last line without its end
		case err != nil:
			return nil, 0, err
		}
		return append(line, tail...), len(bytes.TrimRight(part, "\r\n")) + size - len(part), nil
	}
}

// idRoom is how much of the end of a long line is kept: some clients write the id last.
const idRoom = 512

var lastID = regexp.MustCompile(`"id"\s*:\s*("[^"\\]{1,200}"|-?[0-9]{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}?\s*$`)

// refuse answers a line that is not passed on.
func (l *lines) refuse(line []byte, wrong *jsonrpc.Error) error {
	return l.write(errorMessage(idOf(line), wrong))
}

// idOf is the id of a message that cannot be read as a whole; null if it has none to
// be found.
func idOf(line []byte) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err == nil && t == json.Delim('{') {
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				break
			}
			var v json.RawMessage
			if dec.Decode(&v) != nil {
				break
			}
			if id := idFor(v); key == "id" && id != nil && len(id) <= 200 {
				return id
			}
		}
	}
	if m := lastID.FindSubmatch(line[max(len(line)-idRoom, 0):]); m != nil {
		return m[1]
	}
	return json.RawMessage("null")
}

// Read implements mcp.Connection. The end of the input is told once everything that
// was asked is answered: the SDK cancels then what is under way.
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-l.got:
		return m, nil
	case err := <-l.ended:
		select {
		case <-l.drained():
		case <-l.closed:
		case <-ctx.Done():
		}
		return nil, err
	case <-l.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements mcp.Connection.
func (l *lines) Write(_ context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if ok {
		tidy(r)
		unwanted := l.answers(r)
		defer l.answered()
		if unwanted {
			return l.bodies.writeTo(io.Discard, r.Result)
		}
	}
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return l.write(b)
}

// tidy gives errors of the SDK that have no number one, and bounds their words.
func tidy(r *jsonrpc.Response) {
	var wire *jsonrpc.Error
	switch {
	case r.Error == nil:
		return
	case !errors.As(r.Error, &wire):
		wire = &jsonrpc.Error{Message: r.Error.Error()}
	}
	code := wire.Code
	if code == 0 {
		code = jsonrpc.CodeInvalidRequest
	}
	r.Error = &jsonrpc.Error{Code: code, Message: skill.CleanText(r.Error.Error(), skill.MaxMessage), Data: wire.Data}
}

// write sends one message, which has no line end in it.
func (l *lines) write(b []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.bodies.writeTo(l.out, append(b, '\n'))
}

// Close implements mcp.Connection. It may be called twice.
func (l *lines) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}
