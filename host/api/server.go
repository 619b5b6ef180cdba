package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"openskill/host/agent/tools"
	"openskill/host/identity"
	"openskill/host/internal/gate"
	"openskill/host/internal/origin"
	"openskill/host/internal/tracing"
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

// Watcher is told what the edge does, for metrics. It must be quick and safe for
// concurrent use.
type Watcher interface {
	// Answered is called for each request that was read, when its answer is made; of a
	// stream, when its head is. route is the path of a row of the table; "": none takes it.
	Answered(method, route string, status int, took time.Duration)
	// Turn is called for each turn of a conversation ("chat") and each task ("task") that ended, with
	// how: the reason why it stopped, or the code of an error.
	Turn(kind, outcome string)
	// Refused is called for what is refused before any handler, with one of the reasons
	// that refusals.go lists.
	Refused(reason string)
}

// Ask answers a request of the API for a principal, in this process; see [Server.Do].
type Ask = func(ctx context.Context, p skill.Principal, r *http.Request) (*http.Response, error)

// Console is the pages for people, which ask the API. It knows its callers itself.
type Console interface {
	http.Handler
	// CallerOf says whose session a request from a network is of, by its Host and Cookie; the
	// zero value: nobody's. It is asked before the body of a form is read, of which little is taken from
	// callers that are not known.
	CallerOf(ctx context.Context, from, host, cookie string) skill.Principal
}

// Options configure a [Server]. Zero never means "unlimited".
type Options struct {
	Door      Door      // required
	Catalogue Catalogue // required
	Uploads   Uploads   // nil: uploads, and what is decided about them, are refused

	Definitions Definitions  // of the operator's skills; nil: they cannot be changed
	AgentSkills AgentSkills  // nil: there are none
	Tools       Tools        // nil: there are no tool definitions
	Search      tools.Finder // nil: skills cannot be searched
	// SkillArchive is for clients that download Agent Skills; nil: there are no downloads.
	SkillArchive SkillArchive
	Approvals    Approvals    // nil: there are none
	Grants       Grants       // nil: scripts of Agent Skills are allowed nothing
	Usage        Usage        // nil: nothing is counted
	Executions   Executions   // nil: nothing is on record
	Files        Files        // nil: not supported
	Workspaces   Workspaces   // nil: not supported
	Schedules    Schedules    // nil: not supported
	Webhooks     Webhooks     // nil: off
	Sessions     Sessions     // nil: not supported
	Changes      Changes      // nil: nothing is on record
	Starter      Starter      // nil, or without Executions: no call outlives its request
	Chat         Chat         // the agent; nil: it is off
	React        React        // the agent that works on tasks; nil: it is off
	MCP          http.Handler // answers /mcp; its requests end when their clients leave, see [PrincipalOf] for who they act for. nil: there is no such path

	Metrics http.Handler // answers GET /metrics, soon and in full. nil: there is no such path
	Watch   Watcher      // is told what the edge does; nil: nobody is

	Trace *tracing.Tracer // spans of requests; nil: none

	// Console makes what answers /console and all below it, once; nil: there is no such path.
	Console func(ask Ask) (Console, error)

	Reads *gate.Gate // that MCP passes too; nil: one of its own
	Rates *Rates     // that MCP counts in too; nil: 30,000 requests a minute
	// TrustedProxies are those whose word on the address of their clients counts, in the
	// headers Forwarded and X-Forwarded-For. nil: none.
	TrustedProxies []netip.Prefix

	// ScriptArgs makes the command line of a script of the JSON that a request has as
	// "args": a list, an object or null. nil: only lists of strings are taken.
	ScriptArgs func(args json.RawMessage) ([]string, error)

	// Ready says whether the host can run skills; /readyz answers 503 with its
	// error. It must be quick. nil: always ready.
	Ready func() error
	// Warming names the kinds of skills whose first calls still wait for something to be
	// compiled or started, as /readyz tells. nil: none.
	Warming func() []string

	// Authenticate says who a request acts for. It is asked once for each request that
	// is not open to all, before its body is read, and must not wait for long; its
	// error is a *skill.Error. nil: nobody is known, and such requests are refused.
	Authenticate func(ctx context.Context, c identity.Credentials) (skill.Principal, error)

	Logger  *slog.Logger     // nil: silent
	Now     func() time.Time // nil: the system's clock
	Version string           // of the host, shown by /healthz; "": not shown

	// Origins are further origins (as in https://skills.example, behind a proxy)
	// under which this server's own pages are reached; pages of all others may
	// not call. nil: none. Origins with localhost or a numeric address need no
	// entry; names do, because whoever owns a name can make it point here.
	Origins origin.Own

	Resource Resource // where clients of MCP get tokens

	BodyLimit int // bytes of a request body that is no upload; 0: 1 MiB
	HeadLimit int // bytes of request line and headers; 0: 16 KiB
	MaxConns  int // open connections, half of them of one tenant; 0: 4096. At a limit an idle one makes room, see connSet

	HeadTimeout  time.Duration // for request line and headers, from the first byte or the accept; 0: 10 s
	BodyTimeout  time.Duration // for the body, from the end of the headers; 0: 30 s
	IdleTimeout  time.Duration // between two requests of a connection; 0: 60 s
	WriteTimeout time.Duration // for sending an answer, from the end of the call, or one part of a stream; 0: 30 s
	StallTimeout time.Duration // for sending each 64 KiB of an answer or stream; 0: 10 s
	KeepAlive    time.Duration // how long a stream of events is silent before it says that it is alive; 0: 15 s

	UploadLimit   int64         // bytes of an uploaded archive or module; 0: 32 MiB
	UploadTimeout time.Duration // for the body of an upload, from the end of the headers; 0: 2 minutes
	Receiving     int           // uploads that come in at once; 0: 80
	Admitting     int           // uploads that are checked at once; 0: 2. Others wait in a queue, AdmitWait at most
	AdmitWait     time.Duration // 0: 60 s
	Alone         bool          // all callers are one tenant, which may have all places, connections and memory
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Authenticate == nil {
		o.Authenticate = refuseAll
	}
	if o.Rates == nil {
		o.Rates = NewRates(30_000, o.Now)
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	if o.ScriptArgs == nil {
		o.ScriptArgs = stringArgs
	}
	o.Origins = slices.Clone(o.Origins)
	or(&o.BodyLimit, 1<<20)
	or(&o.HeadLimit, 16<<10)
	or(&o.MaxConns, 4096)
	or(&o.HeadTimeout, 10*time.Second)
	or(&o.BodyTimeout, 30*time.Second)
	or(&o.IdleTimeout, 60*time.Second)
	or(&o.WriteTimeout, 30*time.Second)
	or(&o.StallTimeout, stallTime)
	or(&o.KeepAlive, 15*time.Second)
	or(&o.UploadLimit, 32<<20)
	or(&o.UploadTimeout, 2*time.Minute)
	or(&o.Receiving, 80)
	or(&o.Admitting, 2)
	or(&o.AdmitWait, time.Minute)
	return o
}

// or sets what is not set to its default.
func or[T int | int64 | time.Duration](p *T, d T) {
	if *p <= 0 {
		*p = d
	}
}

// Server is the HTTP edge. It is made by [New] and used once.
type Server struct {
	archives archiveDigests
	opt      Options
	console  Console // nil: there is none
	log      *slog.Logger
	http     *fasthttp.Server
	conns    *connSet

	watches watches

	reads, records *gate.Gate // requests that read the catalogue, and those that read records or decide

	answers      *budget // that are not read yet
	open, bodies *budget // of the bodies of callers that are not known, and of those that are

	receiving *gate.Gate // uploads whose bodies come in
	admitting *gate.Gate // uploads that are checked
	undecided *gate.Gate // runs of scripts whose requests wait for an approval

	health []byte // the body of /healthz

	base    context.Context //nolint:containedctx // the parent of every call, ended by Shutdown
	endAll  context.CancelCauseFunc
	closing atomic.Bool
	once    sync.Once

	listening context.Context //nolint:containedctx // the parent of streams without an end, ended when Shutdown begins
	hangUp    context.CancelCauseFunc

	leases leases
}

// methods are those of HTTP, in the order in which Allow lists them.
var methods = []string{
	fiber.MethodGet, fiber.MethodHead, fiber.MethodPost, fiber.MethodPut, fiber.MethodPatch, fiber.MethodDelete,
	fiber.MethodConnect, fiber.MethodOptions, fiber.MethodTrace,
}

var (
	errClientLeft = errors.New("the client closed its connection")
	errShutdown   = errors.New("the host is shutting down")
)

// New makes a server. It does not listen and starts nothing.
func New(o Options) (*Server, error) {
	if o.Door == nil || o.Catalogue == nil {
		return nil, &skill.Error{Op: "api.New", Code: skill.Internal, Message: "Options.Door and Options.Catalogue are required"}
	}
	s := &Server{opt: o.withDefaults()}
	s.log = s.opt.Logger
	s.conns = newConnSet(s.opt.MaxConns, s.opt.Alone)
	s.conns.refused, s.conns.holder, s.conns.stall = s.refused, s.holderOf, s.opt.StallTimeout
	if s.reads = s.opt.Reads; s.reads == nil {
		s.reads = NewReads(s.opt.Alone)
	}
	s.records = newRecords(s.opt.Alone)
	s.open, s.bodies = newBudget(openBodies, false), newBudget(knownBodies, s.opt.Alone)
	s.open.wide = wideNetwork
	s.answers = newBudget(knownAnswers, s.opt.Alone)
	s.receiving = gate.New(gate.Options{Places: s.opt.Receiving, Retry: time.Second, Alone: s.opt.Alone})
	s.admitting = gate.New(gate.Options{Places: s.opt.Admitting, Queue: mostWaiting, Wait: s.opt.AdmitWait, Retry: 10 * time.Second, Alone: s.opt.Alone})
	s.undecided = gate.New(gate.Options{Places: maxUndecided, Alone: s.opt.Alone})
	s.leases.all = map[shown]*shared{}
	s.health = healthBody(s.opt.Version, nil)
	s.base, s.endAll = context.WithCancelCause(context.Background())
	s.listening, s.hangUp = context.WithCancelCause(s.base)

	if o.Console != nil {
		var err error
		if s.console, err = o.Console(s.Do); err != nil {
			return nil, err
		}
	}

	app := fiber.New(fiber.Config{
		// Handlers read strings of the request that would otherwise change when
		// the connection's next request arrives.
		Immutable:                    true,
		UnescapePath:                 true, // some clients write the colon of :invoke as %3A
		CaseSensitive:                true,
		BodyLimit:                    s.opt.BodyLimit,
		Concurrency:                  2*s.opt.MaxConns + 256, // connSet counts; closed ones may linger in their workers
		ReadBufferSize:               s.opt.HeadLimit,
		ReadTimeout:                  s.opt.HeadTimeout,
		IdleTimeout:                  s.opt.IdleTimeout,
		WriteTimeout:                 s.opt.WriteTimeout,
		DisablePreParseMultipartForm: true, // parsing would write files before anyone agreed to it
		StreamRequestBody:            true, // handle reads the bodies, and bounds them; those of uploads go to disk
		DisableStartupMessage:        true,
		RequestMethods:               methods,
	})
	s.register(app)
	router := app.Handler()
	s.http = app.Server()
	s.http.Handler = func(ctx *fasthttp.RequestCtx) {
		if !slices.Contains(methods, string(ctx.Method())) { // the router takes no others
			ctx.Request.Header.SetMethod(fiber.MethodTrace)
		}
		router(ctx)
	}
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
	s.hangUp(errShutdown)
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
