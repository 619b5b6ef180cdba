package api

import (
	"bytes"
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// getMetrics answers GET /metrics by a handler of net/http, which answers at once: its
// answer is held until it is whole, so that HEAD can tell its length.
func (s *Server) getMetrics(c *fiber.Ctx) error {
	ctx := c.Context()
	if s.opt.Metrics == nil {
		return fiber.ErrNotFound
	}
	req, err := standardRequest(s.base, ctx, nil)
	if err != nil {
		return invalid("malformed request target")
	}
	w := &whole{header: http.Header{}, status: http.StatusOK}
	s.opt.Metrics.ServeHTTP(w, req)
	ctx.SetStatusCode(w.status)
	copyHeader(&ctx.Response.Header, w.header)
	ctx.SetBody(w.body.Bytes())
	return nil
}

// whole keeps what a handler writes.
type whole struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *whole) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *whole) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *whole) Write(p []byte) (int, error) { return w.body.Write(p) }
