package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"openskill/sdk/skill"
)

// Error is a failure that the host answered with.
type Error struct {
	Status  int            // of HTTP; 0 in the middle of a stream that says none
	Code    skill.Code     // "" where the answer was none of openSkill's
	Message string         // for the person or model that must mend the call; one line, cleaned
	Details map[string]any // may be nil; as the host sent them
	TraceID string         // under which the host's log has the reason; may be ""
	// RetryAfter is when the host says that it is worth to ask again; 0 where it says nothing.
	RetryAfter time.Duration

	answer []byte // the whole body, for those who find more in it than the error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("status %d: %s", e.Status, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// maxMessage is the longest message that is kept, in bytes.
const maxMessage = 1024

// newError makes an Error of what a host said.
func newError(status int, e *skill.ResultError, trace string) *Error {
	out := &Error{
		Status: cmp.Or(status, e.Status), Code: e.Code, Details: e.Details,
		Message: cmp.Or(skill.CleanText(e.Message, maxMessage), "the server gave no reason"),
	}
	if !plainCode(string(e.Code)) {
		out.Code = ""
	}
	if skill.ValidTraceID(trace) {
		out.TraceID = trace
	}
	return out
}

// plainCode reports whether s looks like a code. Hosts of a later release may have ones
// that are not known here.
func plainCode(s string) bool {
	return len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
}

// failure is what all forms of an error have: a Normalized Skill Result, a problem, and
// the envelope of the paths below /api/agent.
type failure struct {
	Error   *skill.ResultError `json:"error"`
	TraceID string             `json:"trace_id"`
	Meta    struct {
		RequestID string `json:"request_id"`
	} `json:"meta"`
}

// refused reads the error of a response that is none of 200 to 299.
func (c *Client) refused(res *http.Response) error {
	b, err := c.body(res)
	if err != nil {
		return &Error{Status: res.StatusCode, Message: skill.CleanText(err.Error(), maxMessage)}
	}
	e := refusal(res, b)
	e.RetryAfter = retryAfter(res.Header, time.Now())
	return e
}

func refusal(res *http.Response, b []byte) *Error {
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		to := skill.CleanText(res.Header.Get("Location"), 200)
		return &Error{Status: res.StatusCode, Message: fmt.Sprintf("refused to follow a redirect to %q with the API key; if it is right, use it as the base URL", to)}
	}
	var f failure
	if err := json.Unmarshal(b, &f); err != nil || f.Error == nil || f.Error.Code == "" {
		kind := skill.CleanText(res.Header.Get("Content-Type"), 60)
		return &Error{Status: res.StatusCode, Message: fmt.Sprintf("the response (%s) is not from openSkill; check proxies between client and server", kind)}
	}
	e := newError(res.StatusCode, f.Error, cmp.Or(res.Header.Get("X-Trace-Id"), f.TraceID, f.Meta.RequestID))
	e.answer = b
	return e
}

const (
	// firstWait is before the first time that a request is sent again, where the host says
	// no time; each wait after it is twice as long.
	firstWait = 250 * time.Millisecond
	// longestWait is what a host may ask for. With more the refusal is given.
	longestWait = time.Minute
)

// again reports whether a refusal says that nothing has begun. Of a 503 in answer to more
// than reading that is so where the host names a time.
func again(method string, e *Error) bool {
	switch e.Status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusServiceUnavailable:
		return method == http.MethodGet || e.RetryAfter > 0
	}
	return false
}

// wait gives how long to wait before a request is sent for the n-th time again.
func (e *Error) wait(n int) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	d := firstWait << n
	return d + rand.N(d/4+1) //nolint:gosec // so that many clients do not come at once
}

// retryAfter reads the header of this name: seconds, or a date; 0 where it says nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	s := h.Get("Retry-After")
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// patiently makes a request until it is not refused, or is not to be sent again.
func (c *Client) patiently(ctx context.Context, method string, once func() (*http.Response, error)) (*http.Response, error) {
	for n := 0; ; n++ {
		res, err := once()
		var e *Error
		if err == nil || n >= c.retries || !errors.As(err, &e) || !again(method, e) {
			return res, err
		}
		d := e.wait(n)
		if until, ok := ctx.Deadline(); d > longestWait || ok && time.Until(until) < d {
			return nil, err // the refusal says more than a deadline that has passed
		}
		if c.sleep(ctx, d) != nil {
			return nil, err
		}
	}
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
