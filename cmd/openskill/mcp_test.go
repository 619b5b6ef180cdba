package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"openskill/host/app/hosttest"
	"openskill/internal/musttest"
)

// mcpSkills is a folder with a skill that answers, one that does not end, and the Agent
// Skill that comes with openSkill.
func mcpSkills(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"echoes/skill.yaml": `id: echoes
version: 0.1.0
description: Gives back n.
type: wasm
runtime: javascript
entry: main.mjs
limits: {timeout_ms: 60000}
input_schema: {type: object, properties: {n: {type: integer}}, required: [n], additionalProperties: false}
output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
`,
		"echoes/main.mjs": "import * as std from 'std';\nconsole.log(JSON.stringify({ n: JSON.parse(std.in.readAsString()).input.n }));\n",
		"sleeps/skill.yaml": `id: sleeps
version: 0.1.0
description: Does not end.
type: wasm
runtime: wasi
entry: sleeps.wasm
limits: {timeout_ms: 120000}
`,
		"sleeps/sleeps.wasm":                string(named()["sleep"]),
		"unit-converter/scripts/forever.py": "import time\ntime.sleep(600)\n",
	}
	const unit = "../../skills/unit-converter/"
	for _, name := range []string{"SKILL.md", "scripts/convert.py", "references/conversion-table.md"} {
		b := musttest.Get(os.ReadFile(unit + name))(t)
		files["unit-converter/"+name] = string(b)
	}
	for name, text := range files {
		musttest.Write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return dir
}

// mcpState is a state folder with what runtimes this machine has.
func mcpState(t *testing.T) (dir string, python bool) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	repo := musttest.Get(filepath.Abs("../.."))(t)
	hosttest.Runtimes(t, repo, dir)
	found, err := filepath.Glob(filepath.Join(dir, "runtimes", "*", "*"))
	return dir, err == nil && len(found) > 0
}

// pythonClient is the interpreter that has the official SDK.
func pythonClient(t *testing.T) string {
	t.Helper()
	state := os.Getenv("OPENSKILL_STATE_DIR")
	if state == "" {
		state = ".openskill"
	}
	if !filepath.IsAbs(state) {
		state = filepath.Join("../..", state)
	}
	path := musttest.Get(filepath.Abs(filepath.Join(state, "mcp-client", "venv", "bin", "python")))(t)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the official MCP SDK for Python is not set up: run scripts/mcp-client.sh .openskill/mcp-client, which needs pip")
	}
	return path
}

// lineOfCall is what a call leaves in the host's log.
var lineOfCall = regexp.MustCompile(`"skill_id":"(sleeps|unit-converter)".*`)

// checkCancelled holds that every call of what does not end was ended by its
// cancellation, as the host's log tells.
func checkCancelled(t *testing.T, log string, hasPython bool) {
	t.Helper()
	got := map[string]int{}
	for _, m := range lineOfCall.FindAllStringSubmatch(log, -1) {
		switch {
		case strings.Contains(m[0], `"CANCELLED"`):
			got[m[1]]++
		case m[1] == "sleeps":
			t.Errorf("a call was not cancelled: %s", m[0])
		}
	}
	want := map[string]int{"sleeps": 4}
	if hasPython {
		want["unit-converter"] = 2
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls that were cancelled (-want +got):\n%s\n%s", diff, log)
	}
}

// TestOfficialMCPClient has the official SDK for Python talk to the program over its
// streams and over HTTP, in the newest revision of the protocol and in the last one
// with a handshake.
func TestOfficialMCPClient(t *testing.T) {
	t.Parallel() // it waits for the client, most of the time
	python := pythonClient(t)
	client := func(t *testing.T, hasPython bool, log io.Writer, args ...string) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
		defer stop()
		run := exec.CommandContext(ctx, python, append([]string{"../../scripts/mcp-client/client.py"}, args...)...)
		run.Env, run.WaitDelay = os.Environ(), 5*time.Second
		if !hasPython {
			run.Env = append(run.Env, "PYTHON=no")
			t.Log("no Python runtime: run_skill_script is not tried")
		}
		var out bytes.Buffer
		run.Stdout, run.Stderr = &out, log
		err := run.Run()
		if ok := strings.Count(out.String(), "ok "); err != nil || ok != 22 {
			t.Errorf("%d checks hold, %v\n%s\n%s", ok, err, out.String(), log)
		}
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		skills := mcpSkills(t)
		state, hasPython := mcpState(t)
		var log musttest.Buffer
		client(t, hasPython, &log, skills, "stdio", "openskill", "mcp", "--skills", skills, "--state", state, "--debug")
		checkCancelled(t, log.String(), hasPython)
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		skills := mcpSkills(t)
		state, hasPython := mcpState(t)
		var log musttest.Buffer
		cmd := exec.CommandContext(t.Context(), "openskill", "serve", "--listen", "127.0.0.1:0", "--skills", skills, "--state", state, "--debug")
		cmd.Stderr = &log
		out := musttest.Get(cmd.StdoutPipe())(t)
		musttest.Do(t, cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		_, url, ok := strings.Cut(strings.TrimSpace(line), "listening on ")
		if err != nil || !ok {
			t.Fatalf("%q, %v\n%s", line, err, log.String())
		}
		var said musttest.Buffer
		client(t, hasPython, &said, skills, "http", url+"/mcp")
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server did not end well: %v", err)
		}
		checkCancelled(t, log.String(), hasPython)
	})
}

// TestMCPEnds holds that the program ends with success when its input does, after it
// has answered, and when it is told to, though a call runs.
func TestMCPEnds(t *testing.T) {
	skills, state := mcpSkills(t), filepath.Join(t.TempDir(), "state")
	start := func(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
		t.Helper()
		cmd = exec.CommandContext(t.Context(), "openskill", "mcp", "--skills", skills, "--state", state)
		in = musttest.Get(cmd.StdinPipe())(t)
		o := musttest.Get(cmd.StdoutPipe())(t)
		musttest.Do(t, cmd.Start())
		out = bufio.NewReader(o)
		write(t, in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, `"openskill"`) {
			t.Fatalf("%s, %v", line, err)
		}
		return cmd, in, out
	}
	t.Run("its input", func(t *testing.T) {
		cmd, in, out := start(t)
		write(t, in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echoes","arguments":{"n":5}}}`)
		_ = in.Close()
		rest, err := io.ReadAll(out)
		var answer struct {
			Result struct{ StructuredContent struct{ N int } }
		}
		if err != nil || json.Unmarshal(rest, &answer) != nil || answer.Result.StructuredContent.N != 5 {
			t.Errorf("%s, %v", rest, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a signal", func(t *testing.T) {
		cmd, in, out := start(t)
		defer in.Close()
		write(t, in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleeps","_meta":{"progressToken":1}}}`)
		if line, err := out.ReadString('\n'); err != nil || !strings.Contains(line, "notifications/progress") { // it runs
			t.Fatalf("%s, %v", line, err)
		}
		musttest.Do(t, cmd.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestMCPApproval has a script wait for the operator's word, who is asked by the client.
func TestMCPApproval(t *testing.T) {
	skills, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	for name, text := range map[string]string{
		"SKILL.md":      "---\nname: greeter\ndescription: Greets.\n---\nRun hello.js.\n",
		"scripts/hi.js": "console.log('hi');\n",
	} {
		musttest.Write(t, filepath.Join(skills, "greeter", name), text)
	}
	cmd := exec.CommandContext(t.Context(), "openskill", "mcp", "--skills", skills, "--state", state, "--script-approval", "version")
	in := musttest.Get(cmd.StdinPipe())(t)
	o := musttest.Get(cmd.StdoutPipe())(t)
	musttest.Do(t, cmd.Start())
	out := bufio.NewReader(o)
	hear := func() string {
		t.Helper()
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s, %v", line, err)
		}
		return line
	}
	write(t, in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	hear()
	write(t, in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	run := func(id string) {
		write(t, in, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"run_skill_script","arguments":{"skill_name":"greeter","script_file":"hi.js"}}}`)
	}
	run("1")
	var asked struct {
		ID     json.RawMessage
		Method string
		Params struct{ Message string }
	}
	if line := hear(); json.Unmarshal([]byte(line), &asked) != nil || asked.Method != "elicitation/create" || !strings.Contains(asked.Params.Message, "greeter (trusted) asks to run scripts/hi.js") {
		t.Fatalf("%s", line)
	}
	write(t, in, `{"jsonrpc":"2.0","id":`+string(asked.ID)+`,"result":{"action":"accept","content":{}}}`)
	if line := hear(); !strings.Contains(line, `"text":"hi\n"`) {
		t.Errorf("%s", line)
	}
	run("2") // this version is approved
	if line := hear(); !strings.Contains(line, `"text":"hi\n"`) {
		t.Errorf("%s", line)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	list, err := exec.CommandContext(t.Context(), "openskill", "approvals", "list", "--state", state, "--json").Output()
	if err != nil || !bytes.Contains(list, []byte(`"approved"`)) || !bytes.Contains(list, []byte(`"decided_by":"local"`)) {
		t.Errorf("on record: %s, %v", list, err)
	}
}

func write(t *testing.T, w io.Writer, line string) {
	t.Helper()
	musttest.Get(io.WriteString(w, line+"\n"))(t)
}
