package workers

import (
	"context"
	"errors"
	"os"
	"time"

	"openskill/internal/state"
	"openskill/sdk/skill"
)

// lane is a connection to a worker that one call at a time has for itself: who makes
// the call writes to it and reads from it, and nobody is woken in between.
type lane struct {
	ch   *channel
	conn stream

	// Of the call that has it.
	id   uint64
	left int64 // bytes of what the worker may answer
}

// most is what a worker may say on a lane: something of the call that was made there,
// and of that no more than the call can leave. Whoever says anything else has not got
// anything to say that could be believed, and would keep the host busy with it for as
// long as he likes.
func (l *lane) most(k kind, call uint64) int64 {
	switch {
	case call != l.id:
	case k == kindReply:
		return l.left
	case k == kindRequest:
		return maxRequest
	}
	return -1
}

// maxRequest bounds what a guest asks of the host, in bytes: the engine takes 4 MiB
// from it.
const maxRequest = 5 << 20

// spareLanes is how many lanes without a call a worker keeps.
const spareLanes = 8

// take gives a call a lane, and a number. The error is why the worker cannot have it.
func (w *process) take() (*lane, uint64, error) {
	w.mu.Lock()
	if w.dead != nil {
		w.mu.Unlock()
		return nil, 0, errGone
	}
	w.next++
	w.busy++
	id := w.next
	if n := len(w.free); n > 0 {
		l := w.free[n-1]
		w.free = w.free[:n-1]
		w.mu.Unlock()
		return l, id, nil
	}
	w.mu.Unlock()
	l, err := w.lane()
	if err != nil {
		w.end(&crashedError{why: "sending it a call failed: " + err.Error()})
		w.release(nil)
		return nil, 0, w.cause()
	}
	return l, id, nil
}

// lane opens one more.
func (w *process) lane() (*lane, error) {
	ours, err := w.link.open()
	if err != nil {
		return nil, err
	}
	l := &lane{conn: ours}
	l.ch = newChannel(ours, l.most)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead != nil {
		_ = ours.Close()
		return nil, errGone
	}
	w.lanes[l] = struct{}{}
	return l, nil
}

// release ends a call. Its lane is for the next one; nil: it is in no state for that.
func (w *process) release(l *lane) {
	w.mu.Lock()
	w.busy--
	switch {
	case l == nil || w.dead != nil:
	case len(w.free) < spareLanes:
		w.free = append(w.free, l)
	default:
		delete(w.lanes, l)
		_ = l.conn.Close()
	}
	last := w.retired && w.busy == 0
	w.mu.Unlock()
	if last {
		w.end(errRetired)
	}
}

// errHung is what a call is told whose time is over, though its worker did not say so.
var errHung = errors.New("worker: the call did not end in time")

// do runs one call to its end, or to that of its time. The error is a
// *crashedError where the worker died of anything, or why there is no reply.
func (w *process) do(ctx context.Context, of skill.Kind, call *skill.Call) (*skill.Reply, error) {
	l, id, err := w.take()
	if err != nil {
		return nil, err
	}
	l.id, l.left = id, mostOf(call, w.maxReply)
	end := time.Now().Add(call.Limits.Timeout + Grace)
	_ = l.conn.SetDeadline(end)
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		if soon := time.Now().Add(Grace); soon.Before(end) {
			_ = l.conn.SetReadDeadline(soon)
		}
		close(told)
		_ = w.ch.send(kindCancel, id, nil, nil) // if not, the deadline sees to it
	})
	var said wireReply
	f, err := w.talk(ctx, l, id, of, call)
	if err == nil {
		err = said.read(f.head)
	}
	if err == nil && said.Unknown && call.Session != nil { // it has let go of the state: send all of it, once
		w.states.forget(state.TagOf(call.Session.State))
		said = wireReply{}
		if f, err = w.talk(ctx, l, id, of, call); err == nil {
			err = said.read(f.head)
		}
	}
	if !stop() {
		<-told // the lane's next call has its own deadline
	}
	var reply *skill.Reply
	var refused error
	if err == nil {
		w.imagesAre(said.Images)
		if reply, refused, err = said.reply(f, call); reply != nil && reply.State != nil {
			w.states.forget(state.TagOf(call.Session.State))
			w.states.keep(state.TagOf(reply.State), nil, len(reply.State))
		}
	}
	switch {
	case err == nil:
		w.release(l)
		return reply, refused
	case errors.Is(err, os.ErrDeadlineExceeded):
		go w.endOverdue(l)
		return nil, errHung
	case errors.Is(err, errFrame):
		w.end(&crashedError{why: err.Error()})
	default:
		w.closed()
	}
	w.release(nil)
	return nil, w.cause()
}

// talk says what the call is and gives the frame that ends it. What its guest asks
// for meanwhile is done here: it waits for the answer, as the caller does for both.
func (w *process) talk(ctx context.Context, l *lane, id uint64, of skill.Kind, call *skill.Call) (*frame, error) {
	wire := wireCall{Kind: of, Call: *call}
	for i := range call.Files {
		wire.Files = append(wire.Files, wireGiven{call.Files[i].Name, len(call.Files[i].Data), call.Files[i].Path})
	}
	if call.Replay != nil {
		wire.Replay = len(call.Replay) + 1
	}
	wire.naming(&w.states)
	if err := l.ch.send(kindRun, id, &wire, wire.body()); err != nil {
		return nil, err
	}
	var fetch skill.Fetch
	asking := ctx
	for {
		f, err := l.ch.receive()
		if err != nil {
			return nil, err
		}
		if f.kind == kindReply {
			return f, nil
		}
		var number uint64
		if err := f.decode(&number); err != nil {
			return nil, err
		}
		var answer []byte
		if w.outgoing != nil {
			if fetch == nil {
				fetch = w.outgoing.For(call)
				var done context.CancelFunc
				asking, done = context.WithTimeout(ctx, call.Limits.Timeout) //nolint:fatcontext // once
				defer done()
				defer context.AfterFunc(w.life, done)() // it ends with the worker, too
			}
			answer = fetch(asking, f.body)
		}
		if err := l.ch.send(kindAnswer, number, w.outgoing != nil, answer); err != nil {
			return nil, err
		}
	}
}

// closed sees to a worker whose lane has ended: it dies, and how is for reap to say;
// but not without end.
func (w *process) closed() {
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-w.life.Done():
	case <-timer.C:
		w.end(&crashedError{why: "it closed its channel"})
	}
}

// linger is how long a call may go on after it was answered without its worker. That
// is killed then, which costs the other calls in it, so it is not done lightly.
const linger = 600 * time.Millisecond

// endOverdue waits a little for a call that nobody waits for any more, and then ends
// its worker.
func (w *process) endOverdue(l *lane) {
	_ = l.conn.SetDeadline(time.Now().Add(linger))
	for {
		f, err := l.ch.receive()
		if err == nil && f.kind == kindReply {
			w.release(l)
			return
		}
		var number uint64
		if err == nil && f.kind == kindRequest {
			if err = f.decode(&number); err == nil {
				err = l.ch.send(kindAnswer, number, false, nil)
			}
		}
		if err != nil {
			break
		}
	}
	w.end(&crashedError{why: "it did not finish a call in time", hung: true})
	w.release(nil)
}
