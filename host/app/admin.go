package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"openskill/host/identity"
	"openskill/host/internal/origin"
	"openskill/sdk/skill"
)

// admin is the server of who looks into a running host: its profiles and its metrics. It
// listens on loopback alone, which the settings see to.
type admin struct {
	server *http.Server
	ln     net.Listener
	done   chan struct{}
}

// openAdmin begins it; nil where the settings name no address.
func (h *Host) openAdmin(ctx context.Context) (*admin, error) {
	if h.settings.AdminListen == "" {
		return nil, nil
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", h.settings.AdminListen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on OPENSKILL_ADMIN_LISTEN: %w", err)
	}
	a := &admin{ln: ln, done: make(chan struct{}), server: &http.Server{
		Handler: h.adminHandler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
	}}
	go func() {
		defer close(a.done)
		if err := a.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			h.log.Error("the admin server stopped", slog.String("reason", err.Error()))
		}
	}()
	h.log.Info("profiles and metrics are served", slog.String("address", "http://"+ln.Addr().String()+"/debug/pprof/"))
	return a, nil
}

// close ends it at once: nobody's call is behind it.
func (a *admin) close() {
	if a != nil {
		_ = a.server.Close() // of sockets
		<-a.done
	}
}

func (h *Host) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if h.metrics != nil {
		mux.Handle("GET /metrics", h.metrics)
	}
	authenticate := h.authenticate()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if origin.Own(nil).Check(r) != nil {
			http.Error(w, "unknown host name or origin: use an IP address or localhost", http.StatusForbidden)
			return
		}
		p, err := authenticate(r.Context(), identity.Credentials{Authorization: r.Header.Values("Authorization"), APIKey: r.Header.Values("X-Api-Key")})
		switch {
		case err != nil && skill.CodeOf(err) != skill.Unauthorized:
			http.Error(w, "authentication is unavailable; retry", http.StatusServiceUnavailable)
		case err != nil || p.ID == "" || p.Type == skill.Anonymous:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "invalid or missing credentials: send \"Authorization: Bearer TOKEN\" or \"X-API-Key: KEY\"", http.StatusUnauthorized)
		case !p.May(skill.ScopeHost):
			http.Error(w, "missing scope "+skill.ScopeHost, http.StatusForbidden)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}
