// Command testserver serves the HTTP edge with the skills of httpapitest, for
// clients that test it from outside. It prints its address and ends with its
// standard input.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/catalogue"
	"openskill/host/dispatch/approval"
	"openskill/host/records"
	"openskill/host/store"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

// Key is what callers show.
const Key = "test"

func main() {
	if err := run(); err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
		os.Exit(1)
	}
}

func run() error {
	// Skills that take any input, as their published schemas say; those that
	// answer with errors on demand are left out.
	door := apitest.NewDoor()
	whole := func(_ context.Context, r skill.Request) (json.RawMessage, error) { return r.Input, nil }
	door.Add("echo", whole)
	for _, id := range []skill.ID{"fail", "panic", "sleep"} {
		door.Add(id, whole)
	}
	dir, err := os.MkdirTemp("", "openskill-testserver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(context.Background(), store.Options{StateDir: dir})
	if err != nil {
		return err
	}
	defer db.Close()
	approvals, err := askedOnce(db)
	if err != nil {
		return err
	}
	rows := records.NewStore(db)
	manager, err := records.NewManager(records.ManagerOptions{Records: rows, Results: records.NewResults(db)})
	if err != nil {
		return err
	}
	scripts := apitest.NewAgentSkills()
	recorded := &storetest.Door{Inner: door, Scripts: scripts, Store: rows, Manager: manager}
	keys := apitest.Keys{Key: skill.Local()}
	s, err := api.New(api.Options{
		Door: recorded, Starter: recorded, Executions: manager, Uploads: &uploads{Uploads: apitest.Uploads{Dir: dir}}, Catalogue: apitest.NewCatalogue(), Authenticate: keys.Authenticate, Version: "0.1.0",
		AgentSkills: scripts, Tools: apitest.Tools, Approvals: approvals,
		Chat: &apitest.Chat{}, React: &apitest.React{},
		MCP:        http.HandlerFunc(nothing),
		Metrics:    apitest.Metrics,
		Console:    apitest.Console(page, nil),
		ScriptArgs: func(args json.RawMessage) ([]string, error) { return []string{string(args)}, nil },
		Logger:     slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, ln.Addr().String()+"\n"); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is the signal to stop
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := errors.Join(s.Shutdown(ctx), manager.Close(ctx)); err != nil {
		return err
	}
	return <-served
}

// uploads has its skill until it is deleted, and again with the next upload.
type uploads struct {
	apitest.Uploads

	deleted atomic.Bool
}

func (u *uploads) Begin(p skill.Principal) (api.Upload, error) {
	u.deleted.Store(false)
	return u.Uploads.Begin(p)
}

func (u *uploads) Decide(d catalogue.Decision) (skill.VersionState, error) {
	now, err := u.Uploads.Decide(d)
	if err == nil && d.Action == catalogue.Delete {
		u.deleted.Store(true)
	}
	return now, err
}

func (u *uploads) Uploaded(p skill.Principal, id skill.ID) ([]catalogue.Uploaded, error) {
	if u.deleted.Load() {
		return nil, nil
	}
	return u.Uploads.Uploaded(p, id)
}

// nothing stands where MCP is: what it answers is for the tests of package mcpserver.
func nothing(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var message map[string]any
	forms := r.URL.Query()["tools"]
	if len(forms) > 1 || len(forms) == 1 && !slices.Contains([]string{"all", "code", "both"}, forms[0]) {
		w.WriteHeader(http.StatusBadRequest)
	} else if r.Method == http.MethodPost && (json.NewDecoder(r.Body).Decode(&message) != nil || message == nil || r.Header.Get("Content-Type") != "application/json") {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = io.WriteString(w, "{}") // the client has left
}

// page stands where the console is, which has tests of its own.
func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<!doctype html><title>console</title>") // the client has left
}

// askedOnce gives a store in which one script has asked.
func askedOnce(db *store.DB) (*approval.Store, error) {
	store, err := approval.Open(context.Background(), approval.Options{DB: db, Policy: approval.PerVersion})
	if err != nil {
		return nil, err
	}
	err = store.Check(context.Background(), approval.Ask{
		Skill: "unit-converter", Script: "scripts/convert.py", Digest: "sha256:0", Tenant: "acme", Caller: "agent-1",
	})
	if skill.CodeOf(err) != skill.Forbidden {
		return nil, err
	}
	return store, nil
}
