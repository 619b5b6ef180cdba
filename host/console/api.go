package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"openskill/host/internal/gate"
	"openskill/sdk/skill"
)

// apiError is a failure as its page shows it.
type apiError struct {
	Status  int             `json:"status"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details"`
	TraceID string          `json:"-"`
}

func (e *apiError) Error() string { return e.Code + ": " + e.Message }

// problemOf makes one of an error of the host's own.
func problemOf(err error) *apiError {
	if e, ok := errors.AsType[*skill.Error](err); ok && e.Message != "" {
		return &apiError{Status: e.Code.Status(), Code: string(e.Code), Message: e.Message}
	}
	return &apiError{Status: http.StatusInternalServerError, Code: string(skill.Internal), Message: "The server could not render this page; see its log."}
}

// messageOf is what to tell of an error.
func messageOf(err error) string {
	var e *apiError
	if !errors.As(err, &e) {
		e = problemOf(err)
	}
	return e.Message
}

// mostAnswer is the longest answer of the API that is read, in bytes; one of more than
// longAnswer is read when it is its tenant's turn.
const (
	mostAnswer = 64 << 20
	longAnswer = 64 << 10
)

var errTooLong = &apiError{Status: http.StatusBadGateway, Code: string(skill.Internal), Message: "The response is too long to show."}

// pathOf makes a path of the API of segments, each escaped.
func pathOf(segments ...string) string {
	var b bytes.Buffer
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// call asks the API as who is signed in. body nil: none; a []byte goes as it is.
func (v *view) call(method, path string, query url.Values, body any) (*http.Response, error) {
	var data []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		data = b
	default:
		var err error
		if data, err = json.Marshal(b); err != nil {
			return nil, err
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(v.r.Context(), method, path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if data != nil {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body = nil
	}
	return v.o.API(v.r.Context(), v.p, req)
}

// ask calls the API, and reads its answer into a value; a failure is an *apiError.
func (v *view) ask(method, path string, query url.Values, body, into any) error {
	resp, err := v.call(method, path, query, body)
	if err != nil {
		return err
	}
	return v.read(resp, into)
}

// turn waits until something of size bytes may be read or made, which takes a processor for a
// while if it is long.
func (v *view) turn(size int64) (leave func(), err error) {
	if v.o.Reads == nil || size <= longAnswer {
		return func() {}, nil
	}
	if leave, err = v.o.Reads.Enter(v.r.Context(), v.p.Tenant); err != nil {
		return nil, gate.Refusal(err, "console.turn", "too many pages are being rendered")
	}
	return leave, nil
}

func (v *view) read(resp *http.Response, into any) error {
	defer resp.Body.Close()
	if resp.ContentLength > mostAnswer {
		return errTooLong
	}
	leave, err := v.turn(resp.ContentLength)
	if err != nil {
		return err
	}
	defer leave()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err != nil {
		return err
	}
	if len(b) > mostAnswer {
		return errTooLong
	}
	if resp.StatusCode >= 400 {
		var p struct {
			Error *apiError `json:"error"`
		}
		if json.Unmarshal(b, &p) != nil || p.Error == nil {
			p.Error = &apiError{Code: string(skill.Internal), Message: "The server sent an invalid response."}
		}
		p.Error.Status, p.Error.TraceID = resp.StatusCode, resp.Header.Get("X-Trace-Id")
		return p.Error
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}

// list is a page of things.
type list[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next"`
}

func (l *list[T]) next() string {
	if l.Next == nil {
		return ""
	}
	return *l.Next
}

// values makes a query of pairs; empty values are left out.
func values(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
