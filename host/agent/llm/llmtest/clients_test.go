package llmtest_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
)

// forClients is the script that scripts/llm-clients/checks.py talks to.
var forClients = llmtest.Script{Rules: []llmtest.Rule{
	{When: llmtest.When{User: `^hello$`}, Say: "Hello, 世界!", Chunk: 3, Usage: &llmtest.Usage{Prompt: 11, Completion: 7}},
	{When: llmtest.When{User: `weather in (\w+)`}, Calls: []llmtest.Call{{Name: "weather", Arguments: `{"city": "$1"}`}}, Chunk: 4},
	{When: llmtest.When{User: `weather everywhere`}, Calls: []llmtest.Call{
		{Name: "weather", Arguments: `{"city": "Oslo"}`}, {Name: "weather", Arguments: `{"city": "Rome"}`, Repeat: 2},
	}, Chunk: 4},
	{When: llmtest.When{AfterTool: "weather", Result: `"degrees": (\d+)`}, Say: "It has $1 degrees."},
	{When: llmtest.When{User: `too many`}, Status: 429, RetryAfter: 7, Say: "slow down"},
	{When: llmtest.When{User: `always down`}, Status: 503, Say: "down"},
	{When: llmtest.When{User: `overloaded`}, Status: 529, Say: "Overloaded"},
	{When: llmtest.When{User: `cut it off`}, Say: strings.Repeat("long ", 100), CutAfter: 300},
	{When: llmtest.When{User: `say nothing`}, CutAfter: -1},
	{When: llmtest.When{User: `busy for openai`}, Times: 1, Status: 503},
	{When: llmtest.When{User: `busy for anthropic`}, Times: 1, Status: 503},
	{When: llmtest.When{User: `busy for`}, Say: "Now I have time."},
	{When: llmtest.When{User: `at great length`}, Say: "and so on", Stop: llm.StopLength},
}}

// TestOfficialClients has the vendors' own SDKs for Python talk to the server, streamed and
// not: what it speaks is what they understand.
func TestOfficialClients(t *testing.T) {
	t.Parallel()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = ".openskill"
	}
	if !filepath.IsAbs(state) {
		state = filepath.Join("../../../..", state)
	}
	python := musttest.Get(filepath.Abs(filepath.Join(state, "llm-clients", "venv", "bin", "python")))(t)
	if _, err := os.Stat(python); err != nil {
		t.Skip("the SDKs of OpenAI and Anthropic for Python are not set up: run scripts/llm-clients.sh .openskill/llm-clients, which needs pip")
	}
	url := llmtest.NewServer(llmtest.Provider(forClients), &llmtest.ServerOptions{Key: "scripted"}).Start(t)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	run := exec.CommandContext(ctx, python, "../../../../scripts/llm-clients/checks.py", url)
	run.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
	run.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	run.Stdout, run.Stderr = &out, &said
	if err := run.Run(); err != nil || strings.Count(out.String(), "ok ") != 12 {
		t.Errorf("%v\n%s%s", err, &out, &said)
	}
}
