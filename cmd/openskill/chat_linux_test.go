package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"openskill/host/agent/llm/llmtest"
	"openskill/internal/musttest"
)

var updateScreens = flag.Bool("update-screens", false, "write what terminals show to testdata/chat")

// Times and addresses differ from run to run.
var volatileScreen = regexp.MustCompile(`\d+\.\d s\b|http://127\.0\.0\.1:\d+`)

// golden compares a screen with what is in testdata.
func golden(t *testing.T, name, screen string) {
	t.Helper()
	got := volatileScreen.ReplaceAllStringFunc(screen, func(s string) string {
		if strings.HasPrefix(s, "http") {
			return "http://HOST"
		}
		return "0.0 s"
	})
	path := filepath.Join("testdata", "chat", name+".txt")
	if *updateScreens {
		musttest.Do(t, os.MkdirAll(filepath.Dir(path), 0o750))
		musttest.Do(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want := musttest.Get(os.ReadFile(path))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-%s +screen)\n%s", path, diff)
	}
}

// took is how the line ends that says what a turn took.
const took = " s"

// TestChatAtATerminal is a chat with a host over HTTP, as a person sees it.
func TestChatAtATerminal(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	p := sits(t, 100, nil, "chat", "--remote", h.URL)
	p.sees("\n>")
	p.does("what is the mean of 3 and 5?", took)
	p.types("a slow one\r")
	p.sees("Thinking about it")
	p.types("\x03")
	p.sees("stopped\n>")
	<-h.left
	p.types("a silent one\r")
	p.sees("\n  …") // something is waited for
	p.types("\x03")
	p.sees("silent one\n  ■ stopped\n>")
	<-h.left
	p.does("and the next question?", took)
	p.does("/new", "with your next message")
	p.does("/skills", "Miles and kilometres.")
	p.does("/tools", "load_skill")
	p.does("/history", "the first one")
	p.does("/usage", "$0.0042")
	p.does("/nope", "begin with a space")
	p.does("/open 3", "there is none")
	p.does("/approve", "in this conversation")
	p.does("/help", "not saved in the history")
	p.types("one line\\\r")
	p.sees("\n…")
	p.does("and another", took)
	p.types("\x1b[A\x1b[A") // what was typed before
	p.sees("> one line\\")
	p.types("\x03")
	p.sees("as Ctrl-D does\n>")
	p.types("\x04")
	golden(t, "wide", p.leaves(0))
	turns := h.turns()
	if want := `{"message":"what is the mean of 3 and 5?","stream":true}`; turns[0] != want {
		t.Errorf("%s, want %s", turns[0], want)
	}
	if last := turns[len(turns)-1]; last != `{"message":"one line\nand another","stream":true}` {
		t.Errorf("after /new: %s", last)
	}
	if raw := p.raw.String(); !strings.Contains(raw, "\x1b[32m✓\x1b[0m") || !strings.Contains(raw, "\x1b[2m  ▸ calculator") {
		t.Errorf("no colours: %q", raw)
	}
}

// A window of 40 columns with text of two columns a character.
func TestChatInANarrowWindow(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	p := sits(t, 40, []string{"NO_COLOR=1"}, "chat", "--remote", h.URL)
	p.sees("\n>")
	p.types("中文：三与五的平均值是多少？请再告诉我它们的中位数是多少\r")
	p.sees("$0.0…\n>")
	p.does("/skills", "(Agent Skill, truste…")
	p.types("删掉")
	p.sees("> 删掉")
	p.types("\x7f\x7f")
	p.sees("\n>")
	p.does("/new", "message")
	p.types("\x04")
	golden(t, "narrow", p.leaves(0))
	if raw := p.raw.String(); strings.Contains(raw, "\x1b[2m") || strings.Contains(raw, "\x1b[3") {
		t.Errorf("NO_COLOR is set, and there are colours: %q", raw)
	}
}

// What models and skills say reaches no terminal but as text.
func TestChatWithAHostileModel(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	p := sits(t, 100, nil, "chat", "--remote", h.URL)
	p.sees("\n>")
	p.does("hostile", took)
	p.does("/skills", "kilometres.")
	p.does("/history", "the first one")
	p.types("\x04")
	golden(t, "hostile", p.leaves(0))
	for _, bad := range []string{"\x1b]", "\x1b[2J", "\u009b", "\u202e", "\x1b[31mred"} {
		if strings.Contains(p.raw.String(), bad) {
			t.Errorf("%q is sent to the terminal", bad)
		}
	}
}

// A script that waits for an approval: the question, yes and no, and what was typed
// before the question is no answer to it.
func TestChatApproves(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	p := sits(t, 100, nil, "chat", "--remote", h.URL)
	p.sees("\n>")
	p.types("run it\ry\r") // in one go
	p.sees("approve? [y/n]")
	p.types("/approve no ap-8\r")
	p.sees("…ap-8 is not pending")
	p.sees("approve? [y/n]")
	p.does("y", took)
	p.types("run it\r")
	p.sees("approve? [y/n]")
	p.does("/approve no", took)
	p.does("/history", "the first one")
	p.types("/open 1\r")
	p.sees("approve? [y/n]")
	p.does("never mind", took)
	p.types("\x03")
	p.sees("as Ctrl-D does\n>")
	p.types("\x03")
	golden(t, "approval", p.leaves(0))
	want := []string{
		`{"message":"run it","stream":true}`, `c-1:approve {"approval_id":"ap-7","approve":true,"stream":true}`,
		`{"message":"run it","conversation_id":"c-1","stream":true}`, `c-1:approve {"approval_id":"ap-7","approve":false,"stream":true}`,
		`{"message":"never mind","conversation_id":"c-9","stream":true}`,
	}
	if diff := cmp.Diff(want, h.turns()); diff != "" {
		t.Errorf("(-want +asked)\n%s", diff)
	}
}

// Lines are kept between chats, for their owner alone.
func TestChatKeepsLines(t *testing.T) {
	t.Parallel()
	h, state := newChatHost(t), t.TempDir()
	for i, keys := range []string{"one", " secret", "\x1b[A again"} {
		p := sits(t, 100, nil, "chat", "--remote", h.URL, "--state", state)
		p.sees("\n>")
		p.does(keys, took)
		p.types("/quit\r")
		if screen := p.leaves(0); i == 2 && !strings.Contains(screen, "> one again\nYou said one again\n") {
			t.Errorf("the line is not there again:\n%s", screen)
		}
	}
	path := filepath.Join(state, "chat_history")
	b, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, %v", info, err, statErr)
	}
	if diff := cmp.Diff([]string{"one", "one again", ""}, strings.Split(string(b), "\n")); diff != "" {
		t.Errorf("(-want +kept)\n%s", diff)
	}
}

// TestChatWithAHostHere is a chat with a host in the same process and a scripted model:
// real calls, one that a person stops, a script that a person allows, and another chat
// that goes on with the conversation.
func TestChatWithAHostHere(t *testing.T) {
	t.Parallel()
	skills := mcpSkills(t)
	for name, text := range map[string]string{
		"SKILL.md": "---\nname: greeter\ndescription: Says hi.\n---\nRun scripts/hi.js.\n", "scripts/hi.js": "console.log('hi');\n",
	} {
		musttest.Write(t, filepath.Join(skills, "greeter", name), text)
	}
	state, _ := mcpState(t)
	model, err := llmtest.New(llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "seven"}, Say: "One moment.", Calls: []llmtest.Call{{Name: "echoes", Arguments: `{"n": 7}`}}},
		{When: llmtest.When{AfterTool: "echoes"}, Say: "It is 7.", Chunk: 1},
		{When: llmtest.When{User: "sleep"}, Calls: []llmtest.Call{{Name: "sleeps"}}},
		{When: llmtest.When{User: "greet"}, Calls: []llmtest.Call{{Name: "run_skill_script", Arguments: `{"skill_name": "greeter", "script_file": "hi.js", "args": ["--loud"]}`}}},
		{When: llmtest.When{AfterTool: "run_skill_script"}, Say: "It said hi."},
		{When: llmtest.When{User: "again"}, Say: "As I said, 7."},
	}})
	musttest.Do(t, err)
	env := []string{
		"OPENAI_API_BASE=" + llmtest.NewServer(model, nil).Start(t) + "/v1", "OPENAI_API_KEY=scripted", "OPENAI_MODEL=scripted",
		"OPENSKILL_STATE_DIR=" + state, "OPENSKILL_SKILLS_DIR=" + skills, "OPENSKILL_SCRIPT_APPROVAL=call",
	}
	p := sits(t, 110, env, "chat")
	p.sees("\n>")
	p.does("give me seven", took)
	p.sees("…✓ echoes")
	p.sees(`…{"n":7}` + "\nIt is 7.\n")
	p.types("now sleep\r")
	p.sees("…▸ sleeps")
	p.types("\x03")
	p.sees("stopped\n>")
	p.types("please greet\r")
	p.sees("…? run_skill_script waits for an approval\n")
	p.sees("…? may the script scripts/hi.js of the skill greeter (trusted) run?\n    arguments: --loud\n    yes allows this one call\n")
	p.sees("approve? [y/n]")
	p.does("y", took)
	p.sees("…\nIt said hi.\n")
	p.does("/skills", "multiplication factor. Use whe…")
	p.types("\x04")
	screen := p.leaves(0)
	_, after, _ := strings.Cut(screen, "openskill chat --conversation ")
	id, _, ok := strings.Cut(after, " ")
	if !ok {
		t.Fatalf("no conversation is named:\n%s", screen)
	}
	p = sits(t, 110, env, "chat", "--conversation", id)
	p.sees("…> please greet\n")
	p.does("again", took)
	p.sees("…\nAs I said, 7.\n")
	p.types("\x04")
	p.leaves(0)
	cmd := exec.CommandContext(t.Context(), "openskill", "audit", "list", "--state", state, "--json")
	out := musttest.Get(cmd.Output())(t)
	// The call that was stopped is there if it had begun.
	if n := strings.Count(string(out), `"session":"`+id+`"`); n < 2 || n > 3 || strings.Contains(string(out), `"running"`) {
		t.Errorf("%d records have the conversation as their session:\n%s", n, out)
	}
}

// A chat that is told to end ends, at a prompt and in a turn, and leaves the terminal as
// it was.
func TestChatEnds(t *testing.T) {
	t.Parallel()
	h := newChatHost(t)
	for _, turn := range []bool{false, true} {
		p := sits(t, 100, nil, "chat", "--remote", h.URL)
		p.sees("\n>")
		if turn {
			p.types("a slow one\r")
			p.sees("Thinking about it")
		}
		musttest.Do(t, p.cmd.Process.Signal(syscall.SIGTERM))
		p.leaves(0)
		if turn {
			<-h.left
		}
	}
}
