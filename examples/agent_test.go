// Package examples_test runs the programs that talk with a host's agent: against a real
// host, and a model that follows a script.
package examples_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/llm/llmtest"
	"openskill/host/app"
	"openskill/host/app/config"
)

// TestMain lets this test program be the processes of a host.
func TestMain(m *testing.M) {
	if code, is := app.Child(os.Args[1:]); is {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

const (
	manifest = `id: add_numbers
version: 0.1.0
description: Adds two numbers.
type: wasm
runtime: javascript
entry: main.mjs
limits: {timeout_ms: 60000}
input_schema: {type: object, properties: {num1: {type: number}, num2: {type: number}}, required: [num1, num2], additionalProperties: false}
`
	program = `import * as std from 'std';
const { num1, num2 } = JSON.parse(std.in.readAsString()).input;
console.log(JSON.stringify({ sum: num1 + num2 }));
`
)

// serve starts a host with a skill, an Agent Skill and this model, and gives its address.
func serve(t *testing.T, script llmtest.Script) string {
	t.Helper()
	model, err := llmtest.New(script)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"add_numbers/skill.yaml": manifest, "add_numbers/main.mjs": program,
		"greeter/SKILL.md": "---\nname: greeter\ndescription: Says hi.\n---\nRun scripts/hi.js.\n", "greeter/scripts/hi.js": "console.log('hi');\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := config.Load(config.Sources{Dir: t.TempDir(), Flags: map[string]string{
		"state": t.TempDir(), "skills": dir, "listen": "127.0.0.1:0", "script-approval": "call",
		"openai-api-base": llmtest.NewServer(model, nil).Start(t) + "/v1", "openai-model": "scripted",
	}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := app.Open(settings, &app.Options{Log: slog.New(slog.DiscardHandler), Mode: app.Serving})
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

// Times differ from run to run.
var times = regexp.MustCompile(`\d+ ms`)

// TestAgentPrograms builds the programs and has them talk.
func TestAgentPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "./agentloop", "./chat").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	url := serve(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: `(\d+)和(\d+)相加|add (\d+) and (\d+)`}, Calls: []llmtest.Call{{Name: "add_numbers", Arguments: `{"num1": 3, "num2": 5}`}}},
		{When: llmtest.When{User: "再加"}, Calls: []llmtest.Call{{Name: "add_numbers", Arguments: `{"num1": 8, "num2": 2}`}}},
		{When: llmtest.When{User: "badly"}, Calls: []llmtest.Call{{Name: "add_numbers", Arguments: `{"num1": "three"}`}}, Times: 1},
		{When: llmtest.When{AfterTool: "add_numbers", Result: `"sum": ?(\d+)`}, Say: "The sum is \x1b[1m$1."},
		{When: llmtest.When{AfterTool: "add_numbers"}, Say: "I could not add that."},
	}})
	for _, tt := range []struct {
		name, stdin string
		args        []string
		exit        int
		want        string // on standard output
		stderr      string // within standard error
	}{
		{"agentloop", "", []string{"帮我把数字3和5相加", "再加 2"}, 0, `"The sum is \x1b[1m8."` + "\n" + `"The sum is \x1b[1m10."` + "\n", ""},
		{"agentloop", "", []string{"what nobody expects"}, 1, "", "AGENT_LLM_UNAVAILABLE"},
		{"chat", "add 3 and 5\nadd badly\nwhat nobody expects\n", nil, 0, "> \n  ▸ add_numbers {\"num1\":3,\"num2\":5}\n  ✓ add_numbers 0 ms\nThe sum is [1m8.\n" +
			"> \n  ▸ add_numbers {\"num1\":\"three\"}\n  ✗ add_numbers …\nI could not add that.\n> \n! AGENT_LLM_UNAVAILABLE: …\n> ", ""},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, tt.name), tt.args...)
		cmd.Env = append(os.Environ(), "OPENSKILL_HTTP_BASE_URL="+url, "OPENSKILL_API_KEY=")
		cmd.Stdin = strings.NewReader(tt.stdin)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, _ := cmd.Output()
		got := cut.ReplaceAllString(times.ReplaceAllString(string(out), "0 ms"), "$1 …")
		if diff := cmp.Diff(tt.want, got); diff != "" || cmd.ProcessState.ExitCode() != tt.exit || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%s %q: exit code %d, %s (-want +printed)\n%s", tt.name, tt.args, cmd.ProcessState.ExitCode(), &stderr, diff)
		}
	}
}

// cut is what a host says of failures, behind what they are.
var cut = regexp.MustCompile(`(✗ \w+|! \w+:) .*`)
