package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"openskill/sdk/skill"
)

// thousand is a door with as many skills.
func thousand() *door {
	d := newDoor()
	for i := range 1000 {
		d.add(skill.ID(fmt.Sprintf("s%04d", i)), `{"type":"object","properties":{"text":{"type":"string","description":"A text."},"n":{"type":"integer"}},"required":["text"]}`, nil)
	}
	return d
}

// BenchmarkListPage is a page of a hundred tools.
func BenchmarkListPage(b *testing.B) {
	d := thousand()
	benchmarkHTTP(b, d, "tools/list", "")
}

// BenchmarkCall is what MCP adds to a call over HTTP, in the newest revision.
func BenchmarkCall(b *testing.B) {
	benchmarkHTTP(b, newDoor(), "tools/call", `"name":"echo","arguments":{"text":"hello"}`)
}

// BenchmarkSight is a look at whether a thousand skills have changed.
func BenchmarkSight(b *testing.B) {
	d := thousand()
	s, err := New(Options{Door: d, Catalogue: d, Principal: named})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c, err := s.newCaller(b.Context(), skill.Local(), nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c.look(b.Context())
	}
}

func benchmarkHTTP(b *testing.B, d *door, method, params string) {
	b.Helper()
	revision := func(context.Context, skill.Principal) any { return 1 }
	s, err := New(Options{Door: d, Catalogue: d, Principal: named, Revision: revision})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body, headers := modern(method, params)
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}
