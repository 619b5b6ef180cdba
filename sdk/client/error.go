package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
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
