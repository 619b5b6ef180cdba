package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"openskill/examples/hostile"
)

// tellServers starts two servers on loopback. Each says whether a request had the secret of the
// hostile scripts, and echoes the request.
func tellServers(ctx context.Context) (stop func() error, urls []string, err error) {
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		sent := fmt.Sprintf("%s %s %s", r.RequestURI, r.Header.Get("Authorization"), body)
		said := "without"
		if strings.Contains(sent, hostile.ScriptSecret) {
			said = "with"
		}
		_, _ = fmt.Fprintln(w, said, sent)
	})}
	for range 2 {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("no free port for a server of the test: %w", err), server.Close())
		}
		urls = append(urls, "http://"+l.Addr().String())
		go func() { _ = server.Serve(l) }()
	}
	return server.Close, urls, nil
}
