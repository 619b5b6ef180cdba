package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"openskill/host/api"
	"openskill/host/api/apitest"
	"openskill/host/records"
	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// slowTools are lists that take until they are let go, or their caller leaves.
type slowTools struct {
	begun atomic.Int64
	now   atomic.Int64 // that are being made
	most  atomic.Int64
	goOn  chan struct{}
}

func (s *slowTools) tools(ctx context.Context, p skill.Principal, _, _ string, _ int) (json.RawMessage, string, error) {
	if p.Tenant != "a" {
		return json.RawMessage(`[]`), "", nil
	}
	s.begun.Add(1)
	if n := s.now.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.now.Add(-1)
	select {
	case <-s.goOn:
		return json.RawMessage(`[]`), "", nil
	case <-ctx.Done():
		return nil, "", &skill.Error{Code: skill.Cancelled, Message: "the caller left"}
	}
}

func startReads(t *testing.T) (*server, *slowTools) {
	t.Helper()
	lists := &slowTools{goOn: make(chan struct{})}
	keys := apitest.Keys{"a": tenant("a", skill.ScopeRead), "b": tenant("b", skill.ScopeRead)}
	s := start(t, func(o *api.Options) { o.Authenticate, o.Tools = keys.Authenticate, lists.tools })
	return s, lists
}

const getTools = "GET /tools HTTP/1.1\r\nHost: localhost\r\nX-API-Key: a\r\n\r\n"

// However many connections one tenant reads lists on, others have their turn.
func TestReadsAreFair(t *testing.T) {
	for _, conns := range []int{32, 300} {
		s, lists := startReads(t)
		var all []*raw
		for range conns {
			c := s.dial(t)
			c.send(t, getTools)
			all = append(all, c)
		}
		within(t, "the first list", func() bool { return lists.begun.Load() > 0 })
		for range 20 {
			for _, path := range []string{"/tools", "/skills", "/agent-skills"} {
				if resp, body := s.do(t, "GET", path, "", "X-API-Key", "b"); resp.StatusCode != 200 {
					t.Fatalf("%s of another tenant: %d %s", path, resp.StatusCode, body)
				}
			}
			if resp, _ := s.do(t, "GET", "/healthz", ""); resp.StatusCode != 200 {
				t.Fatalf("/healthz answers %d", resp.StatusCode)
			}
		}
		close(lists.goOn)
		count := map[int]int{}
		for _, c := range all {
			resp, err := http.ReadResponse(c.br, nil)
			musttest.Do(t, err)
			count[resp.StatusCode]++
			_ = c.Close()
		}
		if conns == 32 && count[200] != 32 || conns == 300 && (count[200] < 100 || count[429] < 50) || count[200]+count[429] != conns {
			t.Errorf("%d connections get %v", conns, count)
		}
		if most := lists.most.Load(); most >= int64(max(api.ReadPlaces(), 2)) {
			t.Errorf("%d lists of one tenant are made at once: that are all places", most)
		}
	}
}

// A client that leaves is no work any more: neither while its list is made nor while it waits.
func TestReadsEndWithTheirClients(t *testing.T) {
	s, lists := startReads(t)
	var all []*raw
	for range 40 {
		c := s.dial(t)
		c.send(t, getTools)
		all = append(all, c)
	}
	within(t, "the first list", func() bool { return lists.begun.Load() > 0 })
	time.Sleep(100 * time.Millisecond) // for those that wait to be in the queue
	for _, c := range all {
		_ = c.Close()
	}
	within(t, "the end of all", func() bool { return lists.now.Load() == 0 })
	if resp, _ := s.do(t, "GET", "/skills", "", "X-API-Key", "a"); resp.StatusCode != 200 {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
	if n := lists.begun.Load(); n > 30 {
		t.Errorf("%d lists were begun for clients that had left", n)
	}
}

// slowRecords are records that take until they are let go. What reads one is counted.
type slowRecords struct {
	api.Executions
	slowTools
}

func (s *slowRecords) Get(context.Context, skill.Principal, string, int) (*records.View, error) {
	if n := s.now.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.now.Add(-1)
	s.begun.Add(1)
	<-s.goOn
	return &records.View{}, nil
}

func (s *slowRecords) List(context.Context, skill.Principal, records.Query) ([]*records.View, string, error) {
	_, err := s.Get(context.Background(), skill.Principal{}, "", 0)
	return nil, "", err
}

func (s *slowRecords) File(context.Context, skill.Principal, string, string) ([]byte, error) {
	_, err := s.Get(context.Background(), skill.Principal{}, "", 0)
	return nil, err
}

func (s *slowRecords) Cancel(context.Context, skill.Principal, string) (*records.View, error) {
	return nil, &skill.Error{Code: skill.NotFound, Message: "execution not found"}
}

// However many tenants read executions, their results and files, no more are read at once than
// there are processors; decisions have places that reads do not take.
func TestRecordsAreReadByAsManyAsThereAreProcessors(t *testing.T) {
	recorded := &slowRecords{slowTools: slowTools{goOn: make(chan struct{})}}
	keys := apitest.Keys{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		keys[name] = tenant(name, all()...)
	}
	s := start(t, func(o *api.Options) { o.Authenticate, o.Executions, o.Starter = keys.Authenticate, recorded, nil })
	var all []*raw
	for name := range keys {
		for _, path := range []string{"/executions", "/executions/x", "/executions/x?result=head", "/executions/x/artifacts/y"} {
			c := s.dial(t)
			c.send(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\nX-API-Key: "+name+"\r\n\r\n")
			all = append(all, c)
		}
	}
	places := int64(min(api.ReadPlaces(), 4))
	within(t, "all places taken", func() bool { return recorded.begun.Load() >= places })
	if places < 4 {
		if resp, body := s.do(t, "DELETE", "/executions/x", "", "X-API-Key", "a"); resp.StatusCode != 404 {
			t.Errorf("a decision: %d %s", resp.StatusCode, body)
		}
	}
	close(recorded.goOn)
	for _, c := range all {
		if _, err := http.ReadResponse(c.br, nil); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if recorded.begun.Load() != int64(len(all)) || recorded.most.Load() > places {
		t.Errorf("%d of %d were read, %d at once; there are %d places", recorded.begun.Load(), len(all), recorded.most.Load(), places)
	}
}
