package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/sdk/skill"
)

// Door is what the edge calls to run a skill. Invoke never returns nil, is safe
// for concurrent use, and returns soon after ctx has ended.
type Door interface {
	Invoke(ctx context.Context, p skill.Principal, r skill.Request) *skill.Result
}

// Catalogue is what the edge reads skills from, each caller what it may find. It
// must be safe for concurrent use and quick; its errors are *skill.Error.
type Catalogue interface {
	// List gives at most limit (1 to 100) skills after cursor ("" for the first
	// page), and the cursor of the next page or "".
	List(p skill.Principal, cursor string, limit int) ([]skill.Descriptor, string, error)
	// Get gives one version of a skill, the enabled one for "".
	Get(p skill.Principal, id skill.ID, version string) (skill.Descriptor, error)
	// Versions gives every version of a skill.
	Versions(p skill.Principal, id skill.ID) ([]skill.Descriptor, error)
}

// Options configure a [Server]. Zero never means "unlimited".
type Options struct {
	Door      Door      // required
	Catalogue Catalogue // required
	Uploads   Uploads   // nil: uploads, and what is decided about them, are refused

	// Ready says whether the host can run skills; /readyz answers 503 with its
	// error. It must be quick. nil: always ready.
	Ready func() error

	// Principal is who every request acts for. The zero value may do nothing.
	Principal skill.Principal

	Logger  *slog.Logger // nil: silent
	Version string       // of the host, shown by /healthz; "": not shown

	// Origins are further origins (as in https://skills.example, behind a proxy)
	// under which this server's own pages are reached; pages of all others may
	// not call. nil: none. Origins with localhost or a numeric address need no
	// entry; names do, because whoever owns a name can make it point here.
	Origins []string

	BodyLimit int // bytes of a request body that is no upload; 0: 1 MiB
	HeadLimit int // bytes of request line and headers; 0: 16 KiB
	MaxConns  int // open connections; 0: 4096. At the limit the one that has waited longest without a call makes room

	HeadTimeout  time.Duration // for request line and headers, from the first byte or the accept; 0: 10 s
	BodyTimeout  time.Duration // for the body, from the end of the headers; 0: 30 s
	IdleTimeout  time.Duration // between two requests of a connection; 0: 60 s
	WriteTimeout time.Duration // for sending an answer, from the end of the call; 0: 30 s

	UploadLimit   int64         // bytes of an uploaded archive or module; 0: 32 MiB
	UploadTimeout time.Duration // for the body of an upload, from the end of the headers; 0: 2 minutes
	Receiving     int           // uploads that come in at once, three quarters of them of one tenant; 0: 80
	Admitting     int           // uploads that are checked at once; 0: 2. Others wait in line, AdmitWait at most
	AdmitWait     time.Duration // 0: 60 s
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	o.Origins = append([]string(nil), o.Origins...)
	o.Principal.Scopes = append([]string(nil), o.Principal.Scopes...)
	orInt(&o.BodyLimit, 1<<20)
	orInt(&o.HeadLimit, 16<<10)
	orInt(&o.MaxConns, 4096)
	orTime(&o.HeadTimeout, 10*time.Second)
	orTime(&o.BodyTimeout, 30*time.Second)
	orTime(&o.IdleTimeout, 60*time.Second)
	orTime(&o.WriteTimeout, 30*time.Second)
	if o.UploadLimit <= 0 {
		o.UploadLimit = 32 << 20
	}
	orTime(&o.UploadTimeout, 2*time.Minute)
	orInt(&o.Receiving, 80)
	orInt(&o.Admitting, 2)
	orTime(&o.AdmitWait, time.Minute)
	return o
}

func orInt(p *int, d int) {
	if *p <= 0 {
		*p = d
	}
}

func orTime(p *time.Duration, d time.Duration) {
	if *p <= 0 {
		*p = d
	}
}

// Server is the HTTP edge. It is made by [New] and used once.
type Server struct {
	opt   Options
	log   *slog.Logger
	http  *fasthttp.Server
	fiber fasthttp.RequestHandler
	conns *connSet

	watches watches

	receiving *line // uploads whose bodies come in
	admitting *line // uploads that are checked

	health []byte // the body of /healthz

	base    context.Context //nolint:containedctx // the parent of every call, ended by Shutdown
	endAll  context.CancelCauseFunc
	closing atomic.Bool
	once    sync.Once
}

var (
	errClientLeft = errors.New("the client closed its connection")
	errShutdown   = errors.New("the host is shutting down")
)

// New makes a server. It does not listen and starts nothing.
func New(o Options) (*Server, error) {
	if o.Door == nil || o.Catalogue == nil {
		return nil, &skill.Error{Op: "httpapi.New", Code: skill.Internal, Message: "Options.Door and Options.Catalogue are required"}
	}
	s := &Server{opt: o.withDefaults()}
	s.log = s.opt.Logger
	s.conns = newConnSet(s.opt.MaxConns)
	s.receiving = newLine(s.opt.Receiving, max(s.opt.Receiving*3/4, 1))
	s.admitting = newLine(s.opt.Admitting, s.opt.Admitting)
	s.health = healthBody(s.opt.Version)
	s.base, s.endAll = context.WithCancelCause(context.Background())

	app := fiber.New(fiber.Config{
		// Handlers read strings of the request that would otherwise change when
		// the connection's next request arrives.
		Immutable:                    true,
		UnescapePath:                 true, // some clients write the colon of :invoke as %3A
		CaseSensitive:                true,
		BodyLimit:                    s.opt.BodyLimit,
		Concurrency:                  2 * s.opt.MaxConns, // connSet counts; closed ones may linger in their workers
		ReadBufferSize:               s.opt.HeadLimit,
		ReadTimeout:                  s.opt.HeadTimeout,
		IdleTimeout:                  s.opt.IdleTimeout,
		WriteTimeout:                 s.opt.WriteTimeout,
		DisablePreParseMultipartForm: true, // parsing would write files before anyone agreed to it
		StreamRequestBody:            true, // handle reads the bodies, and bounds them; those of uploads go to disk
		DisableStartupMessage:        true,
		ErrorHandler:                 s.fiberError,
	})
	s.routes(app)
	s.fiber = app.Handler()
	s.http = app.Server()
	s.http.Handler = s.handle
	s.http.ErrorHandler = s.parseError
	s.http.ExpectHandler = s.expect
	s.http.HeaderReceived = s.headReceived
	s.http.ConnState = connState
	s.http.SecureErrorLogMessage = true
	s.http.MaxIdleWorkerDuration = time.Second // how long a stopped server's last goroutine stays
	return s, nil
}

// Serve answers connections of ln until Shutdown, and then returns nil. It
// closes ln. Connections must come from a real socket for departed clients to be
// noticed.
func (s *Server) Serve(ln net.Listener) error {
	if s.closing.Load() {
		return ln.Close()
	}
	tracked := s.conns.listen(ln, s.log)
	defer func() { _ = tracked.Close() }() // it may be closed already
	err := s.http.Serve(tracked)
	if s.closing.Load() {
		return nil
	}
	return err
}

// shutdownTail is how long calls get to end after their context has ended; a
// run is gone 250 ms after that, by the promise of every runner.
const shutdownTail = 2 * time.Second

// Shutdown stops accepting, closes connections without a request at once and
// waits for the others. When ctx ends first, the calls still running end as
// CANCELLED, what is left of their connections is closed, and ctx's error comes
// back. It may be called more than once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closing.Store(true)
	s.conns.stop()
	err := s.conns.drain(ctx)
	s.once.Do(func() { s.endAll(errShutdown) })
	if err != nil {
		tail, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTail)
		defer cancel()
		if s.conns.drain(tail) != nil {
			s.conns.abortAll()
		}
	}
	return err
}

// allowed gives the methods of a path, "" if there is no such path.
func allowed(path string) string {
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	const get = "GET, HEAD, OPTIONS"
	if isUploadPath(path) {
		return "GET, HEAD, POST, OPTIONS"
	}
	switch path {
	case "/health", "/healthz", "/readyz", "/openapi.json", "/docs":
		return get
	}
	if _, ok := actionPath(path); ok {
		return "POST, OPTIONS"
	}
	if name, ok := strings.CutPrefix(path, "/docs/"); ok && isDocsAsset(name) {
		return get
	}
	rest, ok := strings.CutPrefix(path, "/skills/")
	if !ok {
		return ""
	}
	id, tail, deeper := strings.Cut(rest, "/")
	version, one := strings.CutPrefix(tail, "versions/")
	switch {
	case id == "" || strings.Contains(id, ":"): // a colon: an action that there is not
		return ""
	case !deeper || tail == "versions":
		return get
	case one && version != "" && !strings.Contains(version, "/"):
		return "DELETE, OPTIONS"
	}
	return ""
}

// isUploadPath reports whether a POST to the path is an upload.
func isUploadPath(path string) bool { return path == "/skills" || path == "/skills/" }

// actionPath gives the action of a path of the form /skills/{id}:{action}.
func actionPath(path string) (action string, ok bool) {
	path = strings.TrimSuffix(path, "/")
	for _, action := range actions {
		if id, ok := strings.CutSuffix(path, ":"+action); ok {
			id, ok = strings.CutPrefix(id, "/skills/")
			return action, ok && id != "" && !strings.Contains(id, "/")
		}
	}
	return "", false
}

var actions = [...]string{"invoke", "enable", "disable", "approve", "rollback"}

// invokePath gives the id of a path of the form /skills/{id}:invoke. The id may
// be anything but empty or of several segments.
func invokePath(path string) (id string, ok bool) {
	id, ok = strings.CutPrefix(strings.TrimSuffix(path, "/"), "/skills/")
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(id, ":invoke")
	return id, ok && id != "" && !strings.Contains(id, "/")
}

func (s *Server) routes(app *fiber.App) {
	app.Post("/skills/:id\\:invoke", s.invoke)
	app.Get("/skills/:id\\:invoke", s.wrongMethod) // or it would be a skill named "x:invoke"
	app.Post("/skills", s.upload)
	app.Post("/skills/:id\\:enable", s.deciding(Uploads.Enable))
	app.Post("/skills/:id\\:disable", s.deciding(Uploads.Disable))
	app.Post("/skills/:id\\:approve", s.deciding(Uploads.Approve))
	app.Post("/skills/:id\\:rollback", s.deciding(Uploads.Rollback))
	app.Delete("/skills/:id/versions/:version", s.deleteVersion)
	app.Get("/skills", s.reading(s.listSkills))
	app.Get("/skills/:id", s.reading(s.getSkill))
	app.Get("/skills/:id/versions", s.reading(s.listVersions))
	app.Get("/health", s.alive)
	app.Get("/healthz", s.alive)
	app.Get("/readyz", s.ready)
	app.Get("/openapi.json", s.openapi)
	app.Get("/docs", s.docs)
	app.Get("/docs/:asset", s.docsAsset)
}
