package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"openskill/host/records"

	"openskill/host/agentskills"
	"openskill/host/api"
	"openskill/host/identity"
	"openskill/sdk/skill"
)

// Grace is how much longer than the longest call allowed a host waits for its calls after it was told to stop.
const Grace = 10 * time.Second

// recording is how much of that is left for the records of long calls that are cancelled.
const recording = 2 * time.Second

// notice is how long a host that other machines reach goes on taking requests after it was told to stop, while /readyz
// says so: load balancers need some time to leave it out.
const notice = 5 * time.Second

// closing is how long the parts get to end after the last call; a compilation,
// which cannot be interrupted, ends with the process.
const closing = 2 * time.Second

// Serve listens on the address of the settings, calls ready with the one that it
// got, and answers until ctx ends. Then it is not ready, after notice it stops accepting, lets calls
// end as long as the longest one may take, cancels those that have not, and closes the host. The error is nil when
// ctx was what ended it.
func (h *Host) Serve(ctx context.Context, ready func(net.Addr)) error {
	o := h.apiOptions()
	o.Origins, o.TrustedProxies = h.settings.WebOrigins(), h.settings.Proxies()
	o.Warming = h.Warming
	o.Changes = records.NewStore(h.kept.db).Changes
	o.Ready = func() error {
		if ctx.Err() != nil {
			return errStopping
		}
		return h.kept.log.Ready()
	}
	if h.uploads != nil {
		o.Uploads, o.Definitions = h.uploads, h.skills
	}
	h.watchEdge(&o)
	o.Trace = h.trace
	var err error
	if o.Resource, err = resource(h.settings); err != nil {
		return errors.Join(err, h.Close())
	}
	mcp, err := h.openMCP(&o)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	defer mcp.Close()
	o.MCP = mcp
	o.Console = h.console(&o)
	server, err := api.New(o) // each call has its own context
	if err != nil {
		return errors.Join(err, h.Close())
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", h.settings.Listen)
	if err != nil {
		return errors.Join(fmt.Errorf("cannot listen on the address: %w", err), h.Close())
	}
	admin, err := h.openAdmin(ctx) // its requests have contexts of their own
	if err != nil {
		return errors.Join(err, ln.Close(), h.Close())
	}
	defer admin.close()
	tending, leave := context.WithCancel(context.WithoutCancel(ctx)) // while calls run
	defer leave()
	// A worker that does not let go of a warm-up in time is ended, with the calls in it: so it goes on while these may.
	warming, coolDown := context.WithCancel(context.WithoutCancel(ctx))
	defer coolDown()
	var tended sync.WaitGroup
	tended.Go(func() { h.kept.executions.Tend(tending) })
	tended.Go(func() { h.kept.executions.Work(ctx, h.worker()) })
	tended.Go(func() { h.kept.files.Tend(tending) })
	tended.Go(func() { h.kept.sessions.Tend(tending) })
	tended.Go(func() { h.agent.Tend(tending) })
	tended.Go(func() { h.recordings.Tend(tending, h.settings.AuditRetention(), h.log) })
	tended.Go(func() {
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		watchStorage(tending, h.log, tick.C, func() []Finding { return Shortages(h.settings) })
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	ready(ln.Addr())
	warm := h.warm(tending, warming)

	select {
	case err = <-served: // it ended by itself
	case <-ctx.Done():
		most := h.settings.Caps().Timeout + Grace
		running, waiting, _, _ := h.door.Load()
		h.log.Info("stopping", slog.Float64("grace_s", most.Seconds()), slog.Int("calls", running+waiting))
		if !h.settings.Local() {
			time.Sleep(notice)
		}
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
		defer cancel()
		ended := make(chan error, 1)
		go func() { // asynchronous calls
			soon, cancel := context.WithTimeout(grace, most-recording)
			defer cancel()
			_ = h.kept.executions.Drain(soon) // Close cancels calls that have not ended by then
			ended <- h.kept.executions.Close(grace)
		}()
		if errors.Join(server.Shutdown(grace), <-ended) != nil {
			h.log.Warn("calls were cancelled: they did not finish within the grace period")
		}
		err = <-served
	}
	leave()
	coolDown()
	tended.Wait()
	return errors.Join(err, h.closeSoon(warm)) // after ctx has ended
}

var errStopping = &skill.Error{Op: "app.Serve", Code: skill.Cancelled, Message: "the host is shutting down"}

// apiOptions are the options of the API in every mode.
func (h *Host) apiOptions() api.Options {
	return api.Options{
		Door: h, Catalogue: h.Catalogue(), Authenticate: h.authenticate(), Executions: h.kept.executions, Files: h.kept.files, Workspaces: h.kept.spaces, Sessions: h.kept.sessions, Starter: h.door, Usage: h.Usage,
		Chat: h.agent, React: h.agent, AgentSkills: h.agents, Tools: h.Tools, Search: h.Search, SkillArchive: h.SkillArchive, Approvals: h.approvals, Grants: h.Allowing(), ScriptArgs: agentskills.Arguments,
		Logger: h.log, Version: Version, BodyLimit: h.settings.MaxBody(), UploadLimit: h.settings.MaxUpload(), Alone: h.alone,
		Reads: api.NewReads(h.alone), Rates: h.rates, Schedules: h.schedules(), Webhooks: h.webhooks(),
	}
}

// Transport makes requests to the API of a host that serves nobody else, as its operator, in this
// process. Close ends those under way.
func (h *Host) Transport() (http.RoundTripper, error) {
	server, err := api.New(h.apiOptions())
	if err != nil {
		return nil, err
	}
	h.owns(func() error { return server.Shutdown(context.Background()) }) // which has no connections
	return inProcess(server.Do), nil
}

type inProcess api.Ask

// RoundTrip implements [http.RoundTripper].
func (ask inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	return ask(r.Context(), skill.Local(), r)
}

// authenticate says who a request acts for: where nobody has to show who they are,
// only the operator of this machine can reach the host.
func (h *Host) authenticate() func(context.Context, identity.Credentials) (skill.Principal, error) {
	if h.kept.callers == nil {
		return func(context.Context, identity.Credentials) (skill.Principal, error) { return skill.Local(), nil }
	}
	return h.kept.callers.Authenticate
}

// closeSoon closes the host, but does not wait without end for a part that hangs:
// the process is about to end, and what is left ends with it.
func (h *Host) closeSoon(warm <-chan struct{}) error {
	done := make(chan error, 1)
	go func() {
		<-warm
		done <- h.Close()
	}()
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		h.log.Warn("stopped before everything was closed")
		return nil
	}
}
