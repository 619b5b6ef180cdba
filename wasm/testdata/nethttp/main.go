// Command nethttp brings all of net/http into a module, as many Go programs do,
// and prints what can be done with it without a network.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "hello %s", r.PathValue("name"))
	})
	server := &http.Server{Addr: "127.0.0.1:0", Handler: mux, ReadHeaderTimeout: time.Second}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13}}}

	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET /hello/guest HTTP/1.1\r\nHost: here\r\n\r\n")))
	if err != nil {
		panic(err)
	}
	w := &answer{header: http.Header{}}
	server.Handler.ServeHTTP(w, r)
	fmt.Println(w.body.String(), w.header.Get("Content-Type"))

	// On WASI, Go's loopback is a network inside the module.
	listener, err := net.Listen("tcp", server.Addr)
	if err != nil {
		panic(err)
	}
	go server.Serve(listener)
	got, err := client.Get("http://" + listener.Addr().String() + "/hello/client")
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(got.Body)
	fmt.Println(got.StatusCode, string(body), err)
	fmt.Println(server.Close())
}

type answer struct {
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) WriteHeader(int)             {}
