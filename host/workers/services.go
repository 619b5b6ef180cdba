package workers

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"openskill/sdk/skill"
)

// HostServices is the network of the guests of a worker: it asks the host. The zero
// value is handed to runners and, in a WorkerConfig, to [Serve].
type HostServices struct {
	mu    sync.Mutex
	calls map[*skill.Call]*asker
}

var _ skill.Outgoing = (*HostServices)(nil)

// asker is the lane of a call, by which its guest asks.
type asker struct {
	ch *channel
	id uint64

	mu     sync.Mutex // a guest asks one thing after the other
	number uint64
}

func (o *HostServices) began(c *skill.Call, ch *channel, id uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls = map[*skill.Call]*asker{}
	}
	o.calls[c] = &asker{ch: ch, id: id}
}

func (o *HostServices) ended(c *skill.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.calls, c)
}

// For implements [skill.Outgoing]: what the call may ask for, the host knows by
// itself.
func (o *HostServices) For(call *skill.Call) skill.Fetch {
	o.mu.Lock()
	a := o.calls[call]
	o.mu.Unlock()
	return func(ctx context.Context, request []byte) []byte {
		if a == nil {
			return nil
		}
		return a.ask(ctx, request)
	}
}

// ask gives nil if there is no answer before ctx ends. One that comes later is
// passed over, by the next who asks or by the lane.
func (a *asker) ask(ctx context.Context, request []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.number++
	if a.ch.send(kindRequest, a.id, a.number, request) != nil {
		return nil // the host is gone, and with it this process
	}
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = a.ch.conn.SetReadDeadline(time.Unix(1, 0))
		close(over)
	})
	defer func() {
		if !stop() {
			<-over
			_ = a.ch.conn.SetReadDeadline(time.Time{})
		}
	}()
	for {
		f, err := a.ch.receive()
		if err != nil || f.kind != kindAnswer {
			return nil
		}
		if f.call != a.number {
			continue // of what was given up
		}
		var done bool
		if json.Unmarshal(f.head, &done) != nil || !done {
			return nil
		}
		return f.body
	}
}
