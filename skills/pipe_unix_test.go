//go:build unix

package skills_test

import (
	"encoding/json"
	"path/filepath"
	"syscall"
	"testing"

	"openskill/internal/musttest"
)

// TestSearchesFoldersWithPipes holds that a pipe in a folder, of which a sandbox
// sees the name only, hides nothing of what is beside it.
func TestSearchesFoldersWithPipes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for _, name := range []string{"a.txt", "y.txt", "z.md"} {
		writeFile(t, data, "in/"+name, "needle\n")
	}
	for _, name := range []string{"b.txt", "c.txt", "d.md"} {
		musttest.Do(t, syscall.Mkfifo(filepath.Join(data, "in", name), 0o644))
	}
	for _, root := range []string{"data", "data/in"} {
		answerAlike(t, "file_search", data, testCase{
			Input: json.RawMessage(`{"query":"needle","root_dir":"` + root + `","glob":"**/*.txt"}`),
			Want: json.RawMessage(`{"matches":[{"path":"./data/in/a.txt","line_no":1,"snippet":"needle"},{"path":"./data/in/y.txt","line_no":1,"snippet":"needle"}],` +
				`"skipped":{"not_a_file":2},"truncated":false}`),
		})
	}
}
