package wasi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
	"openskill/wasm"
)

// network answers with the tenant and the request, so that it shows whose call a
// request belongs to.
type network struct {
	mu  sync.Mutex
	all []string
}

func (n *network) For(call *skill.Call) skill.Fetch {
	return func(ctx context.Context, request []byte) []byte {
		if string(request) == "wait" {
			<-ctx.Done()
			return nil
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.all = append(n.all, string(request))
		return fmt.Appendf(nil, "%s asked %s", call.Tenant, request)
	}
}

// TestNetwork has a module ask the network, by functions or through a file.
func TestNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a Go program, which takes minutes under the race detector; TestFetchOfImages of the engine is the short one")
	}
	e := engine(t)
	c := *skillOf(t, built(t, "fetcher"))
	c.Limits.Timeout = 5 * time.Minute // the first call compiles
	t.Run("functions", func(t *testing.T) { eachItsOwn(t, e, c, "functions") })
	t.Run("file", func(t *testing.T) { eachItsOwn(t, e, c, "file") })
	t.Run("none", func(t *testing.T) { noNetwork(t, e, c) })
	t.Run("variables", func(t *testing.T) { eachItsVariables(t, e, c) })
	t.Run("silent", func(t *testing.T) { silentNetwork(t, e, c) })
}

// eachItsOwn: calls have their own answers though they share an image, and a start-up
// has none.
func eachItsOwn(t *testing.T, e *wasm.Engine, c skill.Call, by string) {
	t.Helper()
	net := &network{}
	r := New(e, &Options{Outgoing: net})
	defer r.Close()
	c.Grants.Env = []string{"FETCH_BY=" + by, "KEY=granted"}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			c := c
			c.Tenant, c.Stdin = fmt.Sprint("tenant", i%4), fmt.Appendf(nil, "request %d", i)
			reply, err := runnertest.Do(t.Context(), r, &c)
			if err != nil {
				t.Error(err)
				return
			}
			early, rest, _ := strings.Cut(string(reply.Stdout), "|")
			want := fmt.Sprintf("tenant%d asked request %d|[FETCH_BY=%s KEY=granted]\n", i%4, i, by)
			if rest != want || !strings.Contains(early, `"code":"NETWORK_DENIED"`) || !strings.Contains(early, "began to read") {
				t.Errorf("%q %s %s %s, want %q after a refusal", reply.Stdout, reply.Stderr, reply.Code, reply.Message, want)
			}
		})
	}
	wg.Wait()
	net.mu.Lock()
	defer net.mu.Unlock()
	if len(net.all) != 20 {
		t.Errorf("the network was asked %d times, want 20: %q", len(net.all), net.all)
	}
}

// eachItsVariables: calls that were granted others, or none, share no start-up.
func eachItsVariables(t *testing.T, e *wasm.Engine, c skill.Call) {
	t.Helper()
	r := New(e, nil)
	defer r.Close()
	c.Stdin = []byte("x")
	for range 3 {
		for _, env := range [][]string{{"KEY=one"}, {"KEY=two"}, nil, {"KEY=one", "OTHER=x"}} {
			c.Grants.Env = env
			reply, err := runnertest.Do(t.Context(), r, &c)
			if err != nil || !strings.HasSuffix(string(reply.Stdout), fmt.Sprintf("|%v\n", env)) {
				t.Errorf("%v %q, want %v", err, reply.Stdout, env)
			}
		}
	}
}

// noNetwork: a host without one says so, and the run goes on.
func noNetwork(t *testing.T, e *wasm.Engine, c skill.Call) {
	t.Helper()
	r := New(e, nil)
	defer r.Close()
	c.Stdin = []byte("x")
	reply := musttest.Get(runnertest.Do(t.Context(), r, &c))(t)
	_, rest, _ := strings.Cut(string(reply.Stdout), "|")
	if reply.Code != "" || reply.ExitCode != 0 || !strings.Contains(rest, `"code":"NETWORK_DENIED"`) || !strings.Contains(rest, "OPENSKILL_HTTP_ALLOW") || !strings.HasSuffix(rest, "|[]\n") {
		t.Errorf("%q %s %s", reply.Stdout, reply.Code, reply.Stderr)
	}
}

// silentNetwork: one that does not answer ends with the call's time, and the next call
// finds another answer.
func silentNetwork(t *testing.T, e *wasm.Engine, c skill.Call) {
	t.Helper()
	r := New(e, &Options{Outgoing: &network{}})
	defer r.Close()
	c.Stdin = []byte("x")
	if _, err := runnertest.Do(t.Context(), r, &c); err != nil { // started
		t.Fatal(err)
	}
	silent := c
	silent.Stdin, silent.Limits.Timeout = []byte("wait"), 200*time.Millisecond
	reply, err := runnertest.Do(t.Context(), r, &silent)
	if err != nil || reply.Code != skill.Timeout {
		t.Fatalf("%v %+v", err, reply)
	}
	c.Tenant = "next"
	reply, err = runnertest.Do(t.Context(), r, &c)
	if err != nil || !strings.Contains(string(reply.Stdout), "next asked x") {
		t.Fatalf("%v %+v", err, reply)
	}
}
