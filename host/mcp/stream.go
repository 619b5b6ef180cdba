package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"openskill/sdk/skill"
)

// streamWriter sends an answer as a whole where nothing comes before it, which spares
// a small one the price of a stream; and as a stream, with signs of life in it, where
// something can, or where it takes long.
type streamWriter struct {
	http.ResponseWriter
	id     json.RawMessage // of the request, for what the SDK refuses
	bodies bodies          // of the messages to come
	every  time.Duration
	left   context.CancelCauseFunc // for a client that no longer takes what is sent

	mu     sync.Mutex
	timer  *time.Timer
	events bool // it is a stream of events, and its headers are settled
	open   bool // flushed at each event
	over   bool
	plain  int // the status of an answer of the SDK in plain text, whose words come next
}

func newStreamWriter(w http.ResponseWriter, every time.Duration, left context.CancelCauseFunc) *streamWriter {
	s := &streamWriter{ResponseWriter: w, every: every, left: left}
	if h, ok := w.(interface{ Hold(size int) }); ok { // an answer of the HTTP edge
		s.bodies.hold = h.Hold
	}
	s.mu.Lock() // alive may be early
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(every, s.alive)
	return s
}

// live has every event sent at once.
func (s *streamWriter) live() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
}

// settled notes that the headers are. It is called by whoever set them, or after them.
func (s *streamWriter) settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
}

func (s *streamWriter) settle() {
	s.events = strings.HasPrefix(s.Header().Get("Content-Type"), "text/event-stream")
}

// WriteHeader implements http.ResponseWriter.
func (s *streamWriter) WriteHeader(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if strings.HasPrefix(s.Header().Get("Content-Type"), "text/plain") {
		s.plain = status
		return
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. An event is one write, and so is a refusal of the SDK in
// plain text, which goes out as an error of JSON-RPC.
func (s *streamWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if s.plain != 0 {
		number := int64(jsonrpc.CodeInvalidRequest)
		if s.plain >= http.StatusInternalServerError {
			number = jsonrpc.CodeInternalError
		}
		writeError(s.ResponseWriter, s.plain, s.id, &jsonrpc.Error{Code: number, Message: skill.CleanText(string(b), skill.MaxMessage)})
		return len(b), nil
	}
	if err := s.write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *streamWriter) write(b []byte) error {
	err := s.bodies.writeTo(s.ResponseWriter, b)
	if err != nil {
		s.left(errClientLeft)
	}
	return err
}

// FlushError implements what http.ResponseController looks for.
func (s *streamWriter) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || s.over {
		return nil
	}
	return s.flush()
}

func (s *streamWriter) flush() error {
	err := http.NewResponseController(s.ResponseWriter).Flush()
	if err != nil {
		s.left(errClientLeft)
	}
	return err
}

// alive sends a comment, which clients skip: a client that has left is found by it,
// and one that waits knows that it is not forgotten.
func (s *streamWriter) alive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.timer.Reset(s.every)
	if !s.events {
		return
	}
	s.open = true
	if s.write([]byte(": waiting\n\n")) == nil {
		_ = s.flush() // what it finds is told
	}
}

// finish ends what is done in the background; nothing is written after it.
func (s *streamWriter) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.timer.Stop()
}
