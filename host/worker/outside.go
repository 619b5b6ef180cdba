package worker

import (
	"context"
	"encoding/json"
	"sync"

	"openskill/sdk/skill"
)

// Outside is the network of the guests of a worker: it asks the host. The zero
// value is handed to runners and, in a Duty, to [Serve].
type Outside struct {
	ch *channel

	mu      sync.Mutex
	calls   map[*skill.Call]uint64
	waiting map[uint64]chan []byte
	next    uint64
}

var _ skill.Outgoing = (*Outside)(nil)

func (o *Outside) began(c *skill.Call, id uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == nil {
		o.calls, o.waiting = map[*skill.Call]uint64{}, map[uint64]chan []byte{}
	}
	o.calls[c] = id
}

func (o *Outside) ended(c *skill.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.calls, c)
}

// For implements [skill.Outgoing]: what the call may ask for, the host knows by
// itself.
func (o *Outside) For(call *skill.Call) skill.Fetch {
	o.mu.Lock()
	id, ok := o.calls[call]
	o.mu.Unlock()
	return func(ctx context.Context, request []byte) []byte {
		if !ok {
			return nil
		}
		answer := make(chan []byte, 1)
		o.mu.Lock()
		o.next++
		number := o.next
		o.waiting[number] = answer
		o.mu.Unlock()
		defer func() {
			o.mu.Lock()
			delete(o.waiting, number)
			o.mu.Unlock()
		}()
		if o.ch.send(kindRequest, id, number, request) != nil {
			return nil // the host is gone, and with it this process
		}
		select {
		case b := <-answer:
			return b
		case <-ctx.Done():
			return nil
		}
	}
}

// answered hands an answer to the guest that waits for it, if it still does.
func (o *Outside) answered(f *frame) error {
	var done bool
	if err := json.Unmarshal(f.head, &done); err != nil {
		return errFrame
	}
	o.mu.Lock()
	w := o.waiting[f.call]
	delete(o.waiting, f.call)
	o.mu.Unlock()
	if w != nil {
		w <- f.body
	}
	return nil
}
