package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openskill/internal/musttest"
	"openskill/sdk/skill"
)

// A skill's folder is found among more scripts than a page of the catalogue has.
func TestFolderAmongManyScripts(t *testing.T) {
	t.Parallel()
	scripts := t.TempDir()
	for i := range 60 {
		musttest.Do(t, os.WriteFile(filepath.Join(scripts, fmt.Sprintf("a%02d.py", i)), nil, 0o600))
	}
	var stdout, stderr bytes.Buffer
	code := Run(t.Context(), []string{"run", skillFolder(t), "--state", t.TempDir(), "--cli-dir", scripts, "--fuel", "100000"}, strings.NewReader(""), &stdout, &stderr)
	var r skill.Result
	if err := json.Unmarshal(stdout.Bytes(), &r); code != exitFailed || err != nil || r.Error == nil || r.Error.Code != skill.FuelExhausted {
		t.Errorf("exit code %d, %q, %q; want that it ran", code, &stdout, &stderr)
	}
}
