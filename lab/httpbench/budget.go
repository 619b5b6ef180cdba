package httpbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gofiber/fiber/v2"

	"openskill/host/api"
	"openskill/host/identity"
	"openskill/sdk/skill"
)

// Sockets measures one connection over which as many bytes go there and come back as
// are in a request and its answer, and nothing is made of them: what the kernel and
// Go's runtime take for any server. The time is that of one round, of many.
func Sockets(ctx context.Context, request, answer, rounds int) (time.Duration, error) {
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	served := make(chan error, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		in, out := make([]byte, request), make([]byte, answer)
		for {
			if _, err := io.ReadFull(c, in); err != nil {
				served <- nil
				return
			}
			if _, err := c.Write(out); err != nil {
				served <- err
				return
			}
		}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return 0, err
	}
	out, in := make([]byte, request), make([]byte, answer)
	began := time.Now()
	for range rounds {
		if _, err = c.Write(out); err == nil {
			_, err = io.ReadFull(c, in)
		}
		if err != nil {
			break
		}
	}
	took := time.Since(began) / time.Duration(rounds)
	err = errors.Join(err, c.Close())
	return took, errors.Join(err, <-served)
}

// Constant serves one answer, whatever is asked: what HTTP takes by itself. The caller
// closes the listener.
func Constant(ln net.Listener, answer []byte) (stop func() error) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(answer)
	})
	go app.Listener(ln) //nolint:errcheck // it ends when stop is called
	return app.Shutdown
}

// fixed is a door at which every call ends at once, in the same way.
type fixed struct{ result *skill.Result }

func (f fixed) Invoke(context.Context, skill.Principal, skill.Request) *skill.Result {
	r := *f.result
	return &r
}

func operator(context.Context, identity.Credentials) (skill.Principal, error) {
	return skill.Local(), nil
}

// Edge serves the host's HTTP edge before a door at which every call ends at once. The
// caller closes the listener.
func Edge(ln net.Listener, catalogue api.Catalogue, result *skill.Result) (stop func() error, err error) {
	s, err := api.New(api.Options{Door: fixed{result}, Catalogue: catalogue, Authenticate: operator})
	if err != nil {
		return nil, err
	}
	go s.Serve(ln) //nolint:errcheck // it ends when stop is called
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return s.Shutdown(ctx)
	}, nil
}

// Ask makes one request and gives the whole answer, to know how large both are.
func Ask(addr, path, body string) (answer []byte, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		return nil, err
	}
	answer, err = io.ReadAll(c)
	if err == nil && !bytes.Contains(answer, []byte(`"success":true`)) {
		err = fmt.Errorf("%.300s", answer)
	}
	return answer, err
}
