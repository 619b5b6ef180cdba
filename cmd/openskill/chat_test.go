package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/internal/musttest"
	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// volatileTook is the time of a turn.
var volatileTook = regexp.MustCompile(`\d+\.\d s\b`)

// runChat runs the command with another host, without a terminal.
func runChat(t *testing.T, h *chatHost, stdin string, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	exit = Run(t.Context(), append([]string{"chat", "--remote", h.URL, "--state", filepath.Join(t.TempDir(), "none")}, args...), strings.NewReader(stdin), &out, &log)
	return exit, out.String(), log.String()
}

func TestChatWithoutATerminal(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	const usage = "  openai gpt-4o, 120 + 12 tokens, $0.0021, 0.0 s\n"
	for _, tt := range []struct {
		name, stdin    string
		args           []string
		exit           int
		stdout, stderr string
	}{
		{"a message", "unread", []string{"say", "this"}, 0, "You said say this\n", usage},
		{"lines", "one\n\n  \ntwo\r\nthree", nil, 0, "You said one\nYou said two\nYou said three\n", usage + usage + usage},
		{"nothing", "", nil, 0, "", ""},
		{
			"a call", "the mean\n", nil, 0, "The mean of 3 and 5 is 4.\n",
			"  ▸ calculator {\"numbers\":[3,5],\"ops\":[\"mean\"]}\n  ✓ calculator 12 ms {\"mean\":4}\n  openai gpt-4o, 120 + 12 tokens, $0.0021, 1 call, 0.0 s\n",
		},
		{"a slash is a message", "/quit\n", nil, 0, "You said /quit\n", usage},
		{"a failure, and on", "break\nrefuse\nfine\n", nil, 1, "You said fine\n", "  ✗ AGENT_LLM_UNAVAILABLE: the model provider cannot be reached\n  ✗ CONFLICT: another message of this conversation is being answered\n" + usage},
		{"a limit", "the limit\n", nil, 1, "The turn ended as max_tool_calls.\n", "  ■ tool call limit reached (max_tool_calls)\n" + usage},
		{"an approval", "", []string{"run it"}, 1, "\n", ""},
		{"rules", "rules\nrules\n", nil, 0, "echo\necho\n", "  rules, 0.0 s\n  no model is configured, so rules choose a skill by the words of a message; the host's operator can set OPENAI_API_KEY, DASHSCOPE_API_KEY or ANTHROPIC_API_KEY to have one\n  rules, 0.0 s\n"},
		{"rules that were asked for", "", []string{"--provider", "rules", "rules"}, 0, "echo\n", "  rules, 0.0 s\n"},
		{"hostile", "", []string{"hostile"}, 1, cleaned(hostileText) + "\n", ""},
	} {
		exit, stdout, stderr := runChat(t, h, tt.stdin, tt.args...)
		stderr = volatileTook.ReplaceAllString(stderr, "0.0 s")
		if tt.name == "an approval" {
			tt.stdout = "" // there is no answer yet
			if !strings.Contains(stderr, "? may the script scripts/convert.py of the skill unit-converter (trusted) run?\n") {
				t.Errorf("%s: the question is missing:\n%s", tt.name, stderr)
			}
		}
		if tt.stderr == "" {
			tt.stderr = stderr
		}
		if exit != tt.exit || stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s: exit code %d\n%s\n(-want +got) %s", tt.name, exit, stdout, cmp.Diff(tt.stdout+tt.stderr, stdout+stderr))
		}
		if i := strings.IndexFunc(stdout+stderr, func(r rune) bool { return r != '\n' && skill.Hidden(r) }); i >= 0 {
			t.Errorf("%s: control characters are printed: %q", tt.name, stdout+stderr)
		}
	}
}

func TestChatJSON(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	exit, stdout, stderr := runChat(t, h, "the mean\nrefuse\nhostile\n", "--json", "--model", "m", "--conversation", "c-0")
	if exit != 1 || stderr != "" {
		t.Errorf("exit code %d, %q", exit, stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines), stdout)
	}
	var a client.ChatAnswer
	if err := json.Unmarshal([]byte(lines[0]), &a); err != nil || a.Answer != "The mean of 3 and 5 is 4." || a.ToolCalls[0].LatencyMS != 12 {
		t.Errorf("%s: %v", lines[0], err)
	}
	if want := `{"error":{"code":"CONFLICT","status":409,"message":"another message of this conversation is being answered"}}`; lines[1] != want {
		t.Errorf("%s, want %s", lines[1], want)
	}
	if err := json.Unmarshal([]byte(lines[2]), &a); err != nil || a.Answer != hostileText || strings.ContainsFunc(lines[2], skill.Hidden) {
		t.Errorf("%q: %v", lines[2], err)
	}
	want := []string{
		`{"message":"the mean","conversation_id":"c-0","model":"m","stream":true}`, `{"message":"refuse","conversation_id":"c-1","model":"m","stream":true}`,
		`{"message":"hostile","conversation_id":"c-1","model":"m","stream":true}`,
	}
	if diff := cmp.Diff(want, h.turns()); diff != "" {
		t.Errorf("(-want +asked)\n%s", diff)
	}
}

// The seed has clients find the host by OPENSKILL_HTTP_BASE_URL.
func TestChatReadsTheAddressOfTheEnvironment(t *testing.T) {
	h := newChatHost(t)
	t.Setenv(client.BaseURLVariable, h.URL)
	var out, log bytes.Buffer
	if exit := Run(t.Context(), []string{"chat", "--state", t.TempDir(), "the mean"}, strings.NewReader(""), &out, &log); exit != 0 || len(h.turns()) != 1 {
		t.Errorf("exit code %d, %d turns there; %s", exit, len(h.turns()), &log)
	}
	// A flag of a host in this process asks for one, and an address for that one.
	log.Reset()
	_ = Run(t.Context(), []string{"chat", "--state", t.TempDir(), "--skills", t.TempDir(), "the mean"}, strings.NewReader(""), &out, &log)
	if len(h.turns()) != 1 {
		t.Errorf("--skills: the host at the address was asked; %s", &log)
	}
	other := newChatHost(t)
	if exit := Run(t.Context(), []string{"chat", "--state", t.TempDir(), "--remote", other.URL, "the mean"}, strings.NewReader(""), &out, &log); exit != 0 || len(h.turns()) != 1 || len(other.turns()) != 1 {
		t.Errorf("--remote: exit code %d, %d and %d turns; %s", exit, len(h.turns()), len(other.turns()), &log)
	}
	t.Setenv(client.BaseURLVariable, "host.example")
	log.Reset()
	if exit := Run(t.Context(), []string{"chat", "--state", t.TempDir(), "the mean"}, strings.NewReader(""), &out, &log); exit != 2 || !strings.Contains(log.String(), client.BaseURLVariable) {
		t.Errorf("exit code %d; %s", exit, &log)
	}
}

func TestChatUsage(t *testing.T) {
	h := newChatHost(t)
	h.key = "osk_right"
	t.Setenv("MY_KEY", "osk_right")
	t.Setenv("OTHER_KEY", "osk_wrong")
	for _, tt := range []struct {
		args []string
		exit int
		want string // on standard error
	}{
		{[]string{"--remote", h.URL, "--key-env", "MY_KEY", "hi"}, 0, ""},
		{[]string{"--remote", h.URL, "--key-env", "OTHER_KEY", "hi"}, 2, "UNAUTHORIZED"},
		{[]string{"--remote", h.URL, "hi"}, 2, "by --key-env"},
		{[]string{"--remote", h.URL, "--key-env", "NO_SUCH_KEY", "hi"}, 2, "environment variable is unset"},
		{[]string{"--remote", "127.0.0.1", "hi"}, 2, "begin with http://"},
		{[]string{"--remote", "http://u:secret@host", "hi"}, 2, "remove user and password"},
		{[]string{"--remote", h.URL, "--skills", ".", "hi"}, 2, "--skills does not apply with --remote"},
		{[]string{"--key-env", "MY_KEY", "hi"}, 2, "--key-env needs --remote"},
		{[]string{""}, 2, "the message is empty"},
		{[]string{"--no-such"}, 2, "unknown flag"},
		{[]string{"--remote", "http://127.0.0.1:1", "hi"}, 3, "connection refused"},
		{[]string{"--remote", "http://127.0.0.2:1", "--key-env", "MY_KEY", "hi"}, 3, "connection refused"},
		{[]string{"--remote", "http://host.invalid:1", "--key-env", "MY_KEY", "hi"}, 3, "unencrypted"},
		{[]string{"--remote", "http://127.0.0.1:1", "--json", "hi"}, 3, ""},
	} {
		var out, log bytes.Buffer
		exit := Run(t.Context(), append([]string{"chat", "--state", t.TempDir()}, tt.args...), strings.NewReader(""), &out, &log)
		if exit != tt.exit || !strings.Contains(log.String(), tt.want) || strings.Contains(log.String(), "secret") {
			t.Errorf("%v: exit code %d, want %d; %s", tt.args, exit, tt.exit, &log)
		}
	}
}

// A chat that is interrupted ends: in a turn, and while it waits for a line.
func TestChatInterrupted(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	for _, args := range [][]string{{"slow"}, nil} {
		ctx, cancel := context.WithCancel(t.Context())
		silent, never := io.Pipe()
		var out bytes.Buffer
		log := &musttest.Buffer{}
		done := make(chan int, 1)
		go func() {
			done <- Run(ctx, append([]string{"chat", "--remote", h.URL, "--state", t.TempDir()}, args...), silent, &out, log)
		}()
		if args == nil {
			_, _ = never.Write([]byte("a slow one\n")) // is read
		}
		<-h.slow
		cancel()
		if exit := <-done; exit != 1 || !strings.Contains(log.String(), "stopped") {
			t.Errorf("%v: exit code %d, %s", args, exit, log)
		}
		<-h.left
		never.Close()
	}
}

func TestKeptLines(t *testing.T) {
	t.Parallel()
	k := &keptLines{filepath.Join(t.TempDir(), "kept")}
	if got := k.load(); got != nil {
		t.Error(got)
	}
	k.add("one")
	k.add("")
	k.add("two\x1b[2J\nlines")
	if diff := cmp.Diff([]string{"one", "two[2J lines"}, k.load()); diff != "" {
		t.Error(diff)
	}
	for range 2*mostKept + 1 {
		k.add("more")
	}
	if got := k.load(); len(got) != mostKept {
		t.Errorf("%d lines", len(got))
	}
	if b, err := os.ReadFile(k.path); err != nil || strings.Count(string(b), "\n") != mostKept {
		t.Errorf("the file is not begun anew: %d lines, %v", strings.Count(string(b), "\n"), err)
	}
	musttest.Do(t, os.WriteFile(k.path, []byte(strings.Repeat("x", 2*mostKeptBytes)+"\nlast\n"), 0o644))
	if diff := cmp.Diff([]string{"last"}, k.load()); diff != "" {
		t.Error(diff)
	}
	k.add("new")
	if info, err := os.Stat(k.path); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 100 {
		t.Error(info, err)
	}
	for _, none := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "no", "folder")} {
		k := &keptLines{none}
		k.add("x")
		if got := k.load(); got != nil {
			t.Errorf("%q: %v", none, got)
		}
	}
}

// A proposed program is shown whole or not at all.
func TestQuestionOfAProposal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code string
		want string
	}{
		"as many lines as fit":      {strings.Repeat("x\n", mostCode), "| x"},
		"a line more":               {strings.Repeat("x\n", mostCode+1), "main.py has 201 lines and 402 bytes, too many to show: read it in the console first"},
		"as long a line as fits":    {strings.Repeat("x", longestCode), "| " + strings.Repeat("x", longestCode)},
		"a longer line":             {strings.Repeat(" ", longestCode) + "x", "main.py has 1 lines and 1001 bytes, too many to show: read it in the console first"},
		"an end of line of its own": {"a\rb", `| "a\rb"`},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tt.code)) }))
		defer h.Close()
		c := &chatting{api: musttest.Get(client.New(h.URL, nil))(t)}
		q := c.proposal(t.Context(), &client.Approval{Skill: "shout", Version: "1.0.0", Script: "main.py"})
		if q.lines[0] != tt.want {
			t.Errorf("%s: %q", name, q.lines[0])
		}
	}
}

// A question is made of the record, whatever the model's call says.
func TestQuestionOfARecord(t *testing.T) {
	t.Parallel()
	c := &chatting{calls: map[string]client.ToolCall{"1": {ID: "1", Arguments: json.RawMessage(`{"skill_name": "harmless", "script_file": "ls.py", "args": ["-l"], "input": "text\u001b[2J"}`)}}}
	for _, tt := range []struct {
		a    client.Approval
		want []string
	}{
		{
			client.Approval{Policy: "call", Skill: "wipe", Script: "scripts/rm.py", Trust: skill.Community, Arguments: []string{"-rf", "a b", "", "\u202e"}},
			[]string{"may the script scripts/rm.py of the skill wipe (community) run?", `arguments: -rf "a b" "" "\u202e" < text[2J`, "yes allows this one call"},
		},
		{
			client.Approval{Policy: "version", Skill: "wipe", Script: "x.py", Digest: "sha256:new", PreviousDigest: "sha256:old", ArgumentsCut: true},
			[]string{
				"may the script x.py of the skill wipe (community) run?", "arguments: … (and more) < text[2J",
				"yes allows every run of this version of the skill, sha256:new; it has CHANGED since it was allowed as sha256:old",
			},
		},
		{
			client.Approval{ID: "ap-1", Policy: "enable", Skill: "shout", Version: "1.0.0", Script: "main.py", Tenant: "acme", Arguments: []string{"cases passed: 2"}, PreviousDigest: "sha256:old"},
			[]string{"enable the proposed skill shout, version 1.0.0?", "| if x:", "|     print('a')", `| "b = '\u202e'"`, "cases passed: 2", "it replaces the version that is enabled now"},
		},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/skills/shout/versions/1.0.0/file" && r.URL.RawQuery == "path=main.py&tenant=acme" {
				_, _ = w.Write([]byte("if x:\n\tprint('a')\nb = '\u202e'\n"))
				return
			}
			_ = json.NewEncoder(w).Encode(tt.a)
		}))
		defer h.Close()
		var err error
		if c.api, err = client.New(h.URL, nil); err != nil {
			t.Fatal(err)
		}
		q := c.question(t.Context(), client.Awaited{ApprovalID: "ap-1", ToolCallID: "1", SkillID: "harmless", Script: "ls.py"})
		want := append(tt.want, "approval ap-1: y or /approve, n or /approve no; a new message continues without it")
		if diff := cmp.Diff(want, append([]string{q.head}, q.lines...)); diff != "" {
			t.Errorf("(-want +shown)\n%s", diff)
		}
	}
}
