// Package python_test runs the programs of this folder against a host and a model that
// follows a script.
package python_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"openskill/host/agent/llm"
	"openskill/host/agent/llm/llmtest"
	"openskill/host/app"
	"openskill/host/app/config"
	"openskill/host/app/hosttest"
	"openskill/sdk/skill"
)

// TestMain lets this test program be the processes of a host.
func TestMain(m *testing.M) {
	if code, is := app.Child(os.Args[1:]); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// python is the interpreter that has OpenAI's SDK.
func python(t *testing.T) string {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = ".openskill"
	}
	if !filepath.IsAbs(state) {
		state = filepath.Join("..", "..", state)
	}
	path, err := filepath.Abs(filepath.Join(state, "llm-clients", "venv", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("OpenAI's SDK for Python is not set up: run scripts/llm-clients.sh .openskill/llm-clients, which needs pip")
	}
	return path
}

// serve starts a host with the skills and data that come with openSkill, and gives its
// address.
func serve(t *testing.T) string {
	t.Helper()
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := config.Load(config.Sources{Dir: t.TempDir(), Flags: map[string]string{
		"state": t.TempDir(), "skills": filepath.Join(repo, "skills"), "data": filepath.Join(repo, "data"), "listen": "127.0.0.1:0",
	}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := app.Open(settings, &app.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ready, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() { done <- h.Serve(ctx, func(addr net.Addr) { ready <- addr }) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case addr := <-ready:
		return "http://" + addr.String()
	case err := <-done:
		done <- nil
		t.Fatalf("the host does not serve: %v", err)
		return ""
	}
}

// TestAgent: the model calls two skills at once, is told what was wrong with a call,
// mends it, and comes to an answer.
func TestAgent(t *testing.T) {
	path := python(t)
	hosttest.NoRace(t)
	model := llmtest.NewServer(llmtest.Provider(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "look around"}, Calls: []llmtest.Call{
			{Name: "echo", Arguments: `{"text": "你好"}`}, {Name: "file_search", Arguments: `{"query": "openSkill", "root_dir": "./data/docs", "limit": 1}`},
		}},
		{When: llmtest.When{AfterTool: "file_search", Result: `"path": "(\S+)"`}, Calls: []llmtest.Call{{Name: "echo", Arguments: `{"text": 5}`}, {Name: "echo", Arguments: `{`}}},
		{When: llmtest.When{AfterTool: "echo", Result: `not JSON`}, Calls: []llmtest.Call{{Name: "echo", Arguments: `{"text": "mended"}`}}},
		{When: llmtest.When{AfterTool: "echo", Result: `"echoed": "(.*)"`}, Say: "It is $1."},
	}}), &llmtest.ServerOptions{Key: "scripted"})
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	run := exec.CommandContext(ctx, path, "agent.py", "look", "around")
	run.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "OPENSKILL_HTTP_BASE_URL="+serve(t),
		"OPENAI_API_BASE="+model.Start(t)+"/v1", "OPENAI_API_KEY=scripted", "OPENAI_MODEL=scripted")
	run.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	run.Stdout, run.Stderr = &out, &said
	if err := run.Run(); err != nil || out.String() != "It is mended.\n" || strings.Count(said.String(), "calls ") != 5 {
		t.Fatalf("%v: %s\n%s", err, &out, &said)
	}
	asked := model.Requests()
	if len(asked) != 4 {
		t.Fatalf("the model was asked %d times", len(asked))
	}
	var names []string
	for _, tool := range asked[0].Ask.Tools {
		names = append(names, tool.Name)
	}
	for _, id := range []string{"calculator", "echo", "file_search", "log_transform"} {
		if !slices.Contains(names, id) {
			t.Errorf("%s is not among the tools %v", id, names)
		}
	}
	if slices.Contains(names, "load_skill") {
		t.Errorf("tools that are no skills: %v", names)
	}
	var told []string
	for _, m := range asked[3].Ask.Messages {
		if m.Role == llm.Tool {
			told = append(told, m.Text)
		}
	}
	for i, want := range []string{`{"echoed": "你好"}`, `"line_no"`, string(skill.InvalidArgument), "the arguments are not JSON", `{"echoed": "mended"}`} {
		if !strings.Contains(told[i], want) {
			t.Errorf("the model was told %q, want %q", told[i], want)
		}
	}
}
