package api_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	"openskill/host/store/storetest"
	"openskill/internal/musttest"

	"openskill/host/api"
	"openskill/host/dispatch/approval"
	"openskill/sdk/skill"
)

// patience is a store of approvals that tells of those who wait.
type patience struct {
	*approval.Store
	began chan string
	ended chan error
	now   atomic.Int32
	most  atomic.Int32
}

func (p *patience) Wait(ctx context.Context, id string) error {
	n := p.now.Add(1)
	for most := p.most.Load(); n > most && !p.most.CompareAndSwap(most, n); most = p.most.Load() {
	}
	p.began <- id
	err := p.Store.Wait(ctx, id)
	p.now.Add(-1)
	p.ended <- err
	return err
}

// waiting starts an edge with a script that needs an approval, and gives its path.
func waiting(t *testing.T) (s *server, p *patience, runs *atomic.Int32, path string) {
	t.Helper()
	store := musttest.Get(approval.Open(t.Context(), approval.Options{DB: storetest.SQLite(t), Policy: approval.PerVersion, Log: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(func() { _ = store.Close() })
	p = &patience{Store: store, began: make(chan string, 200), ended: make(chan error, 200)}
	s, a := agentSkills(t, func(o *api.Options) { o.Approvals = p })
	runs = &atomic.Int32{}
	a.AddScript("unit-converter", "asks.py", func(ctx context.Context, r skill.ScriptRequest) (string, error) {
		runs.Add(1)
		ask := approval.Ask{Skill: r.Skill, Script: r.Script, Digest: "sha256:1", Tenant: "local", Caller: "agent", Trust: skill.Trusted}
		if err := store.Check(ctx, ask); err != nil {
			return "", err
		}
		return "ran", nil
	})
	return s, p, runs, "/agent-skills/unit-converter/scripts/asks.py:run"
}

func TestWaitsForTheApproval(t *testing.T) {
	for name, c := range map[string]struct {
		approve bool
		status  int
		body    string
	}{
		"approved": {true, 200, `"output":"ran"`},
		"denied":   {false, 403, `"state":"denied"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, runs, path := waiting(t)
			go func() { _, _ = p.Decide(context.Background(), skill.Local(), <-p.began, c.approve) }()
			resp, body := s.do(t, "POST", path, `{}`, "Prefer", "wait=60")
			if resp.StatusCode != c.status || !bytes.Contains(body, []byte(c.body)) || resp.Header.Get("Preference-Applied") != "wait=60" || runs.Load() != 2 {
				t.Errorf("%d %s %v, %d runs", resp.StatusCode, body, resp.Header, runs.Load())
			}
		})
	}
}

// The first answer comes back when the time is over, and at once where nobody prefers to
// wait, or what is preferred cannot be read.
func TestWaitsNoLongerThanPreferred(t *testing.T) {
	s, p, runs, path := waiting(t)
	for _, prefer := range []string{"", "wait=0", "wait=-1", "wait=soon", "wait=99999999999999999999", "respond-async", "wait=1"} {
		waits, before := prefer == "wait=1", runs.Load()
		resp, body := s.do(t, "POST", path, `{}`, "Prefer", prefer)
		if resp.StatusCode != 403 || !bytes.Contains(body, []byte(`"state":"pending"`)) || runs.Load() != before+1 || len(p.began) == 1 != waits {
			t.Errorf("%q: %d %s", prefer, resp.StatusCode, body)
		}
	}
}

func TestWaitEndsWithItsCaller(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	s, p, runs, path := waiting(t)
	c := s.dial(t)
	c.send(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=60\r\nContent-Length: 0\r\n\r\n")
	wait(t, "the wait", p.began)
	_ = c.Close()
	if err := wait(t, "its end", p.ended); err == nil || runs.Load() != 1 {
		t.Errorf("%v, %d runs", err, runs.Load())
	}
}

func TestWaitEndsWithTheHost(t *testing.T) {
	s, p, runs, path := waiting(t)
	go func() {
		<-p.began
		_ = s.Shutdown(context.Background())
	}()
	if resp, body := s.do(t, "POST", path, `{}`, "Prefer", "wait=60"); resp.StatusCode != 403 || runs.Load() != 1 {
		t.Errorf("%d %s, %d runs", resp.StatusCode, body, runs.Load())
	}
}

// One tenant cannot have all the places, and who finds none is answered at once.
func TestFewWaitAtOnce(t *testing.T) {
	s, p, _, path := waiting(t)
	answered := make(chan string, 100)
	for range 100 {
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr+path, http.NoBody)
			req.Header.Set("Prefer", "wait=60")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				answered <- err.Error()
				return
			}
			_ = resp.Body.Close()
			answered <- fmt.Sprint(resp.StatusCode)
		}()
	}
	for range 36 { // of 64 places some are kept for others
		if status := wait(t, "an answer at once", answered); status != "403" {
			t.Errorf("%s", status)
		}
	}
	_, _ = p.Decide(context.Background(), skill.Local(), <-p.began, true)
	for range 64 {
		wait(t, "an answer", answered)
	}
	if most := p.most.Load(); most == 0 || most >= 64 {
		t.Errorf("%d waited at once", most)
	}
}
