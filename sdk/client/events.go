package client

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
)

// rawEvent is an event of a stream.
type rawEvent struct {
	name string // "message" where the stream gives none
	data []byte // lines with \n between them; valid until the next event is read
}

// reader reads server-sent events, by the rules of the HTML standard ("Interpreting an
// event stream"): a line ends with CR LF, LF or CR, a line that begins with a colon is a
// comment, an empty one ends an event, one without data is none, and what is cut off at
// the end of the stream is none either. The fields id and retry are for those who connect
// again, which ends a turn here; they are passed over as unknown ones are.
type reader struct {
	r     *bufio.Reader
	most  int // bytes of an event, comments before it included
	size  int // of this one
	line  []byte
	data  []byte
	name  []byte
	begun bool // the first line was read
	cr    bool // the last line ended with CR: an LF that follows is its own
}

func newReader(r io.Reader, most int) *reader {
	return &reader{r: bufio.NewReader(r), most: most}
}

// isEvents reports whether a content type is that of a stream of events.
func isEvents(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == typeEvents
}

// next gives the next event. The error of a stream that ended is io.ErrUnexpectedEOF:
// whoever calls wants more.
func (r *reader) next() (rawEvent, error) {
	r.size, r.data, r.name = 0, r.data[:0], r.name[:0]
	data := false // there is a field of this name, which may be empty
	for {
		if err := r.readLine(); err != nil {
			return rawEvent{}, err
		}
		if len(r.line) == 0 {
			if data {
				name := string(r.name)
				if name == "" {
					name = "message"
				}
				return rawEvent{name, r.data[:len(r.data)-1]}, nil
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
func (r *reader) readLine() error {
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
