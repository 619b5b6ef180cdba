package api_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// talking starts an edge whose agent says what reply says; nil: it repeats.
func talking(t testing.TB, reply apitest.Reply, change func(*api.Options)) (*server, *apitest.Chat) {
	t.Helper()
	fake := &apitest.Chat{Reply: reply}
	return start(t, func(o *api.Options) {
		o.Chat, o.React = fake, &apitest.React{}
		if change != nil {
			change(o)
		}
	}), fake
}

// talk is the text of a message, with these headers besides.
func talk(body string, header ...string) string {
	head := "POST /agent/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + itoa(len(body)) + "\r\n"
	for i := 0; i+1 < len(header); i += 2 {
		head += header[i] + ": " + header[i+1] + "\r\n"
	}
	return head + "\r\n" + body
}

// aStream is the body of a message whose answer is to be streamed.
const aStream = `{"message":"hello there","stream":true}`

// happening is one event of a stream.
type happening struct {
	Kind string
	Data string
}

// eventReader reads a stream as clients do, and holds it against the contract.
type eventReader struct {
	t     testing.TB
	br    *bufio.Reader
	last  int
	ended bool
}

// listen reads the head of a stream, and gives the reader of the rest.
func (c *raw) listen(t testing.TB) (*http.Response, *eventReader) {
	t.Helper()
	resp, err := http.ReadResponse(c.br, &http.Request{Method: "POST"})
	musttest.Do(t, err)
	h := resp.Header
	if resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" || !skill.ValidTraceID(h.Get("X-Trace-Id")) {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%d %v %s", resp.StatusCode, h, b)
	}
	return resp, &eventReader{t: t, br: bufio.NewReader(resp.Body)}
}

// next gives the next event; false: the stream has ended well.
func (r *eventReader) next() (h happening, ok bool) {
	r.t.Helper()
	var id string
	for {
		line, err := r.br.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" && h.Kind == "" {
			if !r.ended {
				r.t.Error("a stream without an end")
			}
			return h, false
		}
		if err != nil {
			r.t.Fatalf("the stream broke: %v after %q", err, line)
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && h.Kind != "":
			r.check(id, h)
			return h, true
		case line == ":", line == "": // a comment, and the end of it
		case name == "id":
			id = value
		case name == "event":
			h.Kind = value
		case name == "data" && h.Data == "":
			h.Data = value
		default:
			r.t.Fatalf("a line that is none of an event: %q", line)
		}
	}
}

// check holds an event against openapi.yaml, and its place against the order.
func (r *eventReader) check(id string, h happening) {
	r.t.Helper()
	doc := musttest.Get(contract())(r.t)
	r.last++
	if id != strconv.Itoa(r.last) || (h.Kind == "start") != (r.last == 1) && h.Kind != "done" || r.ended {
		r.t.Errorf("event %s, number %d, is %s", id, r.last, h.Kind)
	}
	r.ended = h.Kind == "done" || h.Kind == "error"
	if err := doc.validate("/components/schemas/ChatEvents/properties/"+h.Kind, []byte(h.Data)); err != nil {
		r.t.Errorf("%s against the contract: %v\n%s", h.Kind, err, h.Data)
	}
}

// rest gives the events that are left.
func (r *eventReader) rest() (all []happening) {
	r.t.Helper()
	for {
		h, ok := r.next()
		if !ok {
			return all
		}
		all = append(all, h)
	}
}

// until reads on to the next event of a kind.
func (r *eventReader) until(kind string) happening {
	r.t.Helper()
	for {
		h, ok := r.next()
		if !ok {
			r.t.Fatalf("the stream ended without %s", kind)
		}
		if h.Kind == kind {
			return h
		}
	}
}
