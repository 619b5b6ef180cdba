// Package sse reads server-sent events, by the rules of the HTML standard ("Interpreting
// an event stream"). It imports the standard library only.
package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Event is one event of a stream.
type Event struct {
	Name string // default: "message"
	Data []byte // lines with \n between them; valid until the next event is read
}

// Reader reads the events of one stream. A line ends with CR LF, LF or CR. A line that
// begins with a colon is a comment. An empty line ends an event. Events without data, and
// an unfinished one at the end of the stream, are skipped. The fields id and retry, which
// serve to reconnect, are ignored like unknown fields.
type Reader struct {
	r     *bufio.Reader
	most  int // bytes of an event, comments before it included
	size  int // of this one
	line  []byte
	data  []byte
	name  []byte
	begun bool // the first line was read
	cr    bool // the last line ended with CR: an LF that follows is its own
}

// NewReader returns a Reader of r that accepts events of up to most bytes, with the
// comments before them.
func NewReader(r io.Reader, most int) *Reader {
	return &Reader{r: bufio.NewReader(r), most: most}
}

// Next returns the next event. At the end of the stream the error is io.ErrUnexpectedEOF:
// the caller expects more.
func (r *Reader) Next() (Event, error) {
	r.size, r.data, r.name = 0, r.data[:0], r.name[:0]
	data := false // there is a field of this name, which may be empty
	for {
		if err := r.readLine(); err != nil {
			return Event{}, err
		}
		if len(r.line) == 0 {
			if data {
				name := string(r.name)
				if name == "" {
					name = "message"
				}
				return Event{name, r.data[:len(r.data)-1]}, nil
			}
			r.size, r.name = 0, r.name[:0]
			continue
		}
		field, value, _ := bytes.Cut(r.line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			r.name = append(r.name[:0], value...)
		case "data":
			data = true
			r.data = append(append(r.data, value...), '\n')
		case "": // a comment, which keeps the connection alive
			if !data && len(r.name) == 0 {
				r.size = 0
			}
		}
	}
}

// readLine reads a line into r.line, without its end. It never waits for the byte behind
// a CR: the event is there already.
func (r *Reader) readLine() error {
	r.line = r.line[:0]
	for {
		b, err := r.r.ReadByte()
		if err == io.EOF {
			return io.ErrUnexpectedEOF // and what stands in an unfinished line is no event
		}
		if err != nil {
			return err
		}
		lf := b == '\n' && r.cr
		r.cr = b == '\r'
		if lf {
			continue
		}
		if b == '\n' || b == '\r' {
			if !r.begun {
				r.begun = true
				r.line = bytes.TrimPrefix(r.line, []byte("\xef\xbb\xbf")) // a byte order mark
			}
			return nil
		}
		if r.size++; r.size > r.most {
			return fmt.Errorf("an event is longer than %d bytes", r.most)
		}
		r.line = append(r.line, b)
	}
}
