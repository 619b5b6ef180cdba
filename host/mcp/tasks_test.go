package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/sdk/skill"
)

// longCalls is a [Tasks] that runs calls of a door. Each caller finds its own.
type longCalls struct {
	d *door

	mu  sync.Mutex
	all map[string]*longCall
}

type longCall struct {
	Task
	who  string
	stop context.CancelFunc
	done chan struct{}
}

func (l *longCalls) May(p skill.Principal) bool { return p.May(skill.ScopeInvoke) }

func (l *longCalls) Start(_ context.Context, p skill.Principal, r skill.Request) (string, <-chan *skill.Result, error) {
	ended := make(chan *skill.Result, 1)
	if r.SkillID == "refused" {
		return "", nil, &skill.Error{Code: skill.RateLimited, Message: "too many long calls"}
	}
	ctx, stop := context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	id := fmt.Sprintf("e-%d", len(l.all))
	c := &longCall{Task{Began: time.Unix(1000, 0), Updated: time.Unix(1000, 0), Kept: time.Hour}, p.ID, stop, make(chan struct{})}
	l.all[id] = c
	go func() {
		defer close(c.done)
		res := l.d.Invoke(ctx, p, r)
		l.mu.Lock()
		defer l.mu.Unlock()
		c.Ended, c.Updated, c.Result = true, time.Unix(1001, 0), res
		ended <- res
	}()
	return id, ended, nil
}

func (l *longCalls) find(p skill.Principal, id string) (*longCall, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.all[id]; c != nil && c.who == p.ID {
		return c, nil
	}
	return nil, &skill.Error{Code: skill.NotFound, Message: "execution not found"}
}

func (l *longCalls) Get(_ context.Context, p skill.Principal, id string, result bool) (*Task, error) {
	c, err := l.find(p, id)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := c.Task
	if !result {
		t.Result = nil
	}
	return &t, nil
}

func (l *longCalls) Cancel(_ context.Context, p skill.Principal, id string) error {
	c, err := l.find(p, id)
	if err == nil {
		c.stop()
		<-c.done
	}
	return err
}

// tasking is a request of a client that declares the extension.
func tasking(method, params string) (body string, headers []string) {
	body, headers = modern(method, params)
	return strings.Replace(body, `clientCapabilities":{}`, `clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1), headers
}

func TestTasks(t *testing.T) {
	d := newDoor()
	release := make(chan struct{})
	for id, limit := range map[skill.ID]uint64{"held": 60000, "short": 60000, "brief": 1000, "refused": 60000, "run_code": 1000} {
		d.add(id, `{"type":"object"}`, func(ctx context.Context, r skill.Request) *skill.Result {
			if id == "held" || id == "run_code" {
				select {
				case <-release:
				case <-ctx.Done():
					return skill.Failure(r.SkillID, r.TraceID, skill.Meta{}, &skill.Error{Code: skill.Cancelled, Message: "it was cancelled"})
				}
			}
			if id == "run_code" {
				res := success(&r, []byte(`{"stdout":""}`))
				res.Meta.Artifacts = []skill.Artifact{{Name: "a.png", Size: 5, URL: "/executions/e-2/artifacts/a.png"}, {Name: "b.txt", Size: 5}, {Name: "c.png", Size: 2 << 20}}
				return res
			}
			if id == "held" {
				return success(&r, []byte(`{"echoed":"`+strings.Repeat("x", 2*inline)+`"}`))
			}
			return success(&r, []byte(`{"echoed":"here"}`))
		})
		d.change(id, func(s *skill.Descriptor) { s.Limits.TimeoutMS = limit })
	}
	l := &longCalls{d: d, all: map[string]*longCall{}}
	web, _ := listen(t, Options{
		Door: d, Catalogue: d, Tasks: l, TaskAfter: 30 * time.Millisecond,
		Artifact: func(_ context.Context, _ skill.Principal, id, name string) ([]byte, error) {
			return []byte(id + name), nil
		},
	})
	ask := func(body string, headers []string, more ...string) (int, string) {
		t.Helper()
		status, text, _ := send(t, web.URL, body, append(headers, more...)...)
		return status, text
	}
	expect := func(method, params string, status int, want string) {
		t.Helper()
		body, headers := tasking(method, params)
		if got, text := ask(body, headers); got != status || !strings.Contains(text, want) {
			t.Errorf("%s %s: %d %.300s, want %d %s", method, params, got, text, status, want)
		}
	}

	body, headers := modern("tools/call", `"name":"short"`)
	if status, text := ask(body, headers); status != 200 || !strings.Contains(text, `"resultType":"complete"`) || len(l.all) != 0 {
		t.Errorf("a client without tasks: %d %s, %d tasks", status, text, len(l.all))
	}
	expect("tools/call", `"name":"brief"`, 200, `"echoed":"here"`)
	if len(l.all) != 0 {
		t.Error("a skill with a short time limit became a task")
	}
	expect("tools/call", `"name":"short"`, 200, `"echoed":"here"`)
	expect("tools/call", `"name":"refused"`, 200, `"echoed":"here"`) // which has no place as a task
	expect("server/discover", "", 200, `"io.modelcontextprotocol/tasks":{}`)

	expect("tools/call", `"name":"held"`, 200, `"taskId":"e-1"`)
	expect("tools/call", `"name":"run_code","arguments":{"limits":{"timeout_ms":60000}}`, 200, `"resultType":"task","taskId":"e-2","status":"working","createdAt":"1970-01-01T00:16:40Z","lastUpdatedAt":"1970-01-01T00:16:40Z","ttlMs":3600000,"pollIntervalMs":1000}`)
	expect("tasks/get", `"taskId":"e-1"`, 200, `"resultType":"complete","taskId":"e-1","status":"working"`)
	expect("tasks/update", `"taskId":"e-1","inputResponses":{"x":{"action":"accept"}}`, 200, `"version":""}},"resultType":"complete"}}`)
	close(release)
	<-l.all["e-1"].done
	<-l.all["e-2"].done
	expect("tasks/get", `"taskId":"e-2"`, 200, `{"type":"image","mimeType":"image/png","data":"ZS0yYS5wbmc="},{"type":"resource_link"`)
	body, headers = tasking("tasks/get", `"taskId":"e-1"`)
	var got struct {
		Result struct {
			Status string
			Result struct {
				ResultType        string
				Content           []struct{ Text string }
				StructuredContent struct{ Echoed string }
			}
		}
	}
	if status, text := ask(body, headers); status != 200 || json.Unmarshal([]byte(text), &got) != nil || got.Result.Status != "completed" ||
		len(got.Result.Result.StructuredContent.Echoed) != 2*inline || len(got.Result.Result.Content) != 1 || got.Result.Result.ResultType != complete {
		t.Errorf("the end: %d %.300s", status, text)
	}

	release = make(chan struct{})
	expect("tools/call", `"name":"held"`, 200, `"taskId":"e-3"`)
	if status, text := ask(body, headers, "X-Caller", "other"); status != 400 || !strings.Contains(text, `"code":-32602`) || !strings.Contains(text, "task not found: e-1") {
		t.Errorf("somebody else: %d %s", status, text)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		expect(method, `"taskId":"e-9"`, 400, "task not found: e-9")
		expect(method, `"taskId":7`, 400, "-32602")
		body, headers := modern(method, `"taskId":"e-3"`)
		if status, text := ask(body, headers); status != 400 || !strings.Contains(text, `"code":-32021`) || !strings.Contains(text, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
			t.Errorf("%s without the extension: %d %s", method, status, text)
		}
	}
	body, headers = modern("subscriptions/listen", `"notifications":{"taskIds":["e-3"]}`)
	if status, text := ask(body, headers); status != 400 || !strings.Contains(text, `"code":-32021`) {
		t.Errorf("notifications without the extension: %d %s", status, text)
	}
	expect("tasks/cancel", `"taskId":"e-3"`, 200, `"version":""}},"resultType":"complete"}}`)
	expect("tasks/get", `"taskId":"e-3"`, 200, `"status":"cancelled"`)
	l.all["e-3"].Result = nil
	expect("tasks/get", `"taskId":"e-3"`, 400, "the task has expired")
}

// TestTaskWithoutClient ends a call whose client left before it knew of the task.
func TestTaskWithoutClient(t *testing.T) {
	d := newDoor()
	d.change("forever", func(s *skill.Descriptor) { s.Limits.TimeoutMS = 60000 })
	l := &longCalls{d: d, all: map[string]*longCall{}}
	web, _ := listen(t, Options{Door: d, Catalogue: d, Tasks: l, TaskAfter: time.Minute})
	ctx, leave := context.WithCancel(t.Context())
	body, headers := tasking("tools/call", `"name":"forever"`)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if res, err := post(t, ctx, web.URL, body, headers...); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	var c *longCall
	for c == nil {
		time.Sleep(time.Millisecond)
		c, _ = l.find(skill.Local(), "e-0")
	}
	leave()
	<-gone
	select {
	case <-c.done:
	case <-time.After(10 * time.Second):
		t.Error("the call goes on")
		c.stop()
	}
}
