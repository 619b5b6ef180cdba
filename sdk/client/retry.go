package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

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
