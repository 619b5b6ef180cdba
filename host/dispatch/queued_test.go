package dispatch

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"openskill/host/records"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// A call that cannot run is refused before it is queued, and told so in the log.
func TestCheckBeforeTheQueue(t *testing.T) {
	h := open(t, func(o *Options) { o.MaxInput = 1000 })
	for name, c := range map[string]struct {
		p    skill.Principal
		id   skill.ID
		in   string
		code skill.Code
	}{
		"one that may wait":         {of("acme"), "stats", `{"numbers": [1]}`, ""},
		"an input of another shape": {of("acme"), "stats", `{"numbers": 1}`, skill.InvalidArgument},
		"a large input":             {of("acme"), "stats", `{"name": "` + strings.Repeat("x", 2000) + `"}`, skill.PayloadTooLarge},
		"a path":                    {of("acme"), "stats", `{"root_dir": "/etc"}`, skill.ForbiddenPath},
		"no such skill":             {of("acme"), "none", `{}`, skill.NotFound},
		"one that is off":           {of("acme"), "off", `{}`, skill.NotFound},
		"nobody":                    {skill.Principal{}, "stats", `{}`, skill.Unauthorized},
		"without the scope":         {skill.Principal{ID: "a", Type: skill.Agent, Tenant: "acme"}, "stats", `{}`, skill.Forbidden},
	} {
		h.log.Reset()
		req := ask(c.id, c.in)
		r := h.Check(t.Context(), &records.QueuedCall{Principal: c.p, Request: &req})
		if (c.code == "") != (r == nil) || r != nil && (r.Success || r.Error.Code != c.code || r.SkillID != c.id) {
			t.Errorf("%s: %+v", name, r)
		}
		if n := strings.Count(h.log.String(), "\n"); n > 1 || (n == 1) != (c.code != "") {
			t.Errorf("%s: %d lines in the log", name, n)
		}
	}
	r := h.Check(t.Context(), &records.QueuedCall{Principal: of("acme"), Script: &skill.ScriptRequest{Skill: "x", Script: "y", Args: make([]string, maxArgs+1)}})
	if r == nil || r.Error.Code != skill.InvalidArgument {
		t.Errorf("a script: %+v", r)
	}
	for input, code := range map[string]skill.Code{`{"language": "python", "code": "1", "session": "s-1"}`: skill.Conflict, `{"language": "python", "code": "1", "session": "new"}`: "", `{"language": "python", "code": "1"}`: ""} {
		req := ask(skill.RunCode, input)
		if r := codeHouse(t, nil).Check(t.Context(), &records.QueuedCall{Principal: skill.Local(), Request: &req}); (r == nil) != (code == "") || r != nil && r.Error.Code != code {
			t.Errorf("%s: %+v", input, r)
		}
	}
	if len(h.wasm.Calls()) > 0 {
		t.Error("it ran")
	}
}

func TestIdempotentBeforeTheQueue(t *testing.T) {
	h := open(t, nil)
	for id, want := range map[skill.ID]bool{"same": true, "stats": false, "none": false} {
		req := ask(id, `{"numbers": [1]}`)
		if is := h.Idempotent(&records.QueuedCall{Principal: of("acme"), Request: &req}); is != want {
			t.Errorf("%s: %v", id, is)
		}
	}
	if h.Idempotent(&records.QueuedCall{Principal: of("acme"), Script: &skill.ScriptRequest{Skill: "same"}}) {
		t.Error("a script is")
	}
}

// A queued call waits until a place is free, and keeps the id under which it was queued.
func TestQueuedCallsWaitForPlaces(t *testing.T) {
	h := open(t, func(o *Options) { o.Global, o.PerSkill, o.Alone = 1, 1, true })
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
			<-release
			return runnertest.Prints("{}"), nil
		}
		done := make(chan *skill.Result, 2)
		go func() { done <- h.Invoke(context.Background(), of("acme"), ask("plain", "{}")) }()
		synctest.Wait()
		queued := ask("plain", "{}")
		queued.ExecutionID = "00000000-0000-7000-8000-00000000000a"
		if r := h.Invoke(t.Context(), of("acme"), ask("plain", "{}")); r.Error == nil || r.Error.Code != skill.RateLimited {
			t.Errorf("one that was not queued: %+v", r)
		}
		go func() { done <- h.Invoke(context.Background(), of("acme"), queued) }()
		time.Sleep(queuedWait - time.Second)
		close(release)
		synctest.Wait()
		time.Sleep(time.Second)
		if one, two := <-done, <-done; !one.Success || !two.Success || (one.Meta.ExecutionID == queued.ExecutionID) == (two.Meta.ExecutionID == queued.ExecutionID) {
			t.Errorf("%+v, %+v", one, two) // either may be told first
		}
		// It does not wait for ever, and not longer than its context.
		held := make(chan struct{})
		h.wasm.Answer = func(context.Context, *skill.Call) (*skill.Reply, error) {
			<-held
			return runnertest.Prints("{}"), nil
		}
		go func() { done <- h.Invoke(context.Background(), of("acme"), ask("plain", "{}")) }()
		synctest.Wait()
		began := time.Now()
		if r := h.Invoke(t.Context(), of("acme"), queued); r.Error == nil || r.Error.Code != skill.RateLimited || time.Since(began) < queuedWait {
			t.Errorf("after %s: %+v", time.Since(began), r)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := h.Invoke(ctx, of("acme"), queued); r.Error == nil || r.Error.Code == skill.RateLimited {
			t.Errorf("%+v", r)
		}
		close(held)
		<-done
	})
}
