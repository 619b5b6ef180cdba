package egress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"openskill/sdk/skill"
)

var _ skill.Outgoing = (*Client)(nil)

// requestHead is the first line of what a guest sends; behind it is the body.
type requestHead struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	TimeoutMS uint32            `json:"timeout_ms"`
	Redirect  string            `json:"redirect"` // "", "follow" or "manual"
}

// responseHead is the first line of what a guest reads; behind it is the body. Error
// is null where there is a response.
type responseHead struct {
	Status  int                 `json:"status"`
	URL     string              `json:"url"`
	Headers map[string][]string `json:"headers"`
	Error   *responseError      `json:"error"`
}

type responseError struct {
	Code    skill.Code `json:"code"`
	Message string     `json:"message"`
}

// For implements [skill.Outgoing]: requests go where call.Grants.HTTP permits.
func (c *Client) For(call *skill.Call) skill.Fetch {
	var mu sync.Mutex // of a guest with one thread; whoever serves it need not know
	left := c.o.MaxRequests
	return func(ctx context.Context, request []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		if left <= 0 {
			return Refusal(c.exhausted()) // and no more lines in the log
		}
		before := left
		began := time.Now()
		r, err := c.read(request)
		var resp *Response
		if err == nil {
			resp, err = c.do(ctx, call, r, &left)
		}
		left = min(left, before-1) // what is refused at once counts too
		c.note(ctx, call, r, resp, err, time.Since(began))
		if c.o.Denied != nil && skill.CodeOf(err) == skill.NetworkDenied {
			c.o.Denied(call)
		}
		if err != nil {
			return Refusal(err)
		}
		return write(&responseHead{Status: resp.Status, URL: resp.URL, Headers: resp.Header}, resp.Body)
	}
}

// note writes the line of a request into the log: where it went, and neither paths,
// headers nor bodies, which may hold secrets.
func (c *Client) note(ctx context.Context, call *skill.Call, r *Request, resp *Response, err error, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("skill_id", string(call.SkillID)), slog.String("trace_id", string(call.TraceID)),
		slog.String("tenant", skill.CleanText(call.Tenant, 100)), slog.Int64("ms", took.Milliseconds()),
	}
	if r != nil {
		attrs = append(attrs, slog.String("method", skill.CleanText(r.Method, 16)), slog.Int("sent", len(r.Body)))
		if t, err := parseTarget(r.URL); err == nil {
			attrs = append(attrs, slog.String("to", t.origin.String()))
		}
	}
	if resp != nil {
		attrs = append(attrs, slog.Int("status", resp.Status), slog.Int("received", len(resp.Body)))
		if t, err := parseTarget(resp.URL); err == nil {
			attrs = append(attrs, slog.String("from", t.origin.String()))
		}
	}
	var e *skill.Error
	if errors.As(err, &e) {
		attrs = append(attrs, slog.String("code", string(e.Code)))
		if e.Err != nil {
			attrs = append(attrs, slog.String("error", skill.CleanText(e.Err.Error(), 500)))
		}
	}
	if skill.CodeOf(err) == skill.NetworkDenied {
		c.o.Log.LogAttrs(ctx, slog.LevelWarn, "a skill's request was denied", attrs...)
		return
	}
	c.o.Log.LogAttrs(ctx, slog.LevelInfo, "a skill sent a request", attrs...)
}

// read takes a guest's bytes apart.
func (c *Client) read(request []byte) (*Request, error) {
	head, body, _ := bytes.Cut(request, []byte("\n"))
	if len(head) > c.o.MaxHeader+maxURL+4096 {
		return nil, tooLarge("the first line of the request is too long: %d bytes; write url and headers as JSON there, and the body after it", len(head))
	}
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	var h requestHead
	if err := d.Decode(&h); err != nil {
		return nil, invalid(`the first line of the request must be one JSON object with method, url, headers, timeout_ms and redirect, like {"method": "GET", "url": "https://api.example.com/v1/x"}`)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("the first line of the request holds more than one JSON object")
	}
	switch h.Redirect {
	case "", "follow", "manual":
	default:
		return nil, invalid(`redirect must be "follow" or "manual"`)
	}
	return &Request{
		Method: h.Method, URL: h.URL, Header: h.Headers, Body: body, Manual: h.Redirect == "manual",
		Timeout: time.Duration(h.TimeoutMS) * time.Millisecond,
	}, nil
}

// Refusal is the response that says what was wrong, for an error of [Client.Do] or
// of what stands in front of it.
func Refusal(err error) []byte {
	e := &skill.Error{Code: skill.Internal, Message: "the host could not make the request"}
	errors.As(err, &e)
	return write(&responseHead{Error: &responseError{e.Code, skill.CleanText(e.Message, skill.MaxMessage)}}, nil)
}

func write(h *responseHead, body []byte) []byte {
	if h.Headers == nil {
		h.Headers = map[string][]string{}
	}
	head, err := json.Marshal(h)
	if err != nil { // strings and numbers: it cannot be
		head = []byte(`{"error":{"code":"INTERNAL","message":"the response cannot be written"}}`)
		body = nil
	}
	out := make([]byte, 0, len(head)+1+len(body))
	return append(append(append(out, head...), '\n'), body...)
}
