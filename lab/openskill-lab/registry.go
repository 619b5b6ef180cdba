package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/spf13/cobra"

	"openskill/host/admission/share"
	"openskill/internal/cliflag"
)

func (a *cli) registryCommand() *cobra.Command {
	var asJSON bool
	listen, dir := "127.0.0.1:5000", ""
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Serves an OCI registry on this machine, for trying out",
		Long: `Serves an OCI registry on loopback alone, without credentials, until it is told to stop.
It prints its address once it is ready. Everything is kept in memory and is gone at the
end; with --dir it is kept in that folder, and is there again with the next start. It is
for trying out and for tests: others serve registries for many.`,
		Example: "  openskill-lab registry\n  openskill-lab registry --listen 127.0.0.1:0 --dir ./registry",
		Args:    takes(0, 0),
	}
	f := cmd.Flags()
	f.Var(cliflag.Text(&listen, "ADDRESS"), "listen", "a loopback address; port 0 takes a free one")
	f.Var(cliflag.Text(&dir, "DIR"), "dir", "the folder in which it is kept; made where it is missing")
	f.BoolVar(&asJSON, "json", false, `print {"address": …} once it is ready`)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, _, err := net.SplitHostPort(listen); err != nil || !share.Loopback(listen) {
			return usage("--listen %s: want a loopback address with a port, like 127.0.0.1:5000", quote(listen))
		}
		handler, err := registryHandler(dir)
		if err != nil {
			return hostFailed(err)
		}
		return a.serveRegistry(cmd.Context(), listen, handler, asJSON)
	}
	return cmd
}

// maxPushed is the largest thing that is pushed to the registry, in bytes.
const maxPushed = 1 << 30

// registryHandler is the registry, in memory or in a folder.
func registryHandler(dir string) (http.Handler, error) {
	options := []registry.Option{registry.Logger(log.New(io.Discard, "", 0))}
	if dir == "" {
		return onlyLocal(registry.New(options...)), nil
	}
	kept, err := openKept(dir)
	if err != nil {
		return nil, err
	}
	options = append(options, registry.WithBlobHandler(registry.NewDiskBlobHandler(kept.blobs)))
	kept.next = registry.New(options...)
	if err := kept.replay(); err != nil {
		return nil, err
	}
	return onlyLocal(kept), nil
}

// onlyLocal refuses what a web page could send by a name that leads to this machine, and
// what is too large.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !share.Loopback(r.Host) || r.Header.Get("Origin") != "" {
			http.Error(w, "this registry is for programs on this machine", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxPushed)
		next.ServeHTTP(w, r)
	})
}

func (a *cli) serveRegistry(ctx context.Context, listen string, handler http.Handler, asJSON bool) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return hostFailed(errors.New("the address cannot be listened on: " + err.Error()))
	}
	if asJSON {
		err = a.printJSON(map[string]string{"address": ln.Addr().String()})
	} else {
		err = a.print("listening on http://%s\n", ln.Addr())
	}
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Minute, WriteTimeout: 10 * time.Minute,
		IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: log.New(io.Discard, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	select {
	case err := <-ended:
		return hostFailed(err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(stopping); err != nil {
		_ = server.Close() // whoever is still connected has had its time
	}
	return nil
}
