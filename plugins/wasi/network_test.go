package wasi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"openskill/sdk/skill"
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

// A module asks the network by functions or through a file. Each call has its own
// answers though they share an image, and a start-up has none.
func TestNetwork(t *testing.T) {
	module := built(t, "fetcher")
	e := engine(t)
	for _, by := range []string{"functions", "file"} {
		t.Run(by, func(t *testing.T) {
			net := &network{}
			r := New(e, &Options{Outgoing: net})
			defer r.Close() //nolint:errcheck // nothing runs
			c := *skillOf(t, module)
			c.Grants.Env = []string{"FETCH_BY=" + by, "KEY=granted"}
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					c := c
					c.Tenant, c.Stdin = fmt.Sprint("tenant", i%4), fmt.Appendf(nil, "request %d", i)
					reply, err := r.Run(t.Context(), &c)
					if err != nil {
						t.Error(err)
						return
					}
					early, rest, _ := strings.Cut(string(reply.Stdout), "|")
					want := fmt.Sprintf("tenant%d asked request %d|[FETCH_BY=%s KEY=granted]\n", i%4, i, by)
					if rest != want || !strings.Contains(early, `"code":"NETWORK_DENIED"`) || !strings.Contains(early, "begun to read") {
						t.Errorf("%q %s, want %q after a refusal", reply.Stdout, reply.Stderr, want)
					}
				})
			}
			wg.Wait()
			net.mu.Lock()
			defer net.mu.Unlock()
			if len(net.all) != 20 {
				t.Errorf("the network was asked %d times, want 20: %q", len(net.all), net.all)
			}
		})
	}
}

// A host without a network says so, and the run goes on.
func TestNoNetwork(t *testing.T) {
	r := New(engine(t), nil)
	defer r.Close() //nolint:errcheck // nothing runs
	c := skillOf(t, built(t, "fetcher"))
	c.Stdin = []byte("x")
	reply, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(reply.Stdout), "|")
	if reply.Code != "" || reply.ExitCode != 0 || !strings.Contains(rest, `"code":"NETWORK_DENIED"`) || !strings.Contains(rest, "OPENSKILL_HTTP_ALLOW") || !strings.HasSuffix(rest, "|[]\n") {
		t.Errorf("%q %s %s", reply.Stdout, reply.Code, reply.Stderr)
	}
}

// A network that does not answer ends with the call's time, and the next call finds
// another answer.
func TestNetworkEndsWithTheCall(t *testing.T) {
	r := New(engine(t), &Options{Outgoing: &network{}})
	defer r.Close() //nolint:errcheck // nothing runs
	c := *skillOf(t, built(t, "fetcher"))
	c.Stdin = []byte("x")
	if _, err := r.Run(t.Context(), &c); err != nil { // compiled and started
		t.Fatal(err)
	}
	silent := c
	silent.Stdin, silent.Limits.Timeout = []byte("wait"), 200*time.Millisecond
	reply, err := r.Run(t.Context(), &silent)
	if err != nil || reply.Code != skill.Timeout {
		t.Fatalf("%v %+v", err, reply)
	}
	c.Tenant = "next"
	reply, err = r.Run(t.Context(), &c)
	if err != nil || !strings.Contains(string(reply.Stdout), "next asked x") {
		t.Fatalf("%v %+v", err, reply)
	}
}
