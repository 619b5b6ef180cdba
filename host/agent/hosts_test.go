package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"openskill/host/agent/conversations"

	"openskill/host/agent/llm"
	"openskill/host/agent/tools"
	"openskill/host/dispatch/approval"
	"openskill/host/store/storetest"
	"openskill/sdk/skill"
)

// flawed says what vendors would refuse of messages; see valid.
func flawed(list []llm.Message) (flaw string) {
	var asked []string
	for i, m := range list {
		switch {
		case i == 0 && m.Role != llm.User:
			return "the first message is no user's"
		case m.Role == llm.Tool && (len(asked) == 0 || !strings.Contains(strings.Join(asked, " ")+" ", m.CallID+" ")):
			return fmt.Sprintf("message %d answers nothing", i)
		case m.Role == llm.Tool:
			asked = asked[1:]
		case len(asked) > 0:
			return fmt.Sprintf("before message %d a call is not answered", i)
		}
		for _, c := range m.Calls {
			asked = append(asked, c.ID)
		}
	}
	if len(asked) > 0 {
		return "at the end a call is not answered"
	}
	return ""
}

// Hosts that share a database and go on with one conversation at the same time: whatever
// meets whatever, who loses is told so, no call that was approved is made twice, and each
// question to a model is one that vendors take.
func TestSeveralHosts(t *testing.T) {
	store := conversations.NewStore(storetest.SQLite(t))
	r := &sharedRecord{}
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(3, 4))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	var flaws sync.Map
	var number atomic.Int64
	unlike := func() string { return fmt.Sprintf(`{"n":%d}`, number.Add(1)) }
	provider := model(func(ctx context.Context, q *llm.Request, text func(string)) (*llm.Reply, error) {
		if f := flawed(q.Messages); f != "" {
			flaws.Store(f, strings.Join(inLines(q.Messages), "\n\t"))
		}
		switch roll(6) {
		case 0:
			return calls("echo", "{}", "echo", "{}")(ctx, q, text)
		case 1, 2, 3:
			return calls("ask", unlike(), "echo", "{}", "ask", unlike())(ctx, q, text)
		case 4:
			return nil, llm.Unavailable("fake", 500, "", 0, nil)
		}
		return says("Done.")(ctx, q, text)
	})
	var hosts []*bench
	for range 3 {
		b := newBench(t, provider, func(o *Options) { o.Store, o.Approvals = store, r })
		b.box.tools["ask"] = r.call
		hosts = append(hosts, b)
	}
	id := ""
	for id == "" {
		if a, err := hosts[0].Turn(t.Context(), someone, ChatRequest{Message: "Go"}, nil); err == nil {
			id = a.Conversation
		}
	}
	ends := map[skill.Code]int{}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 150 {
				b := hosts[roll(len(hosts))]
				var err error
				if roll(4) == 0 {
					_, err = b.Turn(t.Context(), someone, ChatRequest{Message: "More", Conversation: id}, nil)
				} else {
					var v *View
					if v, err = b.Get(t.Context(), someone, id); err == nil && len(v.Pending) > 0 {
						_, err = b.Approve(t.Context(), someone, id, Decision{ApprovalID: v.Pending[0].ApprovalID, Approve: roll(3) > 0}, nil)
					}
				}
				mu.Lock()
				ends[skill.CodeOf(err)]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	flaws.Range(func(flaw, shown any) bool {
		t.Errorf("a model was shown what vendors refuse: %s\n\t%s", flaw, shown)
		return true
	})
	for c := range ends {
		switch c {
		case "", skill.Conflict, skill.AgentLLMUnavailable:
		default:
			t.Errorf("a turn ended with %s", c)
		}
	}
	if ends[""] == 0 || len(r.twice) > 0 {
		t.Errorf("%d turns ended well; calls that were made twice: %v", ends[""], r.twice)
	}
	v, err := hosts[0].Get(t.Context(), someone, id)
	if err != nil || len(v.Messages) == 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

// sharedRecord is a record of approvals for single calls: each call asks once, and is made
// when it comes again.
type sharedRecord struct {
	mu    sync.Mutex
	asked map[string]int
	twice []string
}

func (r *sharedRecord) Get(_ context.Context, _ skill.Principal, id string) (approval.Approval, error) {
	return approval.Approval{ID: id, State: approval.Approved}, nil
}

func (r *sharedRecord) Decide(context.Context, skill.Principal, string, bool) (approval.Approval, error) {
	return approval.Approval{}, nil
}

func (r *sharedRecord) call(_ context.Context, c tools.Call) *tools.Outcome {
	for range 200 { // others are to come in between
		runtime.Gosched()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	key := c.Arguments
	r.asked[key]++
	switch r.asked[key] {
	case 1:
		o := goesWrong(c, skill.Forbidden, "ask first")
		o.Approval = "of-" + key
		return o
	case 2:
	default:
		r.twice = append(r.twice, key)
	}
	return works(c, "ran")
}
