package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/host/agent/tools"
	"openskill/host/internal/gate"
	"openskill/host/internal/origin"
	"openskill/host/internal/table"
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
}

// AgentSkills are the Agent Skills that callers find. It must be safe for concurrent
// use; its errors are *skill.Error.
type AgentSkills interface {
	// List gives them in order of name.
	List(ctx context.Context, p skill.Principal) ([]skill.AgentSkill, error)
	// Load gives one and the text of its SKILL.md, frontmatter included.
	Load(ctx context.Context, p skill.Principal, name string) (skill.AgentSkill, string, error)
	ReadResource(ctx context.Context, p skill.Principal, name, resource string) (skill.AgentResource, error)
	// Tools are those by which a model uses them: none, two or three.
	Tools(ctx context.Context, p skill.Principal) ([]skill.Tool, error)
	// CallTool runs one of them. It never returns nil.
	CallTool(ctx context.Context, p skill.Principal, name string, args json.RawMessage, trace skill.TraceID) *skill.Result
	// Instructions are for a system prompt; "" without skills.
	Instructions(ctx context.Context, p skill.Principal) (string, error)
}

// Options configure a [Server]. Zero never means "unlimited".
type Options struct {
	Door        Door        // required
	Catalogue   Catalogue   // required
	AgentSkills AgentSkills // nil: there are none
	// Search implements the tool search_skills. Without it, every client has the form all.
	Search tools.Finder
	Tools  tools.Form // of a client that does not choose; "": all
	// Artifact returns an artifact of an execution that the principal may read. The error is a *skill.Error.
	// nil: artifacts cannot be read.
	Artifact func(ctx context.Context, p skill.Principal, executionID, name string) ([]byte, error)
	// Approvals is where the operator's word on scripts goes, if the client can ask for it;
	// nil: clients are told who approves, and nobody is asked.
	Approvals Approvals
	Tasks     Tasks // nil: clients wait for the ends of their calls
	// Grants is what scripts are allowed. The operator is asked for more; without Grants, no one is.
	Grants Grants

	// Revision gives a value that compares equal as long as the catalogue and the Agent Skills
	// of a caller stay as they are. It must be quick: sessions are told of changes by it. Callers
	// of a tenant find the same skills at one revision. nil, or a value that is nil: not known,
	// so that all is read to find out.
	Revision func(ctx context.Context, p skill.Principal) any
	Lists    *table.Cache // keeps lists as they are sent, by tenant and revision; nil: one of its own
	Reads    *gate.Gate   // for requests that read lists and files; nil: one of its own

	// Rate takes n requests of what the caller of a request over HTTP may make, or with 0 looks
	// whether there is one left; its error, a *skill.Error, is the answer. nil: there is no bound.
	Rate func(r *http.Request, n int) error
	// Principal says who a request over HTTP acts for; its error, an *skill.Error,
	// is the answer. nil: every request is refused.
	Principal func(*http.Request) (skill.Principal, error)
	// Over reports whether the key of a principal was revoked or has expired: its sessions
	// over HTTP end then. It is asked every PollEvery. nil: keys do not end.
	Over func(ctx context.Context, p skill.Principal) bool
	// Origins are further origins (as in https://skills.example) under which this
	// server is reached. Hosts that are localhost or a numeric address need no entry;
	// names do, because whoever owns a name can make it point here. nil: none.
	Origins origin.Own

	Logger  *slog.Logger // nil: silent
	Version string       // of the host

	BodyLimit     int   // bytes of one message; 0: 1 MiB
	ResourceLimit int64 // bytes of one file of a skill; 0: 16 MiB
	MaxPending    int   // requests under way on one standard input; 0: 256
	MaxSessions   int   // sessions over HTTP, a quarter of them of one tenant and an eighth of one principal; 0: 1024. An idle one makes room, of the same principal or tenant first
	MaxOpen       int   // requests under way over HTTP, streams included; 0: 2048, half of the connections of a host. More are refused
	Alone         bool  // all callers are one tenant, which may have all of these

	SessionIdle   time.Duration // until an unused session over HTTP ends; 0: 4 hours
	TaskLimit     time.Duration // time limit of calls that are never tasks; 0: 15 s
	TaskAfter     time.Duration // until another call becomes a task; 0: 2 s
	ProgressEvery time.Duration // between notifications of progress; 0: 500 ms
	KeepAlive     time.Duration // between signs of life on streams over HTTP; 0: 10 s
	PollEvery     time.Duration // between looks at whether the catalogue changed; 0: 2 s
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Principal == nil {
		o.Principal = func(*http.Request) (skill.Principal, error) {
			return skill.Principal{}, &skill.Error{Op: "mcpserver.Principal", Code: skill.Unauthorized, Message: "this host does not serve MCP over HTTP"}
		}
	}
	if o.Rate == nil {
		o.Rate = func(*http.Request, int) error { return nil }
	}
	if o.Lists == nil {
		o.Lists = table.NewCache(16 << 20)
	}
	or(&o.BodyLimit, 1<<20)
	or(&o.ResourceLimit, 16<<20)
	or(&o.MaxPending, 256)
	or(&o.MaxSessions, 1024)
	or(&o.MaxOpen, 2048)
	or(&o.SessionIdle, 4*time.Hour)
	or(&o.TaskLimit, 15*time.Second)
	or(&o.TaskAfter, 2*time.Second)
	or(&o.ProgressEvery, 500*time.Millisecond)
	or(&o.KeepAlive, 10*time.Second)
	or(&o.PollEvery, 2*time.Second)
	return o
}

func or[T int | int64 | time.Duration](p *T, d T) {
	if *p <= 0 {
		*p = d
	}
}

// Server serves MCP to any number of sessions. It is safe for concurrent use.
type Server struct {
	opt    Options
	log    *slog.Logger
	secret []byte // binds what clients bring back to what they were given
	asked  *asked // about what scripts are allowed
	web    *web

	base   context.Context //nolint:containedctx // the parent of every call, ended by Close
	endAll context.CancelCauseFunc

	mu       sync.Mutex
	callers  map[*caller]bool // who is told of changes
	watching chan struct{}    // closed when the watch is over; nil before it began
	closed   bool
}

var (
	errClientLeft = errors.New("the client left")
	errShutdown   = errors.New("the host is shutting down")
)

// readers is how many requests read at once where the host gives no gate for them.
const readers = 8

// New makes a server. It starts nothing.
func New(o Options) (*Server, error) {
	if o.Door == nil || o.Catalogue == nil {
		return nil, &skill.Error{Op: "mcpserver.New", Code: skill.Internal, Message: "Options.Door and Options.Catalogue are required"}
	}
	s := &Server{opt: o.withDefaults(), secret: make([]byte, 32), callers: map[*caller]bool{}}
	if s.opt.Reads == nil {
		s.opt.Reads = gate.New(gate.Options{Places: readers, Queue: s.opt.MaxPending, Alone: s.opt.Alone})
	}
	s.asked = newAsked(s.opt.SessionIdle)
	_, _ = rand.Read(s.secret) // never fails since Go 1.24
	s.log = s.opt.Logger
	s.base, s.endAll = context.WithCancelCause(context.Background())
	s.web = newWeb(s)
	return s, nil
}

// Close ends every call and session. It may be called twice.
func (s *Server) Close() error {
	s.endAll(errShutdown)
	s.mu.Lock()
	s.closed = true
	watching := s.watching
	var open []*mcp.ServerSession
	for c := range s.callers {
		for ss := range c.server.Sessions() {
			open = append(open, ss)
		}
	}
	s.mu.Unlock()
	for _, ss := range open {
		_ = ss.Close() // it waits for calls, which have ended
	}
	if watching != nil {
		<-watching
	}
	return nil
}

// caller is one principal as the SDK's servers know it: the sessions of one server
// are all of one principal.
type caller struct {
	s      *Server
	id     string // random
	p      skill.Principal
	base   context.Context //nolint:containedctx // the parent of its calls
	server *mcp.Server
	lines  *lines     // of a session over standard input; else nil
	used   time.Time  // guarded by the web's mu; when a request last came over HTTP
	coming []*session // likewise; that there is room for, and that have not begun

	looking sync.Mutex
	seen    *sight // what it saw when it was last looked at; nil before
	at      any    // the revision of seen

	calling sync.Mutex
	running map[string]map[*context.CancelCauseFunc]bool // calls under way by their session's id
}

const extension = "io.modelcontextprotocol/skills"

// newCaller makes a server of the SDK for one principal. newID names sessions.
func (s *Server) newCaller(base context.Context, p skill.Principal, newID func() string) (*caller, error) {
	c := &caller{s: s, id: rand.Text(), p: p, base: base, running: map[string]map[*context.CancelCauseFunc]bool{}}
	caps := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	if s.opt.AgentSkills != nil {
		caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
		caps.Resources = &mcp.ResourceCapabilities{ListChanged: true}
		caps.AddExtension(extension, map[string]any{"directoryRead": true})
	}
	if s.opt.Tasks != nil {
		caps.AddExtension(tasksExtension, map[string]any{})
	}
	c.server = mcp.NewServer(
		&mcp.Implementation{Name: "openskill", Title: "openSkill", Version: s.opt.Version},
		&mcp.ServerOptions{Capabilities: caps, GetSessionID: newID, SetCacheable: func(_ context.Context, _ mcp.Request, k *mcp.Cacheable) { *k = uncached }},
	)
	c.server.AddReceivingMiddleware(c.receive)
	if s.opt.Tasks != nil {
		if err := c.addTasks(); err != nil {
			return nil, err
		}
	}
	if s.opt.AgentSkills != nil {
		err := errors.Join(
			mcp.AddReceivingCustomMethod(c.server, "skills/list", c.listSkills),
			mcp.AddReceivingCustomMethod(c.server, "skills/get", c.getSkill),
			mcp.AddReceivingCustomMethod(c.server, "resources/directory/read", c.readDirectory),
		)
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// uncached says that a list is the caller's own and stale at once: it is cheap to ask
// again, and a client that keeps an older one calls skills that are gone.
var uncached = mcp.Cacheable{TTLMs: 0, CacheScope: "private"}

// receive answers what is looked up at each request, and leaves the rest of the
// protocol to the SDK.
func (c *caller) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if reads(method, req) {
			leave, err := c.s.enter(ctx, c.p)
			if err != nil {
				return nil, protocolError(err)
			}
			defer leave()
		}
		res, err := c.handle(ctx, method, req, next)
		if err != nil {
			return nil, err
		}
		return c.outgoing(req).lists(res)
	}
}

// handle answers one request. Large values of its result are in the bodies of the request.
func (c *caller) handle(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	switch r := req.(type) {
	case *mcp.ListToolsRequest:
		res, err := c.listTools(ctx, r)
		if err != nil {
			return nil, protocolError(err)
		}
		return res, nil
	case *mcp.CallToolRequest:
		res, err := c.callTool(ctx, r)
		if err != nil {
			return nil, protocolError(err)
		}
		return completed(r.ProtocolVersion(), res), nil
	case *mcp.ServerRequest[*taskParams]:
		return answer(c.task(ctx, method, r))
	}
	if c.s.opt.AgentSkills != nil {
		switch r := req.(type) {
		case *mcp.ListResourcesRequest:
			return answer(c.listResources(ctx, r))
		case *mcp.ListResourceTemplatesRequest:
			return answer(c.listTemplates(r))
		case *mcp.ReadResourceRequest:
			res, err := answer(c.readResource(ctx, r))
			return completed(r.ProtocolVersion(), res), err
		case *mcp.ListPromptsRequest:
			return answer(c.listPrompts(ctx, r))
		case *mcp.GetPromptRequest:
			res, err := answer(c.getPrompt(ctx, r))
			return completed(r.ProtocolVersion(), res), err
		}
	}
	res, err := next(ctx, method, req)
	if err != nil {
		return nil, err
	}
	switch r := res.(type) {
	case *mcp.InitializeResult:
		r.Instructions = c.outgoing(req).text([]byte(c.instructions(ctx)))
	case *mcp.DiscoverResult:
		r.Instructions = c.outgoing(req).text([]byte(c.instructions(ctx)))
	}
	return res, nil
}

// outgoing returns the bodies of the connection that a request came by.
func (c *caller) outgoing(req mcp.Request) *bodies {
	if e := c.s.web.exchangeOf(req.GetExtra()); e != nil {
		return &e.out.bodies
	}
	if c.lines != nil {
		return &c.lines.bodies
	}
	return &bodies{} // the client has left
}

// reads reports whether a request reads lists, files or instructions. So do the tools by which models
// read Agent Skills; all others pass the gate for calls.
func reads(method string, req mcp.Request) bool {
	if call, ok := req.(*mcp.CallToolRequest); ok {
		return readsFor(call.Params.Name)
	}
	return method == "initialize" || method == "server/discover" || strings.HasSuffix(method, "/list") || strings.HasSuffix(method, "/read") || strings.HasSuffix(method, "/get")
}

// readsFor reports whether a tool only reads.
func readsFor(tool string) bool {
	return tool == tools.LoadSkill || tool == tools.ReadResource || tool == tools.SearchSkills
}

// enter waits for a place to read.
func (s *Server) enter(ctx context.Context, p skill.Principal) (leave func(), err error) {
	if leave, err = s.opt.Reads.Enter(ctx, p.Tenant); err != nil {
		return nil, gate.Refusal(err, "mcpserver.enter", "too many lists and files are being read")
	}
	return leave, nil
}

// answer keeps a nil pointer from becoming a result.
func answer[R any, P interface {
	*R
	mcp.Result
}](res P, err error,
) (mcp.Result, error) {
	if err != nil {
		return nil, protocolError(err)
	}
	return res, nil
}

// completed marks a result as a whole one, as revisions without a handshake ask for.
// The SDK does so for handlers that are registered with it, in a field that only its
// decoder sets for others.
func completed(version string, res mcp.Result) mcp.Result {
	if version < stateless {
		return res
	}
	switch r := res.(type) {
	case *mcp.CallToolResult:
		if r.InputRequests != nil {
			return r
		}
		m := wholeCall()
		m.Meta, m.Content, m.StructuredContent, m.IsError = r.Meta, r.Content, r.StructuredContent, r.IsError
		return &m
	case *mcp.GetPromptResult:
		m := wholePrompt()
		m.Meta, m.Description, m.Messages = r.Meta, r.Description, r.Messages
		return &m
	case *mcp.ReadResourceResult:
		m := wholeRead()
		m.Meta, m.Cacheable, m.Contents = r.Meta, r.Cacheable, r.Contents
		return &m
	}
	return res
}

// Results that are marked and empty.
var (
	wholeCall  = sync.OnceValue(whole[mcp.CallToolResult])
	needsInput = sync.OnceValue(func() (res mcp.CallToolResult) {
		_ = json.Unmarshal([]byte(`{"resultType":"input_required","content":[]}`), &res) // a constant; TestApproval looks at what comes of it
		return res
	})
	wholePrompt = sync.OnceValue(whole[mcp.GetPromptResult])
	wholeRead   = sync.OnceValue(whole[mcp.ReadResourceResult])
)

func whole[R any]() (res R) {
	_ = json.Unmarshal([]byte(`{"resultType":"complete","content":[],"contents":[],"messages":[]}`), &res) // a constant; TestConversations looks at what comes of it
	return res
}

func (c *caller) instructions(ctx context.Context) string {
	if c.s.opt.AgentSkills == nil || !c.p.May(skill.ScopeRead) {
		return ""
	}
	text, err := c.s.opt.AgentSkills.Instructions(ctx, c.p)
	if err != nil {
		c.s.log.LogAttrs(ctx, slog.LevelError, "cannot make the session instructions", slog.Any("error", err))
		return ""
	}
	return text
}
