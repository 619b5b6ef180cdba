package wasi

import (
	"math"

	"openskill/wasm/guestfs"
)

const (
	// maxRequest is how many bytes of a request are taken.
	maxRequest = 4 << 20
	// maxTalk is how many bytes of requests and unread responses a guest has, together with
	// the other processes of its run.
	maxTalk = 4 * maxRequest
	// costRequest is charged for a request, beside its bytes and those of the response.
	costRequest = 1 << 16
)

// exchange is a conversation: the request that is being written, or the rest of the last
// response. Each open file of guestfs.Exchange has one, and the functions have one.
type exchange struct {
	request  []byte // nil: there is none
	response []byte
}

// mayTalk reports whether a guest may have so many bytes more of requests and responses.
func (w *World) mayTalk(more int) bool {
	n := len(w.talk)
	for i := range w.fds {
		n += len(w.fds[i].talk.request) + len(w.fds[i].talk.response)
	}
	p := w.cfg.Process
	if p == nil || p.group == nil {
		return n+more <= maxTalk
	}
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	p.talk = n
	for _, o := range p.group.order {
		if o != p {
			n += o.talk
		}
	}
	if n+more > maxTalk {
		return false
	}
	p.talk += more
	return true
}

// ask sends a request to the network and waits for its response.
func (w *World) ask(request []byte) (response []byte, errno guestfs.Errno) {
	if w.cfg.Fetch == nil {
		return nil, guestfs.EACCES
	}
	if !w.mayTalk(maxRequest) { // as much as a response may have
		return nil, guestfs.ENOBUFS
	}
	w.charge(costRequest)
	response = w.answer(request)
	w.copied(len(response)) // a deadline that has passed ends the run here
	return response, 0
}

// httpRequest is (request, length, result): the whole request, and where the length
// of the response goes.
func (w *World) httpRequest(p []uint64) guestfs.Errno {
	n := uint64(uint32(p[1]))
	request, ok := w.bytes(uint64(uint32(p[0])), n)
	out, ok2 := w.result(p[2], 4)
	switch {
	case !ok || !ok2:
		return guestfs.EFAULT
	case n > maxRequest:
		return guestfs.EFBIG
	}
	w.copied(len(request))
	// A copy: what serves it may outlive the memory by a moment.
	w.talk = nil
	response, errno := w.ask(append([]byte(nil), request...))
	if errno != 0 {
		return errno
	}
	w.talk = response
	if len(response) > math.MaxUint32 {
		return guestfs.EOVERFLOW
	}
	le.PutUint32(out, uint32(len(response)))
	return 0
}

// httpRead is (buffer, length, result): the next bytes of the response; none at its
// end, and where there was no request.
func (w *World) httpRead(p []uint64) guestfs.Errno {
	buf, ok := w.result(p[0], uint64(uint32(p[1])))
	out, ok2 := w.result(p[2], 4)
	if !ok || !ok2 {
		return guestfs.EFAULT
	}
	n := copy(buf, w.talk)
	w.talk = w.talk[n:]
	w.copied(n)
	le.PutUint32(out, uint32(n))
	return 0
}

// writeExchange adds to the request of a file. What is written after a response
// was asked for begins a new one.
func (w *World) writeExchange(t *exchange, list []byte) (uint32, guestfs.Errno) {
	if t.request == nil {
		*t = exchange{request: []byte{}}
	}
	return w.each(list, func(b []byte) (int, guestfs.Errno) {
		if len(t.request)+len(b) > maxRequest || !w.mayTalk(len(b)) {
			return 0, guestfs.EFBIG
		}
		t.request = append(t.request, b...)
		return len(b), 0
	})
}

// readExchange sends the request of a file, if there is one, and reads on in the
// response. fd is its number: a request may open others.
func (w *World) readExchange(fd uint64, device guestfs.Device, list []byte) (uint32, guestfs.Errno) {
	if request := w.fd(fd).talk.request; request != nil {
		w.fd(fd).talk = exchange{}
		var response []byte
		var errno guestfs.Errno
		if device == guestfs.Processes {
			response, errno = w.processes(request)
		} else {
			response, errno = w.ask(request)
		}
		if errno != 0 {
			return 0, errno
		}
		w.fd(fd).talk.response = response
	}
	t := &w.fd(fd).talk
	n, errno := w.each(list, func(b []byte) (int, guestfs.Errno) {
		n := copy(b, t.response)
		t.response = t.response[n:]
		return n, 0
	})
	if len(t.response) == 0 {
		t.response = nil
		w.mayTalk(0) // it has less now
	}
	return n, errno
}
