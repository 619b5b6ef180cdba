package javascript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"openskill/internal/musttest"
	"openskill/plugins/runnertest"
	"openskill/sdk/skill"
)

// A skill that was started ahead of calls has read its files by then.
func TestStart(t *testing.T) {
	r := New(warm(t), nil)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	write := func(name, text string) {
		musttest.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("main.js", `const word = std.loadFile('/skill/word.txt'); const input = std.in.readAsString(); console.log(word + input);`)
	write("silent.js", `console.log('no input')`)
	write("word.txt", "first ")
	// An uploaded folder does not change, so that nobody looks for changes in it.
	call := func(entry string) *skill.Call {
		return &skill.Call{
			SkillID: "s", TraceID: "t", ExecutionID: "e", Folder: dir, Entry: entry, Trust: skill.Community,
			Limits: skill.Limits{Timeout: 10 * time.Second, Memory: 64 << 20, Fuel: 1e9, Output: 1 << 16, Scratch: 1 << 20},
		}
	}
	for _, entry := range []string{"main.js", "main.js", "silent.js"} {
		c := call(entry)
		c.Ahead = true
		if _, err := runnertest.Do(t.Context(), r, c); err != nil {
			t.Errorf("%s ahead: %v", entry, err)
		}
	}
	write("word.txt", "second ")
	c := call("main.js")
	c.Stdin = []byte("input")
	reply, err := runnertest.Do(t.Context(), r, c)
	if err != nil || strings.TrimSpace(string(reply.Stdout)) != "first input" {
		t.Errorf("%+v, %v; want what was read by the start", reply, err)
	}
	if _, err := runnertest.Do(t.Context(), r, call("missing.js")); err == nil {
		t.Error("a script that is not there: no error")
	}
}
