// Package httpbench is what the throughput of the host is measured with: a Fiber
// route that does the least that an answer takes, as the baseline, and a client.
package httpbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Body is the call that is measured, and Path its path on either server.
const (
	Path = "/skills/echo:invoke"
	Body = `{"input":{"text":"hello"}}`
)

// Bare serves a route that decodes the same JSON and encodes the same answer,
// and does nothing between. The caller closes the listener.
func Bare(ln net.Listener) (stop func() error, err error) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/skills/echo\\:invoke", func(c *fiber.Ctx) error {
		var in struct {
			Input struct {
				Text string `json:"text"`
			} `json:"input"`
		}
		if err := json.Unmarshal(c.BodyRaw(), &in); err != nil {
			return err
		}
		out, err := json.Marshal(map[string]any{
			"success": true, "skill_id": "echo", "trace_id": "t", "data": map[string]string{"echoed": in.Input.Text}, "error": nil,
			"meta": map[string]any{
				"latency_ms": 0, "version": "0.1.0", "execution_id": "x", "runner": "wasm:wasi", "digest": "sha256:x",
				"fuel_used": 1, "memory_peak_bytes": 1, "truncated": false,
			},
		})
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(out)
	})
	go app.Listener(ln) //nolint:errcheck // it ends when stop is called
	return app.Shutdown, nil
}

// Load sends requests of echo; see [Send].
func Load(ctx context.Context, addr string, clients, requests int) (time.Duration, error) {
	return Send(ctx, addr, Path, Body, clients, requests)
}

// Send sends the same request with a number of clients at once, each on a
// connection of its own, and gives the time that all of them took together. Every
// answer must be a success.
func Send(ctx context.Context, addr, path, body string, clients, requests int) (time.Duration, error) {
	hc := &fasthttp.HostClient{Addr: addr, MaxConns: clients, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	defer hc.CloseIdleConnections()
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	began := time.Now()
	for i := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			defer fasthttp.ReleaseRequest(req)
			defer fasthttp.ReleaseResponse(resp)
			req.Header.SetMethod(fasthttp.MethodPost)
			req.Header.SetContentType("application/json")
			req.SetRequestURI("http://" + addr + path)
			req.SetBodyString(body)
			for next.Add(1) <= int64(requests) && ctx.Err() == nil {
				if err := hc.Do(req, resp); err != nil {
					errs[i] = err
					return
				}
				if !bytes.Contains(resp.Body(), []byte(`"success":true`)) {
					errs[i] = fmt.Errorf("status %d: %.200s", resp.StatusCode(), resp.Body())
					return
				}
			}
		}()
	}
	wg.Wait()
	return time.Since(began), errors.Join(errors.Join(errs...), ctx.Err())
}

// Answer sends one request, and gives the answer, which must be a success.
func Answer(ctx context.Context, addr, path, body string) (answer []byte, err error) {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.SetRequestURI("http://" + addr + path)
	req.SetBodyString(body)
	if err := fasthttp.DoTimeout(req, resp, time.Minute); err != nil {
		return nil, err
	}
	if !bytes.Contains(resp.Body(), []byte(`"success":true`)) {
		return nil, fmt.Errorf("status %d: %.200s", resp.StatusCode(), resp.Body())
	}
	return bytes.Clone(resp.Body()), ctx.Err()
}

// Each sends the same request again and again on one connection and gives the time of
// each, in order.
func Each(ctx context.Context, addr, path, body string, requests int) (times []time.Duration, err error) {
	hc := &fasthttp.HostClient{Addr: addr, MaxConns: 1, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	defer hc.CloseIdleConnections()
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetContentType("application/json")
	req.SetRequestURI("http://" + addr + path)
	req.SetBodyString(body)
	for range requests {
		began := time.Now()
		if err := hc.Do(req, resp); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
		if !bytes.Contains(resp.Body(), []byte(`"success":true`)) {
			return nil, fmt.Errorf("status %d: %.200s", resp.StatusCode(), resp.Body())
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return times, nil
}
