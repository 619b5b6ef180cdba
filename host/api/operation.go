package api

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for the two documents below
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/swaggest/swgui/v5/static"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

//go:embed openapi.json
var openapiJSON []byte

//go:embed docs.html
var docsHTML []byte

//go:embed docs.js
var docsJS []byte

func healthBody(version string, warming []string) []byte {
	b, _ := json.Marshal(skill.Health{Status: "ok", Version: version, Warming: warming}) // strings
	return append(b, '\n')
}

// alive answers /healthz and /health. It asks nothing of the rest of the host:
// a host under attack must still be seen to live.
func (s *Server) alive(c *fiber.Ctx) error {
	ctx := c.Context()
	ctx.SetContentType(jsonType)
	ctx.SetBody(s.health)
	return nil
}

// ready answers /readyz.
func (s *Server) ready(c *fiber.Ctx) error {
	err := s.opt.Ready()
	if s.closing.Load() {
		err = &skill.Error{Op: "api.ready", Code: skill.Cancelled, Message: "the host is shutting down", Err: errShutdown}
	}
	if err == nil && s.opt.Warming != nil {
		if kinds := s.opt.Warming(); len(kinds) > 0 {
			ctx := c.Context()
			ctx.SetContentType(jsonType)
			ctx.SetBody(healthBody(s.opt.Version, kinds))
			return nil
		}
	}
	if err == nil {
		return s.alive(c)
	}
	if _, ok := errors.AsType[*skill.Error](err); !ok {
		err = &skill.Error{Op: "api.ready", Code: skill.Internal, Err: err}
	}
	s.failAs(c.Context(), fasthttp.StatusServiceUnavailable, err)
	return nil
}

func (s *Server) openapi(c *fiber.Ctx) error {
	ctx := c.Context()
	ctx.SetContentType(jsonType)
	ctx.Response.SetBodyRaw(openapiJSON)
	return nil
}

// docsPolicy lets the page use what this server sends and nothing else. Swagger
// UI styles its elements in place, and draws its icons from data URLs.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) docs(c *fiber.Ctx) error {
	ctx := c.Context()
	ctx.Response.Header.Set("Content-Security-Policy", docsPolicy)
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.Response.SetBodyRaw(docsHTML)
	return nil
}

// docsAssets are the files that docs.html asks for, with their types.
var docsAssets = map[string]string{
	"docs.js":              "text/javascript; charset=utf-8",
	"swagger-ui.css":       "text/css; charset=utf-8",
	"swagger-ui-bundle.js": "text/javascript; charset=utf-8",
	"favicon-16x16.png":    "image/png",
	"favicon-32x32.png":    "image/png",
}

// docsAsset answers one of docsAssets. Swagger UI's files are embedded packed, and go
// out packed to clients that can unpack them. All answers send the same bytes, which
// nobody writes to: anybody may ask for them, and copies would be the host's memory.
func (s *Server) docsAsset(name string) fiber.Handler {
	ours := name == "docs.js"
	isPacked := !ours && path.Ext(name) != ".png"
	packed := sync.OnceValues(func() ([]byte, error) { return static.FS.ReadFile(name + ".gz") })
	plain := sync.OnceValues(func() ([]byte, error) {
		switch {
		case ours:
			return docsJS, nil
		case isPacked:
			return unpacked(packed())
		}
		return static.FS.ReadFile(name)
	})
	return func(c *fiber.Ctx) error {
		ctx := c.Context()
		ctx.SetContentType(docsAssets[name])
		ctx.Response.Header.Set("Cache-Control", "public, max-age=3600")
		read := plain
		if isPacked {
			ctx.Response.Header.Set("Vary", "Accept-Encoding")
			if strings.Contains(string(ctx.Request.Header.Peek("Accept-Encoding")), "gzip") {
				ctx.Response.Header.Set("Content-Encoding", "gzip")
				read = packed
			}
		}
		b, err := read()
		if err != nil {
			return err
		}
		ctx.Response.SetBodyRaw(b)
		return nil
	}
}

func unpacked(b []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r) // our own file, not a client's
}
