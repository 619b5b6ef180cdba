package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// TestHammer has many clients of several callers call, list, cancel, leave and begin
// sessions at once, while the catalogue changes. Afterwards nothing is left of it.
func TestHammer(t *testing.T) {
	const clients, each = 12, 25
	d := newDoor()
	agents, _ := folders(t, converter())
	web, s := listen(t, Options{
		Door: d, Catalogue: d, AgentSkills: agents, MaxSessions: 8, PollEvery: time.Millisecond, ProgressEvery: time.Millisecond, KeepAlive: 5 * time.Millisecond,
	})
	stop := make(chan struct{})
	var changes, wg sync.WaitGroup
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				d.change("forever", func(s *skill.Descriptor) { s.Version = fmt.Sprint(i) })
			}
		}
	})
	for n := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			who := fmt.Sprintf("caller%d", n%3)
			for range each {
				hit(t, web.URL, who, rng)
			}
		})
	}
	wg.Wait()
	if status, text, _ := send(t, web.URL, first(modern("tools/list", "")), second(modern("tools/list", ""))...); status != 200 || !strings.Contains(text, `"echo"`) {
		t.Errorf("afterwards: %d %s", status, text)
	}
	close(stop)
	changes.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	web.Close() // a client that leaves does not wait for its handler, which forgets the exchange at its end
	s.web.mu.Lock()
	defer s.web.mu.Unlock()
	for _, c := range s.web.callers {
		c.calling.Lock()
		if len(c.running) > 0 {
			t.Errorf("%d sessions of %s have calls under way", len(c.running), c.p.ID)
		}
		c.calling.Unlock()
	}
	s.web.exchanges.Range(func(any, any) bool { t.Error("an exchange is remembered"); return false })
}

func first(s string, _ []string) string    { return s }
func second(_ string, h []string) []string { return h }

// hit is one thing that a client does.
func hit(t *testing.T, url, who string, rng *rand.Rand) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rng.IntN(20))*time.Millisecond)
	defer cancel()
	method, params := "tools/call", `"name":"echo","arguments":{"text":"x"}`
	switch rng.IntN(8) {
	case 0:
		params = `"name":"forever"`
	case 1:
		method, params = "subscriptions/listen", `"notifications":{"toolsListChanged":true}`
	case 2:
		method, params = "resources/read", `"uri":"skill://unit-converter/SKILL.md"`
	case 3:
		method, params = "tools/list", ""
	case 4: // a session that is left behind, with a call in it
		res, err := post(t, ctx, url, hello, "X-Caller", who)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		res, err = post(t, ctx, url, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forever","_meta":{"progressToken":1}}}`,
			"X-Caller", who, "Mcp-Session-Id", res.Header.Get("Mcp-Session-Id"))
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		return
	}
	body, headers := modern(method, params)
	res, err := post(t, ctx, url, body, append(headers, "X-Caller", who)...)
	if err != nil {
		return // it left
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
}

// TestNobodyReads holds that a server whose client reads nothing ends when it is told to.
func TestNobodyReads(t *testing.T) {
	s := newServer(t, Options{})
	ctx, stop := context.WithCancel(t.Context())
	in, toServer := pipe(t)
	stuck := &stuckWriter{began: make(chan struct{}), free: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(ctx, skill.Local(), in, stuck) }()
	_, _ = io.WriteString(toServer, hello+"\n")
	<-stuck.began
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(stuck.free)
	_, _ = toServer.Close(), in.Close()
}

type stuckWriter struct {
	once        sync.Once
	began, free chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.began) })
	<-w.free
	return len(p), nil
}

// TestEverySchemaIsSent holds that what a tool's schema says reaches the client whole,
// also where it is large.
func TestEverySchemaIsSent(t *testing.T) {
	d := newDoor()
	var b bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&b, `%s"p%04d":{"type":"string"}`, map[bool]string{true: ","}[i > 0], i)
	}
	d.add("wide", `{"type":"object","properties":{`+b.String()+`}}`, nil)
	cs := connect(t, newServer(t, Options{Door: d, Catalogue: d}), skill.Local(), nil)
	list := musttest.Get(cs.ListTools(t.Context(), &mcp.ListToolsParams{}))(t)
	for _, tool := range list.Tools {
		if tool.Name == "wide" {
			if n := len(tool.InputSchema.(map[string]any)["properties"].(map[string]any)); n != 2000 {
				t.Errorf("%d properties", n)
			}
			return
		}
	}
	t.Error("the tool is not listed")
}
