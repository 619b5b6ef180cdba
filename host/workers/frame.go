package workers

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// protocol is the version of what is said between a host and a worker.
const protocol = 10

// kind says what a frame is.
type kind byte

// What is said on the connection that a worker is started with.
const (
	kindHello    kind = iota + 1 // worker: it is ready; head is a Hello
	kindAssign                   // host: whose it is from now on; head is an Assignment
	kindAssigned                 // worker: it holds; head is a Refusal, or null
	kindCancel                   // host: nobody waits for this call any more
)

// What is said on a lane.
const (
	kindRun     kind = iota + 16 // host: a call; head is a wireCall, body its standard input
	kindReply                    // worker: the end of the call; head is a wireReply, body what it left
	kindRequest                  // worker: the guest asks for something outside; head is a number for the answer, body is the request
	kindAnswer                   // host: what it gets, under that number; head says whether it was done, body is the answer
)

// frame is one message.
type frame struct {
	kind kind
	call uint64 // which call it is about; of an answer, the number of the request
	head []byte
	body []byte
}

const frameHeader = 4 + 1 + 8 + 4

// maxHead bounds what is decoded, in bytes: a thousand names of files, and much more.
const maxHead = 1 << 20

var (
	errFrame = errors.New("worker: a frame that does not follow the protocol")
	// errTooLarge is what cannot be sent; nothing of it was.
	errTooLarge = errors.New("worker: a message is too large")
)

// stream is a connection: a socket, in a form that the runtime can wait for.
type stream interface {
	io.ReadWriteCloser
	SetDeadline(t time.Time) error
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// channel reads and writes frames. Writing is safe for concurrent use; one
// goroutine reads.
type channel struct {
	conn stream
	in   *bufio.Reader
	// most is how many bytes of head and body are taken of a frame of this kind about
	// this call; negative: such a frame has no place. It is asked before any are.
	most func(k kind, call uint64) int64
	// patience is how long the other side may take to read a frame; 0: what the
	// connection's deadline says.
	patience time.Duration

	// The frame that is being read, where a deadline may come in its middle.
	part  *frame
	got   []byte // of its head and body
	want  int    // bytes of both
	heads int    // bytes of the head

	mu  sync.Mutex
	out []byte // the start of a frame, kept
}

// buffered is what is read ahead: most frames, whole.
const buffered = 8 << 10

func newChannel(conn stream, most func(kind, uint64) int64) *channel {
	return &channel{conn: conn, in: bufio.NewReaderSize(conn, buffered), most: most}
}

// appender is a head in a form of its own. All others are sent as JSON.
type appender interface{ append(b []byte) []byte }

// send writes one frame.
func (c *channel) send(k kind, call uint64, head any, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var space [frameHeader]byte
	b := append(c.out[:0], space[:]...)
	if own, ok := head.(appender); ok {
		b = own.append(b)
	} else {
		h, err := json.Marshal(head)
		if err != nil {
			return fmt.Errorf("worker: encode a message: %w", err)
		}
		b = append(b, h...)
	}
	heads := len(b) - frameHeader
	n := len(b) - 4 + len(body)
	if n > 1<<31-1 || heads > maxHead {
		return fmt.Errorf("%w: %d bytes", errTooLarge, n)
	}
	binary.LittleEndian.PutUint32(b, uint32(n)) // bounded above
	b[4] = byte(k)
	binary.LittleEndian.PutUint64(b[5:], call)
	binary.LittleEndian.PutUint32(b[13:], uint32(heads)) // bounded above
	if len(body) <= 16<<10 {                             // one write costs less than a copy of so little
		b, body = append(b, body...), nil
	}
	if cap(b) <= 64<<10 {
		c.out = b
	}
	if c.patience > 0 {
		_ = c.conn.SetWriteDeadline(time.Now().Add(c.patience))
	}
	_, err := c.conn.Write(b)
	if err == nil && body != nil {
		_, err = c.conn.Write(body)
	}
	return err
}

// step is how much memory a frame is given at first; more when as much has come.
const step = 1 << 20

// receive reads one frame. Its bytes are its own. After an error of a deadline it may
// be called again, and goes on where it was.
func (c *channel) receive() (*frame, error) {
	if c.part == nil {
		h, err := c.in.Peek(frameHeader)
		if err != nil {
			if len(h) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		f := &frame{kind: kind(h[4]), call: binary.LittleEndian.Uint64(h[5:])}
		n, heads := int64(binary.LittleEndian.Uint32(h))-(frameHeader-4), int64(binary.LittleEndian.Uint32(h[13:]))
		if n < 0 || heads > maxHead || heads > n || n > c.most(f.kind, f.call) {
			return nil, errFrame
		}
		c.part, c.heads, c.want = f, int(heads), int(n)
		c.got = make([]byte, 0, min(c.want, step))
		_, _ = c.in.Discard(frameHeader) // it was there to be looked at
	}
	for len(c.got) < c.want {
		if len(c.got) == cap(c.got) {
			c.got = append(make([]byte, 0, min(c.want, 2*cap(c.got))), c.got...)
		}
		n, err := c.in.Read(c.got[len(c.got):cap(c.got)])
		c.got = c.got[:len(c.got)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	f := c.part
	f.head, f.body = c.got[:c.heads:c.heads], c.got[c.heads:]
	c.part, c.got = nil, nil
	return f, nil
}

// decode reads a head; every key must be known.
func (f *frame) decode(into any) error {
	if err := json.Unmarshal(f.head, into); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}
