package apitest

import (
	"io"
	"net/http"
	"strings"
)

// Metrics stands where the numbers of a host are. With the query many it has more of
// them than an edge would hold back of a stream.
var Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	n := 1
	if r.URL.Query().Has("many") {
		n = 10_000
	}
	_, _ = io.WriteString(w, strings.Repeat("up 1\n", n)) // into memory
})
