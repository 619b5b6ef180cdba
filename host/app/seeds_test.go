package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
)

// The manifests, lists and requests of the documents that the project grew from are taken as
// they stand there by a started host. Scripts are the built-in skills', by that host's contract.
func TestSeedsRunAsWritten(t *testing.T) {
	call := `{"thought": "look", "action": {"type": "skill_call", "skill": "voc_search", "params": {"query": "支付体验"}}}`
	finish := `{"thought": "enough", "action": {"type": "finish", "result": {"summary": "slow", "findings": []}}}`
	model, err := llmtest.New(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "支付体验(?s:.*)payment"}, Say: finish},
		{When: llmtest.When{User: "支付体验"}, Say: call},
		{When: llmtest.When{User: "3和5"}, Say: "3 + 5 = 8"},
	}})
	musttest.Do(t, err)
	s := settings(t, map[string]string{"openai-api-base": llmtest.NewServer(model, nil).Start(t) + "/v1", "openai-model": "scripted", "task-kinds": "short=iterations:2"})
	dir := filepath.Dir(s.SkillsDir)
	musttest.Do(t, os.CopyFS(dir, os.DirFS("testdata/seeds")))
	for _, id := range []string{"calculator", "echo", "file_search", "log_transform"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "skills", id, id+".py"))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "skills_cli", id+".py"), b, 0o600)
		}
		musttest.Do(t, err)
	}
	s.CLIDir, s.DataRoot, s.SkillConfigPath = filepath.Join(dir, "skills_cli"), filepath.Join(dir, "data"), filepath.Join(dir, "configs", "skills.yaml")
	v := serve(t, s)
	go func() {
		for v.log.Scan() { // nobody reads it
		}
	}()
	text := musttest.Get(os.ReadFile("testdata/seeds/calls.json"))(t)
	var calls []struct {
		Path, Method string
		Body         json.RawMessage
		Status       int
		Has          any
	}
	if err := json.Unmarshal(text, &calls); err != nil || len(calls) < 10 {
		t.Fatalf("%d calls: %v", len(calls), err)
	}
	for _, c := range calls {
		if c.Method == "" {
			c.Method = http.MethodPost
		}
		req := musttest.Get(http.NewRequestWithContext(t.Context(), c.Method, v.url+c.Path, bytes.NewReader(c.Body)))(t)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Trace-Id", "demo-123")
		res, err := http.DefaultClient.Do(req)
		musttest.Do(t, err)
		var got any
		err = json.NewDecoder(res.Body).Decode(&got)
		res.Body.Close()
		if err != nil || res.StatusCode != c.Status || !holds(got, c.Has) {
			t.Errorf("%s %s %s: %d, %v, %v", c.Method, c.Path, c.Body, res.StatusCode, got, err)
		}
	}
}

// holds reports whether a value has all that another one has; of lists each element is in one
// of the other's.
func holds(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		has, ok := got.(map[string]any)
		for key, v := range want {
			value, there := has[key]
			ok = ok && there && holds(value, v)
		}
		return ok
	case []any:
		list, ok := got.([]any)
		for _, v := range want {
			found := false
			for _, e := range list {
				found = found || holds(e, v)
			}
			ok = ok && found
		}
		return ok
	}
	return got == want
}
