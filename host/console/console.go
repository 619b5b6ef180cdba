package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"openskill/host/identity"
	"openskill/host/internal/gate"
	"openskill/host/internal/origin"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/workers"
	"openskill/sdk/skill"
)

// Options of a [Console]. What is nil is not there, and its pages say so.
type Options struct {
	// API answers requests of the HTTP API as a principal; required.
	API func(ctx context.Context, p skill.Principal, r *http.Request) (*http.Response, error)
	DB  *store.DB // has the sessions and the last self-test; required
	// Callers says whose a credential is, an API key or a JWT; it is asked again for each
	// request of a session. nil: nobody is asked, and all who reach the host are Operator.
	Callers   *identity.Authenticator
	Operator  skill.Principal // who calls where Callers is nil
	Provider  Provider        // where people sign in too; it needs Callers
	PublicURL string          // where browsers reach the host; for Provider

	Recent   *records.Window // figures of the last hour
	Tail     *records.Tail   // the calls that end now
	Workers  func() (workers.Stats, bool)
	Keys     func(by skill.Principal) *identity.Keys // as that one changes them, on record
	Settings func() []Setting
	Chain    func(ctx context.Context, tenant string) (*ChainState, error)
	Reads    *gate.Gate // long answers are read in turns of tenants; nil: at once

	// Origins are those of the host's own pages besides addresses and localhost; cookies of
	// one that is https are sent over https alone.
	Origins origin.Own
	Version string
	Logger  *slog.Logger     // nil: silent
	Now     func() time.Time // that hosts with this database share; nil: the system's clock
}

// Console answers /console and what is below it. It is safe for concurrent use.
type Console struct {
	o        Options
	log      *slog.Logger
	mux      *http.ServeMux
	sessions *sessions
	attempts *attempts
	asking   *gate.Gate // the provider
	files    map[string]file
}

// base is where the console is.
const base = "/console"

// New makes a console.
func New(o Options) (*Console, error) {
	if o.API == nil || o.DB == nil || o.Callers == nil && o.Operator.ID == "" {
		return nil, errors.New("console.New: Options.API and DB, and Callers or Operator, are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	c := &Console{
		o: o, log: o.Logger, mux: http.NewServeMux(), sessions: newSessions(&o), attempts: newAttempts(o.Now),
		asking: gate.New(gate.Options{Places: mostAsking}),
		files:  files,
	}
	c.routes()
	return c, nil
}

func (c *Console) routes() {
	get := func(path string, h func(*view) error) { c.mux.HandleFunc("GET "+base+path, c.page(h)) }
	post := func(path string, h func(*view) error) { c.mux.HandleFunc("POST "+base+path, c.page(h)) }

	c.mux.HandleFunc("GET "+base+"/assets/{name}", c.asset)
	c.mux.HandleFunc("GET "+base+"/signin", c.signInPage)
	c.mux.HandleFunc("POST "+base+"/signin", c.signIn)
	c.mux.HandleFunc("GET "+startPath, c.startSignIn)
	c.mux.HandleFunc("GET "+CallbackPath, c.endSignIn)
	post("/signout", (*view).signOut)
	get("", (*view).home)
	get("/{$}", (*view).home)

	get("/skills", (*view).skills)
	get("/skills/{id}", (*view).skill)
	get("/skills/{id}/versions/{version}", (*view).version)
	get("/skills/{id}/versions/{version}/file", (*view).skillFile)
	post("/skills/{id}/versions/{version}/packages", (*view).packages)
	post("/skills/{id}/try", (*view).try)
	post("/skills/{id}/{action}", (*view).decide)
	get("/upload", (*view).uploadPage)
	c.mux.HandleFunc("POST "+base+"/upload", c.upload)
	get("/agent-skills", (*view).agentSkills)
	get("/agent-skills/{name}", (*view).agentSkill)
	post("/agent-skills/{name}/run", (*view).runScript)
	get("/agent-skills/{name}/grant", (*view).grant)
	post("/agent-skills/{name}/grant", (*view).decideGrant)

	get("/executions", (*view).executions)
	get("/executions/live", (*view).live)
	post("/executions/verify", (*view).verifyChain)
	get("/executions/{id}", (*view).execution)
	post("/executions/{id}/replay", (*view).replay)
	post("/executions/{id}/end", (*view).endExecution)
	get("/executions/{id}/artifacts/{name...}", (*view).artifact)

	get("/workspaces", (*view).workspaces)
	get("/workspaces/{id}", (*view).workspace)
	get("/workspaces/{id}/files/{name...}", (*view).workspaceFile)
	post("/workspaces/{id}/delete", (*view).deleteWorkspace)
	get("/changes", (*view).changes)
	get("/overview", (*view).overview)
	get("/overview/figures", (*view).figures)
	get("/approvals", (*view).approvals)
	post("/approvals/{id}/{word}", (*view).decideApproval)
	get("/chat", (*view).chat)
	post("/chat", (*view).say)
	post("/chat/stream", (*view).stream)
	get("/chat/{id}", (*view).conversation)
	post("/chat/{id}/approve", (*view).approveCall)
	post("/chat/{id}/forget", (*view).forget)
	get("/keys", (*view).keys)
	post("/keys", (*view).createKey)
	post("/keys/{id}/{word}", (*view).changeKey)
	get("/settings", (*view).settings)
	get("/{rest...}", func(v *view) error { return v.fail(http.StatusNotFound, "Page not found.") })
}

// policy lets pages use what this host itself serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	// No other site learns where its visitor comes from. With no-referrer browsers say
	// Origin: null of our own forms too, which nobody can tell from a stranger's.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if c.o.Origins.Page(r.Header.Values("Origin"), r.Header.Get("Sec-Fetch-Site"), r.Host, reads) != nil {
		c.plain(w, r, http.StatusForbidden, "Cross-origin form refused. Open the console and try again.")
		return
	}
	c.mux.ServeHTTP(w, r)
}

// view is one request of somebody who is signed in.
type view struct {
	*Console
	w http.ResponseWriter
	r *http.Request
	s *session
	p skill.Principal
}

// page wraps a handler that needs to know who asks. Unsafe requests need the token of the
// session.
func (c *Console) page(h func(*view) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, leave := c.enter(w, r)
		if v == nil {
			return
		}
		defer leave()
		if r = v.r; r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				_ = v.fail(http.StatusBadRequest, "Cannot read the form.")
				return
			}
			if !v.s.guarded(r.PostForm.Get("csrf")) && !v.s.guarded(r.Header.Get("X-Csrf-Token")) {
				_ = v.fail(http.StatusForbidden, "Your session has ended. Reload the page and try again.")
				return
			}
		}
		if err := h(v); err != nil {
			v.failed(err)
		}
	}
}

// enter finds out who asks, by the cookie; whoever is not known is shown the way to the
// sign-in page, and has no view. The context of the request ends with the session, until leave.
func (c *Console) enter(w http.ResponseWriter, r *http.Request) (v *view, leave func()) {
	network, _ := networks(r)
	s, p, err := c.known(r.Context(), network, r)
	if s == nil && err == nil && c.o.Callers == nil {
		p = c.o.Operator
		s, err = c.begin(w, r, "", &p)
	}
	switch {
	case err != nil:
		c.plain(w, r, http.StatusServiceUnavailable, "Authentication is unavailable: "+messageOf(err))
	case s != nil:
		v = &view{Console: c, w: w, s: s, p: p}
		ctx, stop := identity.Start(r.Context(), v.stillGood)
		v.r = r.WithContext(ctx)
		return v, stop
	case r.Header.Get("Hx-Request") != "":
		w.Header().Set("HX-Redirect", base+"/signin")
		w.WriteHeader(http.StatusUnauthorized)
	case strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		w.WriteHeader(http.StatusUnauthorized)
	default:
		to := base + "/signin"
		if r.Method == http.MethodGet {
			to += "?next=" + url.QueryEscape(r.URL.RequestURI())
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
	return nil, nil
}

// frame is what every page shows around its own part.
type frame struct {
	Title   string
	Section string
	Who     string // "" where nobody is signed in
	Name    string // as people read it
	Open    bool   // nobody is asked who they are
	CSRF    string
	Version string
	Host    string
	Links   []navLink
	Note    *note  // "": none
	Next    string // the page that this one leads to by itself; "": none
	file    func(name string) string
}

// navLink is an entry of the navigation.
type navLink struct{ Path, Name, Section string }

// note is what came of what was asked.
type note struct {
	Good bool
	Text string
}

func (v *view) frame(section, title string) *frame {
	return &frame{
		Title: title, Section: section, Who: visible(v.p.ID, 80), Name: visible(cmp.Or(v.p.Name, v.p.ID), 80), Open: v.o.Callers == nil, CSRF: v.s.csrf(),
		Version: v.o.Version, Host: visible(v.r.Host, 80), Links: v.links(), file: v.fileURL, Note: v.takeNote(),
	}
}

// needs are the scopes of which one opens a page, by its section.
var needs = map[string][]string{
	"overview":     {skill.ScopeAllExecutions, skill.ScopeHost},
	"skills":       {skill.ScopeRead},
	"upload":       {skill.ScopeUpload},
	"agent-skills": {skill.ScopeRead},
	"grants":       {skill.ScopeAdmin},
	"executions":   {skill.ScopeExecutions, skill.ScopeAllExecutions, skill.ScopeHost},
	"workspaces":   {skill.ScopeInvoke},
	"approvals":    {skill.ScopeRead, skill.ScopeAdmin},
	"chat":         {skill.ScopeAgent},
	"changes":      {skill.ScopeHost},
	"keys":         {skill.ScopeHost},
	"settings":     {skill.ScopeHost},
}

func (v *view) may(section string) bool {
	return slices.ContainsFunc(needs[section], v.p.May)
}

// allowed is nil where the caller has a scope of the section.
func (v *view) allowed(section string) error {
	if v.may(section) {
		return nil
	}
	return &apiError{Status: http.StatusForbidden, Code: string(skill.Forbidden), Message: "This page requires the scope " + strings.Join(needs[section], " or ") + ". You do not have it."}
}

// navigation is every page that is led to, for those who have its scope.
var navigation = []navLink{
	{"/overview", "Overview", "overview"},
	{"/skills", "Skills", "skills"},
	{"/agent-skills", "Agent Skills", "agent-skills"},
	{"/executions", "Executions", "executions"},
	{"/workspaces", "Workspaces", "workspaces"},
	{"/approvals", "Approvals", "approvals"},
	{"/chat", "Chat", "chat"},
	{"/changes", "Changes", "changes"},
	{"/keys", "Keys", "keys"},
	{"/settings", "Settings", "settings"},
}

func (v *view) links() []navLink {
	var out []navLink
	for _, l := range navigation {
		if v.may(l.Section) {
			out = append(out, l)
		}
	}
	return out
}

func (v *view) home() error {
	links := v.links()
	if len(links) == 0 {
		return v.fail(http.StatusForbidden, "No page is available: your API key or JWT has no scope for one.")
	}
	return v.redirect(links[0].Path)
}

// redirect leads to another page of the console.
func (v *view) redirect(path string) error {
	http.Redirect(v.w, v.r, base+path, http.StatusSeeOther)
	return nil
}

// show answers with a page.
func (v *view) show(status int, page templ.Component) error {
	return v.render(v.w, v.r, status, page)
}

func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, page templ.Component) error {
	var b bytes.Buffer // so that there is no half page
	if err := page.Render(r.Context(), &b); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client has left
	return nil
}

// fail answers with a page that says what was wrong.
func (v *view) fail(status int, message string) error {
	return v.show(status, failurePage(v.frame("", http.StatusText(status)), message, ""))
}

// failed answers an error.
func (v *view) failed(err error) {
	var e *apiError
	if !errors.As(err, &e) {
		e = problemOf(err)
	}
	if e.Status >= 500 {
		v.log.LogAttrs(context.WithoutCancel(v.r.Context()), slog.LevelError, "a page of the console failed",
			slog.String("path", skill.CleanText(v.r.URL.Path, 200)), slog.String("error", skill.CleanText(err.Error(), 500)))
	}
	code := e.Code
	if e.TraceID != "" {
		code += ", trace " + e.TraceID
	}
	_ = v.show(e.Status, failurePage(v.frame("", http.StatusText(e.Status)), e.Message, code)) // nothing else can be said
}

// plain answers whoever has no session.
func (c *Console) plain(w http.ResponseWriter, r *http.Request, status int, message string) {
	f := &frame{Title: http.StatusText(status), Version: c.o.Version, Host: visible(r.Host, 80), file: c.fileURL}
	_ = c.render(w, r, status, failurePage(f, message, ""))
}

// link makes the address of a page of segments, each escaped.
func link(segments ...string) templ.SafeURL {
	var b strings.Builder
	b.WriteString(base)
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return templ.SafeURL(b.String())
}

// with adds a query to an address; empty values are left out.
func with(u templ.SafeURL, pairs ...string) templ.SafeURL {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return u
	}
	return u + templ.SafeURL("?"+q.Encode())
}
