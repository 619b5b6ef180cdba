package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// protocol is the version of what is said on a channel.
const protocol = 1

// kind says what a frame is.
type kind byte

const (
	kindHello    kind = iota + 1 // worker: it is ready; head is a Hello
	kindAssign                   // host: whose it is from now on; head is an Assignment
	kindAssigned                 // worker: it holds; head is a Refusal, or null
	kindRun                      // host: a call; head is a wireCall, body its standard input
	kindStart                    // host: get ready for calls like this one; as kindRun without a body
	kindCancel                   // host: nobody waits for this call any more
	kindReply                    // worker: the end of a call; head is a wireReply, body what it left
	kindRequest                  // worker: a guest asks for something outside; head is a number for the answer, body is the request
	kindAnswer                   // host: what it gets, under that number; head says whether it was done, body is the answer
)

// frame is one message.
type frame struct {
	kind kind
	call uint64 // which call it is about; of an answer, the number of the request
	head json.RawMessage
	body []byte
}

const frameHeader = 4 + 1 + 8 + 4

// maxHead bounds what is decoded as JSON, in bytes: a thousand names of files, each of
// them written as longest as JSON can.
const maxHead = 2 << 20

var (
	errFrame = errors.New("worker: a frame that does not follow the protocol")
	// errTooLarge is what cannot be sent; nothing of it was.
	errTooLarge = errors.New("worker: a message is too large")
)

// channel reads and writes frames. Writing is safe for concurrent use; one
// goroutine reads.
type channel struct {
	conn net.Conn
	in   *bufio.Reader
	// most is how many bytes of head and body are taken of a frame of this kind about
	// this call; negative: such a frame has no place. It is asked before any are.
	most func(k kind, call uint64) int64
	// patience is how long the other side may take to read a frame; 0: for ever.
	patience time.Duration

	mu  sync.Mutex
	out []byte // the start of a frame, kept
}

func newChannel(conn net.Conn, most func(kind, uint64) int64) *channel {
	return &channel{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), most: most}
}

// send writes one frame; head is marshalled.
func (c *channel) send(k kind, call uint64, head any, body []byte) error {
	h, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("worker: encode a message: %w", err)
	}
	n := frameHeader - 4 + len(h) + len(body)
	if n > 1<<31-1 || len(h) > maxHead {
		return fmt.Errorf("%w: %d bytes", errTooLarge, n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.patience > 0 {
		_ = c.conn.SetWriteDeadline(time.Now().Add(c.patience)) //nolint:forbidigo // real time
	}
	b := binary.LittleEndian.AppendUint32(c.out[:0], uint32(n)) //nolint:gosec // bounded above
	b = append(b, byte(k))
	b = binary.LittleEndian.AppendUint64(b, call)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h))) //nolint:gosec // bounded above
	b = append(b, h...)
	if cap(b) <= 64<<10 {
		c.out = b
	}
	if len(body) <= 16<<10 { // one write costs less than a copy of so little
		b = append(b, body...)
		if cap(b) <= 64<<10 {
			c.out = b
		}
		_, err = c.conn.Write(b)
		return err
	}
	_, err = (&net.Buffers{b, body}).WriteTo(c.conn)
	return err
}

// receive reads one frame. Its bytes are its own.
func (c *channel) receive() (*frame, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(c.in, h[:]); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(h[:])) - (frameHeader - 4)
	heads := int64(binary.LittleEndian.Uint32(h[13:]))
	f := &frame{kind: kind(h[4]), call: binary.LittleEndian.Uint64(h[5:])}
	if n < 0 || heads > maxHead || heads > n || n > c.most(f.kind, f.call) {
		return nil, errFrame
	}
	rest, err := c.take(int(n))
	if err != nil {
		return nil, err
	}
	f.head, f.body = rest[:heads:heads], rest[heads:]
	return f, nil
}

// take reads n bytes, in steps: memory is only taken for what comes.
func (c *channel) take(n int) ([]byte, error) {
	const step = 1 << 20
	b := make([]byte, 0, min(n, step))
	for len(b) < n {
		from := len(b)
		b = append(b, make([]byte, min(n-from, max(step, from)))...)
		if _, err := io.ReadFull(c.in, b[from:]); err != nil {
			return nil, fmt.Errorf("worker: a frame was cut off: %w", err)
		}
	}
	return b, nil
}

// decode reads a head.
func (f *frame) decode(into any) error {
	if err := json.Unmarshal(f.head, into); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}
