package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"openskill/host/agent/llm/llmtest"
	"openskill/sdk/skill"
)

// A tenant's questions to models are bounded by requests, tokens and money a day, also
// where many turns and tasks begin at once, and turns are requests of the tenant's.
func TestRefusesTurnsBeyondTheQuota(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags map[string]string
		most  int // questions to the model
	}{
		"turns a minute, tenant":    {map[string]string{"rate-tenant": "1"}, 1},
		"turns a minute, principal": {map[string]string{"rate-principal": "1"}, 1},
		"requests a day":            {map[string]string{"daily-model-requests": "3"}, 3},
		"tokens a day":              {map[string]string{"daily-model-tokens": "5000", "agent-reply-tokens": "2000", "task-reply-tokens": "2000"}, 3},
		"money a day":               {map[string]string{"daily-model-cents": "10", "agent-prices": "scripted=0/20", "agent-reply-tokens": "4000", "task-reply-tokens": "4000"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := talk(t, c.flags, llmtest.Rule{Say: `{"action": "finish", "result": {"summary": "` + strings.Repeat("done ", 1200) + `"}}`})
			var (
				all sync.WaitGroup
				mu  sync.Mutex
				got = map[int]int{}
			)
			for i := range 40 {
				path, body := "/agent/chat", fmt.Sprintf(`{"message": "number %d"}`, i)
				if i%4 == 3 {
					path, body = "/api/agent/execute", fmt.Sprintf(`{"task": "number %d"}`, i)
				}
				all.Go(func() {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+path, strings.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Content-Type", "application/json")
					res, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					defer res.Body.Close()
					var out struct {
						Error struct {
							Code    skill.Code     `json:"code"`
							Message string         `json:"message"`
							Details map[string]any `json:"details"`
						} `json:"error"`
					}
					if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
						t.Errorf("%s: %d: %v", path, res.StatusCode, err)
					}
					mu.Lock()
					defer mu.Unlock()
					got[res.StatusCode]++
					if res.StatusCode != http.StatusOK && (res.StatusCode != http.StatusTooManyRequests || out.Error.Code != skill.RateLimited ||
						res.Header.Get("Retry-After") == "" || !strings.Contains(out.Error.Message, "try again in")) {
						t.Errorf("%s: %d %+v", path, res.StatusCode, out)
					}
				})
			}
			all.Wait()
			if n := len(v.model.Requests()); n > c.most || n == 0 {
				t.Errorf("the model was asked %d times, want 1 to %d; answers: %v", n, c.most, got)
			}
			if got[http.StatusOK]+got[http.StatusTooManyRequests] != 40 || got[http.StatusOK] == 0 {
				t.Errorf("%v", got)
			}
		})
	}
}

// A replay is a request, also one that makes no run because something differs or there
// is no recording: all of it takes a look at what was kept.
func TestRefusesReplaysBeyondTheQuota(t *testing.T) {
	t.Parallel()
	v := serve(t, settings(t, map[string]string{"rate-tenant": "2"}))
	go func() {
		for v.log.Scan() { // nobody reads it
		}
	}()
	id := v.call(t, "quick").Meta.ExecutionID
	for i, want := range []string{"404 NOT_FOUND", "429 RATE_LIMITED"} {
		expect(t, fmt.Sprint("replay ", i), v.do(t, http.MethodPost, "/executions/"+id+":replay", "application/json", nil), want)
	}
}
