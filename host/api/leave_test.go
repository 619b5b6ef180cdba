package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// held is a skill that tells when it begins, and runs until it is let go or its
// context ends; it tells the cause of that.
type held struct {
	begun chan struct{}
	goOn  chan struct{}
	ended chan error
}

func (s *server) addHeld(id skill.ID) *held {
	h := &held{make(chan struct{}, 16), make(chan struct{}), make(chan error, 16)}
	s.Door.Add(id, func(ctx context.Context, _ skill.Request) (json.RawMessage, error) {
		h.begun <- struct{}{}
		select {
		case <-h.goOn:
			h.ended <- nil
			return json.RawMessage(`{}`), nil
		case <-ctx.Done():
			h.ended <- context.Cause(ctx)
			return nil, &skill.Error{Code: skill.Cancelled, Message: "the call was cancelled"}
		}
	})
	return h
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(5 * time.Second):
		t.Fatalf("no sign of %s", what)
		panic("unreachable")
	}
}

// E25: the client disconnects.
func TestTheRunEndsWhenTheClientLeaves(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	leave := map[string]func(*net.TCPConn) error{
		"closes":          (*net.TCPConn).Close,
		"resets":          func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		"closes one half": (*net.TCPConn).CloseWrite,
		"leaves more bytes": func(c *net.TCPConn) error {
			_, _ = c.Write([]byte(post("echo", `{"input":{"text":"x"}}`)))
			return c.Close()
		},
	}
	for name, leave := range leave {
		t.Run(name, func(t *testing.T) {
			s := start(t, nil)
			h := s.addHeld("held")
			c := s.dial(t)
			c.send(t, post("held", `{"input":{}}`))
			wait(t, "the run", h.begun)
			at := time.Now()
			musttest.Do(t, leave(c.Conn.(*net.TCPConn)))
			if err := wait(t, "the run's end", h.ended); err == nil || err.Error() != "the client closed its connection" {
				t.Errorf("the run ended with %v", err)
			}
			if d := time.Since(at); d > time.Second {
				t.Errorf("noticed after %v", d)
			}
		})
	}
}

func TestAPatientClientIsNotCutOff(t *testing.T) {
	s := start(t, func(o *api.Options) {
		o.HeadTimeout, o.BodyTimeout, o.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	})
	h := s.addHeld("held")
	c := s.dial(t)
	c.send(t, post("held", `{"input":{}}`))
	wait(t, "the run", h.begun)
	select { // longer than every time limit on the connection
	case err := <-h.ended:
		t.Fatalf("the run ended by itself: %v", err)
	case <-time.After(400 * time.Millisecond):
	}
	close(h.goOn)
	if resp, body := c.answer(t, "POST", "/skills/held:invoke"); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestShutdownLetsCallsFinish(t *testing.T) {
	s := start(t, nil)
	h := s.addHeld("held")
	idle, silent, busy := s.dial(t), s.dial(t), s.dial(t)
	idle.send(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	idle.answer(t, "GET", "/healthz")
	busy.send(t, post("held", `{"input":{}}`))
	wait(t, "the run", h.begun)

	done := make(chan error, 1)
	go func() { done <- s.Shutdown(context.Background()) }()
	idle.ended(t)
	silent.ended(t)
	if c, err := net.DialTimeout("tcp", s.Addr, time.Second); err == nil {
		_ = c.Close()
		t.Error("the host still accepts connections")
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown did not wait: %v", err)
	default:
	}
	close(h.goOn)
	resp, body := busy.answer(t, "POST", "/skills/held:invoke")
	if resp.StatusCode != 200 || !resp.Close {
		t.Errorf("%d, close %v: %s", resp.StatusCode, resp.Close, body)
	}
	if err := wait(t, "Shutdown", done); err != nil {
		t.Errorf("Shutdown = %v", err)
	}
}

func TestShutdownEndsCallsAfterTheGrace(t *testing.T) {
	s := start(t, nil)
	h := s.addHeld("held")
	c := s.dial(t)
	c.send(t, post("held", `{"input":{}}`))
	wait(t, "the run", h.begun)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown = %v", err)
	}
	if err := wait(t, "the run's end", h.ended); err == nil || err.Error() != "the host is shutting down" {
		t.Errorf("the run ended with %v", err)
	}
	resp, body := c.answer(t, "POST", "/skills/held:invoke")
	if resp.StatusCode != 499 || !bytes.Contains(body, []byte("CANCELLED")) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	c.ended(t)
}

func TestServeAfterShutdown(t *testing.T) {
	s := start(t, nil)
	musttest.Do(t, s.Shutdown(context.Background()))
	ln := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	if err := s.Serve(ln); err != nil {
		t.Errorf("Serve = %v", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is not closed: %v", err)
	}
}

// When every connection runs a call, one more is told so.
func TestNoRoomForAnotherConnection(t *testing.T) {
	s := start(t, func(o *api.Options) { o.MaxConns = 3 })
	h := s.addHeld("held")
	var busy []*raw
	for range 3 {
		c := s.dial(t)
		c.send(t, post("held", `{"input":{}}`))
		wait(t, "a run", h.begun)
		busy = append(busy, c)
	}
	c := s.dial(t)
	c.send(t, "GET /unknown HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, body := c.answer(t, "GET", "/unknown")
	_ = c.Close()
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	close(h.goOn)
	for _, c := range busy {
		if resp, body := c.answer(t, "POST", "/skills/held:invoke"); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	if resp, _ := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}
