package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
)

// A failed case has colours at a terminal, and none where somebody wants none. What a
// skill says cannot bring its own.
func TestCasesAtATerminal(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"skill.yaml": "id: red\nversion: 0.1.0\ndescription: Says it in red.\ntype: wasm\nruntime: javascript\nentry: main.mjs\n",
		"main.mjs":   `print('{"says": "\\u001b[31mred\\u009b31m"}');`,
		"cases.yaml": "- {name: says it, data: {says: blue}}\n",
	} {
		musttest.Do(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for _, env := range []string{"NO_COLOR=", "NO_COLOR=1"} {
		p := sits(t, 80, []string{env}, "skill", "test", folder)
		p.leaves(exitFailed)
		p.mu.Lock()
		raw := p.raw.String()
		p.mu.Unlock()
		coloured := strings.Contains(raw, "\x1b[31mFAIL\x1b[0m") && strings.Contains(raw, "expected  \x1b[32m\"blue\"\x1b[0m")
		if coloured != (env == "NO_COLOR=") || !strings.Contains(raw, "data/says") || strings.Contains(raw, "\x1b[31mred") || strings.Contains(raw, "\u009b") {
			t.Errorf("%s: %q", env, raw)
		}
	}
}
