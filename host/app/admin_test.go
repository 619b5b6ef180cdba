package app

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"openskill/host/app/hosttest"
	"openskill/host/identity"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestAdmin: profiles are for who may look into the host, at an address of their own, and
// for no page of a strange name.
func TestAdmin(t *testing.T) {
	at := hosttest.FreePort(t)
	s := settings(t, map[string]string{"auth": "required", "admin-listen": at})
	db, err := OpenStore(t.Context(), s, slog.New(slog.DiscardHandler))
	musttest.Do(t, err)
	defer db.Close()
	keys := map[string]string{"nobody": "", "wrong": "sk-wrong"}
	for _, scope := range []string{skill.ScopeHost, skill.ScopeMetrics} {
		if _, keys[scope], err = identity.NewKeys(identity.NewKeyStore(db)).Create(t.Context(), identity.NewKey{Name: scope, Tenant: "a", Scopes: []string{scope}, By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	v := serve(t, s)
	go func() { _, _ = io.Copy(io.Discard, lines{v}) }()
	for _, c := range []struct {
		key, url, header, value string
		want                    int
		has                     string
	}{
		{skill.ScopeHost, "http://" + at + "/debug/pprof/", "", "", 200, "goroutine"},
		{skill.ScopeHost, "http://" + at + "/debug/pprof/goroutine?debug=1", "", "", 200, "goroutine profile"},
		{skill.ScopeHost, "http://" + at + "/metrics", "", "", 200, "openskill_build_info"},
		{skill.ScopeHost, "http://" + at + "/debug/pprof/", "Host", "localhost:8001", 200, ""},
		{skill.ScopeHost, "http://" + at + "/debug/pprof/", "Host", "evil.example", 403, ""},
		{skill.ScopeHost, "http://" + at + "/debug/pprof/", "Host", "127.0.0.1.evil.example:80", 403, ""},
		{skill.ScopeHost, "http://" + at + "/debug/pprof/", "Origin", "http://evil.example", 403, ""},
		{skill.ScopeHost, "http://" + at + "/", "", "", 404, ""},
		{skill.ScopeMetrics, "http://" + at + "/debug/pprof/", "", "", 403, ""},
		{"nobody", "http://" + at + "/debug/pprof/", "", "", 401, ""},
		{"wrong", "http://" + at + "/debug/pprof/heap", "", "", 401, ""},
		{"nobody", "http://" + at + "/metrics", "", "", 401, ""},
		{skill.ScopeHost, v.url + "/debug/pprof/", "", "", 404, ""}, // not at the main address
		{skill.ScopeMetrics, v.url + "/metrics", "", "", 200, "openskill_build_info"},
	} {
		req := get(t, c.url)
		if keys[c.key] != "" {
			req.Header.Set("X-Api-Key", keys[c.key])
		}
		if c.header == "Host" {
			req.Host = c.value
		} else if c.header != "" {
			req.Header.Set(c.header, c.value)
		}
		res, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(req)
		musttest.Do(t, err)
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.want || !bytes.Contains(body, []byte(c.has)) {
			t.Errorf("%s with %s %s as %s: %d %.200s, want %d", c.url, c.header, c.value, c.key, res.StatusCode, body, c.want)
		}
	}
	if err := v.stop(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", at); err == nil {
		_ = conn.Close()
		t.Error("it listens after the host has stopped")
	}
}
