package mcp

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inline is the longest value in bytes that is given to the SDK.
const inline = 16 << 10

// piece is how much of a value is escaped at once, in bytes.
const piece = 32 << 10

// bodies keeps the large values of messages on their way to one client. The SDK encodes a
// result after its handler has returned: several times, in several copies, and with no bound
// on how many do so at once. So the SDK gets a placeholder, and the value is written in its
// place, straight from where it is. The zero value is ready for use.
type bodies struct {
	hold func(size int) // counts bytes that stay in memory until the message is sent; nil: nobody counts

	mu   sync.Mutex
	mark []byte                           // begins every placeholder; random, so that nobody else can write one
	all  map[string]func(io.Writer) error // what writes a value, by its placeholder
	last uint32
}

// placeholder is the text of a JSON string, and what base64 has as this text.
type placeholder []byte

func (p placeholder) String() string { return base64.StdEncoding.EncodeToString(p) }

// holding tells that size bytes stay in memory until the message is sent.
func (b *bodies) holding(size int) {
	if b.hold != nil && size > inline {
		b.hold(size)
	}
}

// add returns the placeholder of a value.
func (b *bodies) add(write func(io.Writer) error) placeholder {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.mark, b.all = make([]byte, 18), map[string]func(io.Writer) error{} // 18 and 21 are multiples of 3
		_, _ = rand.Read(b.mark)                                             // never fails since Go 1.24
	}
	b.last++
	p := placeholder(append(bytes.Clone(b.mark), byte(b.last>>16), byte(b.last>>8), byte(b.last)))
	b.all[p.String()] = write
	return p
}

// text returns a string for a message, or its placeholder.
func (b *bodies) text(s []byte) string {
	if len(s) <= inline {
		return string(s)
	}
	return b.add(func(w io.Writer) error { return writeString(w, s) }).String()
}

// content returns the text of a resource. The SDK leaves out an empty one, which the protocol
// requires: it gets a placeholder, too.
func (b *bodies) content(s []byte) string {
	if len(s) > 0 {
		return b.text(s)
	}
	return b.add(func(w io.Writer) error { return writeString(w, s) }).String()
}

// blob returns bytes that a message has as base64, or their placeholder.
func (b *bodies) blob(p []byte) []byte {
	if len(p) <= inline {
		return p
	}
	return b.add(func(w io.Writer) error { return writeBase64(w, p) })
}

// json returns a JSON value for a message, or its placeholder.
func (b *bodies) json(v json.RawMessage) json.RawMessage {
	if len(v) <= inline {
		return v
	}
	return json.RawMessage(`"` + b.add(func(w io.Writer) error { return writeLine(w, v) }).String() + `"`)
}

// writeTo writes a message with the values in the places of their placeholders, each once.
func (b *bodies) writeTo(w io.Writer, message []byte) error {
	for {
		start, end, write := b.next(message)
		if write == nil {
			_, err := w.Write(message)
			return err
		}
		if _, err := w.Write(message[:start]); err != nil {
			return err
		}
		if err := write(w); err != nil {
			return err
		}
		message = message[end:]
	}
}

// next finds the first placeholder of a message, with its quotes.
func (b *bodies) next(message []byte) (start, end int, write func(io.Writer) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) == 0 {
		return 0, 0, nil
	}
	start = bytes.Index(message, []byte(`"`+placeholder(b.mark).String()))
	if start < 0 {
		return 0, 0, nil
	}
	text, _, _ := bytes.Cut(message[start+1:], []byte(`"`))
	write = b.all[string(text)]
	delete(b.all, string(text))
	return start, start + len(text) + 2, write
}

// lists encodes the result of a request that lists something, while the request has its place.
// Other results are short, or have placeholders already.
func (b *bodies) lists(res mcp.Result) (mcp.Result, error) {
	switch res.(type) {
	case *mcp.ListToolsResult, *mcp.ListResourcesResult, *mcp.ListPromptsResult, *listSkillsResult, *getSkillResult, *directoryResult:
	default:
		return res, nil
	}
	v, err := encode(res)
	if err != nil {
		return nil, err
	}
	return b.raw(v), nil
}

// raw is a result that is JSON already, an object without _meta.
func (b *bodies) raw(v json.RawMessage) *rawResult {
	b.holding(len(v))
	r := &rawResult{json: v}
	if len(v) > inline {
		r.placeholder = b.add(r.writeTo)
	}
	return r
}

// rawResult is a result that is JSON already. The SDK gives it its _meta.
type rawResult struct {
	mcp.ResultBase
	json        json.RawMessage
	placeholder placeholder // nil: it is short
}

// MarshalJSON implements json.Marshaler.
func (r *rawResult) MarshalJSON() ([]byte, error) {
	if r.placeholder != nil {
		return json.Marshal(r.placeholder.String())
	}
	var out bytes.Buffer
	err := r.writeTo(&out)
	return out.Bytes(), err
}

func (r *rawResult) writeTo(w io.Writer) error {
	rest := r.json
	if len(r.Meta) > 0 {
		meta, err := json.Marshal(r.Meta)
		if err != nil {
			return err
		}
		head := append([]byte(`{"_meta":`), meta...)
		if rest = rest[1:]; len(rest) > 1 {
			head = append(head, ',')
		}
		if _, err := w.Write(head); err != nil {
			return err
		}
	}
	return writeLine(w, rest)
}

// encode returns the JSON of a result as the SDK writes it.
func encode(res mcp.Result) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(res); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// writeString writes a string as JSON.
func writeString(w io.Writer, s []byte) error {
	const digits = "0123456789abcdef"
	out := bufio.NewWriterSize(w, piece)
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\ufffd"))
	}
	_ = out.WriteByte('"') // Flush returns the first error of all these
	for len(s) > 0 {
		n := plain(s)
		_, _ = out.Write(s[:n])
		if s = s[n:]; n == piece || len(s) == 0 {
			continue
		}
		c := s[0]
		switch s = s[1:]; c {
		case '"', '\\':
			_, _ = out.Write([]byte{'\\', c})
		case '\n':
			_, _ = out.WriteString(`\n`)
		case '\r':
			_, _ = out.WriteString(`\r`)
		case '\t':
			_, _ = out.WriteString(`\t`)
		default:
			_, _ = out.Write([]byte{'\\', 'u', '0', '0', digits[c>>4], digits[c&15]})
		}
	}
	_ = out.WriteByte('"')
	return out.Flush()
}

// plain counts the bytes before the first one that JSON escapes, at most a piece.
func plain(s []byte) (n int) {
	for n < len(s) && n < piece && s[n] >= ' ' && s[n] != '"' && s[n] != '\\' {
		n++
	}
	return n
}

// writeLine writes JSON without line ends, which it has only between its tokens.
func writeLine(w io.Writer, v []byte) error {
	for len(v) > 0 {
		n := min(len(v), piece)
		if end := bytes.IndexAny(v[:n], "\r\n"); end >= 0 {
			n = end
		}
		if _, err := w.Write(v[:n]); err != nil {
			return err
		}
		v = bytes.TrimLeft(v[n:], "\r\n")
	}
	return nil
}

func writeBase64(w io.Writer, p []byte) error {
	out := bufio.NewWriterSize(w, piece)
	_ = out.WriteByte('"') // Flush returns the first error of all these
	enc := base64.NewEncoder(base64.StdEncoding, out)
	_, _ = enc.Write(p)
	_ = enc.Close()
	_ = out.WriteByte('"')
	return out.Flush()
}
