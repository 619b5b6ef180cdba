package wasi

import (
	"math"

	"openskill/wasm/guestfs"
)

const (
	// maxRequest is how many bytes of a request are taken.
	maxRequest = 4 << 20
	// costRequest is charged for a request, beside its bytes and those of the response.
	costRequest = 1 << 16
)

// exchange is the one conversation with the network that a World keeps: the
// request that is being written, or the rest of the last response. A new request
// ends what was before it.
type exchange struct {
	of       *handle // the file that it goes through; nil: the functions
	request  []byte
	response []byte
}

// ask sends a request, waits for its response, and keeps that.
func (w *World) ask(of *handle, request []byte) guestfs.Errno {
	if w.cfg.Fetch == nil {
		return guestfs.EACCES
	}
	w.charge(costRequest)
	w.talk = exchange{of: of}
	response := w.answer(request)
	w.copied(len(response)) // a deadline that has passed ends the run here
	w.talk.response = response
	return 0
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
	if errno := w.ask(nil, append([]byte(nil), request...)); errno != 0 {
		return errno
	}
	if len(w.talk.response) > math.MaxUint32 {
		return guestfs.EOVERFLOW
	}
	le.PutUint32(out, uint32(len(w.talk.response)))
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
	n := 0
	if w.talk.of == nil {
		n = copy(buf, w.talk.response)
		w.talk.response = w.talk.response[n:]
	}
	w.copied(n)
	le.PutUint32(out, uint32(n))
	return 0
}

// writeExchange adds to the request of a file. What is written after a response
// was asked for begins a new one.
func (w *World) writeExchange(h *handle, list []byte) (uint32, guestfs.Errno) {
	if w.talk.of != h || w.talk.request == nil {
		w.talk = exchange{of: h, request: []byte{}}
	}
	return w.each(list, func(b []byte) (int, guestfs.Errno) {
		if len(w.talk.request)+len(b) > maxRequest {
			return 0, guestfs.EFBIG
		}
		w.talk.request = append(w.talk.request, b...)
		return len(b), 0
	})
}

// readExchange sends the request of a file, if there is one, and reads on in the
// response.
func (w *World) readExchange(h *handle, list []byte) (uint32, guestfs.Errno) {
	if w.talk.of != h {
		return 0, 0
	}
	if w.talk.request != nil {
		request := w.talk.request
		w.talk.request = nil
		if errno := w.ask(h, request); errno != 0 {
			return 0, errno
		}
	}
	return w.each(list, func(b []byte) (int, guestfs.Errno) {
		n := copy(b, w.talk.response)
		w.talk.response = w.talk.response[n:]
		return n, 0
	})
}
