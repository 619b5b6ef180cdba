package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"openskill/internal/measure"

	"golang.org/x/sync/errgroup"

	"openskill/host/agent"
	"openskill/host/agent/conversations"
	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/host/agent/tools"
	"openskill/host/app/config"
	"openskill/host/store"
	"openskill/sdk/skill"
)

// The cases of the suite agent.
const (
	agentRound = "a round of a conversation"
	agentFirst = "the first part of an answer, streamed"
	agentMany  = "1000 conversations at once"
)

// benchAgent is the suite agent: what a round of a conversation costs beside its model
// and its skill, what a host adds to the first part of a streamed answer, and a thousand
// conversations at once over HTTP.
func (a *cli) benchAgent(ctx context.Context, s *config.Settings, o *benchOptions) (rows []measure.Row, err error) {
	rounds, most := 40, 15*time.Second
	if o.quick {
		rounds = 2
	}
	take := func(c *measure.Case) error {
		a.say("agent: %s", c.Name)
		r, err := c.Measure(ctx)
		rows = append(rows, r...)
		return err
	}
	if o.wanted("agent", agentRound) {
		dir, err := os.MkdirTemp("", "openskill-bench-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		db, err := store.Open(ctx, store.Options{URL: "sqlite:" + filepath.Join(dir, "agent.db"), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		defer db.Close()
		c := &measure.Case{Suite: "agent", Name: agentRound, N: rounds, Most: most}
		for _, v := range []struct {
			name  string
			store conversations.Rows
			goals []measure.Goal
		}{
			{"conversations in SQLite", conversations.NewStore(db), []measure.Goal{measure.Median(200 * time.Microsecond)}},
		} {
			talk, err := newRounds(v.store)
			if err != nil {
				return nil, err
			}
			c.Variants = append(c.Variants, measure.Variant{
				Name: v.name, Run: talk.run, Goals: v.goals,
				Note: func() string {
					return fmt.Sprintf("the time of a turn of %d rounds, each with a call, by their number; model and skill answer at once", roundsOfTurn)
				},
			})
		}
		if err := take(c); err != nil {
			return nil, err
		}
	}
	if !o.wanted("agent", agentFirst) && !o.wanted("agent", agentMany) {
		return rows, nil
	}
	served, err := a.serveAgent(ctx, s)
	if err != nil {
		return nil, err
	}
	defer served.stop()
	if o.wanted("agent", agentFirst) {
		c := &measure.Case{Suite: "agent", Name: agentFirst, N: rounds, Most: most, Variants: []measure.Variant{
			{Name: "asked of the model", Run: func(ctx context.Context) (time.Duration, error) {
				return firstPart(ctx, served.model+"/v1/chat/completions", `{"model": "scripted", "stream": true, "max_tokens": 100, "messages": [{"role": "user", "content": "say it"}]}`, `"content"`)
			}},
			{Name: "asked of openskill", Run: func(ctx context.Context) (time.Duration, error) {
				return firstPart(ctx, served.url+"/agent/chat", `{"message": "say it", "stream": true}`, "event: text")
			}, Goals: []measure.Goal{measure.Median(5 * time.Millisecond)}, Note: func() string { return "from the request to the first part; the model answers at once" }},
		}}
		if err := take(c); err != nil {
			return nil, err
		}
	}
	if o.wanted("agent", agentMany) {
		n := 1000
		if o.quick {
			n = 20
		}
		held := uint64(0)
		c := &measure.Case{Suite: "agent", Name: agentMany, N: 5, Most: most, Variants: []measure.Variant{{
			Name: "openskill",
			Run: func(ctx context.Context) (time.Duration, error) {
				t, err := served.converse(ctx, n)
				held = max(held, resident())
				return t, err
			},
			Note: func() string {
				return fmt.Sprintf("the time of %d turns, each with a call of echo, by their number; host, model and clients in one process, which holds %d MiB; none failed", n, held>>20)
			},
		}}}
		if err := take(c); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// roundsOfTurn is how many questions to the model a turn has.
const roundsOfTurn = 11

// atOnce is a model that asks for a call in every round but the last, and a door that
// answers it: neither takes time.
type atOnce struct{}

func (atOnce) Chat(_ context.Context, r *llm.Request, _ func(string)) (*llm.Reply, error) {
	calls := 0
	for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role != llm.User; i-- {
		calls += len(r.Messages[i].Calls)
	}
	u := llm.Usage{Prompt: 100, Completion: 10}
	if calls == roundsOfTurn-1 {
		return &llm.Reply{Text: "done", Stop: llm.StopEnd, Usage: u}, nil
	}
	return &llm.Reply{Stop: llm.StopCalls, Usage: u, Calls: []llm.Call{{ID: fmt.Sprint("call_", calls), Name: "echo", Arguments: `{"text": "hello"}`}}}, nil
}

func (atOnce) Invoke(_ context.Context, _ skill.Principal, r skill.Request) *skill.Result {
	return &skill.Result{
		Success: true, SkillID: r.SkillID, TraceID: r.TraceID, Data: json.RawMessage(`{"echoed": "hello"}`),
		Meta: skill.Meta{Version: "0.1.0", ExecutionID: "bench", Runner: skill.WasmWASI, FuelUsed: 1, Ran: true},
	}
}

func (atOnce) List(skill.Principal, string, int) ([]skill.Descriptor, string, error) {
	return []skill.Descriptor{{
		ID: "echo", Version: "0.1.0", Digest: "sha256:bench", Description: "Says it again.", Enabled: true,
		InputSchema: json.RawMessage(`{"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}`),
	}}, "", nil
}

// rounds takes turns in conversations that are new each.
type rounds struct{ chat *agent.Agent }

func newRounds(s conversations.Rows) (*rounds, error) {
	quiet := slog.New(slog.DiscardHandler)
	models, err := llm.NewModels(llm.Options{Backends: []llm.Backend{{Name: "at-once", Model: "at-once", Provider: atOnce{}, Free: true}}, Log: quiet})
	if err != nil {
		return nil, err
	}
	box, err := tools.New(tools.Options{Door: atOnce{}, Catalogue: atOnce{}, Log: quiet})
	if err != nil {
		return nil, err
	}
	a, err := agent.New(agent.Options{
		Models: models, Tools: box.For, Store: s, Sessions: s, Log: quiet, Concurrent: 1024, ToolCalls: 100, Cost: llm.Dollar, Fuel: 1e12, Days: 1,
		Chat: agent.ChatOptions{Iterations: 100, Tokens: 1e6, Time: time.Minute, ReplyTokens: 4096, History: 20, Keep: 200, Retries: 3, Conversations: 1000},
		Task: agent.TaskLimits{
			Iterations: 1, Tokens: 1000, MinTokens: 1, ReplyTokens: 100, IterationTimeout: time.Minute, Timeout: time.Minute, MaxTimeout: time.Minute,
			History: 1, ShortHistory: 1,
		},
	})
	return &rounds{a}, err
}

func (r *rounds) run(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	a, err := r.chat.Turn(ctx, skill.Local(), agent.ChatRequest{Message: "call it ten times", Trace: "bench"}, nil)
	took := time.Since(began)
	if err == nil && (a.Iterations != roundsOfTurn || len(a.ToolCalls) != roundsOfTurn-1) {
		err = fmt.Errorf("a turn of %d rounds with %d calls, which ended as %s", a.Iterations, len(a.ToolCalls), a.StopReason)
	}
	return took / roundsOfTurn, err
}

// servedAgent is a host over HTTP whose model follows a script.
type servedAgent struct {
	url, model string
	client     *http.Client
	stop       func()
}

func (a *cli) serveAgent(ctx context.Context, s *config.Settings) (*servedAgent, error) {
	skills, err := unlimitedEcho(filepath.Join(s.SkillsDir, "echo"))
	if err != nil {
		return nil, err
	}
	script, err := llmtest.New(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{AfterTool: "echo"}, Say: "It said hello."},
		{When: llmtest.When{User: "call it"}, Calls: []llmtest.Call{{Name: "echo", Arguments: `{"text": "hello"}`}}},
		{Say: "Here it is: a few words of an answer, said in several parts."},
	}})
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	ln, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	modelCtx, stopModel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = llmtest.NewServer(script, nil).Serve(modelCtx, ln) // ended by its context
	}()
	out := &servedAgent{model: "http://" + ln.Addr().String()}
	own, err := config.Load(config.Sources{Flags: map[string]string{
		"state": s.StateDir, "skills": s.SkillsDir, "openai-api-base": out.model + "/v1", "openai-model": "scripted", "agent-limits": "concurrent:2000",
		"daily": "model_requests:1000000000,model_tokens:1000000000000",
	}})
	if err == nil {
		own.DatabaseURL = s.DatabaseURL
		var addr string
		var stop func()
		if _, addr, stop, err = a.serveSkills(ctx, own, skills, map[skill.ID]string{"echo": `{"text":"hello"}`}); err == nil {
			out.url, out.stop = "http://"+addr, func() {
				stop()
				stopModel()
				<-done
			}
			out.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000, MaxConnsPerHost: 2000}}
			return out, nil
		}
	}
	stopModel()
	<-done
	return nil, err
}

// converse takes n turns at once, each in a conversation of its own, and gives the time of
// all by their number. One that fails is an error.
func (v *servedAgent) converse(ctx context.Context, n int) (time.Duration, error) {
	all, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for range n {
		all.Go(func() error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url+"/agent/chat", strings.NewReader(`{"message": "call it"}`))
			if err != nil {
				return err
			}
			res, err := v.client.Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err == nil && (res.StatusCode != http.StatusOK || !bytes.Contains(b, []byte(`"stop_reason":"completed"`)) || !bytes.Contains(b, []byte("It said hello."))) {
				err = fmt.Errorf("a turn failed: %d %.300s", res.StatusCode, b)
			}
			return err
		})
	}
	err := all.Wait()
	return time.Since(began) / time.Duration(n), err
}

// firstPart is the time from a request to the first line of its answer that has a word.
func firstPart(ctx context.Context, url, body, word string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), word) {
			took := time.Since(began)
			_, err := io.Copy(io.Discard, res.Body)
			return took, err
		}
	}
	return 0, errors.New("the answer ended before its first part")
}

// resident is what this process holds of memory; where the system does not say, what the
// runtime has of it.
func resident() uint64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		var total, held uint64
		if n, _ := fmt.Sscan(string(b), &total, &held); n == 2 {
			return held * uint64(os.Getpagesize()) // not negative
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
